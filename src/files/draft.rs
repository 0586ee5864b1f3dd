//! A text that the user edits with a program of their own: a file in the folder for temporary files, which no other user
//! can read. It is removed, unless it is kept because its text would be lost.

use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::theirs;

/// A text to be edited.
#[derive(Debug)]
pub struct Draft {
    path: TempPath,
}

impl Draft {
    /// Writes it to a file of its own, whose name ends in `suffix`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(text: &[u8], suffix: &str) -> io::Result<Self> {
        let mut file =
            tempfile::Builder::new().prefix("ralph-").suffix(suffix).tempfile_in(env::temp_dir())?;
        file.write_all(text)?;
        Ok(Self { path: file.into_temp_path() })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is now.
    ///
    /// # Errors
    /// If it cannot be read, or has more than `limit` bytes.
    pub fn read(&self, limit: u64) -> io::Result<Vec<u8>> {
        theirs::read(&self.path, limit)
    }

    /// Leaves the file where it is.
    #[must_use]
    pub fn keep(self) -> PathBuf {
        let path = self.path.to_path_buf();
        self.path.keep().unwrap_or(path)
    }
}
