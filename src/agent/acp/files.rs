//! Files of the project for an agent that asks us for them, and of the folder for temporary ones.
//!
//! Each path is walked by the kernel from the folder's own descriptor and never leaves it, by `..`, by a link or by a race. This
//! keeps order; it is no sandbox: most agents have a shell.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, mkdirat, openat2, renameat, unlinkat};
use rustix::io::Errno;

use super::Grounds;
use super::error::Refusal;

/// A larger file is none for a prompt, in bytes.
const LARGEST: u64 = 16 << 20;
/// How many links one after the other are followed to what is written.
const LINKS: usize = 40;

/// Where files may be.
pub(super) struct Files {
    roots: Vec<PathBuf>,
    /// How the paths of files of ours begin.
    ours: Vec<OsString>,
}

impl Files {
    pub(super) fn new(grounds: &Grounds) -> Self {
        let roots = [grounds.launch.cwd.clone(), temporary()];
        Self {
            roots: roots.iter().filter_map(|root| root.canonicalize().ok()).collect(),
            ours: grounds.ours.clone(),
        }
    }

    /// The text of a file, from a line (from 1) on and of so many lines where that is said.
    pub(super) fn read(&self, path: &Path, line: Option<u32>, limit: Option<u32>) -> Result<String, Refusal> {
        let (root, below) = self.place(path)?;
        let shown = path.display();
        let file = open(&root, &below, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
            .map_err(|errno| fault(path, errno))?;
        let file = File::from(file);
        // Wherever links have led: what is opened is what counts.
        self.place(&real(&file))?;
        let about = file.metadata().map_err(|error| Refusal::because(format!("{shown}: {error}")))?;
        if !about.is_file() {
            return Err(Refusal::because(format!("{shown}: it is no file")));
        }
        let mut bytes = Vec::new();
        let read = file.take(LARGEST + 1).read_to_end(&mut bytes);
        read.map_err(|error| Refusal::because(format!("{shown}: {error}")))?;
        if bytes.len() as u64 > LARGEST {
            return Err(Refusal::because(format!("{shown}: it is larger than {LARGEST} bytes")));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| Refusal::because(format!("{shown}: it is no UTF-8 text")))?;
        Ok(lines(&text, line, limit))
    }

    /// Writes a file whole, with the folders that it needs. Its mode stays, and a link leads where it did.
    pub(super) fn write(&self, path: &Path, content: &str) -> Result<(), Refusal> {
        if content.len() as u64 > LARGEST {
            return Err(Refusal::because(format!("{}: more than {LARGEST} bytes", path.display())));
        }
        let mut path = path.to_owned();
        for _ in 0..LINKS {
            let (root, below) = self.place(&path)?;
            let folder = make_folders(&root, below.parent().unwrap_or(Path::new("")))
                .map_err(|errno| fault(&path, errno))?;
            let name = below.file_name().unwrap_or_default();
            self.place(&real(&folder).join(name))?;
            let target = write_in(&folder, Path::new(name), content).map_err(|error| match error {
                WriteError::Errno(errno) => fault(&path, errno),
                WriteError::Io(error) => Refusal::because(format!("{}: {error}", path.display())),
                WriteError::NoFile => Refusal::because(format!("{}: it is no file", path.display())),
            })?;
            match target {
                None => return Ok(()),
                // It is a link: what it leads to is looked at like any other path.
                Some(target) => path = path.parent().unwrap_or(&path).join(target),
            }
        }
        Err(Refusal::because(format!("{}: too many links", path.display())))
    }

    /// A folder in which a command may run.
    pub(super) fn folder(&self, path: &Path) -> Result<PathBuf, Refusal> {
        let refuse = |error: std::io::Error| Refusal::because(format!("{}: {error}", path.display()));
        let real = path.canonicalize().map_err(refuse)?;
        self.place(&real)?;
        if !path.is_absolute() || !real.is_dir() {
            return Err(Refusal::because(format!("{}: it is no absolute path of a folder", path.display())));
        }
        Ok(real)
    }

    /// The root that a path is below, and the rest of it.
    fn place(&self, path: &Path) -> Result<(PathBuf, PathBuf), Refusal> {
        if !path.is_absolute() {
            return Err(Refusal::params("the path is not absolute"));
        }
        let path = &normal(path);
        let root = self.roots.iter().find(|root| path.starts_with(root));
        let Some((root, below)) = root.and_then(|root| Some((root, path.strip_prefix(root).ok()?))) else {
            return Err(Refusal::because(format!("{}: it is outside of the project", path.display())));
        };
        let is_git = below.components().any(|part| part.as_os_str() == ".git");
        if is_git || self.ours.iter().any(|ours| path.as_os_str().as_bytes().starts_with(ours.as_bytes())) {
            return Err(Refusal::because(format!("{}: it is not for agents", path.display())));
        }
        Ok((root.clone(), below.to_owned()))
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

/// Where an open file is.
fn real(file: &impl AsRawFd) -> PathBuf {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default()
}

/// Writes a file in a folder. `Some`: it is a link, and leads there.
fn write_in(folder: &OwnedFd, name: &Path, content: &str) -> Result<Option<PathBuf>, WriteError> {
    if name.as_os_str().is_empty() {
        return Err(WriteError::NoFile);
    }
    let old = openat2_in(folder, name, OFlags::PATH | OFlags::NOFOLLOW);
    let mode = match old {
        Ok(old) => {
            let about = File::from(old).metadata()?;
            if about.is_symlink() {
                return Ok(Some(
                    rustix::fs::readlinkat(folder, name, Vec::new())?.to_string_lossy().as_ref().into(),
                ));
            }
            if !about.is_file() {
                return Err(WriteError::NoFile);
            }
            Some(about.mode() & 0o7777)
        }
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(errno.into()),
    };
    let temporary = format!(".{}.{}.tmp", name.display(), std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    // Left by one that was cut off.
    let _ = unlinkat(folder, &temporary, AtFlags::empty());
    let file = rustix::fs::openat(folder, &temporary, flags, Mode::from_raw_mode(0o666))?;
    let mut file = File::from(file);
    let written = file.write_all(content.as_bytes()).and_then(|()| match mode {
        Some(mode) => file.set_permissions(fs::Permissions::from_mode(mode)),
        None => Ok(()),
    });
    let renamed =
        written.map_err(WriteError::from).and_then(|()| Ok(renameat(folder, &temporary, folder, name)?));
    if renamed.is_err() {
        let _ = unlinkat(folder, &temporary, AtFlags::empty());
    }
    renamed.map(|()| None)
}

/// The folder of this path below a root, which is made where it is missing.
fn make_folders(root: &Path, below: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let mut folder = rustix::fs::open(root, flags | OFlags::CLOEXEC, Mode::empty())?;
    let mut done = PathBuf::new();
    for part in below.components() {
        done.push(part);
        folder = match open(root, &done, flags) {
            Err(Errno::NOENT) => {
                match mkdirat(&folder, Path::new(part.as_os_str()), Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => open(root, &done, flags)?,
                    Err(errno) => return Err(errno),
                }
            }
            opened => opened?,
        };
    }
    Ok(folder)
}

fn open(root: &Path, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let root = rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    openat2_in(&root, below, flags)
}

/// Opens what is beneath a folder, whatever links are on the way there.
fn openat2_in(folder: &OwnedFd, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    openat2(folder, below, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// What a refused call means for the agent.
fn fault(path: &Path, errno: Errno) -> Refusal {
    match errno {
        Errno::NOENT => Refusal::not_found(&path.to_string_lossy()),
        Errno::XDEV => Refusal::because(format!("{}: it leads out of the project", path.display())),
        errno => Refusal::because(format!("{}: {}", path.display(), std::io::Error::from(errno))),
    }
}

/// A path without `.` and `..`, as it is written.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts
}

/// The folder for temporary files: ours, unless it is one that has far more in it.
fn temporary() -> PathBuf {
    let usual = PathBuf::from("/tmp");
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let named = std::env::var_os("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
    named.filter(|path| path != Path::new("/") && Some(path) != home.as_ref()).unwrap_or(usual)
}

/// Some of the lines of a text.
fn lines(text: &str, from: Option<u32>, limit: Option<u32>) -> String {
    if from.is_none() && limit.is_none() {
        return text.to_owned();
    }
    let skipped = from.unwrap_or(1).saturating_sub(1) as usize;
    let most = limit.map_or(usize::MAX, |limit| limit as usize);
    text.split_inclusive('\n').skip(skipped).take(most).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A project in a folder of its own, which is no temporary one for it.
    fn files() -> (tempfile::TempDir, Files, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(root.join(".git")).unwrap();
        let files = Files { roots: vec![root.clone()], ours: vec![root.join(".ralph/state.toml").into()] };
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
    fn nothing_outside_and_nothing_of_ours_is_touched() {
        let (_guard, files, root) = files();
        let outside = root.parent().unwrap().join("outside");
        fs::write(&outside, "secret").unwrap();
        symlink(&outside, root.join("out")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink(".git", root.join("git")).unwrap();
        fs::write(root.join(".git/config"), "").unwrap();
        fs::create_dir(root.join("folder")).unwrap();
        for (path, expected) in [
            ("../outside", "outside of the project"),
            ("out", "leads out of the project"),
            ("up/outside", "leads out of the project"),
            (".git/config", "not for agents"),
            ("git/config", "not for agents"),
            ("sub/.git/config", "not for agents"),
            (".ralph/state.toml", "not for agents"),
            ("folder", "no file"),
        ] {
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
            ".ralph/state.toml",
            "folder",
        ] {
            files.write(&root.join(path), "x").unwrap_err();
        }
        assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
        assert!(!root.parent().unwrap().join("new").exists());
        assert!(why(files.read(Path::new("relative"), None, None)).contains("not absolute"));
        assert!(
            why(files.read(&root.join("none"), None, None)).contains("ENOENT: no such file or directory")
        );
        let pipe = root.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(why(files.read(&pipe, None, None)).contains("no file"));
    }
}
