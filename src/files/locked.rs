//! Files that this process has locked with POSIX locks, as `SQLite` locks its databases. Such a lock belongs to the
//! process and not to a descriptor: closing *any* descriptor of the file releases it. So only their owner may open
//! them.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::FileId;

/// All locked files of this process, once for each owner.
static LOCKED: Mutex<Vec<FileId>> = Mutex::new(Vec::new());
/// Signalled when an owner has released its files.
static FREED: Condvar = Condvar::new();
/// How long an owner may take to close a file. A file that `SQLite` removes while closing a database may have passed
/// its inode number to another file before the owner releases it.
const CLOSING: Duration = Duration::from_millis(50);

fn locked() -> MutexGuard<'static, Vec<FileId>> {
    // No code panics between two states of the list.
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While this exists, none of the functions in [`files`](super) opens its files.
#[derive(Debug, Default)]
pub struct Locked(Vec<FileId>);

impl Locked {
    /// Adds the file at `path`, and returns its identity.
    ///
    /// # Errors
    /// If there is no regular file.
    pub fn add(&mut self, path: &Path) -> io::Result<FileId> {
        let found = path.symlink_metadata()?;
        super::require_regular(&found)?;
        let id = FileId::from(&found);
        self.0.push(id);
        locked().push(id);
        Ok(id)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let mut all = locked();
        for id in &self.0 {
            if let Some(at) = all.iter().position(|other| other == id) {
                all.swap_remove(at);
            }
        }
        FREED.notify_all();
    }
}

/// Fails for a file that is locked here.
pub(super) fn require_unlocked(found: &Metadata) -> io::Result<()> {
    require_unlocked_id(FileId::from(found))
}

/// Fails for a file that is locked here, for code that opens files without [`files`](super).
///
/// # Errors
/// If it is locked.
pub fn require_unlocked_id(found: FileId) -> io::Result<()> {
    let waited = FREED.wait_timeout_while(locked(), CLOSING, |all| all.contains(&found));
    if !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out() {
        return Ok(());
    }
    let why = "it is a database in use, which only SQLite may open";
    Err(io::Error::new(ErrorKind::InvalidInput, why))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};

    use super::*;
    use crate::files::atomic::{Durability, copy_own, copy_theirs, write_own, write_theirs};
    use crate::files::{RecordFile, own, theirs};

    /// A way to open a file, and its error.
    type Way = fn(&Path) -> Result<(), String>;

    fn said<T, E: ToString>(result: Result<T, E>) -> Result<(), String> {
        result.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn no_way_opens_a_locked_file_by_any_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("db"), "x").unwrap();
        fs::hard_link(at("db"), at("hard")).unwrap();
        std::os::unix::fs::symlink("db", at("soft")).unwrap();
        let (mut first, mut second) = (Locked::default(), Locked::default());
        assert_eq!(first.add(&at("db")).unwrap(), second.add(&at("hard")).unwrap());
        assert!(first.add(&at("soft")).is_err() && first.add(&at("none")).is_err());
        drop(second);
        let ways: [Way; 9] = [
            |path| said(own::open(path, OpenOptions::new().append(true))),
            |path| said(own::open_to_read(path)),
            |path| said(own::read(path, 10)),
            |path| said(RecordFile::append(path)),
            |path| said(theirs::open(path)),
            |path| said(theirs::text(path)),
            |path| said(write_theirs(path, b"y")),
            |path| said(copy_theirs(path)),
            |path| said(copy_own(path, &path.with_extension("copy"))),
        ];
        for name in ["db", "hard"] {
            for (number, way) in ways.iter().enumerate() {
                let said = way(&at(name)).unwrap_err();
                assert!(said.contains("a database in use"), "{name} {number}: {said}");
            }
            let said = write_own(&at(name), b"y", Durability::Atomic).unwrap_err().to_string();
            assert!(said.contains("a database in use"), "{said}");
        }
        for way in &ways[4..8] {
            assert!(way(&at("soft")).unwrap_err().contains("a database in use"));
        }
        own::ensure(&at("db"), |_| std::io::Result::Ok(())).unwrap();
        drop(first);
        assert_eq!(own::read(&at("db"), 10).unwrap(), b"x");
    }
}
