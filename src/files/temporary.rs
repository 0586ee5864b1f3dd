//! Temporary files: a file that is written whole is written under a temporary name, and renamed to its place when it is complete.
//! A process that is killed leaves one behind. Its name has the boot and the process, so that the next start removes it and nothing else.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::{NamedTempFile, TempDir};

use super::own;

/// What their names begin with; the boot, the process and something random follow.
const PREFIX: &str = ".ralph-";
const SUFFIX: &str = ".tmp";
/// So much of the id of a boot is in a name, in bytes.
const BOOT: usize = 8;
/// What git is to ignore, wherever one of them is left.
pub const PATTERN: &str = ".ralph-*-*-*.tmp";

/// The name of a temporary file of this process; `unique` is what no other of its files there has, of letters and digits.
#[must_use]
pub fn name(unique: &str) -> String {
    format!("{}{unique}{SUFFIX}", prefix())
}

fn prefix() -> String {
    format!("{PREFIX}{}-{}-", boot(), std::process::id())
}

/// Makes a temporary folder in another one, whose name begins with `kind`, and removes those that killed processes have left.
///
/// # Errors
/// When it cannot be made.
pub fn make_folder(folder: &Path, kind: &str) -> io::Result<TempDir> {
    /// From another container a process cannot be seen; what it does takes no longer than this.
    const LONGEST: Duration = Duration::from_hours(1);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let made_by = name.to_str().and_then(|name| made_by(name.strip_prefix(kind)?));
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if made_by.is_some_and(|(boot, pid)| !is_there(boot, pid)) && age().is_some_and(|age| age > LONGEST) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    tempfile::Builder::new().prefix(&format!("{kind}{}", prefix())).suffix(SUFFIX).tempdir_in(folder)
}

/// Makes a temporary file in a folder; nobody else may read it unless `mode` says so.
pub(super) fn make(folder: &Path, mode: Option<u32>) -> io::Result<NamedTempFile> {
    let prefix = prefix();
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX);
    if let Some(mode) = mode {
        builder.permissions(Permissions::from_mode(mode));
    }
    let file = builder.tempfile_in(folder)?;
    // From another container the process cannot be seen, but the lock can.
    let _ = file.as_file().try_lock();
    Ok(file)
}

/// Where a temporary file for a user's file in `folder` is made: the `.ralph` of its project, if that is on the same file system.
/// `None`: there is none.
pub(super) fn folder_for(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let has_git = |above: &&Path| above.join(".git").symlink_metadata().is_ok();
    let ours = folder.ancestors().find(has_git)?.join(".ralph");
    let (there, here) = (ours.symlink_metadata().ok()?, folder.metadata().ok()?);
    (there.is_dir() && there.dev() == here.dev()).then_some(ours)
}

/// Removes the temporary files that killed processes have left in a folder. What cannot be removed does no harm.
pub fn sweep(folder: &Path) {
    for path in left_in(folder) {
        let _ = fs::remove_file(path);
    }
}

/// The temporary files that killed processes have left in a folder.
#[must_use]
pub fn left_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| is_left_over(path)).collect()
}

fn is_left_over(path: &Path) -> bool {
    let Some((its_boot, pid)) = path.file_name().and_then(|name| name.to_str()).and_then(made_by) else {
        return false;
    };
    // A descriptor that is closed may live on in a program that is just being started.
    let is_free = |file: File| file.try_lock().is_ok() && file.unlock().is_ok();
    !is_there(its_boot, pid) && own::open_to_read(path).is_ok_and(is_free)
}

fn is_there(its_boot: &str, pid: u32) -> bool {
    its_boot == boot() && Path::new("/proc").join(pid.to_string()).exists()
}

/// By which process of which boot the file of this name was made; `None` for a name of another kind.
fn made_by(name: &str) -> Option<(&str, u32)> {
    // SQLite puts one beside a database that is just being made.
    let name = name.strip_suffix("-journal").unwrap_or(name);
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
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        // Without one, all of them count as those of one boot.
        id.get(..BOOT).unwrap_or("00000000").to_owned()
    })
}

#[cfg(test)]
mod tests {
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
        assert_eq!(swept(), 3);
        assert!(others.iter().all(|name| at(name.clone()).exists()) && held.exists());
        assert!(left.iter().all(|name| !at(name.clone()).exists()));
        lock.unlock().unwrap();
        assert_eq!(swept(), 1);
        let mine = make(folder.path(), None).unwrap();
        assert!(made_by(mine.path().file_name().unwrap().to_str().unwrap()).is_some());
        assert_eq!(swept(), 0);
    }

    #[test]
    fn files_of_people_are_made_where_nobody_sees_them() {
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
