//! The installed git, and properties of a whole repository.

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::call::{LIMIT, run};
use super::error::GitError;
use super::head_file::{self, Head};

/// The oldest git that works: its major and its minor version.
pub const OLDEST: (u32, u32) = (2, 30);
/// The oldest git that merges without a work tree, as landing does.
pub const OLDEST_TO_LAND: (u32, u32) = (2, 38);

/// Fails if the installed git is older than this version. A git that cannot be asked is refused where it is needed.
///
/// # Errors
/// If it is older.
pub fn require_version(oldest: (u32, u32)) -> Result<(), GitError> {
    git_version().map_or(Ok(()), |found| unless_older(found, oldest).map(drop))
}

/// This version of git, unless it is older than the other one.
///
/// # Errors
/// If it is older.
pub fn unless_older(found: String, oldest: (u32, u32)) -> Result<String, GitError> {
    if is_older(&found, oldest) { Err(GitError::TooOld { found, oldest }) } else { Ok(found) }
}

/// Whether a version such as `2.39.5 (Apple Git-154)` is older than another one. One that is not known is not.
fn is_older(version: &str, (major, minor): (u32, u32)) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    numbers.next().zip(numbers.next()).is_some_and(|found| found < (major, minor))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (version, is) in [
            ("2.29.9", true),
            ("2.30.2", false),
            ("1.99", true),
            ("3.0.0", false),
            ("2.9.1", true),
            ("2.39.5 (Apple Git-154)", false),
            ("2.45.GIT", false),
            ("unknown", false),
        ] {
            assert_eq!(is_older(version, OLDEST), is, "{version}");
        }
    }
}
