//! Event consumers and their files.

pub mod blocks;
pub mod event_json;
pub mod events_log;
pub mod iterations_log;
pub mod raw_output;
pub mod session_log;
pub mod state;

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file of ours cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}; free some space or mend its permissions", path.display())]
pub struct RecordError {
    /// Which file.
    pub path: PathBuf,
    /// Why.
    pub source: std::io::Error,
}

/// A file that records are written to, and that knows its path for the error message.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl RecordFile {
    /// Opens for appending, creating the file.
    pub fn append(path: &Path) -> Result<Self, RecordError> {
        Self::open(path, OpenOptions::new().append(true).create(true))
    }

    /// Creates a file that must not exist yet.
    pub fn create_new(path: &Path) -> Result<Self, RecordError> {
        Self::open(path, OpenOptions::new().append(true).create_new(true))
    }

    /// Opens for writing, emptying the file.
    pub fn truncate(path: &Path) -> Result<Self, RecordError> {
        Self::open(path, OpenOptions::new().write(true).create(true).truncate(true))
    }

    fn open(path: &Path, options: &OpenOptions) -> Result<Self, RecordError> {
        match options.open(path) {
            Ok(file) => Ok(Self { path: path.to_owned(), file: BufWriter::new(file) }),
            Err(source) => Err(RecordError { path: path.to_owned(), source }),
        }
    }

    /// Adds bytes; they may stay in memory until [`RecordFile::flush`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        self.file.write_all(bytes).map_err(|source| RecordError { path: self.path.clone(), source })
    }

    /// Hands everything to the operating system.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        self.file.flush().map_err(|source| RecordError { path: self.path.clone(), source })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
