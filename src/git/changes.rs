//! Changed files of a work tree, and files that git ignores changes of.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::call::run;
use super::error::GitError;

/// The time limit of the search for a changed file, which is repeated while an agent is silent.
const SEARCH_LIMIT: Duration = Duration::from_secs(3);
/// The time limit of one `git status`.
pub(super) const LOOK_LIMIT: Duration = Duration::from_mins(1);
/// A network file system's clock may be slightly ahead; a file from further in the future proves nothing.
const CLOCK_SKEW: Duration = Duration::from_secs(2);

/// A changed or untracked file.
#[derive(Debug, Clone)]
pub struct Changed {
    /// Its path from the root of the work tree.
    pub path: PathBuf,
    /// Its state, as in `git status --porcelain`.
    pub state: [u8; 2],
    /// Its size in bytes; 0 if it was removed.
    pub size: u64,
    /// Its modification time; `None` if it was removed.
    pub written: Option<SystemTime>,
    /// Its change time (ctime), which a program cannot set; `None` if it was removed.
    pub touched: Option<SystemTime>,
}

impl Changed {
    /// The values to compare; a ctime alone is no change.
    fn content(&self) -> (&Path, [u8; 2], u64, Option<SystemTime>) {
        (&self.path, self.state, self.size, self.written)
    }
}

impl PartialEq for Changed {
    fn eq(&self, other: &Self) -> bool {
        self.content() == other.content()
    }
}

impl Eq for Changed {}

impl Hash for Changed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.content().hash(state);
    }
}

/// The change time (ctime) of a file; `None` if there is none.
#[must_use]
pub fn touched(path: &Path) -> Option<SystemTime> {
    change_time(&path.symlink_metadata().ok()?)
}

fn change_time(found: &std::fs::Metadata) -> Option<SystemTime> {
    let (seconds, nanos) = (u64::try_from(found.ctime()).ok()?, u64::try_from(found.ctime_nsec()).ok()?);
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanos))
}

/// Everything in the work tree that differs from HEAD. Two equal results with the same HEAD mean that nothing was
/// written in between. `None` if git fails.
#[must_use]
pub fn changes(root: &Path) -> Option<Vec<Changed>> {
    changes_within(root, SEARCH_LIMIT).ok()
}

/// [`changes`] for a caller that needs to know, and has the time.
///
/// # Errors
/// If git fails.
pub fn uncommitted(root: &Path) -> Result<Vec<Changed>, GitError> {
    changes_within(root, LOOK_LIMIT)
}

fn changes_within(root: &Path, limit: Duration) -> Result<Vec<Changed>, GitError> {
    let status = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"];
    let answer = run(root, &status, limit)?;
    let changed = |entry: &[u8]| {
        let state = [*entry.first()?, *entry.get(1)?];
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(entry.get(3..)?));
        let found = root.join(&path).symlink_metadata().ok();
        let size = found.as_ref().map_or(0, std::fs::Metadata::len);
        let written = found.as_ref().and_then(|found| found.modified().ok());
        let touched = found.as_ref().and_then(change_time);
        Some(Changed { path, state, size, written, touched })
    };
    Ok(answer.split(|&byte| byte == 0).filter_map(changed).collect())
}

/// The newest tracked or unignored file below `root` that was written after `since`: a sign of life of a silent
/// agent. `None` also if the search fails or takes too long.
#[must_use]
pub fn changed_since(root: &Path, since: SystemTime) -> Option<PathBuf> {
    let deadline = Instant::now() + SEARCH_LIMIT;
    let latest = SystemTime::now() + CLOCK_SKEW;
    let files =
        run(root, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"], SEARCH_LIMIT).ok()?;
    files
        .split(|&byte| byte == 0)
        .take_while(|_| Instant::now() < deadline)
        .filter_map(|name| {
            let path = root.join(std::ffi::OsStr::from_bytes(name));
            let metadata = path.symlink_metadata().ok().filter(|metadata| !metadata.is_dir())?;
            Some((metadata.modified().ok()?, path))
        })
        .filter(|(modified, _)| (since..latest).contains(modified) && *modified != since)
        .max()
        .map(|(_, path)| path)
}

/// Tracked files that exist and whose changes git ignores (skip-worktree, assume-unchanged).
pub(super) fn hidden(path: &Path) -> Result<BTreeSet<PathBuf>, GitError> {
    let is_hidden = |tag: u8| tag == b'S' || tag.is_ascii_lowercase();
    let hidden = tagged(path)?.into_iter().filter(|(tag, name)| {
        is_hidden(*tag) && path.join(OsStr::from_bytes(name)).symlink_metadata().is_ok()
    });
    Ok(hidden.map(|(_, name)| PathBuf::from(OsStr::from_bytes(&name))).collect())
}

/// Every file in the index with its status letter; lower case for assume-unchanged.
pub(super) fn tagged(path: &Path) -> Result<Vec<(u8, Vec<u8>)>, GitError> {
    let output = run(path, &["ls-files", "-v", "-z"], LOOK_LIMIT)?;
    let entries = output.split(|&byte| byte == 0);
    Ok(entries.filter_map(|entry| Some((*entry.first()?, entry.get(2..)?.to_vec()))).collect())
}
