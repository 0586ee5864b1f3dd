//! Looks at a work tree that somebody may look at and not touch, and at what is in it.

use std::path::Path;

use super::save::{What, keep, text, write};
use super::{Changed, GitError, LIMIT, changes, head, run};

/// So many commits back files count as changed lately.
const RECENT: &str = "-20";
/// So many of them are of interest.
const MOST: usize = 200;

/// What of a work tree must stay as it is: HEAD, all refs, and the files that git tracks.
#[derive(Debug, Clone, Default)]
pub struct Guarded {
    head: Option<String>,
    refs: Option<Vec<u8>>,
    files: Option<Vec<Changed>>,
}

impl Guarded {
    /// As it is now; outside of git nothing can be told.
    #[must_use]
    pub fn take(root: &Path, in_git: bool) -> Self {
        if !in_git {
            return Self::default();
        }
        let tracked = |files: Vec<Changed>| files.into_iter().filter(|file| file.state != *b"??").collect();
        let refs = run(root, &["for-each-ref", "--format=%(objectname) %(refname)"], LIMIT);
        Self { head: head(root), refs: refs.ok(), files: changes(root).map(tracked) }
    }

    /// What is not as it was before, in words.
    #[must_use]
    pub fn differs_from(&self, before: &Self) -> Option<String> {
        if self.head != before.head {
            return Some("HEAD".to_owned());
        }
        if self.refs != before.refs {
            return Some("a branch or a tag".to_owned());
        }
        if self.files == before.files {
            return None;
        }
        let (now, known) = (self.files.as_deref()?, before.files.as_deref()?);
        let mut others = now.iter().filter(|file| !known.contains(file));
        let other = others.next().or_else(|| known.iter().find(|file| !now.contains(file)));
        other.map(|file| file.path.display().to_string())
    }
}

/// Saves what is not committed of the tracked files under `refs/ralph/keep/`, and answers the ref; `None`: all is committed.
/// Nothing in the work tree changes.
pub fn keep_changes(root: &Path, name: &str) -> Result<Option<String>, GitError> {
    let id = text(&write(root, &["stash", "create", &format!("ralph: {name}")], None, b"")?);
    if id.is_empty() {
        return Ok(None);
    }
    let what = What::Files { is_staged_apart: false, is_raw: false };
    keep(root, name, &id, what).map(|saved| Some(saved.reference))
}

/// Whether HEAD has this commit in its history. One that nobody knows here is not in it.
#[must_use]
pub fn contains(root: &Path, commit: &str) -> bool {
    run(root, &["merge-base", "--is-ancestor", commit, "HEAD"], LIMIT).is_ok()
}

/// The files that are not the same in two commits; none where that cannot be told.
#[must_use]
pub fn changed_between(root: &Path, from: &str, to: &str) -> Vec<String> {
    names(run(root, &["diff", "--name-only", "--no-renames", "-z", from, to, "--"], LIMIT))
}

/// The files that the latest commits have changed.
#[must_use]
pub fn recent(root: &Path) -> Vec<String> {
    let mut files =
        names(run(root, &["log", RECENT, "--name-only", "--no-renames", "--format=", "-z"], LIMIT));
    files.sort();
    files.dedup();
    files.truncate(MOST);
    files
}

fn names(output: Result<Vec<u8>, GitError>) -> Vec<String> {
    let output = output.unwrap_or_default();
    let names = output.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).trim_start_matches('\n').to_owned()).collect()
}
