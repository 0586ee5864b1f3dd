//! Removes a linked work tree: first what only it has is saved, then git removes it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::call::{LIMIT, run};
use super::change::{ChangeError, alone, change};
use super::error::GitError;
pub use super::error::RemoveError;
use super::exclude::keep_plan_out;
use super::head_file;
use super::repository::common_dir;
use super::save::{self, Saved};
use super::trees::Tree;
use super::uncommitted::Uncommitted;
use crate::files::theirs;
use crate::platform::calls::mounts;
use crate::project::BRANCH_PLAN as PLAN;

/// Removes `tree` from the repository of `root`; its branch stays. `name` is its name in the refs that keep commits
/// that only it has; they are added to `saved`, even if the tree is not removed after all. With `with_changes`,
/// uncommitted changes are saved and removed as well.
pub fn remove(
    root: &Path,
    tree: &Tree,
    name: &str,
    with_changes: bool,
    saved: &mut Vec<Saved>,
) -> Result<(), RemoveError> {
    if let Some(place) = mount_below(&tree.path) {
        let reason =
            format!("something is mounted at {}, and would be emptied: unmount it first", place.display());
        return Err(RemoveError::Refused { reason });
    }
    let git_dir = head_file::git_dir(&tree.path).map_err(GitError::unreadable(&tree.path))?;
    let git_dir = git_dir.ok_or(RemoveError::Changed)?;
    hide_plan(&tree.path)?;
    let uncommitted = if with_changes { Some(Uncommitted::read(&tree.path, &git_dir)?) } else { None };
    if let Some((commit, what)) = uncommitted.as_ref().map(Uncommitted::commit).transpose()?.flatten() {
        saved.push(save::keep(root, name, &commit, what)?);
    }
    save_commits(root, &git_dir, name, saved)?;
    if let Some(uncommitted) = uncommitted
        && !uncommitted.is_still_so()?
    {
        return Err(RemoveError::Changed);
    }
    if !save::own_commits(root, &git_dir)?.is_empty() {
        return Err(RemoveError::Changed);
    }
    // Without --force git checks the tree once more, including untracked files.
    let mut arguments =
        ["-c", "status.showUntrackedFiles=all", "worktree", "remove"].map(OsStr::new).to_vec();
    if with_changes {
        arguments.push(OsStr::new("--force"));
    }
    arguments.push(tree.path.as_os_str());
    let _alone = alone();
    change(root, &arguments).map_err(|error| match error {
        ChangeError::Refused(reason) => RemoveError::Refused { reason },
        error => error.of("worktree remove", &tree.path).into(),
    })
}

/// Deletes a branch that is still at `commit`.
pub fn remove_branch(root: &Path, branch: &str, commit: &str) -> Result<(), RemoveError> {
    let reference = format!("refs/heads/{branch}");
    let arguments = ["update-ref", "-d", &reference, commit].map(OsStr::new);
    change(root, &arguments).map_err(|error| match error {
        ChangeError::Refused(reason) => RemoveError::Refused { reason },
        error => error.of("update-ref", root).into(),
    })
}

/// A path below this folder where a file system or folder is mounted.
fn mount_below(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    mounts().ok()?.into_iter().map(|mount| mount.place).find(|place| place.starts_with(&folder))
}

/// Saves the commits that only git's entry for `tree` leads to, whose folder is missing: `git worktree prune` drops
/// them.
pub fn save_notes(root: &Path, tree: &Tree, name: &str, saved: &mut Vec<Saved>) -> Result<(), RemoveError> {
    match notes(root, tree)? {
        Some(git_dir) => save_commits(root, &git_dir, name, saved),
        None => Ok(()),
    }
}

/// The folder of git's entry for a tree, found without the tree's own folder.
fn notes(root: &Path, tree: &Tree) -> Result<Option<PathBuf>, GitError> {
    let folders = fs::read_dir(common_dir(root)?.join("worktrees")).into_iter().flatten().flatten();
    let is_meant = |folder: &PathBuf| {
        let pointer = theirs::read(&folder.join("gitdir"), theirs::MAX_TEXT).unwrap_or_default();
        Path::new(OsStr::from_bytes(pointer.trim_ascii_end())) == tree.path.join(".git")
    };
    Ok(folders.map(|folder| folder.path()).find(is_meant))
}

fn save_commits(root: &Path, git_dir: &Path, name: &str, saved: &mut Vec<Saved>) -> Result<(), RemoveError> {
    for id in save::own_commits(root, git_dir)? {
        saved.push(save::keep_commit(root, name, &id)?);
    }
    Ok(())
}

/// Hides changes of the plan's copy from git, if they are not hidden yet.
fn hide_plan(tree: &Path) -> Result<(), RemoveError> {
    let status = run(tree, &["status", "--porcelain=v1", "-z", "--", PLAN], LIMIT)?;
    match status.get(..2) {
        Some(code @ (b"??" | b" M" | b" D" | b" T")) => Ok(keep_plan_out(tree, PLAN, code != b"??")?),
        // It is hidden already, or staged.
        _ => Ok(()),
    }
}
