//! Linked work trees.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::change::{ChangeOptions, alone, change, change_with};
use super::refs::branch_commit;
use super::{GitError, LIMIT, escape_pattern, exclude, head_file, run};
use crate::files::theirs;
use crate::text::jitter;
use crate::text::line::one_line;

/// The longest that making a work tree may take: all files of the project are written, and its hook runs.
const ADD_LIMIT: Duration = Duration::from_hours(1);
/// How long another git that is just making the wanted work tree is waited for.
const HALF_MADE_PATIENCE: Duration = Duration::from_secs(5);

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
            b"branch" => tree.branch = text().strip_prefix("refs/heads/").map(str::to_owned),
            b"locked" => tree.locked = Some(text()),
            b"prunable" => tree.is_gone = true,
            _ => {}
        }
    }
    Ok(trees)
}

/// What a folder's HEAD is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckedOut {
    /// This branch.
    Branch(String),
    /// No branch, as in the middle of a rebase.
    Detached,
    /// The folder is no work tree, or none any more.
    NoTree,
}

/// What the HEAD of the work tree `root` is on.
#[must_use]
pub fn checked_out(root: &Path) -> CheckedOut {
    let head = head_file::git_dir(root).and_then(|folder| theirs::text(&folder.join("HEAD")).ok());
    let name = match head.as_deref().map(str::trim_end) {
        None => return CheckedOut::NoTree,
        // Where branches are not files, only git knows.
        Some("ref: refs/heads/.invalid") => run(root, &["symbolic-ref", "HEAD"], LIMIT)
            .map_or_else(|_| String::new(), |name| String::from_utf8_lossy(&name).trim_end().to_owned()),
        Some(head) => head.trim_start_matches("ref: ").to_owned(),
    };
    name.strip_prefix("refs/heads/").map_or(CheckedOut::Detached, |name| CheckedOut::Branch(name.to_owned()))
}

/// The lock of the work tree's index, where there is one: a git is at work there, or was killed.
#[must_use]
pub fn index_lock(root: &Path) -> Option<PathBuf> {
    head_file::git_dir(root).map(|folder| folder.join("index.lock")).filter(|lock| lock.exists())
}

/// What [`add`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// A work tree on a new branch.
    New,
    /// A work tree on a branch that was there.
    Branch,
    /// Nothing: it was there already.
    Reused,
}

/// Makes a work tree at `path` on the branch: the one of this name, else a new one at the commit `start`. One that is
/// there already is used again. `known` are the trees as [`list`] gave them before, so that many can be added after one
/// look; `None` looks.
///
/// # Errors
/// When something is in the way. Nothing that anybody wrote has been touched then, and what was begun is finished by
/// the next call.
pub fn add(
    root: &Path,
    path: &Path,
    branch: &str,
    start: &str,
    known: Option<&[Tree]>,
) -> Result<Added, GitError> {
    let listed;
    let trees = if let Some(trees) = known {
        trees
    } else {
        listed = list(root)?;
        &listed
    };
    let new = New { root, path, branch, start };
    let real = without_links(path);
    let is_here = |tree: &&Tree| tree.path == real;
    if trees.iter().find(is_here).is_some_and(is_half_made) {
        new.clear_half_made()?;
        return new.add(&real, &list(root)?);
    }
    new.add(&real, trees)
}

/// A work tree to be.
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
            let way_out = if is_there(&other.path) {
                "switch that work tree to another branch"
            } else {
                "its folder is gone; forget it with 'git worktree prune', or mount the disk it is on"
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

    fn reuse(&self, tree: &Tree) -> Result<Added, GitError> {
        if tree.branch.as_deref() == Some(self.branch) {
            return Ok(Added::Reused);
        }
        let on = tree.branch.as_ref().map_or("no branch".to_owned(), |name| format!("the branch {name}"));
        let what = format!("the work tree for the branch {} is on {on}", self.branch);
        let way_out = format!("finish what is in progress there, then 'git switch {}' in it", self.branch);
        Err(GitError::in_the_way(what, self.path.display(), way_out))
    }

    /// Its folder was deleted, git still has it registered.
    fn add_again(&self, tree: &Tree) -> Result<Added, GitError> {
        if let Some(reason) = &tree.locked {
            let reason = if reason.is_empty() { "without a reason" } else { reason };
            let what = format!("a work tree is locked ({}), and its folder is gone", one_line(reason));
            let way_out = "mount the disk it is on, or give it up with 'git worktree unlock'";
            return Err(GitError::in_the_way(what, self.path.display(), way_out));
        }
        if tree.branch.as_deref() != Some(self.branch) {
            // git would forget what its HEAD names: maybe the only name of those commits.
            let head = tree.branch.as_ref().or(tree.head.as_ref()).map_or("nothing", String::as_str);
            let what =
                format!("the folder of a work tree is gone, and it was on {head}, not on {}", self.branch);
            let way_out = "forget it with 'git worktree prune' if nothing there is needed";
            return Err(GitError::in_the_way(what, self.path.display(), way_out));
        }
        self.make(true)
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
            // Where that is gone too, git does not recognise the path and registers it twice. If it cannot be made,
            // git says why.
            let _ = self.path.parent().map(fs::create_dir_all);
        }
        let what: [&OsStr; 2] = if added == Added::New {
            // What a branch follows would be written into the configuration that all work trees share.
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
        result.map(|_| added).map_err(|reason| self.failed(reason))
    }

    /// git ends with the exit code of the hook, and leaves the work tree then.
    fn failed(&self, reason: String) -> GitError {
        let real = without_links(self.path);
        let trees = list(self.root).unwrap_or_default();
        let is_complete = |tree: &Tree| {
            tree.path == real && tree.branch.as_deref() == Some(self.branch) && !is_half_made(tree)
        };
        if is_there(&real) && trees.iter().any(is_complete) {
            let what = format!("the post-checkout hook failed ({})", one_line(&reason));
            let way_out = "the work tree is there; mend the hook, or start again to go on without it";
            return GitError::in_the_way(what, self.path.display(), way_out);
        }
        GitError::refused("worktree add", self.path, reason)
    }

    /// Removes what a killed `git worktree add` left, unless somebody put something into it since.
    fn clear_half_made(&self) -> Result<(), GitError> {
        let deadline = Instant::now() + HALF_MADE_PATIENCE;
        while is_being_made(self.path) {
            if Instant::now() > deadline {
                let what = "another git is making this work tree";
                return Err(GitError::in_the_way(what, self.path.display(), "wait for it and start again"));
            }
            thread::sleep(jitter::around(Duration::from_millis(100)));
        }
        let _alone = alone();
        let real = without_links(self.path);
        if !list(self.root)?.iter().any(|tree| tree.path == real && is_half_made(tree)) {
            return Ok(()); // it was finished meanwhile
        }
        if is_there(&real)
            && let Some(stranger) = self.stranger()?
        {
            let what = "a work tree that was never finished holds a file that no checkout wrote";
            return Err(GitError::in_the_way(what, stranger.display(), "move it away and start again"));
        }
        let remove = ["worktree", "remove", "--force", "--force", "--"].map(OsStr::new);
        change(self.root, &[&remove[..], &[self.path.as_ref()]].concat())
            .map_err(|reason| GitError::refused("worktree remove", self.path, reason))
    }

    /// A file in the half-made tree that its commit does not have, ignored ones included.
    fn stranger(&self) -> Result<Option<PathBuf>, GitError> {
        let refused = |reason: String| GitError::refused("ls-files", self.path, reason);
        let folder = tempfile::tempdir().map_err(|error| refused(error.to_string()))?;
        // Its own index may be missing, or locked by the git that was killed.
        let index = folder.path().join("index").into_os_string();
        let how = ChangeOptions { env: vec![("GIT_INDEX_FILE".into(), index)], ..ChangeOptions::default() };
        if change_with(self.path, &["read-tree", "HEAD"], &how).is_err() {
            // Killed before it had a HEAD: then nothing was checked out either.
            change_with(self.path, &["read-tree", "--empty"], &how).map_err(refused)?;
        }
        let others = change_with(self.path, &["ls-files", "-z", "--others"], &how).map_err(refused)?;
        let first = others.split(|&byte| byte == 0).find(|name| !name.is_empty());
        Ok(first.map(|name| self.path.join(OsStr::from_bytes(name))))
    }
}

/// git locks a work tree with this word while it makes it.
fn is_half_made(tree: &Tree) -> bool {
    tree.locked.as_deref() == Some("initializing")
}

/// Whether a git process lives that was told to make this work tree.
fn is_being_made(path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    processes.flatten().any(|process| {
        let says = |file: &str| fs::read(process.path().join(file)).unwrap_or_default();
        let line = says("cmdline");
        let is_git = line.split(|&byte| byte == 0).next().is_some_and(|name| name.ends_with(b"git"));
        // The child that writes the files is told by its environment.
        let names = |text: &[u8]| text.windows(path.len()).any(|part| part == path);
        is_git && (names(&line) || names(&says("environ")))
    })
}

fn is_there(tree: &Path) -> bool {
    tree.join(".git").symlink_metadata().is_ok()
}

/// Whether something other than an empty folder is at `path`.
fn is_taken(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.symlink_metadata().is_ok(),
    }
}

/// The path as git lists it, without symbolic links; also of what is not there yet.
fn without_links(path: &Path) -> PathBuf {
    match (fs::canonicalize(path), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(parent), Some(name)) => without_links(parent).join(name),
        _ => path.to_path_buf(),
    }
}

/// Whether the commit has a file at `path` (relative to the top, with slashes).
#[must_use]
pub fn is_tracked(root: &Path, commit: &str, path: &str) -> bool {
    !commit.starts_with('-') && run(root, &["cat-file", "-e", &format!("{commit}:{path}")], LIMIT).is_ok()
}

/// Sees to it that the copy of the plan in a work tree is never committed by accident. `file` is its name at the top
/// of the tree; where it is tracked, git is told not to look at it in this tree, else it is ignored in all of them.
pub fn keep_plan_out(tree: &Path, file: &str, is_tracked: bool) -> Result<(), GitError> {
    if !is_tracked {
        return exclude(tree, &[format!("/{}", escape_pattern(Path::new(file)))]).map(drop);
    }
    change(tree, &["update-index", "--skip-worktree", "--", file])
        .map_err(|reason| GitError::refused("update-index", tree, reason))
}

#[cfg(test)]
mod tests;
