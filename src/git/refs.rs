//! Names of branches and their commits.

use std::collections::BTreeSet;
use std::path::Path;

use super::call::{LIMIT, run};
use super::error::GitError;
use super::head_file::{self, Head};
use super::remote;
use super::repository::head;

/// The longest part of a branch's name between slashes: a file of this name plus `.lock` must be possible.
const LONGEST_PART: usize = 250;

/// The full id of the commit for a plan's `Base: NAME`: a local branch, else one of the remote, else whatever git
/// accepts as a commit (a tag, an id, `origin/main`).
#[must_use]
pub fn base_commit(root: &Path, name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with('-') {
        return None;
    }
    branch_commit(root, name)
        .or_else(|| commit_of(root, &format!("refs/remotes/{}/{name}", remote::name(root)?)))
        .or_else(|| parsed(root, name))
}

/// The target branch of a pull request for `Base: NAME`: a local or remote branch, without the remote's name
/// (`origin/main` is `main`); `None` if it is not a branch.
#[must_use]
pub fn base_branch(root: &Path, name: &str) -> Option<String> {
    let name = name.strip_prefix("refs/heads/").unwrap_or(name);
    if !is_valid_branch(name) {
        return None;
    }
    if branch_commit(root, name).is_some() {
        return Some(name.to_owned());
    }
    let remote = remote::name(root)?;
    let on_remote = |name: &str| commit_of(root, &format!("refs/remotes/{remote}/{name}")).is_some();
    let name = name.strip_prefix("refs/remotes/").unwrap_or(name);
    let short = name.strip_prefix(&remote).and_then(|rest| rest.strip_prefix('/'));
    [Some(name), short].into_iter().flatten().find(|name| on_remote(name)).map(str::to_owned)
}

/// The default branch to start from: `master` if it exists, else the remote's HEAD, else the current branch.
pub fn default_base(root: &Path) -> Result<String, GitError> {
    if let Some(master) = base_branch(root, "master") {
        return Ok(master);
    }
    if let Some(name) = remote::name(root).and_then(|remote| remote_head(root, &remote)) {
        return Ok(name);
    }
    let way_out = "commit something on a branch first, or name the branch to start from: pr_base under [git] in \
                   ralph.toml, or 'Base:' in the plan";
    // Not `--short`: if a tag has the branch's name, that prints `heads/NAME`.
    let current = run(root, &["symbolic-ref", "--quiet", "HEAD"], LIMIT).ok();
    let current = current.and_then(|output| String::from_utf8(output).ok());
    match current.and_then(|name| Some(name.trim().strip_prefix("refs/heads/")?.to_owned())) {
        Some(name) if head(root).is_some() => Ok(name),
        Some(name) => {
            Err(GitError::in_the_way(format!("the branch {name} has no commit yet"), root.display(), way_out))
        }
        None => Err(GitError::in_the_way("HEAD is on no branch", root.display(), way_out)),
    }
}

/// The short name of the branch of the remote's HEAD, if that branch was fetched.
fn remote_head(root: &Path, remote: &str) -> Option<String> {
    let folder = format!("refs/remotes/{remote}/");
    let output = run(root, &["symbolic-ref", "--quiet", &format!("{folder}HEAD")], LIMIT).ok()?;
    let target = String::from_utf8(output).ok()?;
    commit_of(root, target.trim())?;
    target.trim().strip_prefix(&folder).map(str::to_owned)
}

/// Whether git accepts `name` as a branch, and `.worktrees/NAME` can be a folder.
#[must_use]
pub fn is_valid_branch(name: &str) -> bool {
    let is_valid_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.strip_suffix(".lock").is_none()
            && part.len() <= LONGEST_PART
    };
    let is_forbidden = |byte: u8| {
        byte.is_ascii_control() || matches!(byte, b' ' | b'~' | b'^' | b':' | b'?' | b'*' | b'[' | b'\\')
    };
    // The meaning of `@` depends on the command.
    !matches!(name, "HEAD" | "@")
        && !name.starts_with('-')
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.bytes().any(is_forbidden)
        && name.split('/').all(is_valid_part)
}

/// The commit of the branch; `None` if there is no such branch.
#[must_use]
pub fn branch_commit(root: &Path, branch: &str) -> Option<String> {
    commit_of(root, &format!("refs/heads/{branch}"))
}

/// The upstream of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// Its remote.
    pub remote: String,
    /// Its name there.
    pub branch: String,
    /// Whether neither has a commit that the other lacks, as far as is known here.
    pub is_level: bool,
}

/// The upstream of a branch on a remote; `None` if it has none.
#[must_use]
pub fn upstream(root: &Path, branch: &str) -> Option<Upstream> {
    let format = "--format=%(upstream:remotename)%00%(upstream:remoteref)%00%(upstream:track)";
    let output = run(root, &["for-each-ref", format, &format!("refs/heads/{branch}")], LIMIT).ok()?;
    let text = String::from_utf8(output).ok()?;
    let mut fields = text.trim_end_matches('\n').split('\0');
    let (remote, name, track) = (fields.next()?, fields.next()?, fields.next()?);
    let branch = name.strip_prefix("refs/heads/")?.to_owned();
    (!remote.is_empty()).then(|| Upstream { remote: remote.to_owned(), branch, is_level: track.is_empty() })
}

/// How many commits `of` has and `base` has not; `None` if git fails.
#[must_use]
pub fn ahead(root: &Path, base: &str, of: &str) -> Option<u64> {
    let range = format!("{base}..{of}");
    let output = run(root, &["rev-list", "--count", "--end-of-options", &range, "--"], LIMIT).ok()?;
    std::str::from_utf8(&output).ok()?.trim().parse().ok()
}

/// The branches with commits that the current branch lacks; `None` if git fails. If the current branch is one of
/// `own`, which the user has checked out only to read it, all branches.
#[must_use]
pub fn unmerged(root: &Path, own: &[&str]) -> Option<BTreeSet<String>> {
    let current = run(root, &["symbolic-ref", "--quiet", "HEAD"], LIMIT).ok();
    let current = current.and_then(|name| String::from_utf8(name).ok()).unwrap_or_default();
    let looks = current.trim().strip_prefix("refs/heads/").is_some_and(|current| own.contains(&current));
    let mut arguments = vec!["for-each-ref", "--format=%(refname)"];
    if !looks {
        arguments.push("--no-merged=HEAD");
    }
    arguments.push("refs/heads");
    let text = String::from_utf8(run(root, &arguments, LIMIT).ok()?).ok()?;
    Some(text.lines().filter_map(|name| name.strip_prefix("refs/heads/")).map(str::to_owned).collect())
}

/// The commit of a reference with its full name.
pub(super) fn commit_of(root: &Path, reference: &str) -> Option<String> {
    if !is_valid_branch(reference) {
        return None;
    }
    match head_file::reference(root, reference) {
        Some(Head::Commit(commit)) => Some(commit),
        Some(Head::Unborn) => None,
        None => parsed(root, reference),
    }
}

/// The id of the commit that a git expression names.
fn parsed(root: &Path, expression: &str) -> Option<String> {
    let commit = format!("{expression}^{{commit}}");
    let output = run(root, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit], LIMIT).ok()?;
    let id = String::from_utf8(output).ok()?.trim().to_owned();
    // For `^main`, git prints `^ID`.
    (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;

    use proptest::prelude::*;

    use super::super::tests::{git, repository};
    use super::*;

    fn commit(root: &Path, message: &str) -> String {
        git(root, &["commit", "--quiet", "--allow-empty", "-m", message]);
        git(root, &["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// A clone of a repository on the branch `trunk` with two commits.
    fn cloned() -> (tempfile::TempDir, PathBuf, [String; 2]) {
        let (guard, root) = repository();
        git(&root, &["symbolic-ref", "HEAD", "refs/heads/trunk"]);
        let ids = [commit(&root, "one"), commit(&root, "two")];
        let clone = guard.path().join("clone");
        git(guard.path(), &["clone", "--quiet", root.to_str().unwrap(), clone.to_str().unwrap()]);
        (guard, clone, ids)
    }

    #[test]
    fn a_base_is_a_branch_here_then_one_there_then_any_commit() {
        let (guard, root, [first, second]) = cloned();
        git(&guard.path().join("project"), &["branch", "feature/y", &first]);
        git(&root, &["fetch", "--quiet"]);
        git(&root, &["tag", "v1", &first]);
        // A tag with the branch's name is not used.
        git(&root, &["tag", "trunk", &first]);
        let base = |name: &str| base_commit(&root, name);
        assert_eq!(base("trunk"), Some(second.clone()));
        for name in ["feature/y", "v1", "origin/feature/y", "refs/tags/v1", &first, &first[..12]] {
            assert_eq!(base(name).as_ref(), Some(&first), "{name}");
        }
        for name in ["", "-", "--all", "nope", "^trunk", "v1..trunk", "trunk:", "../x", "a b", "\n", "\0"] {
            assert_eq!(base(name), None, "{name:?}");
        }
        git(&root, &["branch", "feature/y", &second]);
        assert_eq!(base("feature/y"), Some(second.clone()));
        git(&root, &["pack-refs", "--all"]);
        assert_eq!((base("feature/y"), base("v1")), (Some(second), Some(first)));
    }

    #[test]
    fn a_pull_request_goes_to_a_branch() {
        let (guard, root, [first, _]) = cloned();
        git(&guard.path().join("project"), &["branch", "feature/y"]);
        git(&root, &["fetch", "--quiet"]);
        git(&root, &["branch", "here", &first]);
        git(&root, &["tag", "v1"]);
        let branch = |name: &str| base_branch(&root, name);
        for (name, expected) in [
            ("here", "here"),
            ("refs/heads/here", "here"),
            ("feature/y", "feature/y"),
            ("origin/feature/y", "feature/y"),
            ("refs/remotes/origin/feature/y", "feature/y"),
        ] {
            assert_eq!(branch(name).as_deref(), Some(expected), "{name}");
        }
        for name in ["v1", &first, "nope", "-x", "origin/nope", "HEAD"] {
            assert_eq!(branch(name), None, "{name}");
        }
    }

    #[test]
    fn the_default_base_is_master_or_the_remotes_or_the_current_branch() {
        let (_guard, root, _) = cloned();
        git(&root, &["checkout", "--quiet", "-b", "side"]);
        assert_eq!(default_base(&root).unwrap(), "trunk");
        git(&root, &["remote", "set-head", "origin", "--delete"]);
        git(&root, &["tag", "side"]);
        assert_eq!(default_base(&root).unwrap(), "side");
        git(&root, &["tag", "--delete", "side"]);
        git(&root, &["branch", "master"]);
        assert_eq!(default_base(&root).unwrap(), "master");
    }

    #[test]
    fn without_a_commit_or_a_branch_there_is_no_default_base() {
        let (_guard, root) = repository();
        git(&root, &["symbolic-ref", "HEAD", "refs/heads/new"]);
        let said = default_base(&root).unwrap_err().to_string();
        assert!(said.starts_with("the branch new has no commit yet, "), "{said}");
        commit(&root, "one");
        assert_eq!(default_base(&root).unwrap(), "new");
        git(&root, &["checkout", "--quiet", "--detach"]);
        let said = default_base(&root).unwrap_err().to_string();
        assert!(said.starts_with("HEAD is on no branch, ") && said.contains("pr_base"), "{said}");
        assert!(!said.contains('\n'));
    }

    #[test]
    fn commits_ahead_are_counted() {
        let (_guard, root, [first, _]) = cloned();
        git(&root, &["branch", "old", &first]);
        assert_eq!(ahead(&root, "old", "trunk"), Some(1));
        assert_eq!(ahead(&root, "trunk", "old"), Some(0));
        assert_eq!(ahead(&root, &first, "refs/heads/trunk"), Some(1));
        assert_eq!(ahead(&root, "nope", "trunk"), None);
        assert_eq!(ahead(&root, "--all", "trunk"), None);
        assert_eq!(branch_commit(&root, "old"), Some(first));
        assert_eq!(branch_commit(&root, "nope"), None);
        assert_eq!(branch_commit(&root, "../../HEAD"), None);
    }

    fn git_takes(name: &str) -> bool {
        let mut git = Command::new("git");
        let git = git.args(["check-ref-format", "--branch", name]).env_remove("GIT_DIR").current_dir("/");
        git.output().unwrap().status.success()
    }

    #[test]
    fn names_of_branches_are_gits() {
        let plain = "a a/b / a/ /a a//b .a a/.b a. a./b a/b. a.lock a.lock/b a.LOCK .. a..b @/a a/@ @{-1} a@{b a@b { - -a a/-b \
                     HEAD HEAD/a a/HEAD head refs/heads/a a~ a^ a:b a? a* a[ a] a\\b \u{e9} ' \" $x a;b \u{1f600} +a a,b";
        let with_blanks = ["", "a b", "a\tb", "a\nb", "a\u{7f}", "a\u{a0}b"];
        for name in plain.split(' ').chain(with_blanks) {
            assert_eq!(is_valid_branch(name), git_takes(name), "{name:?}");
        }
        assert!(is_valid_branch(&format!("a/{}", "x".repeat(250))));
        assert!(!is_valid_branch(&format!("a/{}", "x".repeat(251))), "no file can be called so");
        assert!(!is_valid_branch("@"), "git cannot make a work tree of it");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn any_name_is_judged_as_git_does(
            name in r"([a-cHEAD.@{}/~^:?*\[\\ -]|\.lock|\.\.|@\{|HEAD|[[:print:]]|[\x01-\x1f\x7f]|\PC){0,8}",
        ) {
            prop_assert_eq!(is_valid_branch(&name), name != "@" && git_takes(&name));
        }
    }
}
