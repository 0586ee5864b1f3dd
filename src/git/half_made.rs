//! Cleans up after an interrupted `git worktree add`: an incomplete entry of git, and some files of a checkout.
//!
//! The tree is created again, so its remains are removed first. Only files that a checkout wrote are deleted, one by
//! one, so that any other file stays.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind::NotFound;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::call::LEFT_ALONE;
use super::change::{ChangeError, ChangeOptions, alone, change_with};
use super::checkout::Checkout;
use super::error::{GitError, RemoveError};
use super::refs::branch_commit;
use super::repository::common_dir;
use super::trees::{Tree, without_links};
use super::{head_file, progress, save};
use crate::files::temporary::Folder;
use crate::files::{if_there, theirs};
use crate::platform::calls::{command_line, environment};
use crate::platform::stat::Stat;
use crate::text::jitter;
use crate::text::line::shell_word;

/// How long another git that is creating the same work tree is awaited.
const PATIENCE: Duration = Duration::from_secs(5);
/// The lock reason that git sets while it creates a work tree.
const INITIALIZING: &str = "initializing";
/// The files of an entry without which git cannot work in the tree.
const NEEDED: [&str; 4] = ["HEAD", "commondir", "gitdir", "index"];
/// An incomplete work tree.
struct HalfMade<'a> {
    root: &'a Path,
    /// Its folder, without symbolic links; may not exist.
    path: &'a Path,
    branch: &'a str,
    /// git's entry for it; may not exist.
    entry: Option<PathBuf>,
}

/// Clears the path of the work tree for `branch` if the tree there was never finished; returns whether it was so.
/// `start` is the commit for a branch that does not exist; `known` are the trees that git lists.
///
/// # Errors
/// If another process works there, or a file is there that no checkout wrote.
pub(super) fn clear(
    root: &Path,
    path: &Path,
    branch: &str,
    start: &str,
    known: &[Tree],
) -> Result<bool, GitError> {
    let tree = known.iter().find(|tree| tree.path == path);
    if tree.is_none() && path.symlink_metadata().is_err() {
        return Ok(false);
    }
    let Some(found) = HalfMade::find(root, path, branch, tree)? else { return Ok(false) };
    wait_for_other(path)?;
    let _alone = alone();
    // The other git may have finished it meanwhile.
    if found.entry.as_deref().is_some_and(is_whole) {
        return Ok(true);
    }
    let commit = branch_commit(root, branch).unwrap_or_else(|| start.to_owned());
    match found.clear(&commit)? {
        None => Ok(true),
        // The folder's owner is unknown.
        Some(_) if found.entry.as_deref().is_none_or(|entry| !entry.exists()) => Ok(false),
        Some(stranger) => {
            let what = "a work tree that was never finished holds a file that no checkout wrote";
            Err(GitError::in_the_way(what, stranger.display(), "move it away and start again"))
        }
    }
}

/// Waits for another git that is creating this work tree; returns whether there was one.
pub(super) fn wait_for_other(path: &Path) -> Result<bool, GitError> {
    let deadline = Instant::now() + PATIENCE;
    let mut has_waited = false;
    while is_being_made(path) {
        if Instant::now() > deadline {
            let what = "another git is making this work tree";
            return Err(GitError::in_the_way(what, path.display(), "wait for it and start again"));
        }
        has_waited = true;
        thread::sleep(jitter::around(Duration::from_millis(100)));
    }
    Ok(has_waited)
}

/// Whether git has everything that it needs to work in the tree of this entry.
pub(super) fn is_whole(entry: &Path) -> bool {
    let is_there = |name: &str| entry.join(name).metadata().is_ok_and(|found| found.len() > 0);
    let locked = theirs::text(&entry.join("locked")).unwrap_or_default();
    NEEDED.into_iter().all(is_there) && locked.trim() != INITIALIZING
}

impl<'a> HalfMade<'a> {
    /// The incomplete work tree at `path`, if it only consists of a checkout of this branch.
    fn find(
        root: &'a Path,
        path: &'a Path,
        branch: &'a str,
        tree: Option<&Tree>,
    ) -> Result<Option<Self>, GitError> {
        let entries = without_links(&common_dir(root)?.join("worktrees"));
        let git_file = path.join(".git");
        let pointer = match git_file.symlink_metadata() {
            Ok(found) if found.is_file() => head_file::git_dir(path).map_err(GitError::unreadable(path))?,
            Ok(_) => return Ok(None),
            Err(_) => None,
        };
        let entry = match pointer {
            Some(entry) if entry.parent().is_some_and(|folder| without_links(folder) == entries) => {
                // A copy of another tree's folder leads to that tree's entry.
                let names_another = registered(&entry)?.is_some_and(|place| place != git_file);
                if names_another {
                    return Ok(None);
                }
                Some(entry)
            }
            None if tree.is_some() => entry_for(&entries, &git_file)?,
            None if path.symlink_metadata().is_ok_and(|found| found.is_dir()) => None,
            _ => return Ok(None),
        };
        if let Some(entry) = &entry
            && (is_whole(entry) || !is_on(entry, branch, tree)?)
        {
            return Ok(None);
        }
        let is_empty = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        if entry.is_none() && is_empty {
            return Ok(None);
        }
        Ok(Some(Self { root, path, branch, entry }))
    }

    /// Deletes it, unless it contains a file that no checkout of `commit` wrote, which is returned.
    fn clear(&self, commit: &str) -> Result<Option<PathBuf>, GitError> {
        let entry = self.entry.as_ref().filter(|entry| entry.exists());
        if let Some(entry) = entry {
            if let Some(stranger) = precious(self.root, entry)? {
                return Ok(Some(stranger));
            }
            require_nothing_staged(self.root, entry, commit)?;
        }
        let failed = |error: std::io::Error| self.refused(error.to_string());
        if self.path.is_dir() {
            let common = common_dir(self.root)?;
            let begun = Begun::of(self, &common, commit)?;
            if let Some(stranger) = begun.stranger()? {
                return Ok(Some(self.path.join(stranger)));
            }
            for name in begun.files()? {
                gone(fs::remove_file(self.path.join(name))).map_err(failed)?;
            }
        }
        // In this order, so that the remains are still recognised if this is interrupted, too.
        if let Some(entry) = entry {
            gone(fs::remove_dir_all(entry)).map_err(failed)?;
        }
        gone(fs::remove_file(self.path.join(".git"))).map_err(failed)?;
        remove_empty_folders(self.path);
        Ok(None)
    }

    fn refused(&self, reason: String) -> GitError {
        GitError::refused(&self.command(), self.path, reason)
    }

    fn command(&self) -> String {
        format!("worktree add {}", self.branch)
    }
}

/// Compares the folder of a work tree with a checkout of a commit, using an index of our own: git's may be missing,
/// or locked by the killed git.
struct Begun<'a> {
    tree: &'a HalfMade<'a>,
    commit: &'a str,
    common: &'a Path,
    index: Folder,
}

impl<'a> Begun<'a> {
    fn of(tree: &'a HalfMade<'a>, common: &'a Path, commit: &'a str) -> Result<Self, GitError> {
        let index = Folder::make_in(common).map_err(|error| tree.refused(error.to_string()))?;
        let begun = Self { tree, commit, common, index };
        begun.git(&["read-tree", commit])?;
        begun.git(&["update-index", "-q", "--ignore-missing", "--refresh"])?;
        Ok(begun)
    }

    /// All trees share the repository; the files are this tree's.
    fn git(&self, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        let env = vec![("GIT_INDEX_FILE".into(), self.index.path().join("index").into_os_string())];
        let how = ChangeOptions { env, ..ChangeOptions::default() };
        let git_dir = [b"--git-dir=", self.common.as_os_str().as_bytes()].concat();
        let path = self.tree.path;
        let tree = [b"--work-tree=", path.as_os_str().as_bytes()].concat();
        let places = [&git_dir[..], &tree, b"-c", b"core.sparseCheckout=false"].map(OsStr::from_bytes);
        let arguments: Vec<&OsStr> = places.into_iter().chain(arguments.iter().map(OsStr::new)).collect();
        change_with(path, &arguments, &how).map_err(|error| error.of(&self.tree.command(), path))
    }

    /// All files of the commit.
    fn files(&self) -> Result<Vec<PathBuf>, GitError> {
        self.git(&["ls-files", "-z", "--cached"]).map(|output| paths(&output))
    }

    /// A file that the commit does not have, including ignored ones, or that differs from the commit.
    fn stranger(&self) -> Result<Option<PathBuf>, GitError> {
        if let Some(first) = paths(&self.git(&["ls-files", "-z", "--others"])?).into_iter().next() {
            return Ok(Some(first));
        }
        // A missing file has not been written yet.
        let changed =
            self.git(&["diff-files", "-z", "--raw", "--no-renames", LEFT_ALONE, "--diff-filter=d"])?;
        let mut fields = changed.split(|&byte| byte == 0);
        let mut changed = Vec::new();
        while let (Some(about), Some(name)) = (fields.next(), fields.next()) {
            // `:100644 100755 …`: a checkout creates a file with its final mode.
            if !about.starts_with(b":100") || about.get(1..7) != about.get(8..14) {
                return Ok(Some(PathBuf::from(OsStr::from_bytes(name))));
            }
            changed.push(name.to_owned());
        }
        let failed = failed_in(self.tree.path);
        let checkout = Checkout::of(self.common, self.commit).map_err(&failed)?;
        let lost = checkout.lost_with(self.tree.path).map_err(failed)?;
        changed.extend(lost.into_iter().map(|(name, _)| name));
        changed.sort_unstable();
        changed.dedup();
        for name in changed {
            if !self.is_cut_off(&checkout, &name)? {
                return Ok(Some(PathBuf::from(OsStr::from_bytes(&name))));
            }
        }
        Ok(None)
    }

    /// Whether the file is a truncated version of the committed one, and the last one that the checkout wrote. git
    /// writes files in place, in the order of the index, so a kill may truncate one of them. (With
    /// `checkout.workers`, or filters that delay, it may truncate more: then the user has to decide.)
    fn is_cut_off(&self, checkout: &Checkout, name: &[u8]) -> Result<bool, GitError> {
        let files = self.files()?;
        let later = files.iter().skip_while(|file| file.as_os_str().as_bytes() != name).skip(1);
        if later.into_iter().any(|file| self.tree.path.join(file).symlink_metadata().is_ok()) {
            return Ok(false);
        }
        checkout.make(&[name]);
        let Ok(whole) = theirs::read(&checkout.path(name), u64::MAX) else { return Ok(false) };
        let there = theirs::read(&self.tree.path.join(OsStr::from_bytes(name)), u64::MAX);
        Ok(whole.starts_with(&there.map_err(|error| self.tree.refused(error.to_string()))?))
    }
}

fn failed_in(path: &Path) -> impl Fn(RemoveError) -> GitError + '_ {
    |error| match error {
        RemoveError::Git(error) => error,
        other => GitError::refused("worktree add", path, other.to_string()),
    }
}

/// What git's entry holds and cannot be restored: an operation in progress, repositories of submodules, or a commit
/// that nothing else leads to.
pub(super) fn precious(root: &Path, entry: &Path) -> Result<Option<PathBuf>, GitError> {
    let modules = Some(entry.join("modules")).filter(|modules| modules.exists());
    if let Some(found) = progress::mark_in(entry).or(modules) {
        return Ok(Some(found));
    }
    let commits = save::own_commits(root, entry).map_err(failed_in(entry))?;
    Ok((!commits.is_empty()).then(|| entry.join("logs/HEAD")))
}

/// Fails if the index of git's entry is not the one that a checkout of `commit` writes: what is staged may exist
/// nowhere else.
pub(super) fn require_nothing_staged(root: &Path, entry: &Path, commit: &str) -> Result<(), GitError> {
    let index = entry.join("index");
    let beginning = match theirs::read(&index, u64::MAX) {
        Err(error) if error.kind() == NotFound => return Ok(()),
        content => content.map_err(|error| GitError::refused("read-tree", &index, error.to_string()))?,
    };
    // A power cut leaves a file of zeros.
    if beginning.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    let env = vec![("GIT_INDEX_FILE".into(), index.clone().into_os_string())];
    let how = ChangeOptions { env, ..ChangeOptions::default() };
    // Files are not compared, and the entry itself may be incomplete, so the repository's own folder is used.
    let look = ["diff-index", "--cached", "--quiet", "--ignore-submodules=none", commit];
    let common = common_dir(root)?;
    let git_dir = OsString::from_vec([b"--git-dir=", common.as_os_str().as_bytes()].concat());
    let arguments: Vec<&OsStr> = [git_dir.as_os_str()].into_iter().chain(look.map(OsStr::new)).collect();
    // Also fails if git cannot read the index.
    match change_with(root, &arguments, &how) {
        Ok(_) => Ok(()),
        Err(ChangeError::Refused(_)) => {
            let what = "files are staged in a work tree that is not whole, and they may be nowhere else";
            let index = shell_word(&index);
            let way_out = format!(
                "look at them with 'GIT_INDEX_FILE={index} git diff --cached {commit:.10}' in {}, save what is needed, then \
                 delete that file and start again",
                root.display()
            );
            Err(GitError::in_the_way(what, index, way_out))
        }
        Err(error) => Err(error.of("diff-index", entry)),
    }
}

/// The NUL-terminated names that a git command lists.
fn paths(output: &[u8]) -> Vec<PathBuf> {
    let names = output.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect()
}

/// The `.git` file that an entry is registered for; `None` if it has none.
fn registered(entry: &Path) -> Result<Option<PathBuf>, GitError> {
    let content = if_there(theirs::read(&entry.join("gitdir"), theirs::MAX_TEXT));
    let content = content.map_err(GitError::unreadable(entry))?.unwrap_or_default();
    let place = content.trim_ascii_end();
    // The path may be relative to the entry.
    Ok((!place.is_empty()).then(|| without_links(&entry.join(OsStr::from_bytes(place)))))
}

/// The entry that is registered for this `.git` file.
pub(super) fn entry_for(entries: &Path, git_file: &Path) -> Result<Option<PathBuf>, GitError> {
    let found = if_there(fs::read_dir(entries)).map_err(GitError::unreadable(entries))?;
    for entry in found.into_iter().flatten().flatten().map(|entry| entry.path()) {
        if registered(&entry)?.is_some_and(|place| place == git_file) {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

/// Whether the HEAD of an entry is on the branch, or unset.
fn is_on(entry: &Path, branch: &str, tree: Option<&Tree>) -> Result<bool, GitError> {
    let head = if_there(theirs::text(&entry.join("HEAD"))).map_err(GitError::unreadable(entry))?;
    let head = head.unwrap_or_default();
    Ok(match head.trim_end().strip_prefix("ref: refs/heads/") {
        // With another ref format, only git can tell.
        Some(".invalid") => tree.is_none_or(|tree| {
            tree.branch.as_deref().is_none_or(|name| [branch, ".invalid"].contains(&name))
        }),
        Some(name) => name == branch,
        None => head.trim_end().bytes().all(|byte| byte == b'0'),
    })
}

/// Whether a running git process is creating this work tree.
pub(super) fn is_being_made(path: &Path) -> bool {
    Stat::all().any(|process| {
        let line = command_line(process.pid);
        let is_git = line.split(|&byte| byte == 0).next().is_some_and(|name| name.ends_with(b"git"));
        // The child process that writes the files has the path in its environment.
        is_git && (names(&line, path) || names(&environment(process.pid), path))
    })
}

/// Whether a command line or an environment contains a path, or one below it.
pub(super) fn names(text: &[u8], path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    let ends = |rest: &[u8]| rest.first().is_none_or(|&byte| byte == 0 || byte == b'/');
    (0..text.len()).any(|at| text[at..].strip_prefix(path).is_some_and(ends))
}

/// Treats a missing file as removed.
fn gone(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if error.kind() == NotFound => Ok(()),
        result => result,
    }
}

/// Removes empty folders below `path`, and `path` itself if it is empty then.
fn remove_empty_folders(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty_folders(&entry.path());
        }
    }
    // A folder that is not empty stays.
    let _ = fs::remove_dir(path);
}

#[cfg(test)]
mod tests;
