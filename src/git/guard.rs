//! Looks at a work tree that somebody may look at and not touch, and at what is in it.

use std::path::Path;

use super::save::{What, keep, text, write};
use super::{Changed, GitError, LIMIT, changes, head, run};

/// So many commits back files count as changed lately.
const RECENT: &str = "-20";
/// So many of them are of interest.
const MOST: usize = 200;

/// What of a work tree must stay as it is: HEAD, the branches and tags that nobody else is at work on, and the files that git
/// tracks, but for ralph's own.
#[derive(Debug, Clone, Default)]
pub struct Guarded {
    head: Option<String>,
    /// The branch that HEAD stands on.
    branch: Option<String>,
    refs: Vec<String>,
    files: Option<Vec<Changed>>,
}

/// What is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// HEAD stands somewhere else.
    Head(String),
    /// A branch or a tag.
    Ref(String),
    /// A file.
    File(String),
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Head(now) => write!(f, "HEAD, which is {now} now"),
            Self::Ref(name) | Self::File(name) => f.write_str(name),
        }
    }
}

impl Guarded {
    /// As it is now; outside of git nothing can be told.
    #[must_use]
    pub fn take(root: &Path, in_git: bool) -> Self {
        if !in_git {
            return Self::default();
        }
        let is_theirs = |file: &Changed| {
            let own = file.path.strip_prefix(".ralph").ok();
            let own = own.filter(|path| !path.starts_with("features") && !path.starts_with("knowledge"));
            file.state != *b"??" && own.is_none()
        };
        let tracked = |files: Vec<Changed>| files.into_iter().filter(is_theirs).collect();
        // Branches that are checked out elsewhere are built by others meanwhile.
        let format = "--format=%(objectname) %(refname)%00%(worktreepath)";
        let refs = run(root, &["for-each-ref", format, "refs/heads", "refs/tags"], LIMIT).unwrap_or_default();
        let refs = String::from_utf8_lossy(&refs).into_owned();
        let is_free = |(_, tree): &(&str, &str)| tree.is_empty() || Path::new(tree) == root;
        let refs = refs.lines().filter_map(|line| line.split_once('\0')).filter(is_free);
        let refs = refs.map(|(line, _)| line.to_owned()).collect();
        let branch = run(root, &["symbolic-ref", "--quiet", "HEAD"], LIMIT).ok();
        let branch = branch.map(|name| String::from_utf8_lossy(&name).trim().to_owned());
        Self { head: head(root), branch, refs, files: changes(root).map(tracked) }
    }

    /// What is not as it was before.
    #[must_use]
    pub fn differs_from(&self, before: &Self) -> Option<Difference> {
        if (&self.head, &self.branch) != (&before.head, &before.branch) {
            let now = self.branch.as_deref().or(self.head.as_deref()).unwrap_or("gone");
            let at = self.head.as_deref().map_or_else(String::new, |head| format!(" at {head:.10}"));
            return Some(Difference::Head(format!("{}{at}", now.trim_start_matches("refs/heads/"))));
        }
        let name = |line: &String| line.split_once(' ').map_or(line.clone(), |(_, name)| name.to_owned());
        let other = self.refs.iter().find(|line| !before.refs.contains(line));
        if let Some(line) = other.or_else(|| before.refs.iter().find(|line| !self.refs.contains(line))) {
            return Some(Difference::Ref(name(line)));
        }
        if self.files == before.files {
            return None;
        }
        let (now, known) = (self.files.as_deref()?, before.files.as_deref()?);
        let mut others = now.iter().filter(|file| !known.contains(file));
        let other = others.next().or_else(|| known.iter().find(|file| !now.contains(file)));
        other.map(|file| Difference::File(file.path.display().to_string()))
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

/// Whether HEAD has this commit in its history, or nothing leads to it any more: after an amend, a rebase or a squashed merge its
/// work is in another one.
#[must_use]
pub fn contains(root: &Path, commit: &str) -> bool {
    let leads_there = || run(root, &["for-each-ref", "--count=1", "--contains", commit], LIMIT);
    run(root, &["merge-base", "--is-ancestor", commit, "HEAD"], LIMIT).is_ok()
        || leads_there().is_ok_and(|refs| refs.is_empty())
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
