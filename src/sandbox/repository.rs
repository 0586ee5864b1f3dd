//! What a program behind walls may change of git.

use std::fs;
use std::path::{Path, PathBuf};

use super::places;
use crate::git::{self, GitError};
use crate::process::walls::Plan;

/// Why there are no walls where this is a link.
pub(super) fn is_a_link(path: &Path) -> String {
    format!("{} is a link, in whose place a program could put something else", path.display())
}

/// Adds what holds for the repository of a work tree.
pub(super) fn add(root: &Path, plan: &mut Plan) -> Result<(), String> {
    let found = |found: Result<PathBuf, GitError>| {
        let path = found.map_err(|error| error.to_string())?;
        path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
    };
    let (git_dir, common) = (found(git::git_dir(root))?, found(git::common_dir(root))?);
    let (pointer, is_linked) = (root.join(".git"), git_dir != common);
    if !is_linked && common.join("commondir").exists() {
        return Err(format!(
            "git makes no {} in a main repository, and its settings would lead elsewhere: remove it",
            common.join("commondir").display()
        ));
    }
    let names = places::OF_REPOSITORY.iter().map(|name| common.join(name));
    if let Some(link) = names.chain([pointer.clone()]).find(|path| path.is_symlink()) {
        return Err(is_a_link(&link));
    }
    plan.unlinked.push(git_dir.clone());
    if is_linked {
        let shared = places::SHARED.iter().filter(|name| **name != "objects");
        plan.unlinked.extend(shared.map(|name| common.join(name)));
    }
    // Nothing can take the place of a mount.
    plan.writable.push(git_dir.clone());
    plan.kept.extend([git_dir.clone(), common.clone()]);
    if !pointer.is_dir() {
        plan.read_only.push(pointer);
    }
    if is_linked {
        plan.read_only.push(common.clone());
        plan.writable
            .extend(places::SHARED.iter().map(|name| common.join(name)).filter(|path| path.exists()));
        plan.absent.push(git_dir.join("config.worktree"));
        plan.read_only.extend(places::NOT_IN_REPOSITORY.iter().map(|name| git_dir.join(name)));
    }
    if !is_linked {
        // One that is made meanwhile is closed, too.
        make(&common.join("worktrees"))?;
        plan.read_only.push(common.join("worktrees"));
    }
    close(&common, plan)?;
    // Other checkouts of it, and what leads to the repositories of parts of this one.
    let trees = git::trees::list(root).map_err(|error| error.to_string())?;
    plan.read_only.extend(
        trees.into_iter().map(|tree| tree.path).filter(|path| path != root && path.starts_with(root)),
    );
    let nested = git::nested::known(root, &[]).map_err(|error| error.to_string())?;
    plan.read_only
        .extend(nested.into_iter().map(|path| root.join(path).join(".git")).filter(|path| !path.is_dir()));
    // What is in there has settings and hooks of its own, at any depth.
    plan.read_only.extend([common.join("modules"), git_dir.join("modules")]);
    Ok(())
}

/// What has git run programs is not written, and what is not there is not made.
fn close(folder: &Path, plan: &mut Plan) -> Result<(), String> {
    // Otherwise a program could make them.
    ["hooks", "info"].iter().try_for_each(|name| make(&folder.join(name)))?;
    plan.read_only.extend(places::OF_REPOSITORY.iter().map(|name| folder.join(name)));
    plan.absent.extend(places::NOT_IN_REPOSITORY.iter().map(|name| folder.join(name)));
    Ok(())
}

/// Makes a folder that may be there.
fn make(folder: &Path) -> Result<(), String> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(format!("{}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}
