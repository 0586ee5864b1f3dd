//! Saves what only one work tree has under `refs/ralph/keep/`, before the tree is removed.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use chrono::Local;

use super::call::{LIMIT, run};
use super::change::{CHANGE_LIMIT, ChangeOptions, change_with};
use super::error::{GitError, RemoveError};
use crate::files::theirs;
use crate::text::timestamp;

/// How many commits are passed to git at once: a command line has a length limit.
const AT_ONCE: usize = 1000;
/// A fixed identity, and no variable that changes how git reads paths on its command line.
const ENVIRONMENT: [(&str, &str); 10] = [
    ("GIT_AUTHOR_NAME", "ralph"),
    ("GIT_AUTHOR_EMAIL", "ralph@localhost"),
    ("GIT_AUTHOR_DATE", ""),
    ("GIT_COMMITTER_NAME", "ralph"),
    ("GIT_COMMITTER_EMAIL", "ralph@localhost"),
    ("GIT_COMMITTER_DATE", ""),
    ("GIT_LITERAL_PATHSPECS", "0"),
    ("GIT_GLOB_PATHSPECS", "0"),
    ("GIT_NOGLOB_PATHSPECS", "0"),
    ("GIT_ICASE_PATHSPECS", "0"),
];
/// No hooks, and everything is synced to disk before anything is removed.
const CONFIG: [&str; 12] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.sparseCheckout=false",
    "-c",
    "core.splitIndex=false",
    "-c",
    "core.fsync=committed",
    "-c",
    "core.fsyncMethod=batch",
    "-c",
    "core.safecrlf=false",
];

/// The variables of a commit that no one is the author of.
pub(super) fn own_identity() -> Vec<(OsString, OsString)> {
    ENVIRONMENT.map(|(name, value)| (name.into(), value.into())).to_vec()
}

/// Something that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The ref that keeps it.
    pub reference: String,
    /// Its kind.
    pub what: What,
}

/// The kind of a saved commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A commit that nothing else leads to.
    Commit {
        /// Its full id.
        id: String,
        /// The first line of its message.
        subject: String,
    },
    /// Uncommitted changes, as a commit on top of HEAD.
    Files {
        /// The staged content differs from the files: it is the commit's second parent.
        is_staged_apart: bool,
        /// git changes a file when it is checked out, by a filter or its line ends.
        is_raw: bool,
    },
}

/// The newest commits that only the work tree with the git folder `git_dir` has: its HEAD, earlier HEADs, and
/// whatever else is in its folder. Commits that a ref or a reflog of the rest of the repository leads to are left
/// out.
pub(super) fn own_commits(root: &Path, git_dir: &Path) -> Result<Vec<String>, RemoveError> {
    let mut ids = BTreeSet::new();
    collect_ids(git_dir, &mut ids).map_err(|reason| RemoveError::Io { path: git_dir.to_owned(), reason })?;
    if git_dir.join("reftable").exists() {
        // The refs are not plain files then. Extra refs do no harm here.
        let git_dir = format!("--git-dir={}", git_dir.display());
        let refs = ["for-each-ref", "--include-root-refs", "--format=%(objectname)"];
        let log = ["log", "--walk-reflogs", "--format=%H", "HEAD"];
        for command in [&refs[..], &log] {
            let output = run(root, &[&[git_dir.as_str()], command].concat(), LIMIT)?;
            ids.extend(String::from_utf8_lossy(&output).lines().map(str::to_owned));
        }
    }
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let (mut found, mut parents) = (BTreeSet::new(), BTreeSet::new());
    for some in ids.chunks(AT_ONCE) {
        // Missing objects, and objects other than commits, are skipped. Other work trees do not count, as they may be
        // removed next.
        let begin = ["rev-list", "--parents", "--ignore-missing", "--single-worktree"];
        let arguments = [&begin, some, &["--not", "--all", "--reflog"]].concat();
        let output = run(root, &arguments, CHANGE_LIMIT)?;
        for line in String::from_utf8_lossy(&output).lines() {
            let mut words = line.split(' ').map(str::to_owned);
            found.extend(words.next());
            parents.extend(words);
        }
    }
    Ok(found.difference(&parents).cloned().collect())
}

/// Every word in git's files below `folder` that may be an object id.
fn collect_ids(folder: &Path, ids: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let name = name.to_string_lossy();
        // Fetched commits are not this tree's work. Submodules have repositories of their own.
        if name.starts_with("index") || ["FETCH_HEAD", "modules", "reftable"].contains(&name.as_ref()) {
            continue;
        }
        if entry.symlink_metadata()?.is_dir() {
            collect_ids(&entry, ids)?;
        } else if entry.is_file() {
            let content = theirs::read(&entry, u64::MAX)?;
            let words = content.split(|byte| !byte.is_ascii_hexdigit());
            let words = words.filter(|word| matches!(word.len(), 40 | 64) && word.iter().any(|&b| b != b'0'));
            ids.extend(words.map(|word| String::from_utf8_lossy(word).into_owned()));
        }
    }
    Ok(())
}

/// Creates a ref that keeps the commit `id`; `name` is its owner.
pub(super) fn keep(root: &Path, name: &str, id: &str, what: What) -> Result<Saved, GitError> {
    let folder = format!("refs/ralph/keep/{}", ref_name(name));
    let stamp = format!("{folder}/{}", timestamp::for_names(Local::now()));
    let output = run(root, &["for-each-ref", "--format=%(refname)", &folder], LIMIT)?;
    let taken = String::from_utf8_lossy(&output);
    let mut number = 1;
    while taken.lines().any(|name| name == timestamp::numbered(&stamp, number)) {
        number += 1;
    }
    let reference = timestamp::numbered(&stamp, number);
    // An empty old value: the ref must not exist.
    write(root, &["update-ref", "-m", "ralph clean", &reference, id, ""], None, b"")?;
    Ok(Saved { reference, what })
}

/// Keeps a commit that nothing else may lead to.
pub(super) fn keep_commit(root: &Path, name: &str, id: &str) -> Result<Saved, GitError> {
    let subject = subject(root, id)?;
    keep(root, name, id, What::Commit { id: id.to_owned(), subject })
}

/// A name that can be part of a ref. A branch's can; a folder's may not.
fn ref_name(name: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "/_-".contains(character);
    let is_fit =
        |part: &str| !part.starts_with('.') && !part.ends_with('.') && part.strip_suffix(".lock").is_none();
    let is_fine = |character: char| is_plain(character) || ".+=#%,".contains(character);
    if name.chars().all(is_fine) && !name.contains("..") && name.split('/').all(is_fit) {
        return name.to_owned();
    }
    name.chars().map(|character| if is_plain(character) { character } else { '-' }).collect()
}

/// The first line of a commit's message.
fn subject(root: &Path, id: &str) -> Result<String, GitError> {
    Ok(text(&run(root, &["log", "-1", "--format=%s", id], LIMIT)?))
}

/// Creates a commit of a tree; returns its id.
pub(super) fn commit_tree(
    root: &Path,
    tree: &str,
    parents: &[String],
    message: &str,
) -> Result<String, GitError> {
    let parents = parents.iter().flat_map(|parent| ["-p", parent]);
    let arguments: Vec<&str> =
        ["commit-tree", "--no-gpg-sign", "-m", message].into_iter().chain(parents).chain([tree]).collect();
    Ok(text(&write(root, &arguments, None, b"")?))
}

/// One word of git's output, without the newline.
pub(super) fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim_end().to_owned()
}

/// Runs a git command that adds to the repository, with another index if given; returns its output.
pub(super) fn write<S: AsRef<OsStr>>(
    path: &Path,
    arguments: &[S],
    index: Option<&Path>,
    input: &[u8],
) -> Result<Vec<u8>, GitError> {
    let variables = ENVIRONMENT.into_iter().map(|(name, value)| (name.into(), value.into()));
    let index = index.map(|index| ("GIT_INDEX_FILE".into(), index.into()));
    let how = ChangeOptions {
        env: variables.chain(index).collect(),
        input: input.to_vec(),
        ..ChangeOptions::default()
    };
    let arguments: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
    let all = [&CONFIG.map(OsStr::new)[..], &arguments].concat();
    let is_command = |word: &&&OsStr| !word.as_bytes().starts_with(b"-");
    let command =
        arguments.iter().find(is_command).map_or_else(String::new, |word| word.display().to_string());
    change_with(path, &all, &how).map_err(|error| error.of(&command, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_branches_stay_and_names_of_folders_become_fit() {
        for name in ["main", "feature/x", "fix-1.2", "ü"] {
            assert_eq!(ref_name(name), name);
        }
        for (name, fit) in [
            ("a b", "a-b"),
            ("x.lock", "x-lock"),
            ("..", "--"),
            ("a/.b", "a/-b"),
            ("a~1^:?*[\\", "a-1------"),
        ] {
            assert_eq!(ref_name(name), fit, "{name}");
        }
    }
}
