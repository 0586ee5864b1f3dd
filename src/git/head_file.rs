//! Reads the commit of HEAD or another reference from the repository's files: a loop needs it twice per iteration,
//! and a git process each time would cost more than everything else that the loop does.

use std::io::{self, ErrorKind::NotFound};
use std::path::{Path, PathBuf};

use crate::files::{if_there, theirs};

/// The value of HEAD or another reference.
pub(super) enum Head {
    /// It names this commit.
    Commit(String),
    /// A branch without a commit, or a missing reference.
    Unborn,
}

/// Reads HEAD; `None` if the files are not enough (another ref format, a symbolic branch).
pub(super) fn head(root: &Path) -> Option<Head> {
    let git_dir = git_dir(root).ok()??;
    let head = theirs::text(&git_dir.join("HEAD")).ok()?;
    let Some(name) = head.trim_end().strip_prefix("ref: ") else { return commit(&head).map(Head::Commit) };
    reference_in(&common_of(git_dir)?, name)
}

/// Reads the reference of this full name, such as `refs/heads/main`; `None` if the files are not enough.
pub(super) fn reference(root: &Path, name: &str) -> Option<Head> {
    reference_in(&common_dir(root)?, name)
}

/// The folder that all work trees share, without a git process.
pub(super) fn common_dir(root: &Path) -> Option<PathBuf> {
    common_of(git_dir(root).ok()??)
}

/// Branches and configuration of a linked work tree are in the main one's repository.
fn common_of(git_dir: PathBuf) -> Option<PathBuf> {
    match if_there(theirs::text(&git_dir.join("commondir"))).ok()? {
        Some(path) => Some(git_dir.join(path.trim_end())),
        None => Some(git_dir),
    }
}

fn reference_in(common: &Path, name: &str) -> Option<Head> {
    match theirs::text(&common.join(name)) {
        Ok(text) => return commit(&text).map(Head::Commit),
        Err(error) if error.kind() != NotFound => return None,
        Err(_) if common.join("reftable").exists() => return None,
        Err(_) => {}
    }
    match theirs::text(&common.join("packed-refs")) {
        Ok(refs) => match packed(&refs, name) {
            Some(id) => commit(id).map(Head::Commit),
            None => Some(Head::Unborn),
        },
        Err(error) => (error.kind() == NotFound).then_some(Head::Unborn),
    }
}

/// `.git` itself, or its target in a linked work tree or submodule; `None` if there is neither.
///
/// # Errors
/// If the system lacks resources to read it.
pub(super) fn git_dir(root: &Path) -> io::Result<Option<PathBuf>> {
    let path = root.join(".git");
    if path.is_dir() {
        return Ok(Some(path));
    }
    let pointer = if_there(theirs::text(&path))?;
    let target = pointer.as_deref().and_then(|pointer| pointer.trim_end().strip_prefix("gitdir: "));
    Ok(target.map(|target| root.join(target)))
}

fn packed<'a>(refs: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = refs.lines().filter_map(|line| line.split_once(' '));
    lines.find_map(|(id, of)| (of == name).then_some(id))
}

fn commit(text: &str) -> Option<String> {
    let id = text.trim_end();
    let is_id = matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}
