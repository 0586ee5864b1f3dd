//! Undoing commits by revert commits, so that nothing is ever lost: not what was undone, not uncommitted work.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::call::{LIMIT, run};
use super::change::change;
use super::changes::hidden;
use super::error::GitError;
use super::head_file;
use super::progress::{Operation, in_progress};
use super::range::is_ancestor;
use super::repository::head;
use crate::files::theirs;
use crate::text::list::some_of;

/// How many paths an error names.
const SHOWN: usize = 3;

/// A commit that can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its full id.
    pub id: String,
    /// It joined two histories.
    pub is_merge: bool,
    /// The first line of its message.
    pub subject: String,
}

/// Why commits are not undone. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum RevertError {
    /// git is in the middle of something.
    #[error("a {what} is in progress in {path}: finish it, or end it with '{end}'", path = .path.display())]
    Busy {
        /// `merge`, `rebase` …
        what: &'static str,
        /// The command that gives it up.
        end: &'static str,
        /// The work tree.
        path: std::path::PathBuf,
    },
    /// Something is staged; git would not revert.
    #[error("changes are staged ({paths}): commit or unstage them first")]
    Staged {
        /// Some of the paths.
        paths: String,
    },
    /// Uncommitted work lies where files would be reverted.
    #[error(
        "uncommitted changes would be touched ({paths}): commit them, or move them away with 'git stash -u'"
    )]
    Overlap {
        /// Some of the paths.
        paths: String,
    },
    /// HEAD does not contain what should be undone.
    #[error(
        "commit {commit:.10} is not part of what HEAD names: check out the branch that the loop worked on"
    )]
    NotHere {
        /// The commit.
        commit: String,
    },
    /// An iteration changed history rather than adding to it.
    #[error(
        "history was rewritten between {before:.10} and {after:.10}, so it is not known which commits are the loop's: \
         undo them by hand"
    )]
    Rewritten {
        /// HEAD before the iteration.
        before: String,
        /// HEAD after it.
        after: String,
    },
    /// Reverting met a conflict, or another refusal of git; everything is as it was.
    #[error("{commit} cannot be reverted ({reason}): nothing was changed; revert it by hand")]
    Conflict {
        /// The commit, as far as git said it.
        commit: String,
        /// What git said.
        reason: String,
    },
    /// Reverting failed, and so did going back.
    #[error("reverting failed ({reason}) and could not be undone: look at 'git status' in {path}", path = .path.display())]
    Stuck {
        /// What git said.
        reason: String,
        /// The work tree.
        path: std::path::PathBuf,
    },
    /// git could not be asked.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Fails when git is in the middle of something in the work tree `root`.
pub fn check_idle(root: &Path) -> Result<(), RevertError> {
    match in_progress(root)? {
        Some(Operation { what, end }) => Err(RevertError::Busy { what, end, path: root.to_owned() }),
        None => Ok(()),
    }
}

/// The commits of the main line from `before` (without it; `None` for the beginning) to `after`, newest first.
///
/// # Errors
/// If HEAD does not contain them, or `after` does not follow from `before`.
pub fn commits_between(root: &Path, before: Option<&str>, after: &str) -> Result<Vec<Commit>, RevertError> {
    if !is_ancestor(root, after, "HEAD") {
        return Err(RevertError::NotHere { commit: after.to_owned() });
    }
    let range = match before {
        Some(before) if !is_ancestor(root, before, after) => {
            return Err(RevertError::Rewritten { before: before.to_owned(), after: after.to_owned() });
        }
        Some(before) => format!("{before}..{after}"),
        None => after.to_owned(),
    };
    let format = "--format=%H%x00%P%x00%s";
    let output = run(root, &["log", "--first-parent", "--no-show-signature", format, &range, "--"], LIMIT)?;
    let text = String::from_utf8_lossy(&output);
    Ok(text.lines().filter_map(commit).collect())
}

fn commit(line: &str) -> Option<Commit> {
    let mut fields = line.split('\0');
    let (id, parents, subject) = (fields.next()?, fields.next()?, fields.next()?);
    Some(Commit { id: id.to_owned(), is_merge: parents.contains(' '), subject: subject.to_owned() })
}

/// Where each commit stands in HEAD's history: no parent before its child, and of others the newer one first.
pub fn places(root: &Path) -> Result<HashMap<String, usize>, RevertError> {
    let output = run(root, &["rev-list", "--date-order", "HEAD", "--"], LIMIT)?;
    let ids = String::from_utf8_lossy(&output);
    Ok(ids.lines().enumerate().map(|(place, id)| (id.to_owned(), place)).collect())
}

/// The commits that HEAD contains and that another commit in it reverts; a revert that was itself reverted does not
/// count.
pub fn undone(root: &Path) -> Result<HashSet<String>, RevertError> {
    const MARK: &str = "This reverts commit ";
    let filter = ["--fixed-strings", "--grep", MARK];
    let arguments = [&["log", "--no-show-signature", "--format=%x01%H%n%B"], &filter[..]].concat();
    let output = run(root, &arguments, LIMIT)?;
    let text = String::from_utf8_lossy(&output);
    let mut undone = HashSet::new();
    // Newest first, so that it is known of each revert whether it still holds.
    for message in text.split('\u{1}').skip(1) {
        let (id, body) = message.split_once('\n').unwrap_or((message, ""));
        if undone.contains(id) {
            continue;
        }
        for part in body.split(MARK).skip(1) {
            undone.insert(part.chars().take_while(char::is_ascii_hexdigit).collect());
        }
    }
    Ok(undone)
}

/// Reverts the commits in this order, one revert commit for each; all of them or none.
pub fn revert(root: &Path, commits: &[Commit]) -> Result<(), RevertError> {
    check_idle(root)?;
    let staged = names(root, &["diff", "--cached", "--name-only", "-z", "--no-renames"])?;
    if !staged.is_empty() {
        return Err(RevertError::Staged { paths: shown(staged.iter()) });
    }
    let dirty = uncommitted(root)?;
    // git would overwrite these, too: it has been told that they never change.
    let hidden = hidden(root)?;
    let touched = touched(root, commits)?;
    let is_touched = |path: &&PathBuf| touched.iter().any(|other| overlaps(path, other));
    let mut overlap: BTreeSet<PathBuf> = dirty.union(&hidden).filter(is_touched).cloned().collect();
    // git would overwrite what is ignored without a word.
    let tracked: HashSet<PathBuf> = names(root, &["ls-files", "-z"])?.into_iter().collect();
    overlap.extend(touched.iter().filter_map(|path| in_the_way(root, path, &tracked)));
    if !overlap.is_empty() {
        return Err(RevertError::Overlap { paths: shown(overlap) });
    }
    let before = head(root);
    let mut arguments = vec!["revert", "--no-edit"];
    if commits.iter().any(|commit| commit.is_merge) {
        // Of a merge, what it brought into the main line.
        arguments.extend(["-m", "1"]);
    }
    arguments.extend(commits.iter().map(|commit| commit.id.as_str()));
    let Err(error) = change(root, &arguments) else { return Ok(()) };
    let reason = error.to_string();

    let stopped_at = head_file::git_dir(root)
        .ok()
        .flatten()
        .and_then(|git_dir| theirs::text(&git_dir.join("REVERT_HEAD")).ok())
        .map(|id| id.trim().to_owned());
    if check_idle(root).is_err() && change(root, &["revert", "--abort"]).is_err()
        || head(root) != before
        || uncommitted(root)? != dirty
    {
        return Err(RevertError::Stuck { reason, path: root.to_owned() });
    }
    let name = stopped_at.as_ref().and_then(|id| commits.iter().find(|commit| commit.id == *id));
    let commit = name
        .map_or_else(|| "a commit".to_owned(), |commit| format!("{:.10} '{}'", commit.id, commit.subject));
    Err(RevertError::Conflict { commit, reason })
}

/// Some of the paths that differ from HEAD or are untracked and not ignored, all but the file `but`; `None` if there is
/// none, or git cannot tell.
#[must_use]
pub fn uncommitted_paths(root: &Path, but: &str) -> Option<String> {
    let mut paths = uncommitted(root).ok()?;
    paths.remove(Path::new(but));
    (!paths.is_empty()).then(|| shown(paths.iter()))
}

/// Every path that differs from HEAD or is untracked and not ignored.
fn uncommitted(root: &Path) -> Result<BTreeSet<PathBuf>, GitError> {
    let status = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"];
    let output = run(root, &status, LIMIT)?;
    let entries = output.split(|&byte| byte == 0).filter_map(|entry| entry.get(3..));
    Ok(entries.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
}

/// Every path that the commits changed.
fn touched(root: &Path, commits: &[Commit]) -> Result<BTreeSet<PathBuf>, GitError> {
    let mut touched = BTreeSet::new();
    for commit in commits {
        let show = ["log", "-1", "--first-parent", "-m", "--root", "--no-show-signature", "--format="];
        let what = ["--name-only", "-z", "--no-renames", &commit.id];
        touched.extend(names(root, &[&show[..], &what[..]].concat())?);
    }
    Ok(touched)
}

/// What would be lost when a file is written at `path`: something there, below it or above it that is not tracked.
fn in_the_way(root: &Path, path: &Path, tracked: &HashSet<PathBuf>) -> Option<PathBuf> {
    let is_dir = |path: &Path| root.join(path).symlink_metadata().ok().map(|found| found.is_dir());
    let above = path.ancestors().take_while(|above| !above.as_os_str().is_empty());
    let in_place = above.into_iter().find(|above| is_dir(above) == Some(false) && !tracked.contains(*above));
    in_place.map(Path::to_owned).or_else(|| untracked_below(root, path, tracked))
}

/// A file below the folder `path` that is not tracked.
fn untracked_below(root: &Path, path: &Path, tracked: &HashSet<PathBuf>) -> Option<PathBuf> {
    if !root.join(path).symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return None;
    }
    fs::read_dir(root.join(path)).ok()?.flatten().find_map(|entry| {
        let inner = path.join(entry.file_name());
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir {
            untracked_below(root, &inner, tracked)
        } else {
            Some(inner).filter(|it| !tracked.contains(it))
        }
    })
}

/// What a git command lists, each name ended by a zero byte.
fn names(root: &Path, arguments: &[&str]) -> Result<Vec<PathBuf>, GitError> {
    let output = run(root, arguments, LIMIT)?;
    let names = output.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    // `log` ends its own line first.
    let name = |name: &[u8]| PathBuf::from(OsStr::from_bytes(name.strip_prefix(b"\n").unwrap_or(name)));
    Ok(names.map(name).collect())
}

/// The same path, or one below the other.
fn overlaps(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The first few of these paths, and how many more there are.
pub(super) fn shown<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> String {
    some_of(paths.into_iter().map(|path| path.as_ref().to_string_lossy().into_owned()), SHOWN)
}

#[cfg(test)]
mod tests;
