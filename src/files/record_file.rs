//! A file that records are written to.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::{FileError, FileId, own};

/// A file of ours that records are written to, and that knows its path for the error message.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    id: FileId,
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
        let opened = Self::open(path, OpenOptions::new().write(true).create(true))?;
        // Not by an option: what is no file of ours must not be emptied before it was looked at.
        opened.file.get_ref().set_len(0).map_err(FileError::at(path))?;
        Ok(opened)
    }

    fn open(path: &Path, options: &mut OpenOptions) -> Result<Self, FileError> {
        let file = own::open(path, options).map_err(FileError::at(path))?;
        let id = FileId::of(&file).map_err(FileError::at(path))?;
        Ok(Self { path: path.to_owned(), id, file: BufWriter::new(file) })
    }

    /// Whether it was removed or replaced.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        !self.id.is_at(&self.path)
    }

    /// Goes on in a new file where this one was removed or replaced; answers whether it was.
    pub fn keep(&mut self) -> Result<bool, FileError> {
        if !self.is_lost() {
            return Ok(false);
        }
        if let Some(folder) = self.path.parent() {
            own::make_folder(folder).map_err(FileError::at(folder))?;
        }
        *self = Self::append(&self.path)?;
        Ok(true)
    }

    /// Adds bytes; they may stay in memory until [`RecordFile::flush`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.file.write_all(bytes).map_err(FileError::at(&self.path))
    }

    /// Hands everything to the operating system.
    pub fn flush(&mut self) -> Result<(), FileError> {
        self.file.flush().map_err(FileError::at(&self.path))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_was_removed_or_replaced_goes_on_at_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs/file");
        own::make_folder(path.parent().unwrap()).unwrap();
        let mut record = RecordFile::create_new(&path).unwrap();
        let mut add = |text: &str| {
            let is_new = record.keep().unwrap();
            record.write(text.as_bytes()).unwrap();
            record.flush().unwrap();
            is_new
        };
        assert!(!add("one"));
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        assert!(add("two") && !add("three"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "twothree");
        fs::write(dir.path().join("backup"), "old").unwrap();
        fs::rename(dir.path().join("backup"), &path).unwrap();
        assert!(add("four"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "oldfour");
    }
}
