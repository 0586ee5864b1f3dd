//! A diff that the user edits with a program of their own: a file in a folder of its own among the temporary files, which no other
//! user can read. It is removed with what the editor has put beside it, unless it is kept because its text would be lost.

use std::env;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::temporary::{self, DRAFT, SUFFIX};
use super::{own, theirs};

/// The name of the file.
const FILE: &str = "comments.diff";

/// A text to be edited.
#[derive(Debug)]
pub struct Draft {
    folder: PathBuf,
    /// The file in it.
    path: PathBuf,
    /// Held while it is edited: a process in another container sees this one by nothing else. It is that of the folder, because
    /// editors put another file in the place of the one that they save.
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
        let mine = Permissions::from_mode(0o700);
        let mut builder = tempfile::Builder::new();
        let made = builder.prefix(&prefix).suffix(&suffix).permissions(mine).tempdir_in(folder)?;
        let lock = temporary::locked_folder(made.path());
        let draft = Self::at(made.keep(), lock);
        own::open(&draft.path, OpenOptions::new().write(true).create_new(true))?.write_all(text)?;
        Ok(draft)
    }

    fn at(folder: PathBuf, lock: Option<File>) -> Self {
        Self { path: folder.join(FILE), folder, _lock: lock }
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

    /// Whether an editor has left something beside it, which may have more of the text.
    #[must_use]
    pub fn has_more(&self) -> bool {
        let found = own::entries(&self.folder).unwrap_or_default();
        found.iter().any(|path| *path != self.path)
    }

    /// Leaves the file there, or the folder if there is more in it, under a name that no later start removes.
    #[must_use]
    pub fn keep(mut self) -> PathBuf {
        let kept = kept(&self.folder);
        let what = if self.has_more() { &self.folder } else { &self.path };
        if fs::rename(what, &kept).is_ok() {
            return kept;
        }
        self.folder = PathBuf::new();
        self.path.clone()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.folder.as_os_str().is_empty() {
            // The one around it is that of all users.
            temporary::remove_folder(&self.folder);
        }
    }
}

/// Removes the user's drafts of killed processes, and keeps those for whose text `is_written` is true; returns these.
pub fn take_left(limit: u64, is_written: impl Fn(&[u8]) -> bool) -> Vec<PathBuf> {
    take_left_in(&env::temp_dir(), limit, is_written)
}

fn take_left_in(folder: &Path, limit: u64, is_written: impl Fn(&[u8]) -> bool) -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    // The folder is that of all users, and root could take what is theirs.
    let is_mine =
        |path: &Path| path.symlink_metadata().is_ok_and(|found| found.uid() == user && found.is_dir());
    let mut written = Vec::new();
    for path in temporary::left_in(folder) {
        if path.extension().is_none_or(|extension| extension != &DRAFT[1..]) || !is_mine(&path) {
            continue;
        }
        let text = theirs::read(&path.join(FILE), limit);
        if text.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
            continue;
        }
        // The folder is removed with this.
        let draft = Draft::at(path, None);
        if draft.has_more() || text.is_ok_and(|text| is_written(&text)) {
            written.push(draft.keep());
        }
    }
    written
}

/// The path of a draft that is kept, by its folder's.
fn kept(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_start_matches('.').replacen(&format!("{SUFFIX}{DRAFT}"), DRAFT, 1);
    folder.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_draft_that_is_edited_elsewhere_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        let draft = Draft::new_in(folder.path(), b"text").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&draft.folder), mode(&draft.path)), (0o700, 0o600));
        // As one whose process cannot be seen from here.
        let name = format!(".ralph-0123abcd-{}-x{SUFFIX}{DRAFT}", std::process::id());
        let path = folder.path().join(name);
        fs::rename(&draft.folder, &path).unwrap();
        // As editors do that put another file in its place.
        let file = path.join(FILE);
        fs::write(path.join("new"), b"edited").unwrap();
        fs::rename(path.join("new"), &file).unwrap();
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
        assert_eq!(mode(folder.path()), 0o777);
    }

    #[test]
    fn what_an_editor_has_left_beside_the_text_is_kept_with_it() {
        let folder = tempfile::tempdir().unwrap();
        for ends in [true, false] {
            let draft = Draft::new_in(folder.path(), b"text").unwrap();
            fs::write(draft.folder.join(".swap"), b"more").unwrap();
            let kept = if ends {
                draft.keep()
            } else {
                // As one whose process was killed.
                let path = folder.path().join(format!(".ralph-0123abcd-{}-x{SUFFIX}{DRAFT}", i32::MAX));
                fs::rename(&draft.folder, &path).unwrap();
                drop(draft);
                take_left_in(folder.path(), 100, |_| false).remove(0)
            };
            assert_eq!(fs::read(kept.join(".swap")).unwrap(), b"more");
        }
    }
}
