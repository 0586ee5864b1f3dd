//! Compares a folder with what a checkout of a commit writes: any difference would be lost with the folder. git
//! itself compares cleaned content, and misses what a filter or line ends remove.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::error::{GitError, RemoveError};
use super::save::write;
use crate::files::temporary::Folder;

/// Runs git with one of our indexes, given arguments and stdin.
pub(super) type Git<'a> = dyn Fn(&[&str], &[u8]) -> Result<Vec<u8>, GitError> + 'a;

/// A tree of a repository with its own temporary work tree, in which only needed files are written. In the original
/// work tree, uncommitted attributes would apply.
pub(super) struct Checkout {
    git_dir: PathBuf,
    /// Inside the repository, so that both are on one file system.
    folder: Folder,
    index: PathBuf,
}

/// A regular file of the tree.
struct Tracked<'a> {
    mode: &'static str,
    id: &'a [u8],
    name: &'a [u8],
}

impl<'a> Tracked<'a> {
    /// Reads an entry of `ls-files --stage -z`, such as `100644 ID 0<tab>NAME`; `None` for anything but a file.
    fn read(entry: &'a [u8]) -> Option<Self> {
        let at = entry.iter().position(|&byte| byte == b'\t')?;
        let words: Vec<&[u8]> = entry[..at].split(|&byte| byte == b' ').collect();
        let (mode, id) = match words[..] {
            [b"100644", id, _] => ("100644", id),
            [b"100755", id, _] => ("100755", id),
            _ => return None,
        };
        Some(Self { mode, id, name: &entry[at + 1..] })
    }
}

impl Checkout {
    /// The checkout of `tree` in the repository of `git_dir`.
    pub(super) fn of(git_dir: &Path, tree: &str) -> Result<Self, RemoveError> {
        let failed = |reason| RemoveError::Io { path: git_dir.to_owned(), reason };
        let folder = Folder::make_in(git_dir).map_err(failed)?;
        let checkout = Self { git_dir: git_dir.to_owned(), index: folder.path().join("index"), folder };
        std::fs::create_dir(checkout.root()).map_err(failed)?;
        checkout.git(&["read-tree", tree], b"")?;
        Ok(checkout)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    fn git(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, GitError> {
        let root = self.root();
        let places = [("--git-dir=", self.git_dir.as_path()), ("--work-tree=", &root)];
        let places = places.map(|(option, place)| [option.as_bytes(), place.as_os_str().as_bytes()].concat());
        let places = places.iter().map(|place| OsStr::from_bytes(place));
        let arguments: Vec<&OsStr> = places.chain(arguments.iter().map(OsStr::new)).collect();
        write(&root, &arguments, Some(&self.index), input)
    }

    /// The regular files of the tree, with their modes, whose bytes in `folder` are neither the committed ones nor
    /// those that a checkout writes.
    pub(super) fn lost_with(&self, folder: &Path) -> Result<Vec<(Vec<u8>, &'static str)>, RemoveError> {
        let listed = self.git(&["ls-files", "-z", "--stage"], b"")?;
        let tracked = listed.split(|&byte| byte == 0).filter_map(Tracked::read);
        let there: Vec<Tracked<'_>> = tracked.filter(|file| is_file(&at(folder, file.name))).collect();
        let raw = self.ids(folder, there.iter().map(|file| file.name))?;
        let other = there.into_iter().zip(raw).filter(|(file, raw)| file.id != raw.as_bytes());
        let (files, raw): (Vec<Tracked<'_>>, Vec<String>) = other.unzip();
        let names: Vec<&[u8]> = files.iter().map(|file| file.name).collect();
        self.make(&names);
        let is_made: Vec<bool> = names.iter().map(|name| is_file(&self.path(name))).collect();
        let made = names.iter().zip(&is_made).filter(|(_, is_made)| **is_made).map(|(name, _)| *name);
        let mut made = self.ids(&self.root(), made)?.into_iter();
        let lost = files.into_iter().zip(raw).zip(is_made).filter_map(|((file, raw), is_made)| {
            let made = if is_made { made.next() } else { None };
            (made != Some(raw)).then(|| (file.name.to_owned(), file.mode))
        });
        Ok(lost.collect())
    }

    /// Writes these files. If a filter fails, its file is missing.
    pub(super) fn make(&self, names: &[&[u8]]) {
        if !names.is_empty() {
            let _ = self.git(&["checkout-index", "--force", "--quiet", "-z", "--stdin"], &names.join(&0));
        }
    }

    /// The path of a written file.
    pub(super) fn path(&self, name: &[u8]) -> PathBuf {
        at(&self.root(), name)
    }

    /// The object ids of these files with their current content.
    fn ids<'n>(&self, folder: &Path, names: impl Iterator<Item = &'n [u8]>) -> Result<Vec<String>, GitError> {
        let paths: Vec<PathBuf> = names.map(|name| at(folder, name)).collect();
        let paths: Vec<&[u8]> = paths.iter().map(|path| path.as_os_str().as_bytes()).collect();
        hashed(&|arguments, input| self.git(arguments, input), &["--no-filters"], &paths)
    }
}

fn at(folder: &Path, name: &[u8]) -> PathBuf {
    folder.join(OsStr::from_bytes(name))
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

/// The object ids of these files, computed with `options`.
pub(super) fn hashed(git: &Git<'_>, options: &[&str], names: &[&[u8]]) -> Result<Vec<String>, GitError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let lines: Vec<u8> = names.iter().flat_map(|name| [quoted(name), b"\n".to_vec()].concat()).collect();
    let ids = git(&[&["hash-object", "--stdin-paths"], options].concat(), &lines)?;
    Ok(String::from_utf8_lossy(&ids).lines().map(str::to_owned).collect())
}

/// A name as a line for `--stdin-paths`: git drops a carriage return at the end of an unquoted one.
fn quoted(name: &[u8]) -> Vec<u8> {
    if name.first() != Some(&b'"') && !name.iter().any(u8::is_ascii_control) {
        return name.to_owned();
    }
    let octal = |byte: &u8| format!("\\{byte:03o}").into_bytes();
    [b"\"".to_vec(), name.iter().flat_map(octal).collect(), b"\"".to_vec()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_control_characters_are_quoted() {
        for name in ["a b", "a\\b", "ü\"", " "] {
            assert_eq!(quoted(name.as_bytes()), name.as_bytes());
        }
        for (name, line) in [("a\r", r#""\141\015""#), ("\"", r#""\042""#), ("\x7f\n", r#""\177\012""#)] {
            assert_eq!(quoted(name.as_bytes()), line.as_bytes());
        }
    }
}
