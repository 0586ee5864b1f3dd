//! Counts and shows the differences between two commits.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::call::{LIMIT, run};

/// How much was committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// The number of commits.
    pub commits: u64,
    /// The number of files that differ.
    pub files: u64,
    /// The number of lines added.
    pub insertions: u64,
    /// The number of lines deleted.
    pub deletions: u64,
}

/// What HEAD has and `from` has not; without `from`, its whole history. `None` if git fails.
#[must_use]
pub fn since(root: &Path, from: Option<&str>) -> Option<Amount> {
    between(root, from, "HEAD")
}

/// What the commit `to` has and `from` has not; without `from`, its whole history. `None` if git fails.
#[must_use]
pub fn between(root: &Path, from: Option<&str>, to: &str) -> Option<Amount> {
    let range = from.map_or_else(|| to.to_owned(), |from| format!("{from}..{to}"));
    let text = |args: &[&str]| String::from_utf8(run(root, args, LIMIT).ok()?).ok();
    let commits = text(&["rev-list", "--count", "--end-of-options", &range, "--"])?.trim().parse().ok()?;
    let from = from.map(str::to_owned).or_else(|| no_files(root))?;
    let stat = text(&["diff", "--shortstat", "--end-of-options", from.trim(), to, "--"])?;
    Some(Amount { commits, ..of_stat(&stat) })
}

/// Two commits, or a commit and the work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The first commit; `None` for an empty tree.
    pub from: Option<String>,
    /// The second commit; `None` for the work tree.
    pub to: Option<String>,
}

impl Difference {
    /// Whether the repository of `root` has both commits.
    #[must_use]
    pub fn is_there(&self, root: &Path) -> bool {
        let is_there =
            |commit: &String| run(root, &["cat-file", "-e", &format!("{commit}^{{commit}}")], LIMIT).is_ok();
        self.from.iter().chain(&self.to).all(is_there)
    }
}

/// Shows a difference like the user's own git, with its pager, and in colours if stdout is a terminal; with `stat`
/// only the sizes of the changes.
#[must_use]
pub fn diff(root: &Path, difference: &Difference, stat: bool) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(root).arg("diff").args(stat.then_some("--stat")).arg("--end-of-options");
    git.args(sides(root, difference)).arg("--");
    git
}

/// Prints a difference as text of one form, whatever the user's settings are, with the names of files below `a/` and `b/`.
#[must_use]
pub fn plain_diff(root: &Path, difference: &Difference) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(root).args([
        "diff",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--submodule=short",
    ]);
    git.args(["--src-prefix=a/", "--dst-prefix=b/", "--end-of-options"]);
    git.args(sides(root, difference)).arg("--");
    git
}

/// What git is to compare.
fn sides(root: &Path, difference: &Difference) -> impl Iterator<Item = String> {
    let from = difference.from.clone().or_else(|| no_files(root));
    from.into_iter().chain(difference.to.clone())
}

/// The untracked, unignored files of a work tree, which a difference does not show; none if git fails.
#[must_use]
pub fn unknown_files(root: &Path) -> Vec<String> {
    let names = run(root, &["ls-files", "-z", "--others", "--exclude-standard"], LIMIT).unwrap_or_default();
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Whether `commit` is `of` or one of its ancestors.
#[must_use]
pub fn is_ancestor(root: &Path, commit: &str, of: &str) -> bool {
    run(root, &["merge-base", "--is-ancestor", commit, of], LIMIT).is_ok()
}

/// The commits that `to` has and `from` has not; `None` if git fails.
#[must_use]
pub fn commits_between(root: &Path, from: &str, to: &str) -> Option<BTreeSet<String>> {
    let listed = run(root, &["rev-list", "--end-of-options", &format!("{from}..{to}"), "--"], LIMIT).ok()?;
    Some(String::from_utf8(listed).ok()?.lines().map(str::to_owned).collect())
}

/// The id of the empty tree, which depends on the repository's hash function.
pub(super) fn no_files(root: &Path) -> Option<String> {
    let name = run(root, &["hash-object", "-t", "tree", "/dev/null"], LIMIT).ok()?;
    Some(String::from_utf8(name).ok()?.trim().to_owned())
}

/// Reads ` 2 files changed, 3 insertions(+), 1 deletion(-)`; git leaves out zeros.
pub(super) fn of_stat(stat: &str) -> Amount {
    let number = |what: &str| {
        let part = stat.split(',').find(|part| part.contains(what));
        part.and_then(|part| part.split_whitespace().next()?.parse().ok()).unwrap_or_default()
    };
    Amount {
        commits: 0,
        files: number("file"),
        insertions: number("insertion"),
        deletions: number("deletion"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{git, repository};
    use super::*;

    fn commit(root: &Path, file: &str, text: &str) {
        std::fs::write(root.join(file), text).unwrap();
        git(root, &["add", "."]);
        git(root, &["commit", "--quiet", "-m", file]);
    }

    #[test]
    fn commits_files_and_lines_are_counted() {
        let (_dir, root) = repository();
        assert_eq!(since(&root, None), None, "there is nothing yet");
        commit(&root, "a", "1\n2\n");
        let first = crate::git::head(&root);
        commit(&root, "b", "3\n");
        commit(&root, "a", "1\n4\n5\n");
        let amount = |commits, files, insertions, deletions| Amount { commits, files, insertions, deletions };
        assert_eq!(since(&root, first.as_deref()), Some(amount(2, 2, 3, 1)));
        assert_eq!(since(&root, None), Some(amount(3, 2, 4, 0)));
        let head = crate::git::head(&root);
        assert_eq!(since(&root, head.as_deref()), Some(amount(0, 0, 0, 0)));
        assert_eq!(since(&root, Some("0123456789012345678901234567890123456789")), None);
    }
}
