//! The registered work trees of a repository, and what their HEADs are on.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::call::{LIMIT, run};
use super::error::GitError;
use super::head_file;
use crate::files::{atomic, if_there, theirs};

/// A registered work tree of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// Its absolute path; may not exist.
    pub path: PathBuf,
    /// The commit of its HEAD; `None` before the first commit.
    pub head: Option<String>,
    /// The branch it is on, without `refs/heads/`; `None` for a detached HEAD.
    pub branch: Option<String>,
    /// Why it is locked (`git worktree lock`); empty without a reason.
    pub locked: Option<String>,
    /// Whether git says that its folder is missing.
    pub is_gone: bool,
}

/// What the index of a work tree has, one entry after the other; `None`: git cannot tell.
#[must_use]
pub fn entries(tree: &Path) -> Option<Vec<u8>> {
    run(tree, &["ls-files", "--stage", "-z"], LIMIT).ok()
}

/// All work trees of the repository of `root`, the main one first.
pub fn list(root: &Path) -> Result<Vec<Tree>, GitError> {
    require_files(root)?;
    let (output, is_whole) = listed(root).or_else(|error| match error {
        // It is also empty while another git makes an entry.
        GitError::Refused { .. } => {
            fix_entries(root);
            listed(root)
        }
        error => Err(error),
    })?;
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
            // All zeros before the first commit.
            b"HEAD" => tree.head = Some(text()).filter(|head| head.bytes().any(|byte| byte != b'0')),
            b"branch" => tree.branch = text().strip_prefix("refs/heads/").map(str::to_owned),
            b"locked" => tree.locked = Some(text()),
            b"prunable" => tree.is_gone = true,
            _ => {}
        }
    }
    for (path, locked) in if is_whole { Vec::new() } else { entries_of(root) } {
        if let Some(tree) = trees.iter_mut().find(|tree| tree.path == path) {
            tree.is_gone |= locked.is_none() && !path.join(".git").exists();
            tree.locked = tree.locked.take().or(locked);
        }
    }
    Ok(trees)
}

/// What git lists, with a zero byte after each line, and whether it lists all: git before 2.36 has no `-z`, and before 2.31 it does not
/// say which trees are locked or gone.
fn listed(root: &Path) -> Result<(Vec<u8>, bool), GitError> {
    let list = |more: &[&str]| run(root, &[&["worktree", "list", "--porcelain"], more].concat(), LIMIT);
    match list(&["-z"]) {
        Err(GitError::Refused { message, .. }) if message.contains("unknown switch") => {
            let lines = list(&[])?.into_iter().map(|byte| if byte == b'\n' { 0 } else { byte });
            Ok((lines.collect(), false))
        }
        listed => Ok((listed?, true)),
    }
}

/// The paths of the linked work trees, each with the reason why it is locked, if it is.
fn entries_of(root: &Path) -> Vec<(PathBuf, Option<String>)> {
    let Some(common) = head_file::common_dir(root) else { return Vec::new() };
    let entry = |entry: PathBuf| {
        let path = PathBuf::from(theirs::text(&entry.join("gitdir")).ok()?.trim_end());
        let locked = theirs::text(&entry.join("locked")).ok().map(|why| why.trim_end().to_owned());
        Some((path.parent()?.to_owned(), locked))
    };
    let all = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    all.filter_map(|found| entry(found.path())).collect()
}

/// Fails if git would block on a file of a work tree's entry: it reads the entries of all trees.
fn require_files(root: &Path) -> Result<(), GitError> {
    let Some(common) = head_file::common_dir(root) else { return Ok(()) };
    for entry in fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten() {
        for name in ["HEAD", "gitdir", "commondir", "locked"] {
            let path = entry.path().join(name);
            theirs::require_file_if_there(&path).map_err(GitError::unreadable(&path))?;
        }
    }
    Ok(())
}

/// What a folder's HEAD is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckedOut {
    /// This branch.
    Branch(String),
    /// No branch, as during a rebase.
    Detached,
    /// The folder is not a work tree.
    NoTree,
}

/// What the HEAD of the work tree `root` is on.
///
/// # Errors
/// If that cannot be read: the system lacks resources, or git was ended.
pub fn checked_out(root: &Path) -> Result<CheckedOut, GitError> {
    let folder = head_file::git_dir(root).map_err(GitError::unreadable(root))?;
    let head = folder.map(|folder| if_there(theirs::text(&folder.join("HEAD"))));
    let head = head.transpose().map_err(GitError::unreadable(root))?.flatten();
    let name = match head.as_deref().map(str::trim_end) {
        None => return Ok(CheckedOut::NoTree),
        // With another ref format, only git can tell.
        Some("ref: refs/heads/.invalid") => match run(root, &["symbolic-ref", "HEAD"], LIMIT) {
            Ok(name) => String::from_utf8_lossy(&name).trim_end().to_owned(),
            Err(GitError::Refused { .. }) => String::new(),
            Err(error) => return Err(error),
        },
        Some(head) => head.trim_start_matches("ref: ").to_owned(),
    };
    let branch = name.strip_prefix("refs/heads/");
    Ok(branch.map_or(CheckedOut::Detached, |name| CheckedOut::Branch(name.to_owned())))
}

/// The folder of the repository that the work tree `root` is of, without a git process.
#[must_use]
pub fn repository(root: &Path) -> Option<PathBuf> {
    head_file::common_dir(root)
}

/// Why the work tree `root` of this repository has lost a commit, and what to do; `None` if the commit is there, or git
/// cannot tell.
#[must_use]
pub fn lost(root: &Path, repository: &Path, commit: &str) -> Option<String> {
    let is_refused =
        |arguments: &[&str]| matches!(run(root, arguments, LIMIT), Err(GitError::Refused { .. }));
    if !root.is_dir() || !is_refused(&["cat-file", "-e", &format!("{commit}^{{commit}}")]) {
        return None;
    }
    let what = if checked_out(root).ok()? != CheckedOut::NoTree {
        let is_usable = !is_refused(&["rev-parse", "--git-dir"]);
        is_usable.then(|| {
            format!("its repository does not have commit {commit:.10}, which HEAD named, any more")
        })?
    } else if repository.join("HEAD").exists() {
        // Only what leads to it is gone.
        return None;
    } else {
        format!("its repository {} is gone, with all commits", repository.display())
    };
    Some(format!("{}: {what}: bring that back from a backup or a remote, then start again", root.display()))
}

/// The lock of the work tree's index, if there is one: a git runs there, or was killed.
#[must_use]
pub fn index_lock(root: &Path) -> Option<PathBuf> {
    let folder = head_file::git_dir(root).ok().flatten();
    folder.map(|folder| folder.join("index.lock")).filter(|lock| lock.exists())
}

/// The locks that keep git from committing on `branch` in the work tree `root`: of its index, its HEAD, the branch,
/// and the file that a commit removes last.
#[must_use]
pub fn locks(root: &Path, branch: &str) -> Vec<PathBuf> {
    let folder = head_file::git_dir(root).ok().flatten();
    let own = folder.iter().flat_map(|folder| ["HEAD.lock", "AUTO_MERGE.lock"].map(|name| folder.join(name)));
    let name = head_file::common_dir(root)
        .map(|common| without_links(&common).join(format!("refs/heads/{branch}.lock")));
    let others = own.chain(name).filter(|lock| lock.is_file());
    index_lock(root).into_iter().chain(others).collect()
}

/// Restores files of git's entries that a power cut emptied and that are equal in every entry: with an empty
/// `commondir` in one, git lists none.
fn fix_entries(root: &Path) {
    let Some(common) = head_file::common_dir(root) else { return };
    let entries = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let torn = entries
        .map(|entry| entry.path().join("commondir"))
        .filter(|file| file.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == 0));
    for file in torn {
        // If that fails, git says so.
        let _ = atomic::write_theirs(&file, b"../..\n");
    }
}

/// The path without symbolic links, as git lists it; it need not exist.
pub(super) fn without_links(path: &Path) -> PathBuf {
    match (fs::canonicalize(path), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(parent), Some(name)) => without_links(parent).join(name),
        _ => path.to_path_buf(),
    }
}
