//! The installed git, and properties of a whole repository.

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::call::{LIMIT, run};
use super::error::GitError;
use super::head_file::{self, Head};

/// The version of the installed git, such as `2.47.3`.
pub fn git_version() -> Result<String, GitError> {
    let output = run(Path::new("/"), &["--version"], LIMIT)?;
    let text = String::from_utf8_lossy(&output);
    Ok(text.trim().trim_start_matches("git version ").to_owned())
}

/// The commit of HEAD in the work tree `root`; `None` before the first commit or if git fails.
#[must_use]
pub fn head(root: &Path) -> Option<String> {
    match head_file::head(root) {
        Some(Head::Commit(commit)) => return Some(commit),
        Some(Head::Unborn) => return None,
        None => {}
    }
    let output = run(root, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], LIMIT).ok()?;
    let commit = String::from_utf8(output).ok()?;
    Some(commit.trim().to_owned())
}

/// The repository folder that all work trees of `root` share: `.git` of the main one.
pub fn common_dir(root: &Path) -> Result<PathBuf, GitError> {
    path_of(root, "--git-common-dir")
}

fn path_of(root: &Path, asked: &str) -> Result<PathBuf, GitError> {
    let mut output = run(root, &["rev-parse", asked], LIMIT)?;
    if output.last() == Some(&b'\n') {
        output.pop();
    }
    // Relative to git's working directory, except in linked work trees.
    Ok(root.join(std::ffi::OsString::from_vec(output)))
}

/// The folder of git of this work tree.
///
/// # Errors
/// If git fails.
pub fn git_dir(root: &Path) -> Result<PathBuf, GitError> {
    path_of(root, "--absolute-git-dir")
}

/// Whether the commit has a file at `path` (relative to the top, with slashes).
#[must_use]
pub fn is_tracked(root: &Path, commit: &str, path: &str) -> bool {
    !commit.starts_with('-') && run(root, &["cat-file", "-e", &format!("{commit}:{path}")], LIMIT).is_ok()
}

/// Whether commits are missing here, because the clone was made with `--depth`.
#[must_use]
pub fn is_shallow(root: &Path) -> bool {
    run(root, &["rev-parse", "--is-shallow-repository"], LIMIT).is_ok_and(|said| said.starts_with(b"true"))
}

/// The first commit of a branch, by which its clones are known: that of the line of its first parents.
///
/// # Errors
/// If git fails.
pub fn first_commit(root: &Path, branch: &str) -> Result<String, GitError> {
    let branch = format!("refs/heads/{branch}");
    let words = ["rev-list", "--first-parent", "--max-parents=0", "--end-of-options", &branch, "--"];
    let said = run(root, &words, LIMIT)?;
    Ok(String::from_utf8_lossy(&said).lines().next_back().unwrap_or_default().to_owned())
}

/// Why git has no name or address for commits; `None`: it has.
#[must_use]
pub fn no_identity(root: &Path) -> Option<String> {
    let error = run(root, &["var", "GIT_COMMITTER_IDENT"], LIMIT).err()?;
    Some(error.to_string())
}
