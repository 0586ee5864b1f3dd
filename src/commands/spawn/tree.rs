//! The work tree of its own that a worker gets.

use std::path::Path;

use anyhow::bail;

use crate::commands::clean_worktrees;
use crate::commands::output::{remark, warn};
use crate::git;
use crate::git::trees::{self, Tree};
use crate::git::worktrees::Added;
use crate::job::workspace::Workspace;
use crate::project::Project;
use crate::record::worker::WorkerTree;

/// Such a work tree, and what of it was made just now.
pub(super) struct OwnTree {
    pub(super) known: WorkerTree,
    added: Added,
    /// The commit that a new branch begins at.
    start: String,
}

impl OwnTree {
    /// Gives the worker a work tree, or the one that it has had before: in a folder of its name in `parent`, without one in
    /// `.worktrees`.
    pub(super) fn give(parent: Option<&Path>, name: &str, workspace: &Workspace) -> anyhow::Result<Self> {
        let project = &workspace.project;
        project.require_git()?;
        let root = project.root();
        let path = match parent {
            Some(parent) => project.cwd().join(parent).join(name),
            None => project.worktree(name),
        };
        let Some(start) = git::head(root) else {
            bail!("--worktree needs a commit to start from: commit something first")
        };
        git::exclude(root, &["/.worktrees/".to_owned()])?;
        let added = git::worktrees::add(root, &path, name, &start, None)?;
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        Ok(Self { known: WorkerTree { path, branch: name.to_owned() }, added, start })
    }

    /// Removes what was made for a worker that has not come to be, unless something was done there.
    pub(super) fn take_back(&self, here: &Project) {
        if self.added == Added::Reused {
            return;
        }
        let WorkerTree { path, branch } = &self.known;
        let shown = here.relative(path);
        let found =
            trees::list(here.root()).ok().and_then(|trees| trees.into_iter().find(|tree| tree.path == *path));
        let Some(tree) = found.filter(|tree| self.is_untouched(tree, here)) else {
            return warn(&format!("{} stays: something was done there", shown.display()));
        };
        if !clean_worktrees::remove_silently(here, &tree, branch) {
            return warn(&format!("{} stays: remove it with 'git worktree remove'", shown.display()));
        }
        let is_new = self.added == Added::New;
        let is_gone = is_new && git::remove::remove_branch(here.root(), branch, &self.start).is_ok();
        let with = if is_gone { format!(" and branch {branch}") } else { String::new() };
        remark(&format!("removed {}{with}, made for it", shown.display()));
    }

    /// Whether there is nothing in a tree but what it began with.
    fn is_untouched(&self, tree: &Tree, here: &Project) -> bool {
        let is_at_start = self.added == Added::Branch || tree.head.as_ref() == Some(&self.start);
        let findings = clean_worktrees::judged(here, tree, false);
        is_at_start && findings.is_ok_and(|findings| findings.ignored.is_empty())
    }
}
