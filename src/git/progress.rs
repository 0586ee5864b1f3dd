//! Whether git is in the middle of something.

use std::path::{Path, PathBuf};

use super::error::GitError;
use super::head_file;

/// Something that git has begun and somebody has to finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// `merge`, `rebase` …
    pub what: &'static str,
    /// The command that gives it up.
    pub end: &'static str,
}

/// A file or folder that git keeps while the operation lasts, what it is called and how it is given up. Where several
/// are there at once, the first says it best.
const MARKS: [(&str, &str, &str); 8] = [
    ("rebase-merge", "rebase", "git rebase --abort"),
    ("rebase-apply/applying", "patch series", "git am --abort"),
    ("rebase-apply", "rebase", "git rebase --abort"),
    ("MERGE_HEAD", "merge", "git merge --abort"),
    ("CHERRY_PICK_HEAD", "cherry-pick", "git cherry-pick --abort"),
    ("REVERT_HEAD", "revert", "git revert --abort"),
    ("sequencer", "cherry-pick or revert", "git cherry-pick --abort"),
    ("BISECT_LOG", "bisect", "git bisect reset"),
];

/// What is in progress in the work tree `root`.
pub(super) fn in_progress(root: &Path) -> Result<Option<Operation>, GitError> {
    let git_dir = head_file::git_dir(root).map_err(GitError::unreadable(root))?;
    let is_there = |mark: &str| git_dir.as_ref().is_some_and(|git_dir| git_dir.join(mark).exists());
    let found = MARKS.into_iter().find(|(mark, ..)| is_there(mark));
    Ok(found.map(|(_, what, end)| Operation { what, end }))
}

/// What tells in this git folder that something is in progress.
pub(super) fn mark_in(git_dir: &Path) -> Option<PathBuf> {
    MARKS.into_iter().map(|(mark, ..)| git_dir.join(mark)).find(|mark| mark.exists())
}
