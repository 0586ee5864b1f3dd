//! Calls of git in a work tree of ours, in which nothing counts that an agent can write into the repository's
//! configuration.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::git::call::{LIMIT, run};
use crate::git::change::{ChangeOptions, change_with};
use crate::git::error::GitError;
use crate::git::trees::without_links;
use crate::git::{half_made, head_file};

/// The time limit for laying out a commit: all files of the project may be written.
pub(super) const LAY_LIMIT: Duration = Duration::from_hours(1);
/// Settings that count there, whatever the repository's say.
const CONFIG: [&str; 10] = [
    "core.hooksPath=/dev/null",
    "core.sparseCheckout=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "core.ignoreStat=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.useReplaceRefs=false",
    "core.commitGraph=false",
    "submodule.recurse=false",
];
/// No object stands for another one.
const ENVIRONMENT: [(&str, &str); 3] =
    [("GIT_NO_REPLACE_OBJECTS", "1"), ("GIT_GRAFT_FILE", "/dev/null"), ("GIT_LITERAL_PATHSPECS", "1")];

/// A work tree of ours, and how git reaches it.
pub(super) struct Place {
    tree: PathBuf,
    /// They name the tree and git's folder for it. git must not search for a repository: where the tree's own `.git` file is
    /// missing it would find that of the user, which is around the tree, and change the user's files.
    options: [OsString; 2],
    /// The index, where it is not the one in git's folder.
    index: Option<PathBuf>,
    /// The names of the filters that the repository's own configuration defines, which are switched off.
    pub(super) filters: BTreeSet<String>,
}

impl Place {
    /// The tree at `tree`, of the repository of `root`.
    ///
    /// # Errors
    /// If git has no folder for the tree, or a filter of the repository's cannot be switched off.
    pub(super) fn of(root: &Path, tree: &Path) -> Result<Self, GitError> {
        Self::at(tree, &known(root, tree)?, None)
    }

    /// A tree of the repository in this folder of git's, with an index of its own where `index` names one.
    ///
    /// # Errors
    /// If a filter of the repository's cannot be switched off.
    pub(super) fn at(tree: &Path, git_dir: &Path, index: Option<PathBuf>) -> Result<Self, GitError> {
        let option = |name: &str, path: &Path| {
            let mut option = OsString::from(name);
            option.push(path);
            option
        };
        let options = [option("--git-dir=", git_dir), option("--work-tree=", tree)];
        let mut place = Self { tree: tree.to_owned(), options, index, filters: BTreeSet::new() };
        place.filters = place.filters_of_repository()?;
        Ok(place)
    }

    /// Calls git, which may change the tree.
    ///
    /// # Errors
    /// If git refuses.
    pub(super) fn git(&self, words: &[&str], input: Vec<u8>) -> Result<(), GitError> {
        let mut env = environment();
        env.extend(self.index.as_ref().map(|index| ("GIT_INDEX_FILE".into(), index.into())));
        let options = self.options.iter().map(OsString::as_os_str);
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        let off: Vec<String> = self.filters.iter().flat_map(|name| switched_off(name)).collect();
        change(&self.tree, options, &off, &words, &ChangeOptions { env, input, limit: LAY_LIMIT }).map(drop)
    }

    /// Calls git, which only reads.
    ///
    /// # Errors
    /// If git fails.
    pub(super) fn read(&self, words: &[&str]) -> Result<Vec<u8>, GitError> {
        let options = self.options.each_ref().map(|option| option.to_str().unwrap_or_default());
        run(&self.tree, &[&options[..], words].concat(), LIMIT)
    }

    /// The filters of the user and of the system stay: LFS is one.
    fn filters_of_repository(&self) -> Result<BTreeSet<String>, GitError> {
        let words = ["config", "--show-scope", "--null", "--get-regexp", r"^filter\."];
        let listed = match self.read(&words) {
            // There is none.
            Err(GitError::Refused { .. }) => return Ok(BTreeSet::new()),
            listed => listed?,
        };
        let names = filters_of_repository(&String::from_utf8_lossy(&listed));
        for name in &names {
            if name.contains(['=', char::REPLACEMENT_CHARACTER]) {
                let what =
                    "a filter in the repository's configuration has a name that cannot be switched off";
                let way_out = "remove it with 'git config --edit'";
                return Err(GitError::in_the_way(what, name.escape_debug(), way_out));
            }
        }
        Ok(names)
    }
}

/// Calls git in the user's repository, which may change it.
///
/// # Errors
/// If git refuses.
pub(super) fn in_repository(root: &Path, words: &[&OsStr]) -> Result<(), GitError> {
    let how = ChangeOptions { env: environment(), input: Vec::new(), limit: LAY_LIMIT };
    change(root, [].into_iter(), &[], words, &how).map(drop)
}

/// What git answers in the user's repository to this input.
///
/// # Errors
/// If git refuses.
pub(super) fn asked(root: &Path, words: &[&str], input: Vec<u8>) -> Result<Vec<u8>, GitError> {
    let how = ChangeOptions { env: environment(), input, limit: LAY_LIMIT };
    let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    change(root, [].into_iter(), &[], &words, &how)
}

fn change<'a>(
    place: &Path,
    options: impl Iterator<Item = &'a OsStr>,
    more: &'a [String],
    words: &[&'a OsStr],
    how: &ChangeOptions,
) -> Result<Vec<u8>, GitError> {
    let settings = settings(more).map(OsStr::new);
    let command: Vec<_> = words.iter().take(2).map(|word| word.to_string_lossy()).collect();
    let arguments: Vec<&OsStr> = options.chain(settings).chain(words.iter().copied()).collect();
    change_with(place, &arguments, how).map_err(|error| error.of(&command.join(" "), place))
}

/// Options that make these settings count, and more of them.
pub(super) fn settings(more: &[String]) -> impl Iterator<Item = &str> {
    CONFIG.into_iter().chain(more.iter().map(String::as_str)).flat_map(|setting| ["-c", setting])
}

/// The variables for all calls.
pub(super) fn environment() -> Vec<(OsString, OsString)> {
    ENVIRONMENT.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// The folder in which git keeps what it knows of the tree. The tree's own `.git` file is not asked, because an agent
/// may have written it.
///
/// # Errors
/// If git's entries cannot be read.
pub fn entry(root: &Path, tree: &Path) -> Result<Option<PathBuf>, GitError> {
    head_file::common_dir(root).map_or(Ok(None), |repository| entry_in(&repository, tree))
}

/// [`entry`] in this repository's folder.
///
/// # Errors
/// If something cannot be read.
pub fn entry_in(repository: &Path, tree: &Path) -> Result<Option<PathBuf>, GitError> {
    half_made::entry_for(&without_links(&repository.join("worktrees")), &without_links(tree).join(".git"))
}

/// [`entry`] of a tree that has to have one.
///
/// # Errors
/// If git has no folder for the tree.
pub(super) fn known(root: &Path, tree: &Path) -> Result<PathBuf, GitError> {
    let unknown = || {
        let what = "git does not know the work tree of proofs any more";
        GitError::in_the_way(what, tree.display(), "start again: it is made anew")
    };
    entry(root, tree)?.ok_or_else(unknown)
}

/// The settings that switch a filter off.
fn switched_off(name: &str) -> [String; 4] {
    ["clean=", "smudge=", "process=", "required=false"].map(|end| format!("filter.{name}.{end}"))
}

/// The names of the filters among `scope NUL key LF value NUL` that are not the user's.
fn filters_of_repository(listed: &str) -> BTreeSet<String> {
    let mut fields = listed.split('\0');
    let mut names = BTreeSet::new();
    while let (Some(scope), Some(setting)) = (fields.next(), fields.next()) {
        if !matches!(scope, "local" | "worktree") {
            continue;
        }
        // The value may be missing.
        let key = setting.split('\n').next().unwrap_or_default();
        let name = key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.'));
        names.extend(name.map(|(name, _)| name.to_owned()));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_told_apart_by_who_defines_them() {
        let listed = "global\0filter.lfs.clean\ngit-lfs clean\0local\0filter.a.b.smudge\nx\ny\0\
                      worktree\0filter.c.required\0";
        let names: Vec<String> = filters_of_repository(listed).into_iter().collect();
        assert_eq!(names, ["a.b", "c"]);
    }
}
