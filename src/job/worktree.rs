//! What the engine needs to know about the project's files, from git.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::SystemTime;

use crate::engine::worktree::Worktree;
use crate::git::{self, Changed};
use crate::project::Project;

/// The project's work tree; without one nothing can be told.
///
/// It is looked at once after each attempt. What others write between two attempts, such as a validation command or a person,
/// is told from what the agent writes by the time of the file.
pub(super) struct GitWorktree {
    root: Option<PathBuf>,
    /// Counts as part of the tree wherever it lies, also where git ignores it.
    plan: PathBuf,
    looked: Option<SystemTime>,
    /// When no agent was at work, since the first look.
    between: Vec<(SystemTime, SystemTime)>,
}

impl GitWorktree {
    pub(super) fn new(project: &Project, plan: PathBuf) -> Self {
        let root = project.in_git().then(|| project.root().to_owned());
        Self { root, plan, looked: None, between: Vec::new() }
    }

    fn is_by_agent(&self, changed: &Changed) -> bool {
        let is_between =
            |written| self.between.iter().any(|(from, until)| *from < written && written <= *until);
        !changed.written.is_some_and(is_between)
    }
}

impl Worktree for GitWorktree {
    fn head(&self) -> Option<String> {
        self.root.as_deref().and_then(git::head)
    }

    fn agent_begins(&mut self) {
        if let Some(from) = self.looked.take() {
            self.between.push((from, SystemTime::now()));
        }
    }

    fn look(&mut self) -> Option<u64> {
        let root = self.root.as_deref()?;
        // The agent is gone. The times of files lag behind the clock, but not by as much as the look takes.
        let now = SystemTime::now();
        let mut hasher = DefaultHasher::new();
        let changes = git::changes(root)?;
        changes
            .iter()
            .filter(|changed| self.is_by_agent(changed))
            .for_each(|changed| changed.hash(&mut hasher));
        std::fs::read(&self.plan).ok().hash(&mut hasher);
        self.head().hash(&mut hasher);
        self.looked = Some(now);
        Some(hasher.finish())
    }
}
