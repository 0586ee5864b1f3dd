//! Saves the uncommitted contents of a work tree as git trees, so that an agent's changes can be undone.

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
use super::nested;
use super::repository::head;
use super::save::{commit_tree, text, write};
use crate::files::atomic;
use crate::files::temporary::Folder;

/// The most bytes of untracked files that are saved, the smallest files first, because git copies all of them. The
/// rest cannot be undone.
const MOST_BYTES: u64 = 64 << 20;
/// Larger files are not saved.
const LARGEST: u64 = 16 << 20;
/// If there are more untracked files than this, none is saved.
const MOST: usize = 10_000;

/// HEAD, the index and the files of a work tree at one time, without ignored files.
#[derive(Debug, Clone)]
pub struct Contents {
    /// The commit of HEAD; `None` before the first one.
    pub(super) head: Option<String>,
    /// The index, as a tree.
    staged: String,
    /// The tracked and untracked files, as a tree.
    files: String,
    /// Untracked files that were not saved.
    left_out: HashSet<PathBuf>,
}

/// One line of `git diff-tree --raw`: the change of a path from the first tree to the second.
struct Step<'a> {
    mode: &'a [u8],
    id: &'a [u8],
    path: &'a [u8],
}

impl Contents {
    /// The contents of a work tree without uncommitted changes.
    pub(super) fn committed(root: &Path, head: &str) -> Result<Self, GitError> {
        let tree = tree_of(root, head)?;
        Ok(Self { head: Some(head.to_owned()), staged: tree.clone(), files: tree, left_out: HashSet::new() })
    }

    /// Saves the contents of the work tree with the top `root`; `untracked` are its untracked files, which are saved
    /// up to the limits. Neither the files nor the index change.
    ///
    /// # Errors
    /// If git cannot save it, for example during a merge with conflicts.
    pub(super) fn save(root: &Path, untracked: &[Changed]) -> Result<Self, GitError> {
        let (_folder, index) = copied_index(root)?;
        let git = |arguments: &[OsString]| write(root, arguments, Some(&index), b"");
        let staged = text(&git(&["write-tree".into()])?);
        let nested = nested::known(root, &[("GIT_INDEX_FILE".into(), index.clone().into())])?;
        git(&[&["add".into(), "--update".into(), "--".into()], &nested::all_but(&nested)[..]].concat())?;
        let (mut saved, left_out) = by_room(untracked);
        saved.extend(nested);
        // Via stdin, because command lines have a length limit. A file that was removed meanwhile is no error.
        let names: Vec<u8> =
            saved.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"]).flatten().copied().collect();
        write(root, &["update-index", "--add", "--remove", "-z", "--stdin"], Some(&index), &names)?;
        Ok(Self { head: head(root), staged, files: text(&git(&["write-tree".into()])?), left_out })
    }

    /// Whether a file was not saved because of the limits.
    pub(crate) fn lacks(&self, path: &Path) -> bool {
        self.left_out.contains(path)
    }

    /// Whether HEAD, the index and all saved files are equal.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let Self { head, staged, files, left_out: _ } = self;
        (head, staged, files) == (&other.head, &other.staged, &other.files)
    }

    /// Commits the uncommitted contents on top of HEAD, with the index as second parent if it differs; `None` if
    /// everything is committed.
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

    /// Restores the branch, index and files of a work tree that holds `now`, except files that `stays` names and
    /// files that either side lacks.
    ///
    /// # Errors
    /// If git or the system refuses; a part may be restored then.
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
            // Its current content is saved nowhere.
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
        // Only for speed: it fails if files differ from the index, which is fine.
        let _ = write(root, &["update-index", "-q", "--refresh"], None, b"");
        Ok(())
    }
}

/// A copy of the work tree's index in its own folder inside the repository, so that both are on one file system.
fn copied_index(root: &Path) -> Result<(Folder, PathBuf), GitError> {
    let git_dir = git_dir(root).map_err(GitError::unreadable(root))?.unwrap_or_else(|| root.join(".git"));
    let folder = Folder::make_in(&git_dir).map_err(GitError::unreadable(&git_dir))?;
    let copy = folder.path().join("index");
    match atomic::copy_own(&git_dir.join("index"), &copy) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::unreadable(&git_dir)(error)),
        _ => Ok((folder, copy)),
    }
}

/// Splits the untracked files into those that are saved and those that are not: nested repositories, large files, and
/// files over the limit.
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

/// The changes in `git diff-tree --raw -z`, without submodules, whose files git does not have.
fn steps(raw: &[u8]) -> impl Iterator<Item = Step<'_>> {
    let mut fields = raw.split(|&byte| byte == 0);
    std::iter::from_fn(move || Some((fields.next()?, fields.next()?))).filter_map(|(about, path)| {
        // `:100644 100755 ID ID M`: modes and ids before and after.
        let mut words = about.split(|&byte| byte == b' ');
        let (before, mode, id) = (words.next()?, words.next()?, words.nth(1)?);
        (before != b":160000" && mode != b"160000").then_some(Step { mode, id, path })
    })
}

/// Removes a file, and parent folders that become empty.
fn remove(root: &Path, path: &Path) -> Result<(), GitError> {
    let file = root.join(path);
    match fs::remove_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(GitError::unreadable(&file)(error));
        }
        _ => {}
    }
    let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    // The first folder that is not empty ends the loop.
    let _ = folders.map(|folder| fs::remove_dir(root.join(folder))).find(Result::is_err);
    Ok(())
}
