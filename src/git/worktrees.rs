//! Adds linked work trees.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::change::{ChangeError, ChangeOptions, alone, change_with};
use super::error::{CutOff, GitError};
use super::refs::branch_commit;
use super::repository::is_tracked;
use super::repository::{common_dir, head};
use super::trees::{Tree, list, without_links};
use super::{half_made, head_file};
use crate::text::duration;
use crate::text::line::{one_line, shell_word};

/// The time limit for a new work tree: all files of the project are written, and its hook runs.
pub(super) const ADD_LIMIT: Duration = Duration::from_hours(1);

/// The result of [`add`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// A work tree on a new branch.
    New,
    /// A work tree on an existing branch.
    Branch,
    /// An existing work tree.
    Reused,
}

/// Adds a work tree at `path` on the branch: the existing one of this name, else a new one at the commit `start`. An
/// existing work tree is reused. `known` are the trees from an earlier [`list`], so that many can be added after one
/// call; `None` lists them.
///
/// # Errors
/// If something is in the way. No user's file has changed then, and the next call finishes what was begun.
pub fn add(
    root: &Path,
    path: &Path,
    branch: &str,
    start: &str,
    known: Option<&[Tree]>,
) -> Result<Added, GitError> {
    refuse_committed_link(root, path)?;
    let new = New { root, path, branch, start };
    let real = without_links(path);
    // The git of a run that was killed may still be making this tree, or may have made it since `known` was listed.
    let has_waited = !is_there(&real) && half_made::wait_for_other(&real)?;
    let is_listed = |trees: &&[Tree]| trees.iter().any(|tree| tree.path == real);
    let known = known.filter(|trees| !has_waited && is_listed(trees) == is_there(&real));
    let listed;
    let trees = if let Some(trees) = known {
        trees
    } else {
        listed = list(root)?;
        &listed
    };
    if half_made::clear(root, &real, branch, start, trees)? {
        return new.add(&real, &list(root)?);
    }
    new.add(&real, trees)
}

/// Refuses a path below a committed link: the repository's authors would choose where files are written. A link made
/// by the user is followed.
fn refuse_committed_link(root: &Path, path: &Path) -> Result<(), GitError> {
    let below = path.ancestors().take_while(|above| *above != root && above.starts_with(root));
    for link in below.filter(|above| above.is_symlink()) {
        let name = link.strip_prefix(root).unwrap_or(link).to_string_lossy();
        if head(root).is_some_and(|head| is_tracked(root, &head, &name)) {
            return Err(GitError::in_the_way(
                "a symbolic link that is committed leads work trees elsewhere",
                link.display(),
                "remove it",
            ));
        }
    }
    Ok(())
}

/// A work tree to be added.
struct New<'a> {
    root: &'a Path,
    path: &'a Path,
    branch: &'a str,
    start: &'a str,
}

impl New<'_> {
    fn add(&self, real: &Path, trees: &[Tree]) -> Result<Added, GitError> {
        let branch = self.branch;
        let (here, others): (Vec<&Tree>, Vec<&Tree>) = trees.iter().partition(|tree| tree.path == real);
        if let Some(other) = others.iter().find(|tree| tree.branch.as_deref() == Some(branch)) {
            let what = format!("the branch {branch} is checked out elsewhere");
            let way_out = match self.copied_from(other)? {
                Some(entry) => self.link_of_copy(&entry, real),
                None if is_there(&other.path) => "switch that work tree to another branch".to_owned(),
                None => self.moved(trees)?.unwrap_or_else(|| {
                    "its folder is gone; say where it is with 'git worktree repair PATH', mount the disk it is on, or forget \
                     it with 'git worktree prune'"
                        .to_owned()
                }),
            };
            return Err(GitError::in_the_way(what, other.path.display(), way_out));
        }
        let root = without_links(self.root);
        let around = |tree: &&&Tree| real.starts_with(&tree.path) && !root.starts_with(&tree.path);
        if let Some(outer) = others.iter().find(around).filter(|tree| is_there(&tree.path)) {
            let what = format!("the folder for the branch {branch} lies in another work tree");
            return Err(GitError::in_the_way(
                what,
                outer.path.display(),
                "remove that one with 'git worktree remove'",
            ));
        }
        match here.first() {
            Some(tree) if is_there(real) => self.reuse(tree),
            Some(tree) => self.add_again(tree),
            None => self.make(false),
        }
    }

    /// git's entry for a tree that belongs to another repository, of which ours is a copy.
    fn copied_from(&self, other: &Tree) -> Result<Option<PathBuf>, GitError> {
        let theirs = head_file::git_dir(&other.path).map_err(GitError::unreadable(&other.path))?;
        let Some(theirs) = theirs else { return Ok(None) };
        let entries = without_links(&common_dir(self.root)?.join("worktrees"));
        let is_ours = without_links(&theirs).starts_with(&entries);
        Ok(half_made::entry_for(&entries, &other.path.join(".git"))?.filter(|_| !is_ours))
    }

    /// The command that repairs git's paths to the trees after the whole project was moved; `None` if the tree of
    /// this branch was not moved. Pruning them would lose what is staged or on no branch.
    fn moved(&self, trees: &[Tree]) -> Result<Option<String>, GitError> {
        let entries = without_links(&common_dir(self.root)?.join("worktrees"));
        let folder = self.path.ancestors().nth(self.branch.split('/').count()).unwrap_or(self.path);
        let mut moved = Vec::new();
        for tree in trees.iter().filter(|tree| !is_there(&tree.path)) {
            let Some(place) = tree.branch.as_ref().map(|branch| folder.join(branch)) else { continue };
            let entry = half_made::entry_for(&entries, &tree.path.join(".git"))?;
            // It leads to the repository's old or current path.
            let leads_to = head_file::git_dir(&place).map_err(GitError::unreadable(&place))?;
            let name = |folder: &PathBuf| folder.file_name().map(OsStr::to_owned);
            if entry.is_some() && entry.as_ref().and_then(name) == leads_to.as_ref().and_then(name) {
                moved.push(place);
            }
        }
        if !moved.iter().any(|place| place == self.path) {
            return Ok(None);
        }
        let places: Vec<String> = moved.iter().map(shell_word).collect();
        let root = shell_word(self.root);
        Ok(Some(format!(
            "the project was moved; tell git with 'git -C {root} worktree repair {}' and start again",
            places.join(" ")
        )))
    }

    /// The commands that give the tree in a copy of a project its own entry. 'git worktree repair' would link the
    /// original's tree to the copy.
    fn link_of_copy(&self, entry: &Path, real: &Path) -> String {
        let git_file = real.join(".git");
        let leads_to = head_file::git_dir(real).ok().flatten();
        let is_copy = leads_to.is_some_and(|folder| folder.file_name() == entry.file_name());
        if !is_copy || self.path.is_symlink() {
            return format!(
                "this repository is a copy of that work tree's; forget the tree here with 'rm -r {}'",
                shell_word(entry)
            );
        }
        format!(
            "this project is a copy of that one; make the copied work tree its own with 'echo {0} > {1} && echo gitdir: {2} > \
             {0}' (not with 'git worktree repair', which would change the original)",
            shell_word(git_file),
            shell_word(entry.join("gitdir")),
            shell_word(entry),
        )
    }

    fn reuse(&self, tree: &Tree) -> Result<Added, GitError> {
        if tree.branch.as_deref() == Some(self.branch) {
            return Ok(Added::Reused);
        }
        let on = tree.branch.as_ref().map_or("no branch".to_owned(), |name| format!("the branch {name}"));
        let what = format!("the work tree for the branch {} is on {on}", self.branch);
        let way_out =
            format!("finish what is in progress there, then 'git switch {}' in it", shell_word(self.branch));
        Err(GitError::in_the_way(what, self.path.display(), way_out))
    }

    /// Its folder was deleted, and git still has it registered.
    fn add_again(&self, tree: &Tree) -> Result<Added, GitError> {
        if let Some(reason) = &tree.locked {
            let reason = if reason.is_empty() { "without a reason" } else { reason };
            let what = format!("a work tree is locked ({}), and its folder is gone", one_line(reason));
            let way_out = "mount the disk it is on, or give it up with 'git worktree unlock'";
            return Err(GitError::in_the_way(what, self.path.display(), way_out));
        }
        if tree.branch.as_deref() != Some(self.branch) {
            // git would drop its HEAD, which may be the only name of those commits.
            let head = tree.branch.as_ref().or(tree.head.as_ref()).map_or("nothing", String::as_str);
            let what =
                format!("the folder of a work tree is gone, and it was on {head}, not on {}", self.branch);
            let way_out = "forget it with 'git worktree prune' if nothing there is needed";
            return Err(GitError::in_the_way(what, self.path.display(), way_out));
        }
        self.require_nothing_precious(&tree.path)?;
        self.make(true)
    }

    /// Fails if git's entry for the tree holds anything that only it has: git will replace the entry.
    fn require_nothing_precious(&self, tree: &Path) -> Result<(), GitError> {
        let entries = without_links(&common_dir(self.root)?.join("worktrees"));
        let Some(entry) = half_made::entry_for(&entries, &tree.join(".git"))? else { return Ok(()) };
        if let Some(found) = half_made::precious(self.root, &entry)? {
            let what =
                "the folder of a work tree is gone, and git's notes about it hold what is nowhere else";
            let way_out = "save it with 'ralph clean --worktrees', or forget it with 'git worktree prune' if it is not needed";
            return Err(GitError::in_the_way(what, found.display(), way_out));
        }
        let commit = branch_commit(self.root, self.branch).unwrap_or_else(|| self.start.to_owned());
        half_made::require_nothing_staged(self.root, &entry, &commit)
    }

    fn make(&self, is_registered: bool) -> Result<Added, GitError> {
        if is_taken(self.path) {
            let what = format!("the place of the work tree for the branch {} is taken", self.branch);
            return Err(GitError::in_the_way(what, self.path.display(), "move it away"));
        }
        let added = if branch_commit(self.root, self.branch).is_some() { Added::Branch } else { Added::New };
        let mut arguments: Vec<&OsStr> = ["worktree", "add", "--quiet"].map(OsStr::new).to_vec();
        if is_registered {
            arguments.push("--force".as_ref());
            // If the parent is missing too, git does not recognise the path and registers it twice. If it cannot be
            // created, git reports why.
            let _ = self.path.parent().map(fs::create_dir_all);
        }
        let what: [&OsStr; 2] = if added == Added::New {
            // An upstream would be written into the configuration that all work trees share.
            arguments.extend(["--no-track", "-b", self.branch].map(OsStr::new));
            [self.path.as_ref(), self.start.as_ref()]
        } else {
            [self.path.as_ref(), self.branch.as_ref()]
        };
        arguments.push("--".as_ref());
        arguments.extend(what);
        let how = ChangeOptions { limit: ADD_LIMIT, ..ChangeOptions::default() };
        let result = {
            let _alone = alone();
            change_with(self.root, &arguments, &how)
        };
        result.map(|_| added).map_err(|error| self.failed(error))
    }

    /// git exits with the code of the hook, and keeps the work tree.
    fn failed(&self, error: ChangeError) -> GitError {
        let real = without_links(self.path);
        let trees = list(self.root).unwrap_or_default();
        let is_meant = |tree: &Tree| tree.path == real && tree.branch.as_deref() == Some(self.branch);
        let entry = head_file::git_dir(&real).ok().flatten();
        let is_whole = entry.is_some_and(|entry| half_made::is_whole(&entry));
        if is_whole && trees.iter().any(is_meant) {
            let hook = "the post-checkout hook";
            let (what, way_out) = match error {
                ChangeError::Refused(said) => {
                    (format!("{hook} failed ({})", one_line(&said)), "fix the hook, or ")
                }
                ChangeError::CutOff(CutOff::TimedOut(limit)) => {
                    (format!("{hook} did not end within {}", duration::format(limit)), "fix the hook, or ")
                }
                // It is unknown how far the hook got.
                ChangeError::CutOff(end) => (end.to_string(), ""),
                other => return other.of("worktree add", self.path),
            };
            let way_out = format!("the work tree is there; {way_out}start again to go on without the hook");
            return GitError::in_the_way(what, self.path.display(), way_out);
        }
        error.of("worktree add", self.path)
    }
}

fn is_there(tree: &Path) -> bool {
    tree.join(".git").symlink_metadata().is_ok()
}

/// Whether anything but an empty folder is at `path`.
fn is_taken(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.symlink_metadata().is_ok(),
    }
}

#[cfg(test)]
pub(super) mod tests;
