//! Brings the files that were not committed when the loop began into the proof tree, to see whether the command needs
//! them, and takes them out again.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::files::theirs;
use crate::git::{self, clean_tree};

/// The most that is brought: beyond that, it would take longer than it is worth.
const MOST: (u64, usize) = (2 << 30, 300_000);

/// The files that were brought into a tree.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// The topmost new entries.
    new: Vec<PathBuf>,
    bytes: u64,
    count: usize,
}

impl Carried {
    /// Brings from `root` into `tree` what git does not have and what was last written before `began`: the rest is an
    /// agent's. What the command has made in the tree itself stays. `own` are ralph's folders.
    ///
    /// # Errors
    /// If something cannot be read or written, or it is too much.
    pub(super) fn bring(root: &Path, tree: &Path, began: SystemTime, own: &[PathBuf]) -> io::Result<Self> {
        let mut carried = Self::default();
        for path in clean_tree::not_committed(root).map_err(io::Error::other)? {
            let (from, to) = (root.join(&path), tree.join(&path));
            let is_own = |own: &PathBuf| from.starts_with(own) || own.starts_with(&from);
            if own.iter().any(is_own) || to.symlink_metadata().is_ok() {
                continue;
            }
            let top = to.ancestors().take_while(|above| above.symlink_metadata().is_err()).last();
            let top = top.unwrap_or(&to).to_owned();
            if carried.copy(&from, &to, began)? {
                carried.new.push(top);
            }
        }
        Ok(carried)
    }

    /// Takes everything out of the tree again.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub(super) fn take_out(self) -> io::Result<()> {
        self.new.iter().try_for_each(|path| match path.symlink_metadata() {
            Ok(found) if found.is_dir() => clean_tree::remove_folder(path),
            Ok(_) => fs::remove_file(path),
            Err(_) => Ok(()),
        })
    }

    /// Copies a file, or what is old enough of a folder; returns whether it copied anything.
    fn copy(&mut self, from: &Path, to: &Path, began: SystemTime) -> io::Result<bool> {
        let Ok(found) = from.symlink_metadata() else { return Ok(false) };
        if found.is_dir() {
            let mut has_any = false;
            for entry in fs::read_dir(from)? {
                let name = entry?.file_name();
                // A repository in it is none of this one.
                if name != ".git" {
                    has_any |= self.copy(&from.join(&name), &to.join(&name), began)?;
                }
            }
            return Ok(has_any);
        }
        if git::touched(from).is_none_or(|touched| touched >= began)
            || !(found.is_file() || found.is_symlink())
        {
            return Ok(false);
        }
        (self.bytes, self.count) = (self.bytes + found.size(), self.count + 1);
        if self.bytes > MOST.0 || self.count > MOST.1 {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        if found.is_symlink() {
            symlink(fs::read_link(from)?, to)?;
        } else {
            theirs::copy(from, to)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::files::clock;

    #[test]
    fn only_what_was_there_before_the_loop_comes_and_it_goes_again() {
        let dir = tempfile::tempdir().unwrap();
        let (root, tree) = (dir.path().join("root"), dir.path().join("tree"));
        let script = "mkdir -p root tree/built && cd root && git init -q && printf 'x/\\nbuilt/\\n.ralph/\\n' >.gitignore &&
                      mkdir -p x/y built .ralph && echo a >x/y/old && ln -s y x/link && echo a >loose && echo a >built/old &&
                      echo a >.ralph/state";
        let sh = |script: &str| {
            let status = Command::new("sh").args(["-c", script]).current_dir(dir.path()).status().unwrap();
            assert!(status.success());
        };
        sh(script);
        let began = clock::after_all_files();
        sh("echo b >root/x/new; echo b >root/late");
        let carried = Carried::bring(&root, &tree, began, &[root.join(".ralph")]).unwrap();
        let is_there = |name: &&str| tree.join(name).symlink_metadata().is_ok();
        let old = ["x/y/old", "x/link", "loose", ".gitignore"];
        let all = old.into_iter().chain(["x/new", "late", "built/old", ".ralph", "built"]);
        let there = || all.clone().filter(is_there).collect::<Vec<_>>();
        assert_eq!(there(), [&old[..], &["built"]].concat());
        carried.take_out().unwrap();
        assert_eq!(there(), ["built"]);
    }
}
