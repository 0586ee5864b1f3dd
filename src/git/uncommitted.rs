//! Saves the uncommitted changes of a work tree as git objects.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::call::{LIMIT, run};
use super::changes::tagged;
use super::checkout::{Checkout, Git, hashed};
use super::error::{GitError, RemoveError};
use super::repository::head;
use super::save::{What, commit_tree, text, write};
use crate::files::atomic::{self, Durability};
use crate::files::temporary::Folder;
use crate::files::theirs;
use crate::project::BRANCH_PLAN as PLAN;

/// The uncommitted changes of a work tree as git objects, made through an index of our own, so that the tree does not
/// change.
pub(super) struct Uncommitted<'a> {
    path: &'a Path,
    git_dir: &'a Path,
    /// Our indexes, inside the repository, so that both are on one file system.
    folder: Folder,
    trees: Trees,
}

/// The kind of a changed or untracked path.
enum Kind {
    Gone,
    Link,
    /// A file of this mode.
    File(&'static str),
}

/// The ids of three trees, and of their commit.
#[derive(Debug, PartialEq, Eq)]
struct Trees {
    head: Option<String>,
    committed: String,
    staged: String,
    files: String,
    /// Whether git would store another content for a file, and would check out that.
    is_raw: bool,
}

impl<'a> Uncommitted<'a> {
    /// Reads everything that git would see except the plan's copy, including files whose changes git ignores.
    pub(super) fn read(path: &'a Path, git_dir: &'a Path) -> Result<Self, RemoveError> {
        let folder = Folder::make_in(git_dir)
            .map_err(|reason| RemoveError::Io { path: git_dir.to_owned(), reason })?;
        let none = String::new;
        let trees = Trees { head: None, committed: none(), staged: none(), files: none(), is_raw: false };
        let mut uncommitted = Self { path, git_dir, folder, trees };
        uncommitted.trees = uncommitted.look(true)?;
        Ok(uncommitted)
    }

    /// Whether nothing has changed since it was read.
    pub(super) fn is_still_so(&self) -> Result<bool, RemoveError> {
        Ok(self.look(false)? == self.trees)
    }

    fn look(&self, is_first: bool) -> Result<Trees, RemoveError> {
        let head = head(self.path);
        let staged = self.staged()?;
        let index = self.folder.path().join("index-files");
        let git = |arguments: &[&str], input: &[u8]| write(self.path, arguments, Some(&index), input);
        let committed = match &head {
            Some(head) => text(&run(self.path, &["rev-parse", &format!("{head}^{{tree}}")], LIMIT)?),
            None => text(&git(&["hash-object", "-w", "-t", "tree", "--stdin"], b"")?),
        };
        if is_first {
            git(&["read-tree", &staged], b"")?;
            // Files outside of a sparse checkout are not deleted, and the plan's copy is not work.
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
        let is_raw = self.take_files(&git, (&committed, &staged))?;
        let files = text(&git(&["write-tree"], b"")?);
        Ok(Trees { head, committed, staged, files, is_raw })
    }

    /// Brings the index to the folder's content, byte for byte: `git add` may lose something of a file (line ends,
    /// clean filters). Returns whether it would have stored another content.
    fn take_files(&self, git: &Git<'_>, trees: (&str, &str)) -> Result<bool, RemoveError> {
        let mut found = self.differing(git, trees)?;
        // git sees no change in these, because it cleans a file before it compares.
        for (name, mode) in Checkout::of(self.git_dir, trees.0)?.lost_with(self.path)? {
            if name != PLAN.as_bytes() {
                found.entry(name).or_insert(Kind::File(mode));
            }
        }
        let zeros = "0".repeat(trees.0.len());
        let is_file = |(_, kind): &(&Vec<u8>, &Kind)| matches!(kind, Kind::File(_));
        let files: Vec<&[u8]> = found.iter().filter(is_file).map(|(name, _)| &name[..]).collect();
        let raw = hashed(git, &["-w", "--no-filters"], &files)?;
        // If a filter fails, it would have stored nothing.
        let cleaned = hashed(git, &[], &files).unwrap_or_default();
        let mut ids = raw.iter();
        // Removals come first: a folder may have replaced a file.
        let (mut input, mut rest) = (Vec::new(), Vec::new());
        for (name, kind) in &found {
            let line = |to: &mut Vec<u8>, mode: &str, id: &str| {
                to.extend([mode.as_bytes(), b" ", id.as_bytes(), b"\t", name, b"\0"].concat());
            };
            match kind {
                Kind::Gone => line(&mut input, "0", &zeros),
                Kind::File(mode) => line(&mut rest, mode, ids.next().map_or("", String::as_str)),
                Kind::Link => {
                    let path = self.path.join(OsStr::from_bytes(name));
                    let target = fs::read_link(&path).map_err(|reason| RemoveError::Io { path, reason })?;
                    let id = git(&["hash-object", "-w", "--stdin"], target.as_os_str().as_bytes())?;
                    line(&mut rest, "120000", &text(&id));
                }
            }
        }
        input.extend(rest);
        if !input.is_empty() {
            git(&["update-index", "-z", "--index-info"], &input)?;
        }
        Ok(raw != cleaned)
    }

    /// The changed, staged and untracked paths.
    fn differing(
        &self,
        git: &Git<'_>,
        (committed, staged): (&str, &str),
    ) -> Result<BTreeMap<Vec<u8>, Kind>, RemoveError> {
        git(&["update-index", "-q", "--refresh"], b"")?;
        let names = |output: Vec<u8>| {
            let names = output.split(|&byte| byte == 0).filter(|name| !name.is_empty());
            names.map(<[u8]>::to_owned).collect::<Vec<_>>()
        };
        let mut found = BTreeMap::new();
        // The staged content may also lack something of the file.
        let diff = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", committed, staged];
        let others = ["ls-files", "-z", "--others", "--exclude-standard"];
        for name in [names(git(&diff, b"")?), names(git(&others, b"")?)].concat() {
            let path = self.path.join(OsStr::from_bytes(&name));
            let kind = match path.symlink_metadata() {
                Ok(about) if about.is_symlink() => Kind::Link,
                Ok(about) if about.is_file() && about.mode() & 0o100 != 0 => Kind::File("100755"),
                Ok(about) if about.is_file() => Kind::File("100644"),
                _ => continue,
            };
            found.insert(name, kind);
        }
        let changed = git(&["diff-files", "-z", "--raw", "--no-renames", "--ignore-submodules=all"], b"")?;
        let mut fields = changed.split(|&byte| byte == 0);
        while let (Some(about), Some(name)) = (fields.next(), fields.next()) {
            // `:100644 100755 …`: the old and the new mode.
            let kind = match about.get(8..14) {
                Some(b"100644") => Kind::File("100644"),
                Some(b"100755") => Kind::File("100755"),
                Some(b"120000") => Kind::Link,
                _ => Kind::Gone,
            };
            found.insert(name.to_owned(), kind);
        }
        Ok(found)
    }

    /// The tree of the index. A file with a conflict is stored in all its versions, under different names.
    fn staged(&self) -> Result<String, RemoveError> {
        let index = self.folder.path().join("index-staged");
        let theirs = self.git_dir.join("index");
        match theirs::read(&theirs, u64::MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(reason) => return Err(RemoveError::Io { path: theirs, reason }),
            Ok(content) => {
                let copied = atomic::write_own(&index, &content, Durability::Atomic);
                copied.map_err(|error| RemoveError::Io { path: error.path, reason: error.reason })?;
            }
        }
        let git = |arguments: &[&str], input: &[u8]| write(self.path, arguments, Some(&index), input);
        let unmerged = git(&["ls-files", "--unmerged", "-z"], b"")?;
        if !unmerged.is_empty() {
            git(&["update-index", "-z", "--index-info"], &resolved(&unmerged))?;
        }
        Ok(text(&git(&["write-tree"], b"")?))
    }

    /// Makes the commit; `None` if everything is committed.
    pub(super) fn commit(&self) -> Result<Option<(String, What)>, GitError> {
        let Trees { head, committed, staged, files, is_raw } = &self.trees;
        if files == committed && staged == committed {
            return Ok(None);
        }
        let of = self.path.file_name().unwrap_or_default().to_string_lossy();
        let is_staged_apart = staged != committed && staged != files;
        let mut parents: Vec<String> = head.iter().cloned().collect();
        if is_staged_apart {
            let message = format!("ralph: what was staged in {of}");
            parents.push(commit_tree(self.path, staged, &parents, &message)?);
        }
        let message = format!("ralph: what was not committed in {of}");
        Ok(Some((
            commit_tree(self.path, files, &parents, &message)?,
            What::Files { is_staged_apart, is_raw: *is_raw },
        )))
    }
}

/// Input for `update-index --index-info` that resolves every conflict of `ls-files --unmerged -z`: each version gets
/// its own name, and the file gets our version, so that it stays tracked.
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
