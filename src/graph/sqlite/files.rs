//! The files of a database. `SQLite` keeps recent writes in `-wal` and locks in `-shm`. If one of the three files is
//! removed or replaced, programs that open the database later do not see our files, and both would write the same
//! pages.

use std::io;
use std::path::{Path, PathBuf};

use crate::files::{FileId, Locked};

/// The files that `SQLite` keeps beside a database in WAL mode.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// The files of an open database, as they were when it was opened.
#[derive(Debug)]
pub(super) struct Files {
    files: Vec<(PathBuf, FileId)>,
    locked: Locked,
}

impl Files {
    /// The main file, before `SQLite` opens it.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let mut files = Self { files: Vec::new(), locked: Locked::default() };
        files.add(path.to_owned())?;
        Ok(files)
    }

    /// Adds the files beside it, once `SQLite` has made them.
    pub(super) fn with_files_beside(mut self) -> io::Result<Self> {
        let main = self.main().to_owned();
        for end in BESIDE {
            let mut name = main.clone().into_os_string();
            name.push(end);
            self.add(name.into())?;
        }
        Ok(self)
    }

    fn add(&mut self, path: PathBuf) -> io::Result<()> {
        let id = self.locked.add(&path)?;
        self.files.push((path, id));
        Ok(())
    }

    fn main(&self) -> &Path {
        // `of` adds the main file first.
        &self.files[0].0
    }

    /// The first file that was removed or replaced.
    pub(super) fn lost(&self) -> Option<&Path> {
        self.files.iter().find(|(path, id)| !id.is_at(path)).map(|(path, _)| path.as_path())
    }

    /// Whether no other database's files are at these paths.
    pub(super) fn is_free(&self) -> bool {
        let is_free = |(path, id): &(PathBuf, FileId)| id.is_at(path) || path.symlink_metadata().is_err();
        self.main().symlink_metadata().is_err() && self.files.iter().all(is_free)
    }

    /// Removes leftovers of the files beside the main one: `SQLite` would use them for the next database at this
    /// path.
    pub(super) fn clear(&self) -> io::Result<()> {
        let mut left = self.files.iter().skip(1).filter(|(path, id)| id.is_at(path));
        left.try_for_each(|(path, _)| std::fs::remove_file(path))
    }
}
