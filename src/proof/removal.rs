//! Removes the proof trees of a project, and those of projects that are gone.

use std::ffi::OsString;
use std::fs::{OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use super::tree::{BESIDE, GONE, PROJECT, ProofTree, beside, remove_file};
use crate::files::own;
use crate::git::{GitError, clean_tree};
use crate::threads;

/// The longest path of a project's runs, in bytes.
const PATH: u64 = 8192;
/// How long the end of a loop waits for a removal. What stays then is removed by the next proof, or `ralph clean --worktrees`.
const PATIENCE: Duration = Duration::from_secs(2);

/// A removal of what was put away, beside other work. Dropped, it waits for its end.
#[derive(Default)]
pub(super) struct Sweep(Option<Receiver<()>>);

impl Sweep {
    /// Begins it, if there is something to remove, unless it is at work.
    pub(super) fn begin(&mut self, tree: &ProofTree) {
        let is_at_work = self.0.as_ref().is_some_and(|ended| ended.try_recv() == Err(TryRecvError::Empty));
        if !is_at_work && tree.has_put_away() {
            let (done, ended) = mpsc::channel();
            let tree = tree.clone();
            // Without a thread, the next proof does it.
            let _ = threads::start(move || {
                tree.sweep();
                drop(done);
            });
            self.0 = Some(ended);
        }
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        if let Some(ended) = &self.0 {
            let _: Result<(), _> = ended.recv_timeout(PATIENCE);
        }
    }
}

/// The proof trees in this folder, also those of which only what was put away is left.
pub(crate) fn trees(folder: &Path) -> Vec<PathBuf> {
    let tree = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(GONE).unwrap_or(&name);
        let is_tree = path.is_dir() && !path.is_symlink() && !BESIDE.iter().any(|end| name.ends_with(end));
        is_tree.then(|| path.with_file_name(name))
    };
    let mut trees: Vec<_> = own::entries(folder).unwrap_or_default().into_iter().filter_map(tree).collect();
    trees.sort();
    trees.dedup();
    trees
}

/// Removes a proof tree of the repository of `root`, and what lies beside it; `false` if a proof is at work in it.
///
/// # Errors
/// If something of it cannot be removed.
pub(crate) fn remove_all(root: &Path, tree: &Path) -> Result<bool, GitError> {
    remove_with(tree, || clean_tree::remove(root, tree))
}

/// Removes what is left of projects that are gone, in the folder of the proof trees of all projects. Returns those projects' runs.
pub(crate) fn remove_orphans(all: &Path) -> Vec<PathBuf> {
    let mut gone = Vec::new();
    for folder in own::entries(all).unwrap_or_default() {
        let Ok(runs) = own::read(&folder.join(PROJECT), PATH) else { continue };
        let runs = PathBuf::from(OsString::from_vec(runs));
        // A project that cannot be seen now may come back.
        if !matches!(runs.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound) {
            continue;
        }
        let is_free = trees(&folder).iter().all(|tree| remove_with(tree, || Ok(())).unwrap_or_default());
        if is_free && clean_tree::remove_folder(&folder).is_ok() {
            gone.push(runs);
        }
    }
    gone
}

/// Removes a tree by `remove`, and then what lies beside it; `false` if a proof is at work in it.
fn remove_with(tree: &Path, remove: impl FnOnce() -> Result<(), GitError>) -> Result<bool, GitError> {
    let path = beside(tree, "~lock");
    let lock = own::open(&path, OpenOptions::new().create(true).truncate(false).write(true)).ok();
    if lock.as_ref().is_some_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock))) {
        return Ok(false);
    }
    remove()?;
    for end in BESIDE {
        // What stays is no tree, and the next proof removes it.
        let path = beside(tree, end);
        let _ = if path.is_dir() { clean_tree::remove_folder(&path) } else { remove_file(&path) };
    }
    Ok(true)
}
