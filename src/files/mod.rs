//! Files that are written whole or appended to, and errors that name them.

pub mod atomic;

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file of ours cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {reason}: {advice}", path = .path.display(), advice = advice(.reason))]
pub struct FileError {
    /// Which file.
    pub path: PathBuf,
    /// What the system said; [`std::io::ErrorKind::StorageFull`] is a full disk.
    pub reason: std::io::Error,
}

fn advice(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::{NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded => "free some space on that disk",
        PermissionDenied | ReadOnlyFilesystem => "mend the permissions of its folder",
        NotFound => "create its folder",
        _ => "check that path",
    }
}

/// A file that records are written to, and that knows its path for the error message.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl RecordFile {
    /// Opens for appending, creating the file.
    pub fn append(path: &Path) -> Result<Self, FileError> {
        Self::open(path, OpenOptions::new().append(true).create(true))
    }

    /// Creates a file that must not exist yet.
    pub fn create_new(path: &Path) -> Result<Self, FileError> {
        Self::open(path, OpenOptions::new().append(true).create_new(true))
    }

    /// Opens for writing, emptying the file.
    pub fn truncate(path: &Path) -> Result<Self, FileError> {
        Self::open(path, OpenOptions::new().write(true).create(true).truncate(true))
    }

    fn open(path: &Path, options: &OpenOptions) -> Result<Self, FileError> {
        match options.open(path) {
            Ok(file) => Ok(Self { path: path.to_owned(), file: BufWriter::new(file) }),
            Err(reason) => Err(FileError { path: path.to_owned(), reason }),
        }
    }

    /// Adds bytes; they may stay in memory until [`RecordFile::flush`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.file.write_all(bytes).map_err(|reason| FileError { path: self.path.clone(), reason })
    }

    /// Hands everything to the operating system.
    pub fn flush(&mut self) -> Result<(), FileError> {
        self.file.flush().map_err(|reason| FileError { path: self.path.clone(), reason })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
