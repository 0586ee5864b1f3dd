//! What a work tree holds besides its commits, saved as trees of git, so that an agent's changes can be taken back.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::call::{LIMIT, run};
use super::changes::Changed;
use super::error::GitError;
use super::head_file::git_dir;
use super::repository::head;
use super::save::{commit_tree, text, write};
use crate::files::atomic;
use crate::files::temporary::Folder;

/// So many bytes of untracked files are saved, the smallest files first: git copies all of them. The rest is not taken back.
const MOST_BYTES: u64 = 64 << 20;
/// One above this size is not saved.
const LARGEST: u64 = 16 << 20;
/// Where there are more untracked files than this, none of them is.
const MOST: usize = 10_000;

/// HEAD, the index and the files of a work tree at one moment. Ignored files are not part of it.
#[derive(Debug, Clone)]
pub struct Contents {
    /// The commit that HEAD names; `None` before the first one.
    pub(super) head: Option<String>,
    /// The index, as a tree.
    staged: String,
    /// The files, tracked and untracked, as a tree.
    files: String,
    /// The untracked files that are not in it.
    left_out: HashSet<PathBuf>,
}

/// One line of `git diff-tree --raw`: how a path gets from the first tree to the second.
struct Step<'a> {
    mode: &'a [u8],
    id: &'a [u8],
    path: &'a [u8],
}

impl Contents {
    /// Of a work tree in which all is as HEAD has it.
    pub(super) fn committed(root: &Path, head: &str) -> Result<Self, GitError> {
        let tree = tree_of(root, head)?;
        Ok(Self { head: Some(head.to_owned()), staged: tree.clone(), files: tree, left_out: HashSet::new() })
    }

    /// Saves what the work tree with the top `root` holds; `untracked` are the files in it that git does not track, which are
    /// saved as far as there is room for them. Neither the files nor the index change.
    ///
    /// # Errors
    /// If git cannot save it, as in the middle of a merge with conflicts.
    pub(super) fn save(root: &Path, untracked: &[Changed]) -> Result<Self, GitError> {
        let (_folder, index) = copied_index(root)?;
        let git = |arguments: &[OsString]| write(root, arguments, Some(&index), b"");
        let staged = text(&git(&["write-tree".into()])?);
        git(&["add".into(), "--update".into()])?;
        let (saved, left_out) = by_room(untracked);
        // By its stdin: command lines have an end. A file that has gone meanwhile is no fault.
        let names: Vec<u8> =
            saved.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"]).flatten().copied().collect();
        write(root, &["update-index", "--add", "--remove", "-z", "--stdin"], Some(&index), &names)?;
        Ok(Self { head: head(root), staged, files: text(&git(&["write-tree".into()])?), left_out })
    }

    /// Whether a file is not saved, because it is too large or there are too many.
    pub(crate) fn lacks(&self, path: &Path) -> bool {
        self.left_out.contains(path)
    }

    /// Whether HEAD, the index and all files that are saved are the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let Self { head, staged, files, left_out: _ } = self;
        (head, staged, files) == (&other.head, &other.staged, &other.files)
    }

    /// A commit on top of HEAD of what is not committed, with what is staged apart from it as its second parent; `None`: all is
    /// committed.
    pub(super) fn commit(&self, root: &Path, message: &str) -> Result<Option<String>, GitError> {
        let Self { head, staged, files, .. } = self;
        let mut parents: Vec<String> = head.iter().cloned().collect();
        if let Some(head) = head {
            let committed = tree_of(root, head)?;
            if *files == committed && *staged == committed {
                return Ok(None);
            }
            if *staged != committed && staged != files {
                parents.push(commit_tree(root, staged, &parents, &format!("{message}: what was staged"))?);
            }
        }
        commit_tree(root, files, &parents, message).map(Some)
    }

    /// Brings a work tree, which holds `now`, back to this: its branch, its index and its files, but those that `stays` names and
    /// those that either of the two lacks.
    ///
    /// # Errors
    /// If git or the system refuses; part of it may be back then.
    pub(super) fn bring_back(
        &self,
        root: &Path,
        now: &Self,
        stays: impl Fn(&Path) -> bool,
    ) -> Result<(), GitError> {
        if let (Some(before), Some(after)) = (&self.head, &now.head)
            && before != after
        {
            let log = "ralph: an agent that only looks has moved it";
            write(root, &["update-ref", "-m", log, "HEAD", before, after], None, b"")?;
        }
        let staged = diff(root, &now.staged, &self.staged)?;
        let lines: Vec<Vec<u8>> =
            steps(&staged).map(|step| [step.mode, b" ", step.id, b"\t", step.path, b"\0"].concat()).collect();
        if !lines.is_empty() {
            write(root, &["update-index", "-z", "--index-info"], None, &lines.concat())?;
        }
        let files = diff(root, &now.files, &self.files)?;
        let files = steps(&files).filter(|step| {
            let path = Path::new(OsStr::from_bytes(step.path));
            // What it holds now is saved nowhere.
            !stays(path) && !now.lacks(path)
        });
        let (gone, others): (Vec<Step<'_>>, Vec<Step<'_>>) = files.partition(|step| step.mode == b"000000");
        let gone = gone.iter().map(|step| Path::new(OsStr::from_bytes(step.path)));
        for path in gone.filter(|path| !self.lacks(path)) {
            remove(root, path)?;
        }
        if !others.is_empty() {
            let (_folder, index) = copied_index(root)?;
            write(root, &["read-tree", &self.files], Some(&index), b"")?;
            let names: Vec<&[u8]> = others.iter().map(|step| step.path).collect();
            let checkout = ["checkout-index", "--force", "-z", "--stdin"];
            write(root, &checkout, Some(&index), &[&names.join(&0)[..], b"\0"].concat())?;
        }
        // Only a matter of speed: it fails where files differ from the index, as they may.
        let _ = write(root, &["update-index", "-q", "--refresh"], None, b"");
        Ok(())
    }
}

/// A copy of the work tree's index in a folder of its own, which is in the repository so that both are on one file system.
fn copied_index(root: &Path) -> Result<(Folder, PathBuf), GitError> {
    let git_dir = git_dir(root).map_err(GitError::unreadable(root))?.unwrap_or_else(|| root.join(".git"));
    let folder = Folder::make_in(&git_dir).map_err(GitError::unreadable(&git_dir))?;
    let copy = folder.path().join("index");
    match atomic::copy_own(&git_dir.join("index"), &copy) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::unreadable(&git_dir)(error)),
        _ => Ok((folder, copy)),
    }
}

/// The untracked files that are saved, and those that are not: repositories of their own, large files, and those for which there is
/// no room.
fn by_room(untracked: &[Changed]) -> (Vec<PathBuf>, HashSet<PathBuf>) {
    let mut files: Vec<&Changed> = untracked.iter().collect();
    files.sort_by_key(|file| file.size);
    let mut bytes = 0_u64;
    let has_room = |file: &&Changed| {
        let is_repository = file.path.as_os_str().as_bytes().ends_with(b"/");
        let is_large = file.size > LARGEST || bytes.saturating_add(file.size) > MOST_BYTES;
        if untracked.len() > MOST || is_repository || is_large {
            return false;
        }
        bytes += file.size;
        true
    };
    let (saved, left_out): (Vec<_>, Vec<_>) = files.into_iter().partition(has_room);
    let path = |file: &Changed| file.path.clone();
    (saved.into_iter().map(path).collect(), left_out.into_iter().map(path).collect())
}

fn tree_of(root: &Path, commit: &str) -> Result<String, GitError> {
    Ok(text(&run(root, &["rev-parse", &format!("{commit}^{{tree}}")], LIMIT)?))
}

fn diff(root: &Path, from: &str, to: &str) -> Result<Vec<u8>, GitError> {
    run(root, &["diff-tree", "-r", "-z", "--raw", "--no-renames", from, to], LIMIT)
}

/// The steps of `git diff-tree --raw -z` but those of submodules, whose files git does not have.
fn steps(raw: &[u8]) -> impl Iterator<Item = Step<'_>> {
    let mut fields = raw.split(|&byte| byte == 0);
    std::iter::from_fn(move || Some((fields.next()?, fields.next()?))).filter_map(|(about, path)| {
        // `:100644 100755 ID ID M`: modes and ids before and after.
        let mut words = about.split(|&byte| byte == b' ');
        let (before, mode, id) = (words.next()?, words.next()?, words.nth(1)?);
        (before != b":160000" && mode != b"160000").then_some(Step { mode, id, path })
    })
}

/// Removes a file, and the folders that are empty without it.
fn remove(root: &Path, path: &Path) -> Result<(), GitError> {
    let file = root.join(path);
    match fs::remove_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(GitError::unreadable(&file)(error));
        }
        _ => {}
    }
    let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    // One that is not empty ends it.
    let _ = folders.map(|folder| fs::remove_dir(root.join(folder))).find(Result::is_err);
    Ok(())
}
