//! The work tree that was made for a worker.

use std::fs;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::find::Worker;
use crate::commands::clean_worktrees;
use crate::files::atomic::{self, Durability};
use crate::files::{FileError, own};
use crate::git::trees::{self, Tree};
use crate::job::workspace::locate;
use crate::project::Project;
use crate::record::worker::WorkerTree;

/// A larger file is not ours, in bytes.
const LARGEST: u64 = 1 << 20;

/// A work tree, and its project.
pub(super) struct OwnTree {
    worker: String,
    here: Project,
    tree: Tree,
}

/// The tree of a worker; `None`: it has none, or it is gone.
///
/// # Errors
/// When git cannot be asked.
pub(super) fn of(worker: &Worker) -> anyhow::Result<Option<OwnTree>> {
    let known = match worker.state() {
        Some(state) => state.setup.worker.as_ref().and_then(|worker| worker.worktree.clone()),
        None => kept(&worker.folder())?,
    };
    let Some(known) = known.filter(|known| known.path.is_dir()) else { return Ok(None) };
    let path =
        fs::canonicalize(&known.path).with_context(|| format!("cannot look up {}", known.path.display()))?;
    let trees = trees::list(&path)?;
    let (main, others) = trees.split_first().context("git knows no work tree at all")?;
    let Some(tree) = others.iter().find(|tree| tree.path == path) else {
        bail!("{} is no work tree of {}: remove it by hand", path.display(), main.path.display());
    };
    let here = locate(None)?.elsewhere(&main.path, &main.path.join(".ralph"));
    Ok(Some(OwnTree { worker: worker.name.clone(), here, tree: tree.clone() }))
}

impl OwnTree {
    /// Refuses to remove a tree if something would be lost.
    pub(super) fn require_removable(&self, force: bool) -> anyhow::Result<()> {
        let Err(kept) = clean_worktrees::judged(&self.here, &self.tree, force) else { return Ok(()) };
        let force = if kept.yields { ", or save what is there with --force-dirty" } else { "" };
        bail!(
            "cannot remove worktree for '{}', {}: {}{force}; nothing was killed",
            self.worker,
            self.tree.path.display(),
            kept.reasons.join("; ")
        )
    }

    /// Removes the tree, and reports the result; returns whether it is gone.
    pub(super) fn remove(&self, force: bool) -> bool {
        let name = self.tree.branch.as_deref().unwrap_or(&self.worker);
        clean_worktrees::remove_one(&self.here, &self.tree, name, force)
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("worktree.json")
}

/// Records the tree beside the state of the worker.
pub(super) fn keep(folder: &Path, tree: &WorkerTree) -> Result<(), FileError> {
    let path = path(folder);
    let text = serde_json::to_vec(tree).map_err(|error| FileError::at(&path)(error.into()))?;
    atomic::write_own(&path, &text, Durability::Atomic).map(drop)
}

fn kept(folder: &Path) -> Result<Option<WorkerTree>, FileError> {
    let path = path(folder);
    match own::read(&path, LARGEST) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map(Some).map_err(|error| FileError::at(&path)(error.into()))
        }
        Err(error) if error.kind() == NotFound => Ok(None),
        Err(error) => Err(FileError::at(&path)(error)),
    }
}
