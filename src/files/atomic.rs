//! Writes whole files so that a reader, a crash or a full disk never leaves one half-written.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{FileError, FileId, fault_of_machine, own, require_file, temporary, theirs};

/// Whether a write has to survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A reader sees the old content or the new one; a power cut may restore the old one.
    Atomic,
    /// Also, the new content is on the disk when the call returns (fsync of file and folder).
    Synced,
}

/// Replaces one of our run-time files, and returns the identity of the new one. The folder is created if it is
/// missing, but not its parents. No other user can read the file, and nothing but a file is replaced.
pub fn write_own(path: &Path, content: &[u8], durability: Durability) -> Result<FileId, FileError> {
    let replace = || {
        require_file_or_nothing(path)?;
        let folder = folder_of(path);
        // Agents clean up (`git clean -fdx`), which removes ignored folders.
        own::make_folder(folder)?;
        replace(path, content, &Mode::Ours, durability)
    };
    replace().map_err(FileError::at(path))
}

/// Copies one of our run-time files to a free path. The copy is on the disk when this returns.
pub fn copy_own(from: &Path, to: &Path) -> io::Result<()> {
    let mut old = own::open_to_read(from)?;
    let folder = folder_of(to);
    let mut new = temporary::make(folder, None)?;
    io::copy(&mut old, &mut new)?;
    new.as_file().sync_all()?;
    let new = new.persist_noclobber(to).map_err(|failed| failed.error)?;
    let _ = new.unlock();
    sync_folder(folder)
}

/// Replaces a file that users write, too. A new one gets the usual mode (0666 less the umask), an existing one keeps
/// its mode, and a link stays one: its target is replaced. A FIFO or a device is refused. The file is on the disk
/// when this returns.
pub fn write_theirs(path: &Path, content: &[u8]) -> Result<(), FileError> {
    write_over(path, content, None).map(drop)
}

/// [`write_theirs`], if the file still has its `old` content just before it is replaced. Returns whether it
/// had: another program has written it otherwise, and its text is kept.
pub fn change_theirs(path: &Path, old: &[u8], content: &[u8]) -> Result<bool, FileError> {
    write_over(path, content, Some(old))
}

fn write_over(path: &Path, content: &[u8], old: Option<&[u8]>) -> Result<bool, FileError> {
    let write = || {
        let target = if path.is_symlink() { fs::canonicalize(path)? } else { path.to_path_buf() };
        require_file_or_nothing(&target)?;
        let mode = fs::metadata(&target).map_or(Mode::Usual, |old| Mode::Like(old.permissions()));
        let is_old = |file: &Path| old.is_none_or(|old| fs::read(file).is_ok_and(|now| now == old));
        replace_if(&target, content, &mode, Durability::Synced, &is_old).map(|new| new.is_some())
    };
    write().map_err(FileError::at(path))
}

/// Copies a user's file to the first free name of `NAME.bak`, `NAME.bak.1`, … beside it, and returns that path. The
/// copy has the same mode.
pub fn copy_theirs(path: &Path) -> Result<PathBuf, FileError> {
    let copy = || {
        let content = theirs::read(path, theirs::MAX_TEXT)?;
        let mode = Mode::Like(fs::metadata(path)?.permissions());
        let name = |number: usize| {
            let mut name = path.as_os_str().to_owned();
            name.push(if number == 0 { ".bak".to_owned() } else { format!(".bak.{number}") });
            PathBuf::from(name)
        };
        let mut number = 0;
        while name(number).symlink_metadata().is_ok() {
            number += 1;
        }
        replace(&name(number), &content, &mode, Durability::Atomic).map(|_| name(number))
    };
    copy().map_err(FileError::at(path))
}

/// The permissions of a file.
enum Mode {
    /// Only for this user.
    Ours,
    /// According to the umask.
    Usual,
    /// As before.
    Like(Permissions),
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn require_file_or_nothing(path: &Path) -> io::Result<()> {
    path.symlink_metadata().map_or(Ok(()), |found| require_file(&found))
}

/// Writes a temporary file, then renames it.
fn replace(path: &Path, content: &[u8], mode: &Mode, durability: Durability) -> io::Result<FileId> {
    let new = replace_if(path, content, mode, durability, &|_| true)?;
    new.ok_or_else(|| io::Error::other("it was not replaced"))
}

/// Writes a temporary file, then renames it if `may_replace` says so of the old one; `None`: it did not.
fn replace_if(
    path: &Path,
    content: &[u8],
    mode: &Mode,
    durability: Durability,
    may_replace: &dyn Fn(&Path) -> bool,
) -> io::Result<Option<FileId>> {
    let folder = folder_of(path);
    // Temporary files go into the ralph dir if possible, not into a user's folder.
    let ours = if matches!(mode, Mode::Ours) { None } else { temporary::folder_for(folder) };
    let by_way_of = |way: &Path| replace_by_way_of(way, path, content, mode, durability, may_replace);
    match ours.map(|ours| by_way_of(&ours)) {
        Some(Ok(new)) => Ok(new),
        // The error has to name the target's own folder.
        _ => by_way_of(folder),
    }
}

fn replace_by_way_of(
    way: &Path,
    path: &Path,
    content: &[u8],
    mode: &Mode,
    durability: Durability,
    may_replace: &dyn Fn(&Path) -> bool,
) -> io::Result<Option<FileId>> {
    path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let usual = if matches!(mode, Mode::Ours) { None } else { Some(0o666) };
    // The error has lost the system's number, which distinguishes a lack of resources from a fault of the folder.
    let cause =
        |error| File::open(way).err().filter(|cause| fault_of_machine(cause).is_some()).unwrap_or(error);
    let mut file = temporary::make(way, usual).map_err(cause).map_err(without_its_name)?;
    if let Mode::Like(permissions) = mode {
        file.as_file().set_permissions(permissions.clone())?;
    }
    file.write_all(content)?;
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    if !may_replace(path) {
        return Ok(None);
    }
    let file = file.persist(path).map_err(|failed| failed.error)?;
    // A program that another thread is just starting inherits the descriptor, so closing ours would not unlock it.
    let _ = file.unlock();
    if durability == Durability::Synced {
        sync_folder(folder_of(path))?;
    }
    FileId::of(&file).map(Some)
}

/// The error without the name of the temporary file, which would mean nothing to the user.
fn without_its_name(error: io::Error) -> io::Error {
    match error.to_string().rsplit_once(" at path ") {
        Some((what, _)) => io::Error::new(error.kind(), what.to_owned()),
        None => error,
    }
}

/// Some file systems cannot sync a folder and report an error; nothing is lost by that.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn own(path: &Path, content: &[u8]) -> Result<FileId, FileError> {
        write_own(path, content, Durability::Atomic)
    }

    fn theirs(path: &Path, content: &[u8]) -> Result<(), FileError> {
        write_theirs(path, content)
    }

    #[test]
    fn one_missing_folder_is_made_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        own(&dir.path().join("a/file"), b"x").unwrap();
        assert_eq!(fs::read(dir.path().join("a/file")).unwrap(), b"x");
        assert_eq!((mode(&dir.path().join("a")), mode(&dir.path().join("a/file"))), (0o700, 0o600));
        assert!(own(&dir.path().join("b/c/file"), b"x").is_err());
        assert!(theirs(&dir.path().join("b/file"), b"x").is_err());
        assert!(!dir.path().join("b").exists());
    }

    #[test]
    fn copies_take_the_next_free_name_and_the_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for (content, copy) in [("1", "file.bak"), ("2", "file.bak.1"), ("3", "file.bak.2")] {
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
            assert_eq!(copy_theirs(&path).unwrap(), dir.path().join(copy));
            assert_eq!(fs::read_to_string(dir.path().join(copy)).unwrap(), content);
            assert_eq!(mode(&dir.path().join(copy)), 0o640);
        }
        assert_eq!(names(dir.path()), ["file", "file.bak", "file.bak.1", "file.bak.2"]);
        assert!(copy_theirs(&dir.path().join("none")).is_err());
    }

    #[test]
    fn creates_and_replaces_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.toml");
        let first = own(&path, b"one").unwrap();
        assert!(first.is_at(&path));
        let second = write_own(&path, b"two", Durability::Synced).unwrap();
        assert!(second.is_at(&path) && !first.is_at(&path));
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(dir.path()), ["state.toml"]);
    }

    #[test]
    fn modes_of_what_people_write_are_those_of_an_ordinary_write() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, plain) = (dir.path().join("ours"), dir.path().join("plain"));
        theirs(&ours, b"").unwrap();
        fs::write(&plain, b"").unwrap();
        assert_eq!(mode(&ours), mode(&plain));

        fs::set_permissions(&ours, Permissions::from_mode(0o640)).unwrap();
        theirs(&ours, b"again").unwrap();
        assert_eq!(mode(&ours), 0o640);
        own(&ours, b"and again").unwrap();
        assert_eq!(mode(&ours), 0o600);
    }

    #[test]
    fn a_link_of_theirs_stays_one_and_in_place_of_ours_it_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        let (file, link) = (dir.path().join("real/file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("real/file", &link).unwrap();
        theirs(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");

        let message = own(&link, b"ours").unwrap_err().to_string();
        assert!(message.ends_with("link: it is a symbolic link, not a file: move it away"), "{message}");
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn a_change_of_another_program_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan");
        fs::write(&path, "theirs").unwrap();
        assert!(!change_theirs(&path, b"old", b"ours").unwrap());
        assert_eq!(
            (fs::read(&path).unwrap(), names(dir.path())),
            (b"theirs".to_vec(), vec!["plan".to_owned()])
        );
        assert!(change_theirs(&path, b"theirs", b"ours").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"ours");
    }

    #[test]
    fn a_copy_replaces_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("log"), "all of it").unwrap();
        copy_own(&at("log"), &at("copy")).unwrap();
        assert_eq!((fs::read(at("copy")).unwrap(), mode(&at("copy"))), (b"all of it".to_vec(), 0o600));
        assert!(copy_own(&at("log"), &at("copy")).is_err());
        std::os::unix::fs::symlink("log", at("link")).unwrap();
        assert!(copy_own(&at("link"), &at("other")).is_err());
        assert_eq!(names(dir.path()), ["copy", "link", "log"]);
    }

    #[test]
    fn only_files_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        std::os::unix::fs::symlink("fifo", at("link")).unwrap();
        for name in ["fifo", "link"] {
            assert!(theirs(&at(name), b"").unwrap_err().to_string().contains("it is a FIFO"), "{name}");
        }
        assert!(own(&at("fifo"), b"").unwrap_err().to_string().contains("it is a FIFO"));
        assert_eq!(names(dir.path()), ["fifo", "link"]);
    }

    #[test]
    fn errors_name_the_path_and_a_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("no/such/file");
        for message in [own(&path, b"").unwrap_err().to_string(), theirs(&path, b"").unwrap_err().to_string()]
        {
            assert!(message.contains(path.to_str().unwrap()), "{message}");
            assert!(message.ends_with("create its folder"), "{message}");
        }
        assert!(theirs(dir.path(), b"").is_err(), "a folder is not replaced");
        assert!(theirs(Path::new("/"), b"").is_err());
        assert_eq!(names(dir.path()), Vec::<String>::new(), "no temporary file is left");
    }
}
