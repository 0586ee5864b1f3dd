//! Detects git operations in progress.

use std::path::{Path, PathBuf};

use super::error::GitError;
use super::head_file;
use crate::files::theirs;

/// An operation that git has begun and the user has to finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// `merge`, `rebase` …
    pub what: &'static str,
    /// The command that aborts it.
    pub end: &'static str,
}

/// A file or folder that git keeps during an operation, the operation's name and the command that aborts it. The
/// first match is the most precise.
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

/// The operation in progress in the work tree `root`.
pub(super) fn in_progress(root: &Path) -> Result<Option<Operation>, GitError> {
    let git_dir = head_file::git_dir(root).map_err(GitError::unreadable(root))?;
    let is_there = |mark: &str| git_dir.as_ref().is_some_and(|git_dir| git_dir.join(mark).exists());
    let found = MARKS.into_iter().find(|(mark, ..)| is_there(mark));
    Ok(found.map(|(_, what, end)| Operation { what, end }))
}

/// The path of a file in git's folder of the work tree `root`; `None` where there is no repository.
pub(super) fn own_file(root: &Path, name: &str) -> Option<PathBuf> {
    Some(head_file::git_dir(root).ok().flatten()?.join(name))
}

/// Its text, without white space around it.
pub(super) fn own_text(root: &Path, name: &str) -> Option<String> {
    theirs::text(&own_file(root, name)?).ok().map(|text| text.trim().to_owned())
}

/// What git has noted of the rebase in progress there, such as `onto`.
pub(super) fn rebase_says(root: &Path, name: &str) -> Option<String> {
    ["rebase-merge", "rebase-apply"].iter().find_map(|folder| own_text(root, &format!("{folder}/{name}")))
}

/// The file in this git folder that shows an operation in progress.
pub(super) fn mark_in(git_dir: &Path) -> Option<PathBuf> {
    MARKS.into_iter().map(|(mark, ..)| git_dir.join(mark)).find(|mark| mark.exists())
}
