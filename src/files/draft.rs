//! A diff that the user edits with a program of their own: a file in the folder for temporary files, which no other user can read.
//! It is removed, unless it is kept because its text would be lost.

use std::env;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::temporary::{self, DRAFT, SUFFIX};
use super::theirs;

/// A text to be edited.
#[derive(Debug)]
pub struct Draft {
    path: TempPath,
    /// Held while it is edited: a process in another container sees this one by nothing else.
    _lock: Option<File>,
}

impl Draft {
    /// Writes it to a file of its own.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(text: &[u8]) -> io::Result<Self> {
        Self::new_in(&env::temp_dir(), text)
    }

    fn new_in(folder: &Path, text: &[u8]) -> io::Result<Self> {
        let (prefix, suffix) = (temporary::prefix(), format!("{SUFFIX}{DRAFT}"));
        let mut file = tempfile::Builder::new().prefix(&prefix).suffix(&suffix).tempfile_in(folder)?;
        temporary::lock_if_possible(file.as_file());
        file.write_all(text)?;
        let (lock, path) = file.into_parts();
        Ok(Self { path, _lock: Some(lock) })
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

/// Removes the user's drafts of killed processes, and keeps those for whose text `is_written` is true; returns these.
pub fn take_left(limit: u64, is_written: impl Fn(&[u8]) -> bool) -> Vec<PathBuf> {
    take_left_in(&env::temp_dir(), limit, is_written)
}

fn take_left_in(folder: &Path, limit: u64, is_written: impl Fn(&[u8]) -> bool) -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    // The folder is that of all users, and root could take what is theirs.
    let is_mine = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.uid() == user);
    let mut written = Vec::new();
    for path in temporary::left_in(folder) {
        if path.extension().is_none_or(|extension| extension != &DRAFT[1..]) || !is_mine(&path) {
            continue;
        }
        let Ok(text) = theirs::read(&path, limit) else { continue };
        // The file is removed with this, unless it is kept.
        let Ok(draft) = TempPath::try_from_path(&path).map(|path| Draft { path, _lock: None }) else {
            continue;
        };
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_draft_that_is_edited_elsewhere_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let draft = Draft::new_in(folder.path(), b"text").unwrap();
        // As one whose process cannot be seen from here.
        let name = format!(".ralph-0123abcd-{}-x{SUFFIX}{DRAFT}", std::process::id());
        let path = folder.path().join(name);
        fs::rename(draft.path(), &path).unwrap();
        let take = || take_left_in(folder.path(), 100, |_| false);
        assert!(take().is_empty() && path.exists(), "it is locked");
        drop(draft);
        // A process that another test starts at this moment has the lock until it runs its program.
        let deadline = Instant::now() + Duration::from_secs(10);
        while path.exists() && Instant::now() < deadline {
            assert!(take().is_empty());
            std::thread::yield_now();
        }
        assert!(!path.exists());
    }
}
