//! Finds the repository around a folder, without git, which would block if one of its files is a FIFO.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::ProjectError;
use crate::files::theirs;

/// Longer `.git` files are not pointers, in bytes.
pub(super) const MAX_POINTER: u64 = 64 * 1024;
/// The files that git reads first in a repository and in a linked work tree.
const READ_BY_GIT: [&str; 8] =
    ["HEAD", "config", "config.worktree", "commondir", "gitdir", "index", "packed-refs", "info/exclude"];

/// The work tree around a folder.
pub(super) struct Repository {
    /// Its top.
    pub(super) root: PathBuf,
    /// Whether git can use it.
    pub(super) usable: Result<(), ProjectError>,
}

impl Repository {
    /// Finds the repository. A `.git` file ends the search even if its target is missing, or it cannot be read:
    /// working in an outer repository would change the wrong project.
    pub(super) fn around(start: &Path) -> Option<Self> {
        start.ancestors().find_map(|dir| {
            let found = |usable| Some(Self { root: dir.to_path_buf(), usable });
            let git = dir.join(".git");
            if git.is_dir() {
                // An empty `.git` folder is not a repository.
                return if is_git_dir(&git) { found(check(&git)) } else { None };
            }
            match pointer(&git) {
                Ok(target) => {
                    let target = dir.join(target?);
                    let dangling = || Err(ProjectError::DanglingWorkTree { path: dir.to_path_buf() });
                    found(if is_git_dir(&target) { check(&target) } else { dangling() })
                }
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(reason) => found(Err(ProjectError::Unreadable { path: git, reason })),
            }
        })
    }
}

/// HEAD may be a (dangling) symlink in old repositories.
pub(super) fn is_git_dir(dir: &Path) -> bool {
    dir.join("HEAD").symlink_metadata().is_ok()
}

/// The target of a `.git` file of a work tree or submodule; `None` for other files.
pub(super) fn pointer(file: &Path) -> io::Result<Option<PathBuf>> {
    let content = theirs::read(file, MAX_POINTER)?;
    let target = content.strip_prefix(b"gitdir:").map(<[u8]>::trim_ascii);
    Ok(target.map(|target| PathBuf::from(OsString::from_vec(target.to_vec()))))
}

/// The top of the main repository of the work tree at `root`, if both sides agree: a `.git` file alone could claim to
/// belong anywhere.
pub(super) fn main_of(root: &Path) -> Option<PathBuf> {
    let file = root.join(".git");
    let git_dir = root.join(pointer(&file).ok()??).canonicalize().ok()?;
    let back = theirs::read(&git_dir.join("gitdir"), MAX_POINTER).ok()?;
    let back = git_dir.join(OsString::from_vec(back.trim_ascii_end().to_vec())).canonicalize().ok()?;
    let trees = git_dir.parent().filter(|trees| trees.ends_with(".git/worktrees"))?;
    let is_linked = back == file.canonicalize().ok()?;
    is_linked.then(|| trees.ancestors().nth(2).map(Path::to_path_buf))?
}

/// Fails if git could not read its own files, or would block on them.
fn check(git_dir: &Path) -> Result<(), ProjectError> {
    let check_files = |folder: &Path| {
        READ_BY_GIT.iter().map(|name| folder.join(name)).try_for_each(|path| {
            theirs::require_file_if_there(&path).map_err(|reason| ProjectError::Unreadable { path, reason })
        })
    };
    check_files(git_dir)?;
    let commondir = git_dir.join("commondir");
    match theirs::read(&commondir, MAX_POINTER) {
        Ok(common) => check_files(&git_dir.join(OsString::from_vec(common.trim_ascii_end().to_vec()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(reason) => Err(ProjectError::Unreadable { path: commondir, reason }),
    }
}
