//! The files of submodules in a clean tree. git lays out none in a work tree of its own, and would fetch them again. They come
//! from the repositories that the user's work tree has for its submodules; one that it has not initialised stays empty.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::objects;
use super::place::Place;
use crate::git::error::GitError;
use crate::git::head_file;
use crate::git::nested::named;
use crate::text::digest::sha256;

/// Where the indexes are, in git's folder for the tree.
const INDEXES: &str = "submodules";

/// Lays out the submodules, and theirs, that the index of `place` names. `root` is the user's work tree of what lies in `tree`, and
/// `entry` git's folder for the whole tree.
///
/// # Errors
/// If git fails, or an object of a submodule does not have the content that its name says.
pub(super) fn lay(place: &Place, root: &Path, tree: &Path, entry: &Path) -> Result<(), GitError> {
    if !tree.join(".gitmodules").exists() {
        return Ok(());
    }
    for (path, commit) in named(&place.read(&["ls-files", "--stage", "-z"])?) {
        let (its_root, its_tree) = (root.join(&path), tree.join(&path));
        // A link could lead out of the tree.
        let is_folder = its_tree.symlink_metadata().is_ok_and(|found| found.is_dir());
        let Some(git_dir) = head_file::git_dir(&its_root).ok().flatten().filter(|_| is_folder) else {
            continue;
        };
        objects::verify_commit(&git_dir, &commit)?;
        let index = entry.join(INDEXES).join(sha256(its_tree.as_os_str().as_bytes()));
        fs::create_dir_all(entry.join(INDEXES)).map_err(GitError::unreadable(entry))?;
        let its_place = Place::at(&its_tree, &git_dir, Some(index.clone()))?;
        if !index.exists() {
            its_place.git(&["read-tree", &commit], Vec::new())?;
            its_place.git(&["update-index", "-q", "--ignore-missing", "--refresh"], Vec::new())?;
        }
        its_place.git(&["read-tree", "--reset", "-u", &commit], Vec::new())?;
        its_place.git(&["checkout-index", "--quiet", "--force", "--all"], Vec::new())?;
        its_place.git(&["clean", "--quiet", "-d", "--force", "--force"], Vec::new())?;
        lay(&its_place, &its_root, &its_tree, entry)?;
    }
    Ok(())
}

/// Has the next [`lay`] compare the contents of all files of submodules.
pub(super) fn distrust(entry: &Path) -> std::io::Result<()> {
    super::remove_folder(&entry.join(INDEXES))
}
