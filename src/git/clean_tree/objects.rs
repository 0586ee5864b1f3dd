//! Whether git's objects are what their names say. git checks that when it receives them, and not when it reads them: a program that
//! writes into the folder of objects can give a commit other files under the same name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use super::place::{LAY_LIMIT, environment, settings};
use crate::git::call::{LIMIT, run_heard, run_with};
use crate::git::error::GitError;
use crate::git::{head_file, touched};

/// Verifies a commit and all its files. `git_dir` may also be a work tree.
///
/// # Errors
/// If an object does not have the content that its name says, or git fails.
pub fn verify_commit(git_dir: &Path, commit: &str) -> Result<(), GitError> {
    verify(git_dir, &["--no-walk", commit])
}

/// Verifies what came with `commit` since `base`, and `base` itself with its files where any of its objects may have been written
/// since the loop `began`.
///
/// # Errors
/// If an object does not have the content that its name says, or git fails.
pub fn verify_since(root: &Path, base: &str, commit: &str, began: SystemTime) -> Result<(), GitError> {
    verify(root, &[commit, &format!("^{base}")])?;
    if is_in_doubt(root, base, began)? { verify_commit(root, base) } else { Ok(()) }
}

fn verify(place: &Path, commits: &[&str]) -> Result<(), GitError> {
    // What a partial clone does not have cannot be laid out either.
    let words = ["rev-list", "--objects", "--verify-objects", "--missing=allow-any", "--quiet"];
    let words: Vec<&str> = settings(&[]).chain(words).chain(commits.iter().copied()).chain(["--"]).collect();
    let (_, said) = run_heard(place, &words, &environment(), LAY_LIMIT)?;
    // git succeeds all the same.
    let said = String::from_utf8_lossy(&said);
    let Some(name) = said.lines().find_map(|line| line.strip_prefix("error: ")) else { return Ok(()) };
    let what = format!("an object of the repository does not have the content that its name says ({name})");
    Err(GitError::in_the_way(what, place.display(), "look at 'git fsck', and fetch or clone it again"))
}

/// Whether any object of a commit may have been written since that time: a file of its own was, or one that has many objects.
fn is_in_doubt(root: &Path, commit: &str, began: SystemTime) -> Result<bool, GitError> {
    let Some(objects) = head_file::common_dir(root).map(|common| common.join("objects")) else {
        return Ok(true);
    };
    let mut written = BTreeSet::new();
    for folder in fs::read_dir(&objects).map_err(GitError::unreadable(&objects))?.flatten() {
        let folder_name = folder.file_name().to_string_lossy().into_owned();
        for file in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            if touched(&file.path()).is_some_and(|touched| touched >= began) {
                if folder_name.len() != 2 {
                    return Ok(true);
                }
                written.insert(folder_name.clone() + &file.file_name().to_string_lossy());
            }
        }
    }
    if written.is_empty() {
        return Ok(false);
    }
    let words: Vec<&str> = settings(&[]).chain(["ls-tree", "-r", "-t", "--full-tree", commit]).collect();
    let listed = run_with(root, &words, &environment(), LIMIT)?;
    let listed = String::from_utf8_lossy(&listed);
    let names = listed.lines().filter_map(|line| line.split([' ', '\t']).nth(2));
    let tree = super::tree_of(root, commit).unwrap_or_default();
    Ok([commit, tree.as_str()].into_iter().chain(names).any(|name| written.contains(name)))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use super::*;
    use crate::files::clock;
    use crate::git::tests::{git, repository};

    /// Gives the object of one file the content of another one.
    fn rewrite(root: &Path, file: &str, other: &str) {
        let place = |file: &str| -> PathBuf {
            let name = git(root, &["rev-parse", &format!("HEAD:{file}")]);
            root.join(".git/objects").join(&name[..2]).join(name[2..].trim())
        };
        let (object, other) = (place(file), place(other));
        fs::set_permissions(&object, Permissions::from_mode(0o644)).unwrap();
        fs::write(object, fs::read(other).unwrap()).unwrap();
    }

    fn commit(root: &Path, files: &[(&str, &str)]) -> String {
        for (name, content) in files {
            fs::write(root.join(name), content).unwrap();
            // The objects of other files would be written again as well.
            git(root, &["add", name]);
        }
        git(root, &["commit", "--quiet", "-m", "c"]);
        crate::git::head(root).unwrap()
    }

    #[test]
    fn an_object_with_another_content_is_found_in_the_work_and_in_its_base() {
        let (_guard, root) = repository();
        let base = commit(&root, &[("a", "one"), ("b", "two")]);
        verify_commit(&root, &base).unwrap();
        let began = clock::after_all_files();
        let new = commit(&root, &[("c", "three"), ("d", "four")]);
        verify_since(&root, &base, &new, began).unwrap();
        assert!(!is_in_doubt(&root, &base, began).unwrap(), "only new objects were written");
        rewrite(&root, "c", "d");
        let said = verify_since(&root, &base, &new, began).unwrap_err().to_string();
        assert!(said.contains("does not have the content that its name says"), "{said}");

        let other = commit(&root, &[("e", "five")]);
        git(&root, &["checkout", "--quiet", "HEAD"]);
        rewrite(&root, "a", "b");
        assert!(verify_since(&root, &new, &other, began).is_err(), "the base is looked at as well");
        assert!(verify_since(&root, &base, &base, began).is_err());
        // Nor is a pack trusted that came since.
        assert!(verify_commit(&root, &base).is_err());
        fs::write(root.join(".git/objects/pack/pack-x.idx"), "").unwrap();
        assert!(is_in_doubt(&root, &base, began).unwrap());
    }
}
