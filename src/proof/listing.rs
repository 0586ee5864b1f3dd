//! What lies in a folder, as far as it shows whether a program has written there since.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::parallel;

/// Every entry of a folder, ignored ones included, by its path in it, in the order of the paths' bytes. Comparing them as paths, or a
/// map of them, would take longer than reading them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listing(Vec<(OsString, Stamp)>);

/// What changes when a program writes an entry. A time of modification can be set, a time of change (ctime) cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    mode: u32,
    inode: u64,
    /// Of a folder nothing more: its entries say what happens to it.
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(found: &fs::Metadata) -> Self {
        let (mode, inode) = (found.mode(), found.ino());
        if found.is_dir() {
            return Self { mode, inode, size: 0, changed: (0, 0) };
        }
        Self { mode, inode, size: found.size(), changed: (found.ctime(), found.ctime_nsec()) }
    }
}

impl Listing {
    /// What lies in a folder; nothing if it is missing.
    ///
    /// # Errors
    /// If a folder in it cannot be read.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        let mut entries = Vec::new();
        let mut level = vec![PathBuf::new()];
        if folder.symlink_metadata().is_err() {
            level.clear();
        }
        while !level.is_empty() {
            let read = parallel::each(&level, &|inner| read(folder, inner));
            level.clear();
            for found in read {
                for (name, is_folder, stamp) in found? {
                    if is_folder {
                        level.push(PathBuf::from(&name));
                    }
                    entries.push((name, stamp));
                }
            }
        }
        entries.sort_by(|(path, _), (other, _)| path.cmp(other));
        Ok(Self(entries))
    }

    /// Without what lies in this folder.
    pub(super) fn without(mut self, folder: &str) -> Self {
        self.0.retain(|(path, _)| !Path::new(path).starts_with(folder));
        self
    }

    /// Whether it has this entry in the same state as another listing, or neither has it.
    pub(super) fn agrees_on(&self, path: &Path, other: &Self) -> bool {
        self.get(path) == other.get(path)
    }

    /// How much its files hold, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, stamp)| stamp.size).sum()
    }

    fn get(&self, path: &Path) -> Option<Stamp> {
        let at = self.0.binary_search_by(|(other, _)| other.as_os_str().cmp(path.as_os_str()));
        at.ok().map(|at| self.0[at].1)
    }

    /// The entries that another listing does not have, or has in another state.
    pub(super) fn missing_in<'a>(&'a self, later: &'a Self) -> impl Iterator<Item = &'a Path> {
        let mut later = later.0.iter().peekable();
        let is_missing = move |entry: &&(OsString, Stamp)| {
            while later.next_if(|(other, _)| *other < entry.0).is_some() {}
            later.peek() != Some(entry)
        };
        self.0.iter().filter(is_missing).map(|(path, _)| Path::new(path))
    }

    /// All of it in bytes, which are those of no other listing.
    pub(super) fn write(&self, into: &mut Vec<u8>) {
        for (path, Stamp { mode, inode, size, changed }) in &self.0 {
            into.extend_from_slice(path.as_bytes());
            into.push(0);
            into.extend_from_slice(&mode.to_ne_bytes());
            let numbers =
                [inode.to_ne_bytes(), size.to_ne_bytes(), changed.0.to_ne_bytes(), changed.1.to_ne_bytes()];
            into.extend_from_slice(numbers.as_flattened());
        }
        // No path is empty.
        into.push(0);
    }
}

/// What lies in one folder below `root`: the path of each entry in that, whether it is a folder, and its stamp.
fn read(root: &Path, inner: &Path) -> io::Result<Vec<(OsString, bool, Stamp)>> {
    let entry = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        let found = entry.metadata()?;
        Ok((inner.join(entry.file_name()).into_os_string(), found.is_dir(), Stamp::of(&found)))
    };
    let mut entries = fs::read_dir(root.join(inner))?.map(entry).collect::<io::Result<Vec<_>>>()?;
    entries.sort_unstable_by(|(path, ..), (other, ..)| path.cmp(other));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn whoever_writes_in_a_folder_is_seen_whatever_times_it_sets() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("logs")).unwrap();
        for name in ["a", "b", "logs/c"] {
            fs::write(dir.path().join(name), "one").unwrap();
        }
        let before = Listing::of(dir.path()).unwrap();
        assert_eq!(before, Listing::of(dir.path()).unwrap());
        let path = dir.path().join("a");
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, "two").unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        // A new inode, in case that both were written within one tick of the clock.
        fs::copy(&path, dir.path().join("new")).unwrap();
        fs::rename(dir.path().join("new"), &path).unwrap();
        let after = Listing::of(dir.path()).unwrap();
        assert_eq!(before.missing_in(&after).collect::<Vec<_>>(), [Path::new("a")]);
        assert!(before.agrees_on(Path::new("b"), &after) && !before.agrees_on(Path::new("a"), &after));
        let bytes = |listing: &Listing| {
            let mut bytes = Vec::new();
            listing.write(&mut bytes);
            bytes
        };
        assert_ne!(bytes(&before), bytes(&after));
        assert_eq!(before.without("logs").0.len(), 2);
        assert_eq!(Listing::of(&dir.path().join("nowhere")).unwrap(), Listing::default());
        assert!(fs::metadata(&path).unwrap().modified().unwrap() <= SystemTime::now());
    }
}
