//! Locks of git that an agent, or a git of ours, left behind because it was ended inside of git: no process holds them, and git
//! refuses to commit until they are removed.
//!
//! Locks are never deleted blindly, see [`super::change`]. A lock counts as left by an agent if it was created during
//! the latest attempt of an ended loop, all processes of that loop have ended, and no visible process has it open or
//! is a git in the repository; one of ours, if it was created while that ran, and the same holds. In a work tree that is ours alone
//! it counts whenever it was created, if no git works in that tree.

use std::ffi::OsStr;
use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::change::patiently;
use super::half_made::names;
use super::head_file;
use super::trees::{CheckedOut, checked_out, locks, without_links};
use crate::platform::calls::{command_line, environment, open_files, working_directory};
use crate::platform::stat::Stat;

/// Removes the locks that were [left](left), and returns them. Call it after all processes of the loop have ended.
#[must_use]
pub fn remove(root: &Path, at_work: &RangeInclusive<SystemTime>) -> Vec<PathBuf> {
    let mut left = left(root, at_work);
    left.retain(|lock| fs::remove_file(lock).is_ok());
    left
}

/// Removes the locks of the index and HEAD of a work tree that is ours alone, once no git works in that tree that can be seen. Call
/// it when nothing of ours works there.
pub(super) fn remove_in_ours(tree: &Path) {
    let Some(git_dir) = head_file::git_dir(tree).ok().flatten() else { return };
    let mut left = locks(tree, "");
    left.retain(|lock| lock.starts_with(&git_dir));
    if !left.is_empty()
        && patiently(|| (!is_in_use_in(&[tree.to_owned(), git_dir.clone()], &left)).then_some(())).is_some()
    {
        // One that stays is reported by git.
        for lock in left {
            let _ = fs::remove_file(lock);
        }
    }
}

/// The locks of the work tree `root` that were created within this time, if no git runs there.
#[must_use]
pub fn left(root: &Path, at_work: &RangeInclusive<SystemTime>) -> Vec<PathBuf> {
    let branch = match checked_out(root) {
        Ok(CheckedOut::Branch(name)) => name,
        // There is no lock of this name.
        _ => String::new(),
    };
    let is_of_then = |lock: &PathBuf| {
        let found = lock.symlink_metadata().ok().filter(fs::Metadata::is_file);
        found.and_then(|found| found.modified().ok()).is_some_and(|made| at_work.contains(&made))
    };
    // A commit holds this one while it removes what a merge has left; other branches share it.
    let packed = head_file::common_dir(root).map(|common| common.join("packed-refs.lock"));
    let mut left: Vec<PathBuf> = locks(root, &branch).into_iter().chain(packed).filter(is_of_then).collect();
    if !left.is_empty() && is_in_use(root, &left) {
        left.clear();
    }
    left
}

/// Whether a process has one of these files open, or is a git in the repository of this work tree: git may close a
/// lock file while it holds the lock.
fn is_in_use(root: &Path, files: &[PathBuf]) -> bool {
    let common = head_file::common_dir(root).map(|common| without_links(&common));
    let main = common.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let folders: Vec<PathBuf> = [Some(root.to_owned()), common, main].into_iter().flatten().collect();
    is_in_use_in(&folders, files)
}

/// Whether a process has one of these files open, or is a git that one of these folders is named to.
fn is_in_use_in(folders: &[PathBuf], files: &[PathBuf]) -> bool {
    let real = |paths: &[PathBuf]| paths.iter().map(|path| without_links(path)).collect::<Vec<PathBuf>>();
    let (folders, files) = (real(folders), real(files));
    let has_open = |pid| open_files(pid).any(|file| files.contains(&file));
    Stat::all().any(|process| has_open(process.pid) || is_git_in(process.pid, &folders))
}

/// Whether a process is a git whose working directory, arguments or environment name one of these folders. Git's
/// daemons do not count: they take no locks.
fn is_git_in(pid: u32, folders: &[PathBuf]) -> bool {
    let line = command_line(pid);
    let program = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = Path::new(OsStr::from_bytes(program)).file_name().unwrap_or_default();
    if !name.as_bytes().starts_with(b"git") || line.windows(8).any(|part| part == b"--daemon") {
        return false;
    }
    let environment = environment(pid);
    match working_directory(pid) {
        // A process that cannot be read might be one.
        Err(_) => true,
        Ok(cwd) => folders
            .iter()
            .any(|folder| cwd.starts_with(folder) || names(&line, folder) || names(&environment, folder)),
    }
}
