//! Temporary files: a file that is written whole is written under a temporary name, and renamed when it is complete.
//! A killed process leaves one behind. Its name has the boot and the process, and the file is locked, so that the
//! next start removes exactly such files. Temporary folders work likewise.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::OFlags;
use tempfile::{NamedTempFile, TempDir};

use super::opened_regular;
use crate::platform::calls::{boot_id, stat};

/// The prefix of their names, before the boot, the process and a random part.
const PREFIX: &str = ".ralph-";
pub(super) const SUFFIX: &str = ".tmp";
/// What follows in the name of the folder of a text that the user edits.
pub(super) const DRAFT: &str = ".diff";
/// The prefix of folders in a repository's folder: git never treats names with it as refs.
const FOLDER: &str = "index";
/// How much of the boot's id is in a name, in bytes.
const BOOT: usize = 8;
/// The ignore pattern for git, wherever one of them is left.
pub const PATTERN: &str = ".ralph-*-*-*.tmp*";

/// The name of a temporary file of this process; `unique` distinguishes it from its other files, in letters and
/// digits.
#[must_use]
pub fn name(unique: &str) -> String {
    format!("{}{unique}{SUFFIX}", prefix())
}

pub(super) fn prefix() -> String {
    format!("{PREFIX}{}-{}-", boot(), std::process::id())
}

/// A temporary folder, which is removed when this is dropped.
#[derive(Debug)]
pub struct Folder {
    folder: TempDir,
    /// Released when the folder is removed.
    _lock: Option<File>,
}

impl Folder {
    /// Creates one in the folder of a repository, and removes those that killed processes have left there.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn make_in(folder: &Path) -> io::Result<Self> {
        sweep(folder);
        let prefix = format!("{FOLDER}{}", prefix());
        let folder = tempfile::Builder::new().prefix(&prefix).suffix(SUFFIX).tempdir_in(folder)?;
        let lock = locked_folder(folder.path());
        Ok(Self { folder, _lock: lock })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        remove_folder(self.folder.path());
    }
}

/// A process in another container cannot be seen, but its lock can. Some file systems have no locks.
pub(super) fn lock_if_possible(file: &File) {
    let _ = file.try_lock();
}

/// The lock of a folder, held until this is dropped.
pub(super) fn locked_folder(path: &Path) -> Option<File> {
    let lock = open_folder(path).ok();
    lock.iter().for_each(lock_if_possible);
    lock
}

fn open_folder(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.union(OFlags::DIRECTORY);
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Creates a temporary file in a folder; no other user can read it unless `mode` allows it.
pub(super) fn make(folder: &Path, mode: Option<u32>) -> io::Result<NamedTempFile> {
    let prefix = prefix();
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX);
    if let Some(mode) = mode {
        builder.permissions(Permissions::from_mode(mode));
    }
    let file = builder.tempfile_in(folder)?;
    lock_if_possible(file.as_file());
    Ok(file)
}

/// The folder for a temporary file that will replace a user's file in `folder`: the `.ralph` of its project, if that
/// is on the same file system. `None` if there is none.
#[must_use]
pub fn folder_for(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let has_git = |above: &&Path| above.join(".git").symlink_metadata().is_ok();
    let ours = folder.ancestors().find(has_git)?.join(".ralph");
    let (there, here) = (ours.symlink_metadata().ok()?, folder.metadata().ok()?);
    (there.is_dir() && there.dev() == here.dev()).then_some(ours)
}

/// Removes the temporary files and folders that killed processes have left in a folder. Files that cannot be removed
/// do no harm.
pub fn sweep(folder: &Path) {
    for path in left_in(folder) {
        if is_folder(&path) {
            remove_folder(&path);
        } else {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes whatever is there, also where folders in it, or the one around it, were closed against that.
pub fn remove(path: &Path) {
    let remove = || {
        if is_folder(path) {
            remove_folder(path);
        } else {
            let _ = fs::remove_file(path);
        }
    };
    remove();
    if path.symlink_metadata().is_ok()
        && let Some(around) = path.parent()
        && let Ok(found) = around.metadata()
    {
        // Others keep what they may do there.
        let _ = fs::set_permissions(around, Permissions::from_mode(found.mode() | 0o700));
        remove();
    }
}

/// Removes a folder, also where folders in it were closed against that.
pub(super) fn remove_folder(path: &Path) {
    if fs::remove_dir_all(path).is_ok() {
        return;
    }
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        open.extend(entries.map(|entry| entry.path()).filter(|path| is_folder(path)));
    }
    let _ = fs::remove_dir_all(path);
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// The temporary files and folders that killed processes have left in a folder.
#[must_use]
pub fn left_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| is_left_over(path)).collect()
}

fn is_left_over(path: &Path) -> bool {
    let Some((its_boot, pid)) = path.file_name().and_then(|name| name.to_str()).and_then(made_by) else {
        return false;
    };
    // A closed descriptor may still be open in a program that is just being started.
    let is_free = |file: File| file.try_lock().is_ok() && file.unlock().is_ok();
    let open =
        || if is_folder(path) { open_folder(path) } else { opened_regular(path).map(|(file, _)| file) };
    !is_there(its_boot, pid) && open().is_ok_and(is_free)
}

fn is_there(its_boot: &str, pid: u32) -> bool {
    its_boot == boot() && stat(pid).is_some()
}

/// The boot and the process in a temporary file's name; `None` for other names.
fn made_by(name: &str) -> Option<(&str, u32)> {
    // SQLite creates these beside a database under its temporary name.
    let beside = ["-journal", "-wal", "-shm"];
    let name = name.strip_suffix(DRAFT).unwrap_or(name);
    let name = beside.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let name = name.strip_prefix(FOLDER).unwrap_or(name);
    let mut parts = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split('-');
    let (boot, pid, random) = (parts.next()?, parts.next()?, parts.next()?);
    let is_boot = boot.len() == BOOT && boot.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_ours = is_boot && !random.is_empty() && parts.next().is_none();
    pid.parse().ok().filter(|_| is_ours).map(|pid| (boot, pid))
}

/// The beginning of the kernel's id of this boot.
fn boot() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let id = boot_id().unwrap_or_default();
        // Without an id, all processes count as those of one boot.
        id.get(..BOOT).unwrap_or("00000000").to_owned()
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn only_what_dead_processes_have_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: String| folder.path().join(name);
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let (boot, pid) = (boot(), std::process::id());
        let left = [
            format!(".ralph-{boot}-{}-1.tmp-journal", gone.id()),
            format!(".ralph-{boot}-{}-1.tmp-wal", gone.id()),
            format!(".ralph-{boot}-{}-1.tmp-shm", gone.id()),
            format!(".ralph-{boot}-{}-aBc123.tmp", gone.id()),
            format!(".ralph-0123abcd-{pid}-aBc123.tmp"),
        ];
        let others = [
            format!(".ralph-{boot}-{pid}-aBc123.tmp"),
            format!(".ralph-{}-1.tmp", gone.id()),
            ".ralph-notes-1-x.tmp".to_owned(),
            "state.toml.x1.tmp".to_owned(),
        ];
        left.iter().chain(&others).for_each(|name| fs::write(at(name.clone()), "").unwrap());
        let held = at(format!(".ralph-0123abcd-{pid}-held.tmp"));
        fs::write(&held, "").unwrap();
        let lock = File::open(&held).unwrap();
        lock.try_lock().unwrap();
        let swept = || {
            let count = left_in(folder.path()).len();
            sweep(folder.path());
            count
        };
        assert_eq!(swept(), 5);
        assert!(others.iter().all(|name| at(name.clone()).exists()) && held.exists());
        assert!(left.iter().all(|name| !at(name.clone()).exists()));
        lock.unlock().unwrap();
        assert_eq!(swept(), 1);
        let mine = make(folder.path(), None).unwrap();
        assert!(made_by(mine.path().file_name().unwrap().to_str().unwrap()).is_some());
        assert_eq!(swept(), 0);
    }

    #[test]
    fn folders_are_left_by_dead_processes_whose_lock_is_free() {
        let root = tempfile::tempdir().unwrap();
        let mine = Folder::make_in(root.path()).unwrap();
        let name = mine.path().file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("index.ralph-") && made_by(name).is_some(), "{name}");
        // If the process cannot be seen, its lock counts.
        let left = root.path().join(format!("index.ralph-0123abcd-{}-x.tmp", std::process::id()));
        fs::rename(mine.path(), &left).unwrap();
        fs::write(left.join("index"), "").unwrap();
        assert_eq!(left_in(root.path()), [] as [PathBuf; 0]);
        drop(mine);
        // A process that another test starts at this moment has the lock until it runs its program.
        let deadline = Instant::now() + Duration::from_secs(10);
        while left_in(root.path()).is_empty() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(left_in(root.path()), [left.as_path()]);
        let other = root.path().join("index.ralph-mine.tmp");
        fs::create_dir(&other).unwrap();
        drop(Folder::make_in(root.path()).unwrap());
        assert!(!left.exists() && other.exists(), "the next one that is made removes it");
    }

    #[test]
    fn temporary_files_of_users_files_are_in_the_ralph_dir() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["docs/more", ".git/info"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        assert_eq!(folder_for(&at("docs/more")), None);
        fs::create_dir(at(".ralph")).unwrap();
        let ours = Some(root.path().canonicalize().unwrap().join(".ralph"));
        for folder in ["", "docs/more", ".git/info"] {
            assert_eq!(folder_for(&at(folder)), ours, "{folder}");
        }
        fs::remove_dir(at(".ralph")).unwrap();
        std::os::unix::fs::symlink("docs", at(".ralph")).unwrap();
        assert_eq!(folder_for(&at("docs/more")), None);
    }
}
