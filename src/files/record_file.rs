//! A file for records.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::{FileError, FileId, own};

/// One of our files for records; it knows its path for error messages.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    id: FileId,
    file: BufWriter<File>,
    length: u64,
    /// Whether it ends within a line, after a kill or a full disk.
    is_torn: bool,
}

impl RecordFile {
    /// Opens for appending, creating the file. New content begins on a new line.
    pub fn append(path: &Path) -> Result<Self, FileError> {
        let opened = Self::open(path, OpenOptions::new().append(true).create(true))?;
        let is_torn = opened.length > 0 && last_byte(path).is_ok_and(|byte| byte != b'\n');
        Ok(Self { is_torn, ..opened })
    }

    /// Creates a file that must not exist yet.
    pub fn create_new(path: &Path) -> Result<Self, FileError> {
        Self::open(path, OpenOptions::new().append(true).create_new(true))
    }

    /// Opens for writing, emptying the file.
    pub fn truncate(path: &Path) -> Result<Self, FileError> {
        let opened = Self::open(path, OpenOptions::new().write(true).create(true))?;
        // Not with an option: a foreign file must not be emptied before it is checked.
        opened.file.get_ref().set_len(0).map_err(FileError::at(path))?;
        Ok(Self { length: 0, ..opened })
    }

    fn open(path: &Path, options: &mut OpenOptions) -> Result<Self, FileError> {
        let file = own::open(path, options).map_err(FileError::at(path))?;
        let id = FileId::of(&file).map_err(FileError::at(path))?;
        let length = file.metadata().map_err(FileError::at(path))?.len();
        Ok(Self { path: path.to_owned(), id, file: BufWriter::new(file), length, is_torn: false })
    }

    /// Waits until the disk has what was flushed.
    pub fn sync(&self) -> Result<(), FileError> {
        self.file.get_ref().sync_data().map_err(FileError::at(&self.path))
    }

    /// Whether it was removed or replaced.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        !self.id.is_at(&self.path)
    }

    /// Continues in a new file if this one was removed or replaced; returns whether it was.
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
        if std::mem::take(&mut self.is_torn) {
            self.write(b"\n")?;
        }
        self.length += bytes.len() as u64;
        self.file.write_all(bytes).map_err(FileError::at(&self.path))
    }

    /// Its length with everything that was added, in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Writes everything to the file.
    pub fn flush(&mut self) -> Result<(), FileError> {
        self.file.flush().map_err(FileError::at(&self.path))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn last_byte(path: &Path) -> io::Result<u8> {
    let mut file = own::open_to_read(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut byte = [0];
    file.read_exact(&mut byte).map(|()| byte[0])
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
        assert_eq!(fs::read_to_string(&path).unwrap(), "old\nfour");
    }

    #[test]
    fn a_line_that_was_cut_off_is_ended_before_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for (before, after) in
            [("", "one\ntwo\n"), ("torn", "torn\none\ntwo\n"), ("whole\n", "whole\none\ntwo\n")]
        {
            fs::write(&path, before).unwrap();
            let mut record = RecordFile::append(&path).unwrap();
            for line in ["one\n", "two\n"] {
                record.write(line.as_bytes()).unwrap();
            }
            record.flush().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), after);
            assert_eq!(record.length(), after.len() as u64);
        }
    }
}
