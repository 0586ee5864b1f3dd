//! All functions that open files: our own run-time files ([`own`], [`RecordFile`]), users' files ([`theirs`]), and
//! files that are written whole ([`atomic`]). Errors name the file.

pub mod atomic;
pub mod clock;
pub mod draft;
pub mod key;
mod locked;
pub mod own;
pub mod own_copy;
mod record_file;
pub mod room;
pub mod temporary;
pub mod theirs;

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::platform::calls::device;

pub use locked::{Locked, require_unlocked_id};
pub use record_file::RecordFile;

/// Opening never waits for a writer, and never makes a terminal ours.
const AT_ONCE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// One of our files cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {reason}: {advice}", path = .path.display(), advice = way_to_write(.reason))]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The system error; [`std::io::ErrorKind::StorageFull`] is a full disk.
    pub reason: io::Error,
}

impl FileError {
    /// Makes an error about `path`.
    pub fn at(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |reason| Self { path: path.to_owned(), reason }
    }
}

/// What to do about an error that says nothing about the file: the system lacks resources to open any. Such a file
/// must not be treated as missing, and must not be changed. `None` for all other errors.
#[must_use]
pub fn fault_of_machine(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some("raise the limit of open files ('ulimit -n')"),
        Errno::NFILE => {
            Some("close other programs, or raise the machine's limit of open files (fs.file-max)")
        }
        Errno::NOMEM => Some("free memory"),
        Errno::AGAIN => Some("raise the limit of processes ('ulimit -u')"),
        Errno::IO => Some("check that disk"),
        _ => None,
    }
}

/// The successful result; `None` if the file is missing, or is of another kind. A lack of resources stays an error,
/// because it says neither.
pub fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if fault_of_machine(&error).is_some() => Err(error),
        result => Ok(result.ok()),
    }
}

/// What to do about a file or folder that this user may not read.
pub const FIX_PERMISSIONS: &str = "fix its permissions";

/// What to do about a file that cannot be read.
#[must_use]
pub fn way_to_read(error: &io::Error) -> &'static str {
    match error.kind() {
        _ if fault_of_machine(error).is_some() => way_to_write(error),
        ErrorKind::InvalidInput | ErrorKind::IsADirectory => "move it away",
        ErrorKind::PermissionDenied => FIX_PERMISSIONS,
        _ => "see to that and start again",
    }
}

/// What to do about a file that cannot be written.
#[must_use]
pub fn way_to_write(error: &io::Error) -> &'static str {
    use ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied};
    use ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    if let Some(advice) = fault_of_machine(error) {
        return advice;
    }
    match error.kind() {
        StorageFull | QuotaExceeded => "free some space on that disk",
        PermissionDenied => "fix the permissions of its folder",
        ReadOnlyFilesystem => "make that file system writable",
        NotFound => "create its folder",
        InvalidInput | IsADirectory | NotADirectory => "move it away",
        _ => "check that path",
    }
}

/// The identity of a file, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The identity of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|found| Self::from(&found))
    }

    /// Whether exactly this file is at `path`.
    #[must_use]
    pub fn is_at(self, path: &Path) -> bool {
        path.symlink_metadata().is_ok_and(|found| Self::from(&found) == self)
    }
}

impl From<&rustix::fs::Stat> for FileId {
    fn from(found: &rustix::fs::Stat) -> Self {
        Self { device: device(found), inode: found.st_ino }
    }
}

impl From<&Metadata> for FileId {
    fn from(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}

/// The kind of a path that is not a regular file, by name; `None` for a file.
fn in_place_of_file(kind: FileType) -> Option<&'static str> {
    if kind.is_file() {
        None
    } else if kind.is_symlink() {
        Some("a symbolic link")
    } else if kind.is_dir() {
        Some("a folder")
    } else if kind.is_fifo() {
        Some("a FIFO")
    } else if kind.is_socket() {
        Some("a socket")
    } else {
        Some("a device")
    }
}

/// Fails for a file that must not be opened: not a regular one, or one that this process has [`Locked`]. All
/// functions that open files check this first.
fn require_file(found: &Metadata) -> io::Result<()> {
    require_regular(found)?;
    locked::require_unlocked(found)
}

/// Fails for anything but a regular file: [`ErrorKind::IsADirectory`] for a folder, else [`ErrorKind::InvalidInput`].
fn require_regular(found: &Metadata) -> io::Result<()> {
    let Some(what) = in_place_of_file(found.file_type()) else { return Ok(()) };
    let kind = if found.is_dir() { ErrorKind::IsADirectory } else { ErrorKind::InvalidInput };
    Err(io::Error::new(kind, format!("it is {what}, not a file")))
}

/// The content of an open file with this apparent length, in bytes; a file longer than `limit` is refused with
/// [`ErrorKind::FileTooLarge`].
fn content(file: &File, length: u64, limit: u64) -> io::Result<Vec<u8>> {
    /// Larger buffers grow as needed.
    const SMALL: u64 = 64 << 10;
    // One read including the end: lists read thousands of files.
    let room = length.min(limit).min(SMALL) + 1;
    let mut bytes = vec![0; usize::try_from(room).unwrap_or_default()];
    let begun = loop {
        match (&*file).read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            begun => break begun?,
        }
    };
    bytes.truncate(begun);
    if begun as u64 != length {
        file.take(limit.saturating_add(1).saturating_sub(begun as u64)).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {}", size(limit))));
    }
    Ok(bytes)
}

fn size(bytes: u64) -> String {
    match (bytes >> 20, bytes >> 10) {
        (0, 0) => format!("{bytes} bytes"),
        (0, kib) => format!("{kib} KiB"),
        (mib, _) => format!("{mib} MiB"),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::process::Command;

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// Runs `check` with no free descriptors: in its own process, which runs only the test of this full name, with
    /// the result of `set_up`.
    pub(crate) fn without_descriptors<T>(test: &str, set_up: impl FnOnce() -> T, check: impl FnOnce(T)) {
        const MARK: &str = "RALPH_TEST_WITHOUT_DESCRIPTORS";
        if std::env::var_os(MARK).is_none() {
            let mut own = Command::new(std::env::current_exe().unwrap());
            let run = own
                .args(["--exact", test, "--nocapture", "--test-threads=1"])
                .env(MARK, "1")
                .output()
                .unwrap();
            let said =
                String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let things = set_up();
        let usual = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..usual }).unwrap();
        check(things);
        setrlimit(Resource::Nofile, usual).unwrap();
    }
}

/// Opens one of our existing regular files for reading, with its metadata. Links are not followed.
fn opened_regular(path: &Path) -> io::Result<(File, Metadata)> {
    require_file(&path.symlink_metadata()?)?;
    let flags = AT_ONCE.union(OFlags::NOFOLLOW);
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let found = file.metadata()?;
    require_file(&found)?;
    Ok((file, found))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_machine_without_descriptors_says_nothing_about_a_file() {
        let full = "files::tests::a_machine_without_descriptors_says_nothing_about_a_file";
        testing::without_descriptors(full, tempfile::tempdir, |dir| {
            let dir = dir.unwrap();
            let errors =
                [theirs::text(&dir.path().join("none")).unwrap_err(), own::entries(dir.path()).unwrap_err()];
            assert!(if_there(theirs::text(&dir.path().join("none"))).unwrap().is_none());
            assert!(if_there(dir.path().read_dir()).is_err());
            assert_eq!(fault_of_machine(&errors[0]), None);
            let error =
                FileError { path: "/a".into(), reason: dir.path().read_dir().unwrap_err() }.to_string();
            assert!(error.ends_with("raise the limit of open files ('ulimit -n')"), "{error}");
            let error =
                atomic::write_own(&dir.path().join("new"), b"", atomic::Durability::Atomic).unwrap_err();
            assert!(error.to_string().ends_with("raise the limit of open files ('ulimit -n')"), "{error}");
            assert_eq!(way_to_read(&errors[1]), "raise the limit of open files ('ulimit -n')");
        });
    }

    #[test]
    fn errors_say_what_to_do() {
        for (reason, advice) in [
            (ErrorKind::StorageFull.into(), "free some space on that disk"),
            (ErrorKind::QuotaExceeded.into(), "free some space on that disk"),
            (ErrorKind::PermissionDenied.into(), "fix the permissions of its folder"),
            (io::Error::new(ErrorKind::InvalidInput, "it is a FIFO, not a file"), "move it away"),
            (ErrorKind::FileTooLarge.into(), "check that path"),
        ] {
            let error = FileError { path: "/a/b".into(), reason }.to_string();
            assert!(error.starts_with("cannot write /a/b: ") && error.ends_with(advice), "{error}");
        }
    }

    #[test]
    fn a_file_is_read_to_its_end_whatever_length_it_has_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for size in [0, 1, 4096, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 300_000] {
            let whole = vec![b'x'; size];
            fs::write(&path, &whole).unwrap();
            let file = || File::open(&path).unwrap();
            let length = size as u64;
            // It may have changed its length since its metadata was read.
            for told in [length, 0, length / 2, length * 2] {
                assert_eq!(content(&file(), told, length).unwrap(), whole, "{size} {told}");
            }
            if let Some(limit) = length.checked_sub(1) {
                let refused = content(&file(), length, limit).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::FileTooLarge, "{size}");
            }
        }
        let endless = File::open("/dev/zero").unwrap();
        assert_eq!(content(&endless, 0, 100).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn limits_are_told_in_round_numbers() {
        assert_eq!([10, 64 << 10, 16 << 20].map(size), ["10 bytes", "64 KiB", "16 MiB"]);
    }
}
