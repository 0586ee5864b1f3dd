//! The commit that HEAD names, read from the repository's files: a loop asks twice per iteration, and a git process
//! each time would cost more than everything else the loop does.

use std::fs;
use std::path::{Path, PathBuf};

/// The commit of HEAD; `None` where the files do not tell (no commit yet, or refs in another format than files).
pub(super) fn head(root: &Path) -> Option<String> {
    let git_dir = git_dir(root)?;
    let head = fs::read_to_string(git_dir.join("HEAD")).ok()?;
    let Some(name) = head.trim_end().strip_prefix("ref: ") else { return commit(&head) };
    // Branches of a linked work tree live in the main one's repository.
    let common = match fs::read_to_string(git_dir.join("commondir")) {
        Ok(path) => git_dir.join(path.trim_end()),
        Err(_) => git_dir,
    };
    match fs::read_to_string(common.join(name)) {
        Ok(text) => commit(&text),
        Err(_) => packed(&fs::read_to_string(common.join("packed-refs")).ok()?, name),
    }
}

/// `.git` itself, or what it points to in a linked work tree or submodule.
pub(super) fn git_dir(root: &Path) -> Option<PathBuf> {
    let path = root.join(".git");
    if path.is_dir() {
        return Some(path);
    }
    let pointer = fs::read_to_string(path).ok()?;
    Some(root.join(pointer.trim_end().strip_prefix("gitdir: ")?))
}

fn packed(refs: &str, name: &str) -> Option<String> {
    refs.lines()
        .find_map(|line| line.split_once(' ').filter(|(_, of)| *of == name))
        .and_then(|(id, _)| commit(id))
}

fn commit(text: &str) -> Option<String> {
    let id = text.trim_end();
    let is_id = matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}
