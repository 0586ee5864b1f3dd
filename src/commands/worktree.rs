//! What the engine needs to know about the project's files, from git.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use crate::engine::Worktree;
use crate::git;

/// The project's work tree.
pub(super) struct GitWorktree {
    root: PathBuf,
    /// Counts as part of the tree wherever it lies, also where git ignores it.
    plan: PathBuf,
}

impl GitWorktree {
    pub(super) fn new(root: PathBuf, plan: PathBuf) -> Self {
        Self { root, plan }
    }
}

impl Worktree for GitWorktree {
    fn head(&self) -> Option<String> {
        git::head(&self.root)
    }

    fn fingerprint(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        git::changes(&self.root)?.hash(&mut hasher);
        std::fs::read(&self.plan).ok().hash(&mut hasher);
        Some(hasher.finish())
    }
}
