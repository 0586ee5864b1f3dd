//! Repositories that are parts of a work tree. git asks each for what is not committed in it, and starts the filters that its own
//! configuration names for that: an agent behind walls may have written them. So ralph's git never looks into one, and what counts
//! of it is its commit.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::call::run_with;
use super::changes::LOOK_LIMIT;
use super::error::GitError;

/// Those that the index of a work tree knows, in it; `env` may name another index.
///
/// # Errors
/// If git fails.
pub fn known(root: &Path, env: &[(OsString, OsString)]) -> Result<Vec<PathBuf>, GitError> {
    let listed = run_with(root, &["ls-files", "--stage", "-z"], env, LOOK_LIMIT)?;
    Ok(named(&listed).into_iter().map(|(path, _)| path).collect())
}

/// The paths and commits of those in what `git ls-files --stage -z` prints.
pub(super) fn named(listed: &[u8]) -> Vec<(PathBuf, String)> {
    let submodule = |line: &[u8]| {
        let tab = line.iter().position(|&byte| byte == b'\t')?;
        let about = std::str::from_utf8(&line[..tab]).ok()?.strip_prefix("160000 ")?;
        let path = PathBuf::from(OsStr::from_bytes(&line[tab + 1..]));
        Some((path, about.split(' ').next()?.to_owned()))
    };
    listed.split(|&byte| byte == 0).filter_map(submodule).collect()
}

/// The words for `git add` that mean all but them: it would look into each.
pub(super) fn all_but(them: &[PathBuf]) -> Vec<OsString> {
    let but = |path: &PathBuf| {
        let mut word = OsString::from(":(top,exclude,literal)");
        word.push(path);
        word
    };
    // Where there is no other word, git means all.
    them.iter().map(but).collect()
}
