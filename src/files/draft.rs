//! A diff that the user edits with a program of their own: a file in the folder for temporary files, which no other user can read.
//! It is removed, unless it is kept because its text would be lost.

use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::temporary::{self, DRAFT, SUFFIX};
use super::theirs;

/// A text to be edited.
#[derive(Debug)]
pub struct Draft {
    path: TempPath,
}

impl Draft {
    /// Writes it to a file of its own.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(text: &[u8]) -> io::Result<Self> {
        let (prefix, suffix) = (temporary::prefix(), format!("{SUFFIX}{DRAFT}"));
        let mut file =
            tempfile::Builder::new().prefix(&prefix).suffix(&suffix).tempfile_in(env::temp_dir())?;
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

    /// Leaves the file there, under a name that no later start removes.
    #[must_use]
    pub fn keep(self) -> PathBuf {
        let path = self.path.to_path_buf();
        let kept = kept(&path);
        self.path.persist(&kept).map_or(path, |()| kept)
    }
}

/// Removes the drafts of killed processes, and keeps those whose text `is_written` in; returns these.
pub fn take_left(limit: u64, is_written: impl Fn(&[u8]) -> bool) -> Vec<PathBuf> {
    let mut written = Vec::new();
    for path in temporary::left_in(&env::temp_dir()) {
        if path.extension().is_none_or(|extension| extension != &DRAFT[1..]) {
            continue;
        }
        // What cannot be read may be another user's.
        let Ok(text) = theirs::read(&path, limit) else { continue };
        // The file is removed with this, unless it is kept.
        let Ok(draft) = TempPath::try_from_path(&path).map(|path| Draft { path }) else { continue };
        if is_written(&text) {
            written.push(draft.keep());
        }
    }
    written
}

/// The name of a draft that is kept.
fn kept(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_start_matches('.').replacen(&format!("{SUFFIX}{DRAFT}"), DRAFT, 1);
    path.with_file_name(name)
}
