//! Reads and writes files of the project, and of the temporary folder, for an agent.
//!
//! Each path is walked step by step from the folder's own descriptor and never leaves what agents may have, by `..`, by a
//! link or by a race. This keeps order; it is no sandbox: most agents have a shell.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RawMode, Uid};
use rustix::fs::{fchmod, fchown, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::Grounds;
use super::error::Refusal;
use super::walk::{Found, Grant, Missing, fault};
use crate::files::{FileId, require_unlocked_id, temporary::name as temporary_name};
use crate::process::launch::Launch;

/// The largest file that is read, in bytes.
pub(super) const LARGEST: usize = 16 << 20;

/// The folders in which files may be.
pub(super) struct Files {
    grant: Grant,
}

impl Files {
    pub(super) fn new(grounds: &Grounds) -> Self {
        let roots = [grounds.launch.cwd.clone(), temporary(&grounds.launch)];
        Self { grant: Grant::new(&roots, &grounds.ours) }
    }

    /// The text of a file: from this line (from 1) on and this many lines, if given.
    pub(super) fn read(&self, path: &Path, line: Option<u32>, limit: Option<u32>) -> Result<String, Refusal> {
        let shown = path.display();
        let Found { folder, name: Some(name), .. } = self.grant.find(path, Missing::Refused)? else {
            return Err(Refusal::because(format!("{shown}: it is no file")));
        };
        let found = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| fault(path, errno))?;
        require_unlocked_id(FileId::from(&found))
            .map_err(|error| Refusal::because(format!("{shown}: {error}")))?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&folder, &name, flags, Mode::empty()).map_err(|errno| fault(path, errno))?;
        let file = File::from(file);
        let about = file.metadata().map_err(|error| Refusal::because(format!("{shown}: {error}")))?;
        if !about.is_file() {
            return Err(Refusal::because(format!("{shown}: it is no file")));
        }
        let mut bytes = Vec::new();
        let read = file.take(LARGEST as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| Refusal::because(format!("{shown}: {error}")))?;
        if bytes.len() > LARGEST {
            return Err(Refusal::because(format!("{shown}: it is larger than {LARGEST} bytes")));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| Refusal::because(format!("{shown}: it is no UTF-8 text")))?;
        Ok(lines(text, line, limit))
    }

    /// Replaces a file, and makes missing folders. The mode stays, and links are kept.
    pub(super) fn write(&self, path: &Path, content: &str) -> Result<(), Refusal> {
        if content.len() > LARGEST {
            return Err(Refusal::because(format!("{}: more than {LARGEST} bytes", path.display())));
        }
        let Found { folder, name: Some(name), .. } = self.grant.find(path, Missing::Made)? else {
            return Err(Refusal::because(format!("{}: it is no file", path.display())));
        };
        write_in(&folder, &name, content).map_err(|error| match error {
            WriteError::Errno(errno) => fault(path, errno),
            WriteError::Io(error) => Refusal::because(format!("{}: {error}", path.display())),
            WriteError::NoFile => Refusal::because(format!("{}: it is no file", path.display())),
        })
    }

    /// A folder in which a command can run.
    pub(super) fn folder(&self, path: &Path) -> Result<PathBuf, Refusal> {
        match self.grant.find(path, Missing::Refused)? {
            Found { name: None, path, .. } => Ok(path),
            Found { .. } => Err(Refusal::because(format!("{}: there is no such folder", path.display()))),
        }
    }
}

enum WriteError {
    Errno(Errno),
    Io(std::io::Error),
    NoFile,
}

impl From<Errno> for WriteError {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<std::io::Error> for WriteError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes a file beside the existing one, then replaces that.
fn write_in(folder: &OwnedFd, name: &OsStr, content: &str) -> Result<(), WriteError> {
    let old = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(old) if FileType::from_raw_mode(old.st_mode).is_file() => Some(old),
        Ok(_) => return Err(WriteError::NoFile),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(errno.into()),
    };
    // The new file must not be readable by more users than the old one.
    let (temporary, file) = create_beside(folder, if old.is_some() { 0o600 } else { 0o666 })?;
    let mut file = File::from(file);
    let permitted = old.map_or(Ok(()), |old| {
        // Only root can give a file to another user; set-uid and set-gid bits are dropped.
        let _ = fchown(&file, Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)));
        Ok(fchmod(&file, Mode::from_raw_mode(old.st_mode & 0o1777))?)
    });
    let written = permitted.and_then(|()| file.write_all(content.as_bytes()));
    let renamed =
        written.map_err(WriteError::from).and_then(|()| Ok(renameat(folder, &temporary, folder, name)?));
    if renamed.is_err() {
        let _ = unlinkat(folder, &temporary, AtFlags::empty());
    }
    renamed
}

/// A new file under an unused name.
fn create_beside(folder: &OwnedFd, mode: RawMode) -> Result<(String, OwnedFd), Errno> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = temporary_name(&count.to_string());
        match openat(folder, &name, flags, Mode::from_raw_mode(mode)) {
            // Left by a write that was cut off.
            Err(Errno::EXIST) => {}
            file => return Ok((name, file?)),
        }
    }
}

/// The folder for temporary files: the agent's own, unless it belongs to another user or contains the home.
fn temporary(launch: &Launch) -> PathBuf {
    let named = |name: &str| launch.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = named("HOME").and_then(|home| home.canonicalize().ok()).unwrap_or_default();
    let is_own = |path: &PathBuf| {
        let Ok(path) = path.canonicalize() else { return false };
        let about = fs::metadata(&path);
        path.parent().is_some()
            && !home.starts_with(&path)
            && about.is_ok_and(|about| about.is_dir() && about.uid() == rustix::process::geteuid().as_raw())
    };
    named("TMPDIR").filter(is_own).unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// Some of the lines of a text.
fn lines(text: String, from: Option<u32>, limit: Option<u32>) -> String {
    if from.is_none() && limit.is_none() {
        return text;
    }
    let skipped = from.unwrap_or(1).saturating_sub(1) as usize;
    let most = limit.map_or(usize::MAX, |limit| limit as usize);
    text.split_inclusive('\n').skip(skipped).take(most).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// A project in a folder that is not below its temporary folder.
    fn files() -> (tempfile::TempDir, Files, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(root.join(".git")).unwrap();
        let ours = ["state.toml", "lock", "progress.db*"].map(|name| root.join(".ralph").join(name).into());
        let files = Files { grant: Grant::new(std::slice::from_ref(&root), &ours) };
        (folder, files, root)
    }

    fn why<T: std::fmt::Debug>(result: Result<T, Refusal>) -> String {
        format!("{:?}", result.unwrap_err())
    }

    #[test]
    fn what_is_written_can_be_read_and_keeps_its_mode_and_its_links() {
        let (_guard, files, root) = files();
        let path = root.join("a/b/c.txt");
        files.write(&path, "one\ntwo\nthree").unwrap();
        assert_eq!(files.read(&path, None, None).unwrap(), "one\ntwo\nthree");
        assert_eq!(files.read(&path, Some(2), Some(1)).unwrap(), "two\n");
        assert_eq!(files.read(&path, Some(9), None).unwrap(), "");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
        symlink("b/c.txt", root.join("a/link")).unwrap();
        files.write(&root.join("a/link"), "new").unwrap();
        assert!(root.join("a/link").is_symlink());
        let about = fs::metadata(&path).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), about.mode() & 0o777), ("new", 0o751));
        assert_eq!(fs::read_dir(root.join("a/b")).unwrap().count(), 1, "no temporary file is left");
        assert_eq!(files.read(&root.join("a/../a/link"), None, None).unwrap(), "new");
    }

    #[test]
    fn a_database_in_use_is_not_opened_by_another_name() {
        let (_guard, files, root) = files();
        let (database, other) = (root.join("db"), root.join("other"));
        fs::write(&database, "x").unwrap();
        fs::hard_link(&database, &other).unwrap();
        let mut locked = crate::files::Locked::default();
        locked.add(&database).unwrap();
        assert!(why(files.read(&other, None, None)).contains("which only SQLite may open"));
        drop(locked);
        assert_eq!(files.read(&other, None, None).unwrap(), "x");
    }

    #[test]
    fn nothing_outside_and_nothing_of_ours_is_touched() {
        let (_guard, files, root) = files();
        let outside = root.parent().unwrap().join("outside");
        fs::write(&outside, "secret").unwrap();
        symlink(&outside, root.join("out")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink(".git", root.join("git")).unwrap();
        symlink("round", root.join("round")).unwrap();
        fs::write(root.join(".git/config"), "").unwrap();
        fs::create_dir(root.join("folder")).unwrap();
        for (path, expected) in [
            ("../outside", "outside of the project"),
            ("../project/../outside", "outside of the project"),
            ("out", "leads out of the project"),
            ("up/outside", "leads out of the project"),
            ("round", "too many links"),
            (".git/config", "not for agents"),
            ("git/config", "not for agents"),
            ("sub/.git/config", "not for agents"),
            (".ralph/state.toml", "not for agents"),
            (".ralph/lock", "not for agents"),
            (".ralph/lock/below", "not for agents"),
            (".ralph/progress.db-wal", "not for agents"),
            ("folder", "no file"),
        ] {
            fs::create_dir_all(root.join(".ralph")).unwrap();
            assert!(why(files.read(&root.join(path), None, None)).contains(expected), "read {path}");
        }
        for path in [
            "../outside",
            "out",
            "up/outside",
            "up/new",
            ".git/config",
            "git/config",
            "git/hooks/x",
            "git/new/sub/x",
            ".ralph/state.toml",
            ".ralph/lock/new/sub/x",
            "folder",
            "",
        ] {
            files.write(&root.join(path), "x").unwrap_err();
        }
        assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
        assert!(!root.parent().unwrap().join("new").exists());
        assert_eq!(fs::read_dir(root.join(".git")).unwrap().count(), 1, "nothing is made there");
        assert_eq!(fs::read_dir(root.join(".ralph")).unwrap().count(), 0, "nor there");
        assert!(why(files.read(Path::new("relative"), None, None)).contains("not absolute"));
        assert!(
            why(files.read(&root.join("none"), None, None)).contains("ENOENT: no such file or directory")
        );
        let pipe = root.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(why(files.read(&pipe, None, None)).contains("no file"));
        files.write(&root.join(".ralph/lockfile.md"), "theirs").unwrap();
    }

    #[test]
    fn links_lead_where_they_lead_for_everybody() {
        let (_guard, files, root) = files();
        fs::create_dir_all(root.join("b/c")).unwrap();
        symlink("b/c", root.join("a")).unwrap();
        symlink("../y", root.join("b/c/x")).unwrap();
        files.write(&root.join("a/x"), "new").unwrap();
        assert_eq!(fs::read_to_string(root.join("b/y")).unwrap(), "new");
        assert!(!root.join("y").exists() && root.join("b/c/x").is_symlink());
        assert_eq!(files.read(&root.join("a/../y"), None, None).unwrap(), "new", "as for everybody else");
        // Absolute links, also into another folder that agents may have.
        let other = root.parent().unwrap().join("other");
        fs::create_dir(&other).unwrap();
        let both = Files { grant: Grant::new(&[root.clone(), other.clone()], &[]) };
        symlink(root.join("b"), root.join("absolute")).unwrap();
        symlink(&other, root.join("elsewhere")).unwrap();
        assert_eq!(both.read(&root.join("absolute/y"), None, None).unwrap(), "new");
        both.write(&root.join("elsewhere/sub/z"), "there").unwrap();
        assert_eq!(both.read(&root.join("../other/sub/z"), None, None).unwrap(), "there");
        assert_eq!(both.folder(&root.join("elsewhere/sub")).unwrap(), other.join("sub"));
        both.folder(&root.join("b/y")).unwrap_err();
        both.folder(&root.join("none")).unwrap_err();
        assert!(why(files.write(&root.join("elsewhere/sub/z"), "x")).contains("leads out of the project"));
        // A root may be known by a link to it.
        let named = root.parent().unwrap().join("named");
        symlink(&root, &named).unwrap();
        let by_name = Files { grant: Grant::new(std::slice::from_ref(&named), &[named.join("b/y").into()]) };
        assert!(why(by_name.read(&named.join("a/x"), None, None)).contains("not for agents"));
        by_name.write(&named.join("b/w"), "by name").unwrap();
        assert_eq!(by_name.read(&root.join("b/w"), None, None).unwrap(), "by name");
    }

    #[test]
    fn what_was_private_stays_so_while_it_is_written_and_long_names_are_no_matter() {
        let (_guard, files, root) = files();
        let path = root.join("n".repeat(255));
        files.write(&path, "one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        // A file left by a write that was cut off does not block the next one.
        files.write(&path, "two").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o400);
        let folder: OwnedFd = File::open(&root).unwrap().into();
        let (name, file) = create_beside(&folder, 0o600).unwrap();
        assert_eq!(File::from(file).metadata().unwrap().mode() & 0o777, 0o600);
        assert_ne!(create_beside(&folder, 0o600).unwrap().0, name);
    }

    #[test]
    fn the_temporary_folder_is_the_agents_own_one_or_the_usual_one() {
        let (_guard, _, root) = files();
        let home = root.join("home");
        fs::create_dir_all(home.join("tmp")).unwrap();
        symlink(&home, root.join("link")).unwrap();
        let of = |path: &Path| {
            let set = |name: &str, path: &Path| (name.into(), path.into());
            let env = vec![set("HOME", &home), set("TMPDIR", Path::new("/")), set("TMPDIR", path)];
            temporary(&Launch { env, ..Launch::default() })
        };
        let usual = PathBuf::from("/tmp");
        assert_eq!(of(&home.join("tmp")), home.join("tmp"));
        symlink(home.join("tmp"), root.join("by-link")).unwrap();
        assert_eq!(of(&root.join("by-link")), root.join("by-link"), "as the agent knows it");
        for refused in
            [Path::new("/"), &home, &root, &root.join("link"), &home.join("tmp/.."), &root.join("none")]
        {
            assert_eq!(of(refused), usual, "{}", refused.display());
        }
        assert_eq!(of(Path::new("tmp")), usual);
    }
}
