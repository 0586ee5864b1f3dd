//! Linked work trees.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{GitError, LIMIT, common_dir, run};

/// A work tree of a repository, as git has it registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// Its folder; absolute. May be gone.
    pub path: PathBuf,
    /// The commit that its HEAD names; `None` before the first commit.
    pub head: Option<String>,
    /// The branch it is on, without `refs/heads/`; `None` for a detached HEAD.
    pub branch: Option<String>,
    /// Why it is locked (`git worktree lock`); empty where nobody gave a reason.
    pub locked: Option<String>,
    /// Its folder is gone, git says.
    pub is_gone: bool,
}

/// All work trees of the repository of `root`, the main one first.
pub fn list(root: &Path) -> Result<Vec<Tree>, GitError> {
    let output = run(root, &["worktree", "list", "--porcelain", "-z"], LIMIT)?;
    let mut trees: Vec<Tree> = Vec::new();
    for line in output.split(|&byte| byte == 0).filter(|line| !line.is_empty()) {
        let at = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
        let (name, value) = (&line[..at], line.get(at + 1..).unwrap_or_default());
        let text = || String::from_utf8_lossy(value).into_owned();
        if name == b"worktree" {
            trees.push(Tree { path: PathBuf::from(OsStr::from_bytes(value)), ..Tree::default() });
            continue;
        }
        let Some(tree) = trees.last_mut() else { continue };
        match name {
            // Before the first commit it is all zeros.
            b"HEAD" => tree.head = Some(text()).filter(|head| head.bytes().any(|byte| byte != b'0')),
            b"branch" => tree.branch = Some(text().trim_start_matches("refs/heads/").to_owned()),
            b"locked" => tree.locked = Some(text()),
            b"prunable" => tree.is_gone = true,
            _ => {}
        }
    }
    Ok(trees)
}

/// The folder of git's notes about a linked work tree, found without the tree's own folder.
pub(super) fn notes(root: &Path, tree: &Tree) -> Result<Option<PathBuf>, GitError> {
    let folders = fs::read_dir(common_dir(root)?.join("worktrees")).into_iter().flatten().flatten();
    let is_meant = |folder: &PathBuf| {
        let pointer = fs::read(folder.join("gitdir")).unwrap_or_default();
        Path::new(OsStr::from_bytes(pointer.trim_ascii_end())) == tree.path.join(".git")
    };
    Ok(folders.map(|folder| folder.path()).find(is_meant))
}
