//! Tests that agents do not get: a folder outside of the project, or a tree of git, which is laid over the proof tree for one
//! more run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::theirs;
use crate::git::clean_tree;

/// Where they are.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Folder(PathBuf),
    Tree,
}

/// Why they cannot be used, in words; `None` if nothing is known against it. `root` is where agents work.
#[must_use]
pub(crate) fn problem(root: &Path, held_out: &str) -> Option<String> {
    let is_empty = match place(root, held_out) {
        Some(Place::Folder(folder)) if folder.starts_with(root) => {
            return Some(format!(
                "the folder {held_out} is in the project, where agents read it; move it out of there"
            ));
        }
        Some(Place::Folder(folder)) => fs::read_dir(folder).map(|mut entries| entries.next().is_none()),
        Some(Place::Tree) => Ok(clean_tree::is_empty(root, held_out)),
        None => {
            return Some(format!(
                "{held_out} is neither a folder nor a commit or tree of git; name one of these"
            ));
        }
    };
    match is_empty {
        Ok(true) => Some(format!("there is nothing in {held_out}; put the tests there")),
        Ok(false) => None,
        Err(error) => Some(format!("the folder {held_out} cannot be read ({error}); make it readable")),
    }
}

/// Their folder; `None` if they are a commit or tree of git.
pub(super) fn folder(root: &Path, held_out: &str) -> Option<PathBuf> {
    match place(root, held_out)? {
        Place::Folder(folder) => Some(folder),
        Place::Tree => None,
    }
}

fn place(root: &Path, held_out: &str) -> Option<Place> {
    let folder = root.join(held_out);
    if folder.is_dir() {
        return Some(Place::Folder(fs::canonicalize(&folder).unwrap_or(folder)));
    }
    clean_tree::tree_of(root, held_out).map(|_| Place::Tree)
}

/// Copies what is in a folder into another one, and returns the paths below it that were not there. What stands in its way
/// there is replaced: a link of a commit must not lead it elsewhere.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<Vec<PathBuf>> {
    let mut new = Vec::new();
    copy_below(from, to, Path::new(""), &mut new)?;
    Ok(new)
}

fn copy_below(from: &Path, to: &Path, below: &Path, new: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(from.join(below))? {
        let entry = entry?;
        // The tree's own leads to its repository.
        if entry.file_name() == ".git" {
            continue;
        }
        let name = below.join(entry.file_name());
        let (path, into) = (entry.path(), to.join(&name));
        let is_folder = path.is_dir();
        match into.symlink_metadata() {
            Ok(found) if found.is_dir() && is_folder => {}
            Ok(found) if found.is_dir() => clean_tree::remove_folder(&into)?,
            Ok(_) => fs::remove_file(&into)?,
            Err(_) if !is_folder => new.push(name.clone()),
            Err(_) => {}
        }
        if is_folder {
            fs::create_dir_all(&into)?;
            copy_below(from, to, &name, new)?;
        } else {
            theirs::copy(&path, &into)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_in_the_way_is_replaced_and_links_lead_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["from/tests", "from/more", "to/more", "to/data", "elsewhere"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for (file, text) in
            [("from/tests/a", "new"), ("from/more/b", "new"), ("from/data", "new"), ("to/kept", "old")]
        {
            fs::write(at(file), text).unwrap();
        }
        symlink(at("elsewhere"), at("to/tests")).unwrap();
        let mut new = copy(&at("from"), &at("to")).unwrap();
        new.sort();
        assert_eq!(new, ["more/b", "tests/a"].map(PathBuf::from));
        for (file, text) in
            [("to/tests/a", "new"), ("to/more/b", "new"), ("to/data", "new"), ("to/kept", "old")]
        {
            assert_eq!(fs::read_to_string(at(file)).unwrap(), text, "{file}");
        }
        assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), 0);
        assert!(problem(dir.path(), "from").unwrap().contains("in the project"));
        assert_eq!(problem(&at("to"), "../from"), None);
        assert!(problem(&at("to"), "../elsewhere").unwrap().contains("nothing"));
        assert!(problem(&at("to"), "no-such-thing").unwrap().contains("neither"));
    }
}
