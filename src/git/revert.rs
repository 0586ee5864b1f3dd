//! Undoes commits by revert commits, so that neither the commits nor uncommitted work are lost.

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
    /// Whether it is a merge.
    pub is_merge: bool,
    /// The first line of its message.
    pub subject: String,
}

/// Why commits were not undone. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum RevertError {
    /// A git operation is in progress.
    #[error("a {what} is in progress in {path}: finish it, or end it with '{end}'", path = .path.display())]
    Busy {
        /// `merge`, `rebase` …
        what: &'static str,
        /// The command that aborts it.
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
    /// Files to be reverted have uncommitted changes.
    #[error(
        "uncommitted changes would be touched ({paths}): commit them, or move them away with 'git stash -u'"
    )]
    Overlap {
        /// Some of the paths.
        paths: String,
    },
    /// HEAD does not contain the commit to be undone.
    #[error(
        "commit {commit:.10} is not part of what HEAD names: check out the branch that the loop worked on"
    )]
    NotHere {
        /// The commit.
        commit: String,
    },
    /// An iteration rewrote history instead of adding to it.
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
    /// git would stage the reverts and not commit them.
    #[error("git does not know who commits here ({reason}): set user.name and user.email with 'git config'")]
    NoCommitter {
        /// In git's words.
        reason: String,
    },
    /// A revert failed, with a conflict or another refusal of git; everything was restored.
    #[error("{commit} cannot be reverted ({reason}): nothing was changed; revert it by hand")]
    Conflict {
        /// The commit, as far as git named it.
        commit: String,
        /// git's message.
        reason: String,
    },
    /// A revert failed, and so did restoring.
    #[error("reverting failed ({reason}) and could not be undone: look at 'git status' in {path}", path = .path.display())]
    Stuck {
        /// git's message.
        reason: String,
        /// The work tree.
        path: std::path::PathBuf,
    },
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Fails if a git operation is in progress in the work tree `root`.
pub fn check_idle(root: &Path) -> Result<(), RevertError> {
    match in_progress(root)? {
        Some(Operation { what, end }) => Err(RevertError::Busy { what, end, path: root.to_owned() }),
        None => Ok(()),
    }
}

/// The commits of the main line after `before` (`None` for the beginning) up to `after`, newest first.
///
/// # Errors
/// If HEAD does not contain them, or `after` is not a descendant of `before`.
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
    let output = run(root, &["log", "--first-parent", format, &range, "--"], LIMIT)?;
    let text = String::from_utf8_lossy(&output);
    Ok(text.lines().filter_map(commit).collect())
}

fn commit(line: &str) -> Option<Commit> {
    let mut fields = line.split('\0');
    let (id, parents, subject) = (fields.next()?, fields.next()?, fields.next()?);
    Some(Commit { id: id.to_owned(), is_merge: parents.contains(' '), subject: subject.to_owned() })
}

/// The position of each commit in HEAD's history: children before parents, otherwise the newer one first.
pub fn places(root: &Path) -> Result<HashMap<String, usize>, RevertError> {
    let output = run(root, &["rev-list", "--date-order", "HEAD", "--"], LIMIT)?;
    let ids = String::from_utf8_lossy(&output);
    Ok(ids.lines().enumerate().map(|(place, id)| (id.to_owned(), place)).collect())
}

/// The commits in HEAD that another commit in it reverts, unless that revert was itself reverted.
pub fn undone(root: &Path) -> Result<HashSet<String>, RevertError> {
    const MARK: &str = "This reverts commit ";
    let filter = ["--fixed-strings", "--grep", MARK];
    let arguments = [&["log", "--format=%x01%H%n%B"], &filter[..]].concat();
    let output = run(root, &arguments, LIMIT)?;
    let text = String::from_utf8_lossy(&output);
    let mut undone = HashSet::new();
    // Newest first, so that it is known for each revert whether it was reverted.
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

/// Reverts the commits in this order, one revert commit each; all of them or none.
pub fn revert(root: &Path, commits: &[Commit]) -> Result<(), RevertError> {
    check_idle(root)?;
    let staged = names(root, &["diff", "--cached", "--name-only", "-z", "--no-renames"])?;
    if !staged.is_empty() {
        return Err(RevertError::Staged { paths: shown(staged.iter()) });
    }
    let dirty = uncommitted(root)?;
    // git would overwrite these, too, because they are marked as never changing.
    let hidden = hidden(root)?;
    let touched = touched(root, commits)?;
    let is_touched = |path: &&PathBuf| touched.iter().any(|other| overlaps(path, other));
    let mut overlap: BTreeSet<PathBuf> = dirty.union(&hidden).filter(is_touched).cloned().collect();
    // git would overwrite ignored files without a warning.
    let tracked: HashSet<PathBuf> = names(root, &["ls-files", "-z"])?.into_iter().collect();
    overlap.extend(touched.iter().filter_map(|path| in_the_way(root, path, &tracked)));
    if !overlap.is_empty() {
        return Err(RevertError::Overlap { paths: shown(overlap) });
    }
    if let Err(error) = run(root, &["var", "GIT_COMMITTER_IDENT"], LIMIT) {
        return Err(RevertError::NoCommitter { reason: error.to_string() });
    }
    let before = head(root);
    let mut arguments = vec!["revert", "--no-edit"];
    if commits.iter().any(|commit| commit.is_merge) {
        // A merge is reverted relative to its first parent.
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

/// Some of the paths that differ from HEAD or are untracked and not ignored, without the file `but`; `None` if there
/// is none, or if git fails.
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
        let show = ["log", "-1", "--first-parent", "-m", "--root", "--format="];
        let what = ["--name-only", "-z", "--no-renames", &commit.id];
        touched.extend(names(root, &[&show[..], &what[..]].concat())?);
    }
    Ok(touched)
}

/// An untracked file that would be lost if a file is written at `path`: there, below it or above it.
fn in_the_way(root: &Path, path: &Path, tracked: &HashSet<PathBuf>) -> Option<PathBuf> {
    let is_dir = |path: &Path| root.join(path).symlink_metadata().ok().map(|found| found.is_dir());
    let above = path.ancestors().take_while(|above| !above.as_os_str().is_empty());
    let in_place = above.into_iter().find(|above| is_dir(above) == Some(false) && !tracked.contains(*above));
    in_place.map(Path::to_owned).or_else(|| untracked_below(root, path, tracked))
}

/// An untracked file below the folder `path`.
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

/// The NUL-terminated names that a git command lists.
fn names(root: &Path, arguments: &[&str]) -> Result<Vec<PathBuf>, GitError> {
    let output = run(root, arguments, LIMIT)?;
    let names = output.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    // `log` ends its own line first.
    let name = |name: &[u8]| PathBuf::from(OsStr::from_bytes(name.strip_prefix(b"\n").unwrap_or(name)));
    Ok(names.map(name).collect())
}

/// Whether the paths are equal, or one is below the other.
fn overlaps(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The first few of these paths, and how many more there are.
pub(super) fn shown<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> String {
    some_of(paths.into_iter().map(|path| path.as_ref().to_string_lossy().into_owned()), SHOWN)
}

#[cfg(test)]
mod tests;
