//! The reasons not to remove a linked work tree, and what would be removed with it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::call::{LIMIT, run};
use super::changes::{LOOK_LIMIT, hidden};
use super::error::GitError;
use super::head_file;
use super::progress::{Operation, in_progress};
use super::repository::common_dir;
use super::revert::shown;
use super::trees::{Tree, index_lock};
use crate::files::FIX_PERMISSIONS;
use crate::project::BRANCH_PLAN as PLAN;

/// Why a work tree is not removed, and what the user can do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Something is staged, changed or untracked.
    #[error("uncommitted changes ({paths}): commit them")]
    Changes {
        /// Some of the paths.
        paths: String,
    },
    /// It has files whose changes git ignores.
    #[error(
        "files whose changes git does not show ({paths}): look at them after \
         'git update-index --no-skip-worktree --no-assume-unchanged FILE'"
    )]
    Hidden {
        /// Some of the paths.
        paths: String,
    },
    /// HEAD names a commit that no ref leads to.
    #[error("its commit {commit:.10} is on no branch: give it one with 'git switch -c NAME'")]
    Detached {
        /// The commit.
        commit: String,
    },
    /// A git operation is in progress.
    #[error("a {what} is in progress: finish it, or end it with '{end}'", what = .0.what, end = .0.end)]
    Busy(Operation),
    /// Another repository is in its folder, or belongs to it: a submodule's.
    #[error("repositories of their own are in it ({paths}): move them away, or remove them by hand")]
    Repositories {
        /// Some of their folders.
        paths: String,
    },
    /// A folder in it cannot be read.
    #[error("{path} cannot be read: {FIX_PERMISSIONS}", path = .path.display())]
    Unreadable {
        /// The folder.
        path: PathBuf,
    },
    /// It is locked with `git worktree lock`.
    #[error("git has it locked{why}: unlock it with 'git worktree unlock'")]
    Locked {
        /// The reason of the lock in brackets; may be empty.
        why: String,
    },
    /// git is changing it, or a git that did was killed.
    #[error("a git is at work in it, or was killed: wait, or remove {path}", path = .path.display())]
    IndexLock {
        /// The lock file.
        path: PathBuf,
    },
    /// Only git's entry for it is left.
    #[error(
        "its folder is gone: say where it is with 'git worktree repair PATH', or forget it with 'git worktree prune'"
    )]
    Gone,
    /// Its `.git` file names another repository, or none.
    #[error("its .git file does not lead to this repository: try 'git worktree repair'")]
    Astray,
}

impl Reason {
    /// Whether everything can be saved, so that the tree can be removed nevertheless.
    #[must_use]
    pub fn can_be_saved(&self) -> bool {
        matches!(self, Self::Changes { .. } | Self::Hidden { .. } | Self::Detached { .. } | Self::Busy(_))
    }
}

/// The result of a check of a work tree.
#[derive(Debug, Default)]
pub struct Findings {
    /// Why it should stay.
    pub reasons: Vec<Reason>,
    /// Ignored files and folders that would be removed with it, without ralph's own; relative to it, folders end in
    /// `/`.
    pub ignored: Vec<String>,
}

/// Checks a linked work tree of the repository of `root`. `own` are the ignore patterns of ralph's own files.
pub fn look(root: &Path, tree: &Tree, own: &[String]) -> Result<Findings, GitError> {
    let mut reasons = Vec::new();
    if let Some(why) = &tree.locked {
        let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
        reasons.push(Reason::Locked { why });
    }
    let git_dir = head_file::git_dir(&tree.path).map_err(GitError::unreadable(&tree.path))?;
    let Some(git_dir) = git_dir.filter(|_| !tree.is_gone) else {
        reasons.push(Reason::Gone);
        return Ok(Findings { reasons, ..Findings::default() });
    };
    if !belongs(&git_dir, &common_dir(root)?) {
        reasons.push(Reason::Astray);
        return Ok(Findings { reasons, ..Findings::default() });
    }
    reasons.extend(index_lock(&tree.path).map(|path| Reason::IndexLock { path }));
    let status = status(&tree.path, own)?;
    if !status.changed.is_empty() {
        reasons.push(Reason::Changes { paths: shown(status.changed.iter()) });
    }
    let mut hidden = hidden(&tree.path)?;
    hidden.remove(Path::new(PLAN));
    if !hidden.is_empty() {
        reasons.push(Reason::Hidden { paths: shown(hidden.iter()) });
    }
    if let Some(operation) = in_progress(&tree.path)? {
        reasons.push(Reason::Busy(operation));
    } else if let (None, Some(commit)) = (&tree.branch, &tree.head)
        && run(root, &["for-each-ref", "--count=1", "--contains", commit], LIMIT)?.is_empty()
    {
        reasons.push(Reason::Detached { commit: commit.clone() });
    }
    reasons.extend(repositories(&tree.path, &git_dir));
    Ok(Findings { reasons, ignored: status.ignored })
}

/// Whether the folder of a linked work tree belongs to the repository.
fn belongs(git_dir: &Path, common: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    real(git_dir).zip(real(&common.join("worktrees"))).is_some_and(|(one, all)| one.starts_with(all))
}

/// The output of `git status` for a work tree.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    changed: Vec<String>,
    ignored: Vec<String>,
}

fn status(path: &Path, own: &[String]) -> Result<Status, GitError> {
    let words =
        ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching"];
    let output = run(path, &words, LOOK_LIMIT)?;
    Ok(parse(&output, own, &|folder| {
        let entries = fs::read_dir(path.join(folder)).into_iter().flatten().flatten();
        let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = |entry: fs::DirEntry| {
            let end = if is_dir(&entry) { "/" } else { "" };
            format!("{folder}{}{end}", entry.file_name().to_string_lossy())
        };
        entries.map(name).collect()
    }))
}

/// Sorts git's output. `below` lists a folder: one that is ignored as a whole may hold both ralph's files and others.
fn parse(output: &[u8], own: &[String], below: &dyn Fn(&str) -> Vec<String>) -> Status {
    let mut status = Status::default();
    for entry in output.split(|&byte| byte == 0).filter(|entry| entry.len() > 3) {
        let (code, path) = (&entry[..2], String::from_utf8_lossy(&entry[3..]).into_owned());
        match code {
            b"!!"
                if own.iter().any(|pattern| path.ends_with('/') && anchored(pattern).starts_with(&path)) =>
            {
                status.ignored.extend(below(&path).into_iter().filter(|path| !is_own(path, own)));
            }
            b"!!" => status.ignored.extend(Some(path).filter(|path| path != PLAN && !is_own(path, own))),
            // The copy of the plan may differ; if it is staged, it is meant to be committed.
            b" M" | b" T" | b" D" | b"??" if path == PLAN => {}
            b"??" if is_own(&path, own) => {}
            _ => status.changed.push(path),
        }
    }
    status
}

/// Whether one of ralph's patterns matches this path.
fn is_own(path: &str, own: &[String]) -> bool {
    own.iter().map(|pattern| anchored(pattern)).filter(|pattern| *pattern != ".worktrees/").any(|pattern| {
        match pattern.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None if pattern.ends_with('/') => path.starts_with(pattern),
            None => path == pattern,
        }
    })
}

fn anchored(pattern: &str) -> &str {
    pattern.trim_start_matches('/')
}

/// Nested repositories: this one does not have their commits.
fn repositories(path: &Path, git_dir: &Path) -> Option<Reason> {
    let mut found = BTreeSet::new();
    let modules = git_dir.join("modules");
    if fs::read_dir(&modules).is_ok_and(|mut entries| entries.next().is_some()) {
        found.insert(modules.to_string_lossy().into_owned());
    }
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { return Some(Reason::Unreadable { path: folder }) };
        for entry in entries.flatten() {
            if entry.file_name() == ".git" {
                let inside = folder.strip_prefix(path).unwrap_or(&folder);
                found.insert(inside.to_string_lossy().into_owned());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    // The tree's own repository.
    found.remove("");
    (!found.is_empty()).then(|| Reason::Repositories { paths: shown(found.iter()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Vec<String> {
        ["/.ralph/state.toml*", "/.ralph/logs/", "/.ralph/lock", "/.worktrees/"].map(str::to_owned).to_vec()
    }

    fn sorted(entries: &[&str]) -> Status {
        let listed = |folder: &str| ["lock", "logs/", "notes"].map(|name| format!("{folder}{name}")).to_vec();
        parse(entries.join("\0").as_bytes(), &own(), &listed)
    }

    #[test]
    fn what_is_ralphs_own_does_not_count() {
        let status =
            sorted(&["?? .ralph/lock", "!! .ralph/logs/", "!! .ralph/state.toml.x", "?? .ralph/logs/a"]);
        assert_eq!(status, Status::default());
        assert_eq!(sorted(&["!! .ralph/"]).ignored, [".ralph/notes"]);
        let status = sorted(&[" M .ralph/lock", "?? .ralph/config", "!! target/", "!! .worktrees/x"]);
        assert_eq!(status.changed, [".ralph/lock", ".ralph/config"]);
        assert_eq!(status.ignored, ["target/", ".worktrees/x"]);
    }

    #[test]
    fn the_copy_of_the_plan_may_differ_but_not_be_staged() {
        for code in [" M", " D", "??", "!!"] {
            assert_eq!(sorted(&[&format!("{code} {PLAN}")]), Status::default(), "{code}");
        }
        for code in ["M ", "MM", "A ", "UU"] {
            assert_eq!(sorted(&[&format!("{code} {PLAN}")]).changed, [PLAN], "{code}");
        }
        assert_eq!(sorted(&[&format!(" M docs/{PLAN}")]).changed.len(), 1);
    }
}
