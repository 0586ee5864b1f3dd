//! What the engine needs to know about the project's files, from git.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use crate::engine::Worktree;
use crate::git;
use crate::project::Project;

/// The project's work tree; without one nothing can be told.
pub(super) struct GitWorktree {
    root: Option<PathBuf>,
    /// Counts as part of the tree wherever it lies, also where git ignores it.
    plan: PathBuf,
}

impl GitWorktree {
    pub(super) fn new(project: &Project, plan: PathBuf) -> Self {
        let root = project.in_git().then(|| project.root().to_owned());
        Self { root, plan }
    }
}

impl Worktree for GitWorktree {
    fn head(&self) -> Option<String> {
        self.root.as_deref().and_then(git::head)
    }

    fn fingerprint(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        git::changes(self.root.as_deref()?)?.hash(&mut hasher);
        std::fs::read(&self.plan).ok().hash(&mut hasher);
        Some(hasher.finish())
    }
}
