//! What is not committed in a work tree, as objects of git.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use tempfile::TempDir;

use super::keep::tagged;
use super::remove::RemoveError;
use super::save::{What, text, write};
use super::{GitError, LIMIT, run};
use crate::project::BRANCH_PLAN as PLAN;

/// What is not committed in a work tree, as objects of git: made through an index of our own, so that nothing of the
/// tree's changes.
pub(super) struct Uncommitted<'a> {
    path: &'a Path,
    git_dir: &'a Path,
    /// Our indexes; in the repository, so that no other file system gets in the way.
    folder: TempDir,
    trees: Trees,
}

/// The ids of three trees, and of the commit they belong to.
#[derive(Debug, PartialEq, Eq)]
struct Trees {
    head: Option<String>,
    committed: String,
    staged: String,
    files: String,
}

impl<'a> Uncommitted<'a> {
    /// Reads everything that git would see but the plan's copy, also files that it was told not to look at.
    pub(super) fn read(path: &'a Path, git_dir: &'a Path) -> Result<Self, RemoveError> {
        let folder = tempfile::Builder::new().prefix("index-ralph-").tempdir_in(git_dir);
        let folder = folder.map_err(|reason| RemoveError::Io { path: git_dir.to_owned(), reason })?;
        let none = String::new;
        let trees = Trees { head: None, committed: none(), staged: none(), files: none() };
        let mut uncommitted = Self { path, git_dir, folder, trees };
        uncommitted.trees = uncommitted.look(true)?;
        Ok(uncommitted)
    }

    /// Whether it is what it was when it was read.
    pub(super) fn is_still_so(&self) -> Result<bool, RemoveError> {
        Ok(self.look(false)? == self.trees)
    }

    fn look(&self, is_first: bool) -> Result<Trees, RemoveError> {
        let head = super::head(self.path);
        let staged = self.staged()?;
        let index = self.folder.path().join("index-files");
        let git = |arguments: &[&str], input: &[u8]| write(self.path, arguments, Some(&index), input);
        let committed = match &head {
            Some(head) => text(&run(self.path, &["rev-parse", &format!("{head}^{{tree}}")], LIMIT)?),
            None => text(&git(&["hash-object", "-w", "-t", "tree", "--stdin"], b"")?),
        };
        if is_first {
            git(&["read-tree", &staged], b"")?;
            // Files that a sparse checkout leaves out are not deleted, and the plan's copy is not work.
            let stays = |(tag, name): &(u8, Vec<u8>)| {
                let is_there = self.path.join(OsStr::from_bytes(name)).symlink_metadata().is_ok();
                name == PLAN.as_bytes() || tag.eq_ignore_ascii_case(&b'S') && !is_there
            };
            let staying: Vec<Vec<u8>> =
                tagged(self.path)?.into_iter().filter(stays).map(|(_, name)| name).collect();
            if !staying.is_empty() {
                git(&["update-index", "-z", "--skip-worktree", "--stdin"], &staying.join(&0))?;
            }
        }
        git(&["add", "--all"], b"")?;
        let files = text(&git(&["write-tree"], b"")?);
        Ok(Trees { head, committed, staged, files })
    }

    /// The tree of the index. Of a file with a conflict, all versions are in it under names of their own.
    fn staged(&self) -> Result<String, RemoveError> {
        let index = self.folder.path().join("index-staged");
        match fs::copy(self.git_dir.join("index"), &index) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => {
                result.map_err(|reason| RemoveError::Io { path: self.git_dir.join("index"), reason })?;
            }
        }
        let git = |arguments: &[&str], input: &[u8]| write(self.path, arguments, Some(&index), input);
        let unmerged = git(&["ls-files", "--unmerged", "-z"], b"")?;
        if !unmerged.is_empty() {
            git(&["update-index", "-z", "--index-info"], &resolved(&unmerged))?;
        }
        Ok(text(&git(&["write-tree"], b"")?))
    }

    /// Makes the commit; `None` where everything is committed.
    pub(super) fn commit(&self) -> Result<Option<(String, What)>, GitError> {
        let Trees { head, committed, staged, files } = &self.trees;
        if files == committed && staged == committed {
            return Ok(None);
        }
        let of = self.path.file_name().unwrap_or_default().to_string_lossy();
        let is_staged_apart = staged != committed && staged != files;
        let mut parents: Vec<String> = head.iter().cloned().collect();
        if is_staged_apart {
            parents.push(self.commit_tree(staged, &parents, &format!("ralph: what was staged in {of}"))?);
        }
        let message = format!("ralph: what was not committed in {of}");
        Ok(Some((self.commit_tree(files, &parents, &message)?, What::Files { is_staged_apart })))
    }

    fn commit_tree(&self, tree: &str, parents: &[String], message: &str) -> Result<String, GitError> {
        let parents = parents.iter().flat_map(|parent| ["-p", parent]);
        let arguments: Vec<&str> = ["commit-tree", "--no-gpg-sign", "-m", message]
            .into_iter()
            .chain(parents)
            .chain([tree])
            .collect();
        Ok(text(&write(self.path, &arguments, None, b"")?))
    }
}

/// Input for `update-index --index-info` that resolves every conflict of `ls-files --unmerged -z`: each version gets a
/// name of its own, and the file is our version, so that git knows it as tracked.
fn resolved(unmerged: &[u8]) -> Vec<u8> {
    let mut input = Vec::new();
    let mut previous: &[u8] = b"";
    for entry in unmerged.split(|&byte| byte == 0) {
        let Some(tab) = entry.iter().position(|&byte| byte == b'\t') else { continue };
        let (about, name) = (String::from_utf8_lossy(&entry[..tab]), &entry[tab + 1..]);
        let words: Vec<&str> = about.split(' ').collect();
        let [mode, id, stage] = words[..] else { continue };
        let mut line = |mode: &str, id: &str, suffix: &str| {
            input.extend_from_slice(format!("{mode} {id} 0\t").as_bytes());
            input.extend_from_slice(name);
            input.extend_from_slice(suffix.as_bytes());
            input.push(0);
        };
        if name != previous {
            line("0", &"0".repeat(id.len()), "");
        }
        if name != previous || stage == "2" {
            line(mode, id, "");
        }
        line(
            mode,
            id,
            match stage {
                "1" => "~base",
                "2" => "~ours",
                _ => "~theirs",
            },
        );
        previous = name;
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_becomes_files() {
        let ids = ["1", "2", "3"].map(|digit| digit.repeat(40));
        let unmerged = [1, 2, 3].map(|stage| format!("100644 {} {stage}\ta b\0", ids[stage - 1])).concat();
        let input = String::from_utf8(resolved(unmerged.as_bytes())).unwrap();
        let lines: Vec<&str> = input.split_terminator('\0').collect();
        assert_eq!(lines[0], format!("0 {} 0\ta b", "0".repeat(40)));
        let last = lines.iter().rfind(|line| line.ends_with("\ta b")).unwrap();
        assert!(last.contains(&ids[1]), "ours is the file: {input}");
        for (id, name) in ids.iter().zip(["base", "ours", "theirs"]) {
            assert!(lines.contains(&format!("100644 {id} 0\ta b~{name}").as_str()), "{input}");
        }
    }
}
