//! Detects changes of a work tree by an agent that must not change it.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::call::{LIMIT, run};
use super::changes::{Changed, changes};
use super::contents::Contents;
use super::error::GitError;
use super::repository::head;
use super::save::{What, keep};
use crate::text::line::shell_words;
use crate::text::list::some_of;

/// At most this many names are reported.
const SOME: usize = 5;

/// Files of this many commits count as recently changed.
const RECENT: &str = "-20";
/// At most this many of them are returned.
const MOST: usize = 200;

/// The parts of a work tree that must not change: HEAD, the branches and tags that no other work tree uses, and the
/// tracked files except ralph's own.
#[derive(Debug, Clone, Default)]
pub struct Guarded {
    head: Option<String>,
    /// The branch of HEAD.
    branch: Option<String>,
    /// Branches and tags by name.
    refs: BTreeMap<String, Ref>,
    files: Option<Vec<Changed>>,
    /// Untracked files that are not ignored.
    untracked: Vec<Changed>,
    /// Whether nothing is uncommitted.
    is_clean: bool,
}

/// A branch or a tag.
#[derive(Debug, Clone)]
struct Ref {
    commit: String,
    /// Whether no other work tree has it checked out: another agent may build such a branch meanwhile.
    is_free: bool,
}

/// The differences between two states.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// The branch of HEAD now, or none, if HEAD has left its branch.
    pub left: Option<String>,
    /// The names of HEAD, branches and tags that have changed.
    names: Vec<String>,
    /// Changed tracked files.
    tracked: Vec<PathBuf>,
    /// Untracked, unignored files with other metadata; their content may be equal.
    untracked: Vec<PathBuf>,
    /// The earlier commits of branches and tags, and of HEAD if it is on another branch.
    before: Vec<String>,
    /// The commit of HEAD now, if it is still on its branch.
    moved_to: Option<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(now) = &self.left {
            return write!(f, "HEAD, which is {now} now");
        }
        let files = self.files().map(|path| path.display().to_string());
        f.write_str(&some_of(self.names.iter().cloned().chain(files), SOME))
    }
}

impl Guarded {
    /// The current state, including the file `also` even if it is untracked. Outside of git nothing is recorded.
    #[must_use]
    pub fn take(root: &Path, in_git: bool, also: Option<&Path>) -> Self {
        if !in_git {
            return Self::default();
        }
        let also = also.and_then(|path| path.strip_prefix(root).ok());
        let is_theirs =
            |file: &Changed| (file.state != *b"??" || Some(&*file.path) == also) && !is_ours(&file.path);
        let all = changes(root);
        let is_clean = all.as_ref().is_some_and(Vec::is_empty);
        let is_untracked = |file: &&Changed| file.state == *b"??" && !is_ours(&file.path);
        let untracked = all.iter().flatten().filter(is_untracked).cloned().collect();
        let tracked = |files: Vec<Changed>| files.into_iter().filter(is_theirs).collect();
        let format = "--format=%(objectname) %(refname)%00%(worktreepath)";
        let refs = run(root, &["for-each-ref", format, "refs/heads", "refs/tags"], LIMIT).unwrap_or_default();
        let refs = String::from_utf8_lossy(&refs).into_owned();
        let refs = refs.lines().filter_map(|line| {
            let (reference, tree) = line.split_once('\0')?;
            let (commit, name) = reference.split_once(' ')?;
            let is_free = tree.is_empty() || Path::new(tree) == root;
            Some((name.to_owned(), Ref { commit: commit.to_owned(), is_free }))
        });
        let refs = refs.collect();
        let branch = run(root, &["symbolic-ref", "--quiet", "HEAD"], LIMIT).ok();
        let branch = branch.map(|name| String::from_utf8_lossy(&name).trim().to_owned());
        Self { head: head(root), branch, refs, files: all.map(tracked), untracked, is_clean }
    }

    /// The differences from an earlier state.
    #[must_use]
    pub fn differs_from(&self, before: &Self) -> Option<Difference> {
        let mut found = Difference::default();
        if self.branch != before.branch {
            let now = self.branch.as_deref().or(self.head.as_deref()).unwrap_or("gone");
            let at = self.head.as_deref().map_or_else(String::new, |head| format!(" at {head:.10}"));
            found.left = Some(format!("{}{at}", now.trim_start_matches("refs/heads/")));
        }
        if self.head != before.head {
            found.names.push("HEAD".to_owned());
            match found.left {
                Some(_) => found.before.extend(before.head.clone()),
                None => found.moved_to.clone_from(&self.head),
            }
        }
        let own = self.branch.as_deref().unwrap_or_default();
        for (name, known) in before.refs.iter().filter(|(name, known)| *name != own && known.is_free) {
            let now = self.refs.get(name);
            if now.is_none_or(|now| now.is_free && now.commit != known.commit) {
                found.names.push(name.clone());
                found.before.push(known.commit.clone());
            }
        }
        let is_new =
            |(name, now): &(&String, &Ref)| *name != own && now.is_free && !before.refs.contains_key(*name);
        found.names.extend(self.refs.iter().filter(is_new).map(|(name, _)| name.clone()));
        // If git failed, there is no difference to report.
        if let (Some(now), Some(known)) = (&self.files, &before.files) {
            found.tracked.extend(not_as_before(now, known).map(Path::to_owned));
            found.untracked.extend(not_as_before(&self.untracked, &before.untracked).map(Path::to_owned));
            // The guarded untracked file counts as tracked.
            let tracked: HashSet<&PathBuf> = found.tracked.iter().collect();
            found.untracked.retain(|path| !tracked.contains(path));
        }
        (found != Difference::default()).then_some(found)
    }

    /// Saves the uncommitted contents of the work tree.
    ///
    /// # Errors
    /// If git cannot save it.
    pub fn contents(&self, root: &Path) -> Result<Contents, GitError> {
        match &self.head {
            Some(head) if self.is_clean => Contents::committed(root, head),
            _ => Contents::save(root, &self.untracked),
        }
    }
}

impl Difference {
    /// The changed files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.tracked.iter().chain(&self.untracked).map(PathBuf::as_path)
    }

    /// Splits off the untracked files that `is_lost` names, which cannot be restored: the other differences, and the
    /// names of those files.
    #[must_use]
    pub fn without(mut self, is_lost: impl Fn(&Path) -> bool) -> (Option<Self>, Vec<String>) {
        let (lost, untracked) = self.untracked.drain(..).partition(|path: &PathBuf| is_lost(path));
        self.untracked = untracked;
        let lost = lost.iter().map(|path: &PathBuf| path.display().to_string()).collect();
        ((self != Self::default()).then_some(self), lost)
    }

    /// Whether only untracked files have changed.
    #[must_use]
    pub fn is_untracked_only(&self) -> bool {
        self.left.is_none() && self.names.is_empty() && self.tracked.is_empty()
    }

    /// The command that restores what was undone, from the ref `kept`; `None` if only branches or tags have changed.
    #[must_use]
    pub fn undo(&self, kept: &str) -> Option<String> {
        let files: Vec<OsString> = self.files().take(SOME).map(|path| path.as_os_str().to_owned()).collect();
        if files.is_empty() {
            return self.moved_to.as_ref().map(|_| format!("git merge {kept}"));
        }
        Some(format!("git restore --source={kept} -- {}", shell_words(&files)))
    }

    /// Saves the earlier commits of branches and tags, the new commit of HEAD, and the uncommitted contents `now` as
    /// refs under `refs/ralph/keep/`, and returns the refs. The work tree does not change.
    ///
    /// # Errors
    /// If git cannot write them.
    pub fn keep(&self, root: &Path, name: &str, now: &Contents) -> Result<Vec<String>, GitError> {
        let uncommitted = now.commit(root, &format!("ralph: {name}"))?;
        let now = uncommitted.or_else(|| self.moved_to.clone());
        let keep_commit = |id: &String| {
            let what = What::Commit { id: id.clone(), subject: String::new() };
            keep(root, name, id, what).map(|saved| saved.reference)
        };
        self.before.iter().chain(&now).map(keep_commit).collect()
    }
}

/// Undoes the changes of a work tree since `before`, if HEAD is still on the same branch: its commits, the index, and
/// the files except ralph's own.
///
/// # Errors
/// If git or the system refuses; a part may be undone then.
pub fn take_back(root: &Path, before: &Contents, now: &Contents) -> Result<(), GitError> {
    before.bring_back(root, now, is_ours)
}

/// Whether a path of a work tree is one of ralph's own files, which ralph writes while agents run.
fn is_ours(path: &Path) -> bool {
    let own = path.strip_prefix(".ralph").ok();
    own.is_some_and(|path| !path.starts_with("features") && !path.starts_with("knowledge"))
}

/// Whether HEAD's history has this commit, or no ref leads to it any more: after an amend, a rebase or a squash
/// merge, another commit has its work.
#[must_use]
pub fn contains(root: &Path, commit: &str) -> bool {
    // Without ralph's own refs.
    let theirs = ["refs/heads", "refs/remotes", "refs/tags"];
    let leads_there =
        || run(root, &[&["for-each-ref", "--count=1", "--contains", commit][..], &theirs].concat(), LIMIT);
    run(root, &["merge-base", "--is-ancestor", commit, "HEAD"], LIMIT).is_ok()
        || leads_there().is_ok_and(|refs| refs.is_empty())
}

/// Whether HEAD has all files that the commit `to` changed since `from`, and as they are there. Where nothing was changed, nothing
/// can be told.
#[must_use]
pub fn has_files_of(root: &Path, from: &str, to: &str) -> bool {
    let changed = changed_between(root, from, to);
    let since: HashSet<String> = changed_between(root, to, "HEAD").into_iter().collect();
    !changed.is_empty() && changed.iter().all(|file| !since.contains(file))
}

/// The files of a work tree that changed since before: those with another state, and those that equal HEAD now.
pub fn not_as_before<'a>(now: &'a [Changed], before: &'a [Changed]) -> impl Iterator<Item = &'a Path> {
    let (known, found): (HashSet<&Changed>, HashSet<&Path>) =
        (before.iter().collect(), now.iter().map(|file| file.path.as_path()).collect());
    let others = now.iter().filter(move |file| !known.contains(file));
    let gone = before.iter().filter(move |file| !found.contains(file.path.as_path()));
    others.chain(gone).map(|file| file.path.as_path())
}

/// The files that differ between two commits; none if git fails.
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
