//! Keeps ralph's own files out of commits: `info/exclude`, and the skip-worktree bit.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::change::change;
use super::error::GitError;
use super::head_file;
use super::repository::common_dir;
use crate::files::{atomic, temporary, theirs};
use crate::project::Project;

/// The comment above ralph's lines in `info/exclude`.
const EXCLUDE_HEADER: &str = "# Written by ralph: files of a running loop, never to be committed.";

/// Ignore patterns, relative to the project root, for the files of a running loop and for the work trees of branches.
/// The user's files (config, prompts, the plan) are not among them.
#[must_use]
pub fn runtime_patterns(project: &Project) -> Vec<String> {
    let folder = project.relative(project.run_dir());
    let mut patterns = Vec::new();
    if folder.is_relative() {
        let folder = escape_pattern(&folder);
        patterns.extend(project.run_files().into_iter().map(|file| format!("/{folder}/{file}")));
    }
    patterns.extend(["/.worktrees/".to_owned(), temporary::PATTERN.to_owned()]);
    patterns
}

/// A path as an ignore pattern that matches only this path. Bytes that a pattern line cannot hold become `?`.
pub(super) fn escape_pattern(path: &Path) -> String {
    let mut pattern = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\n' | '\r' => pattern.push('?'),
                '\\' | '*' | '?' | '[' => pattern.extend(['\\', character]),
                _ => pattern.push(character),
            }
        }
        pattern.extend(chunk.invalid().iter().map(|_| '?'));
    }
    pattern
}

/// The folders of the repository in which killed processes may have left temporary files: that of the work tree
/// `root`, and that of the exclude file.
#[must_use]
pub fn litter(root: &Path) -> Vec<PathBuf> {
    let git_dir = head_file::git_dir(root).ok().flatten();
    git_dir.into_iter().chain(head_file::common_dir(root).map(|common| common.join("info"))).collect()
}

/// Adds `patterns` to the `info/exclude` that all work trees of `root` share; returns whether any was missing. The
/// user's own lines and line ends stay unchanged.
pub fn exclude(root: &Path, patterns: &[String]) -> Result<bool, GitError> {
    let info = common_dir(root)?.join("info");
    let path = info.join("exclude");
    fs::create_dir_all(&info).map_err(|reason| GitError::Exclude { path: info.clone(), reason })?;
    // Two loops in two work trees may do this at the same time; a file system without locks cannot prevent that.
    let folder = File::open(&info).map_err(|reason| GitError::Exclude { path: info, reason })?;
    let _ = folder.lock();
    for folder in litter(root) {
        temporary::sweep(&folder);
    }
    let old = match theirs::read(&path, theirs::MAX_TEXT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        result => result.map_err(|reason| GitError::Exclude { path: path.clone(), reason })?,
    };
    match with_patterns(&old, patterns) {
        Some(new) => atomic::write_theirs(&path, &new).map(|()| true).map_err(GitError::from),
        None => Ok(false),
    }
}

/// The content of an exclude file with the missing patterns in ralph's block; `None` if none is missing.
fn with_patterns(old: &[u8], patterns: &[String]) -> Option<Vec<u8>> {
    let lines: HashSet<&[u8]> = old.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end).collect();
    // A file in an excluded folder needs no line of its own.
    let is_left_out = |pattern: &&str| {
        let folders = pattern.match_indices('/').map(|(at, _)| &pattern.as_bytes()[..=at]);
        folders.chain([pattern.as_bytes()]).any(|line| line != b"/" && lines.contains(line))
    };
    let missing: Vec<&str> =
        patterns.iter().map(String::as_str).filter(|pattern| !is_left_out(pattern)).collect();
    if missing.is_empty() {
        return None;
    }
    let line_end = if old.windows(2).any(|pair| pair == b"\r\n") { "\r\n" } else { "\n" };
    let mut new = Vec::with_capacity(old.len() + 512);
    let start_line = |new: &mut Vec<u8>| {
        if new.last().is_some_and(|&byte| byte != b'\n') {
            new.extend_from_slice(line_end.as_bytes());
        }
    };
    let add = |new: &mut Vec<u8>, lines: &[&str]| {
        start_line(new);
        for line in lines {
            new.extend_from_slice(line.as_bytes());
            new.extend_from_slice(line_end.as_bytes());
        }
    };
    let mut added = false;
    for line in old.split_inclusive(|&byte| byte == b'\n') {
        new.extend_from_slice(line);
        if !added && line.trim_ascii_end() == EXCLUDE_HEADER.as_bytes() {
            add(&mut new, &missing);
            added = true;
        }
    }
    if !added {
        add(&mut new, &[EXCLUDE_HEADER]);
        add(&mut new, &missing);
    }
    Some(new)
}

/// Prevents accidental commits of the plan's copy in a work tree. `file` is its name at the top of the tree; if it is
/// tracked, git ignores its changes in this tree, otherwise the file is excluded in all trees.
pub fn keep_plan_out(tree: &Path, file: &str, is_tracked: bool) -> Result<(), GitError> {
    if !is_tracked {
        return exclude(tree, &[format!("/{}", escape_pattern(Path::new(file)))]).map(drop);
    }
    change(tree, &["update-index", "--skip-worktree", "--", file])
        .map_err(|error| error.of("update-index", tree))
}

#[cfg(test)]
mod tests;
