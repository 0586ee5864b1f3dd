//! What landing needs of git: candidates without a work tree, the landed tip, the trunk that follows it, and work trees that are
//! used for one task after the other.

mod trees;
mod trunk;

use std::ffi::OsString;
use std::path::Path;

use super::call::{LIMIT, run};
use super::change::{ChangeError, ChangeOptions, attempt, change, change_with};
use super::error::{CutOff, GitError};
use super::identity::signs;
use super::range::is_ancestor;
use super::refs::commit_of;
use super::repository::head;
use super::revert::{RevertError, check_idle, shown};
use super::save;

pub use trees::{
    add, commit_rest, detach, detach_all, head_of, is_prepared, known_good, merge_into, put, relink,
    relink_in, set_good, set_prepared, still_marked,
};
pub use trunk::{Followed, Stand, Trunk, begin};

/// Where the refs of tasks' commits are.
const TASKS: &str = "refs/ralph/tasks";
/// Where it is noted that the work of a claim is finished, until it is booked.
const FINISHED: &str = "refs/ralph/finished";
/// Where it is noted as which commits those of tasks have landed that were made again.
const REPLAYED: &str = "refs/ralph/replayed";

/// What became of a merge that needs no work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// A tree of files.
    Tree(String),
    /// These files conflict.
    Conflict(Vec<String>),
}

/// Merges only what came after the commit `since` into `theirs`, by commits of the same files that have this commit in common:
/// older versions of git take no other base than the real one.
///
/// # Errors
/// If git fails.
pub fn merge_since(root: &Path, ours: &str, theirs: &str, since: &str) -> Result<Merged, GitError> {
    let rootless = |of: &str, parents: &[&str]| {
        let files = files_of(root, of)
            .ok_or_else(|| GitError::refused("rev-parse", root, format!("{of} is no commit")))?;
        made(root, "--no-gpg-sign", &files, parents, "base", &save::own_identity())
    };
    let base = rootless(since, &[])?;
    merge(root, &rootless(ours, &[&base])?, &rootless(theirs, &[&base])?)
}

/// Merges two commits.
///
/// # Errors
/// If git fails.
pub fn merge(root: &Path, ours: &str, theirs: &str) -> Result<Merged, GitError> {
    let words = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs];
    let how = ChangeOptions::default();
    let failed = |error: ChangeError| error.of("merge-tree", root);
    let captured = attempt(root, &words, &how).map_err(|error| failed(error.into()))?;
    let code = CutOff::or_code(captured.end, how.limit).map_err(|end| failed(ChangeError::CutOff(end)))?;
    let output = captured.stdout.whole().unwrap_or_default();
    let mut fields = output.split(|&byte| byte == 0).map(|field| String::from_utf8_lossy(field).into_owned());
    let tree = fields.next().unwrap_or_default();
    match code {
        0 => Ok(Merged::Tree(tree)),
        1 if !tree.is_empty() => {
            let mut files: Vec<String> = fields.take_while(|name| !name.is_empty()).collect();
            files.dedup();
            Ok(Merged::Conflict(files))
        }
        _ => {
            let said = captured.stderr.text();
            let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
            Err(GitError::refused("merge-tree", root, line.trim_start_matches("fatal: ").to_owned()))
        }
    }
}

/// Makes a commit of a tree of files, signed where the user signs; returns its id.
///
/// # Errors
/// If git fails.
pub fn commit(
    root: &Path,
    tree: &str,
    parents: &[&str],
    message: &str,
    env: &[(OsString, OsString)],
) -> Result<String, GitError> {
    let sign = if signs(root) { "-S" } else { "--no-gpg-sign" };
    made(root, sign, tree, parents, message, env)
}

fn made(
    root: &Path,
    sign: &str,
    tree: &str,
    parents: &[&str],
    message: &str,
    env: &[(OsString, OsString)],
) -> Result<String, GitError> {
    let parents = parents.iter().flat_map(|parent| ["-p", parent]);
    let words: Vec<&str> =
        ["commit-tree", sign].into_iter().chain(parents).chain([tree, "-F", "-"]).collect();
    let how = ChangeOptions { env: env.to_vec(), input: message.into(), ..ChangeOptions::default() };
    let output = change_with(root, &words, &how).map_err(|error| error.of("commit-tree", root))?;
    Ok(String::from_utf8_lossy(&output).trim().to_owned())
}

/// The commits of `head` that `base` has not, the oldest first, without merges.
///
/// # Errors
/// If git fails.
pub fn commits(root: &Path, base: &str, head: &str) -> Result<Vec<String>, GitError> {
    let range = format!("{base}..{head}");
    let words = ["rev-list", "--reverse", "--topo-order", "--no-merges", "--end-of-options", &range, "--"];
    let output = run(root, &words, LIMIT)?;
    Ok(String::from_utf8_lossy(&output).lines().map(str::to_owned).collect())
}

/// Makes a commit with the message and the author of `of`, of other files and with another parent; returns its id.
///
/// # Errors
/// If git fails.
pub fn commit_again(
    root: &Path,
    of: &str,
    tree: &str,
    parent: &str,
    env: &[(OsString, OsString)],
) -> Result<String, GitError> {
    let output = run(
        root,
        &["log", "-1", "--no-mailmap", "--format=%an%x00%ae%x00%ad%x00%B", "--date=raw", of],
        LIMIT,
    )?;
    let text = String::from_utf8_lossy(&output).into_owned();
    let mut fields = text.splitn(4, '\0');
    let mut env = env.to_vec();
    env.retain(|(name, _)| !name.to_string_lossy().starts_with("GIT_AUTHOR_"));
    for (name, start) in [("GIT_AUTHOR_NAME", ""), ("GIT_AUTHOR_EMAIL", ""), ("GIT_AUTHOR_DATE", "@")] {
        let value = fields.next().unwrap_or_default();
        env.push((name.into(), format!("{start}{value}").into()));
    }
    commit(root, tree, &[parent], fields.next().unwrap_or_default(), &env)
}

/// Whether a commit is in the repository.
#[must_use]
pub fn has_commit(root: &Path, commit: &str) -> bool {
    run(root, &["cat-file", "-e", &format!("{commit}^{{commit}}")], LIMIT).is_ok()
}

/// Whether there are merges among the commits of `head` that `base` has not.
///
/// # Errors
/// If git fails.
pub fn has_merges(root: &Path, base: &str, head: &str) -> Result<bool, GitError> {
    let range = format!("{base}..{head}");
    let words = ["rev-list", "--merges", "--max-count=1", "--end-of-options", &range, "--"];
    Ok(!run(root, &words, LIMIT)?.is_empty())
}

/// The tree of files of a commit; `None` if git fails.
#[must_use]
pub fn files_of(root: &Path, commit: &str) -> Option<String> {
    let output =
        run(root, &["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")], LIMIT).ok()?;
    Some(String::from_utf8_lossy(&output).trim().to_owned())
}

/// Keeps a commit under a ref of a task, in place of the task's earlier refs that it contains.
///
/// # Errors
/// If git fails.
pub fn keep(root: &Path, reference: &str, commit: &str) -> Result<(), GitError> {
    let folder = reference.rsplit_once('/').map_or(reference, |(folder, _)| folder);
    let merged = format!("--merged={commit}");
    let earlier = run(root, &["for-each-ref", "--format=%(refname) %(objectname)", &merged, folder], LIMIT)?;
    let earlier = String::from_utf8_lossy(&earlier);
    let is_other = |line: &&str| line.split(' ').next() != Some(reference);
    let deleted = earlier.lines().filter(is_other);
    let input = deleted
        .fold(format!("update {reference} {commit}\n"), |input, earlier| input + "delete " + earlier + "\n");
    let how = ChangeOptions { input: input.into(), ..ChangeOptions::default() };
    change_with(root, &["update-ref", "-m", "ralph: handed in", "--stdin"], &how)
        .map(drop)
        .map_err(|error| error.of("update-ref", root))
}

fn finished_ref(reference: &str) -> String {
    format!("{FINISHED}{}", reference.strip_prefix(TASKS).unwrap_or(reference))
}

/// Notes that the commits of a task's ref up to this one are to be handed in.
///
/// # Errors
/// If git fails.
pub fn set_finished(root: &Path, reference: &str, commit: &str) -> Result<(), GitError> {
    let words = ["update-ref", "-m", "ralph: finished", &finished_ref(reference), commit];
    change(root, &words).map_err(|error| error.of("update-ref", root))
}

/// Forgets that: it is booked, or never will be.
///
/// # Errors
/// If git fails.
pub fn forget_finished(root: &Path, reference: &str) -> Result<(), GitError> {
    change(root, &["update-ref", "-d", &finished_ref(reference)])
        .map_err(|error| error.of("update-ref", root))
}

/// The refs of tasks in this repository whose commits no branch and no landed tip has, each with its commit, and whether its work is
/// finished.
///
/// # Errors
/// If git fails.
pub fn left_over(root: &Path, tip: &str) -> Result<Vec<(String, String, bool)>, GitError> {
    let no_merged = format!("--no-merged={tip}");
    let output = run(root, &["for-each-ref", "--format=%(refname) %(objectname)", &no_merged, TASKS], LIMIT)?;
    let text = String::from_utf8_lossy(&output).into_owned();
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs
        .map(|(name, commit)| {
            let is_finished = commit_of(root, &finished_ref(name)).as_deref() == Some(commit);
            (name.to_owned(), commit.to_owned(), is_finished)
        })
        .collect())
}

/// Where it is noted as what the commits of a task's ref have landed, if they were made again.
#[must_use]
pub fn replayed_ref(reference: &str) -> String {
    format!("{REPLAYED}{}", reference.strip_prefix(TASKS).unwrap_or(reference))
}

/// Notes as which commit those of a task's ref have landed.
///
/// # Errors
/// If git fails.
pub fn set_replayed(root: &Path, reference: &str, commit: &str) -> Result<(), GitError> {
    let words = ["update-ref", "-m", "ralph: landed", &replayed_ref(reference), commit];
    change(root, &words).map_err(|error| error.of("update-ref", root))
}

/// The commit as which those of a task's ref were made again; `None` if they were not.
#[must_use]
pub fn replayed(root: &Path, reference: &str) -> Option<String> {
    commit_of(root, &replayed_ref(reference))
}

/// The commit as which those of a task's ref, the last of which is `head`, are on the tip already; `None`: they are not.
#[must_use]
pub fn landed_as(root: &Path, reference: &str, head: &str, tip: &str) -> Option<String> {
    let is_on = |commit: &String| is_ancestor(root, commit, tip);
    replayed(root, reference).filter(is_on).or_else(|| Some(head.to_owned()).filter(is_on))
}

/// Forgets that, and the ref itself.
///
/// # Errors
/// If git refuses.
pub fn forget_replayed(root: &Path, reference: &str) -> Result<(), GitError> {
    let input = format!("delete {}\ndelete {reference}\n", replayed_ref(reference));
    let how = ChangeOptions { input: input.into(), ..ChangeOptions::default() };
    change_with(root, &["update-ref", "--stdin"], &how)
        .map(drop)
        .map_err(|error| error.of("update-ref", root))
}

/// The refs of tasks for which it is noted as what their commits have landed.
#[must_use]
pub fn replayed_refs(root: &Path) -> Vec<String> {
    let listed = run(root, &["for-each-ref", "--format=%(refname)", REPLAYED], LIMIT).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed);
    listed.lines().filter_map(|name| Some(format!("{TASKS}{}", name.strip_prefix(REPLAYED)?))).collect()
}

/// Keeps the commits of a task's ref that have landed as others, under the name of the task.
///
/// # Errors
/// If git refuses.
pub fn keep_old(root: &Path, reference: &str) -> Result<(), GitError> {
    let task = reference.strip_prefix(TASKS).and_then(|rest| rest.split('/').nth(1)).unwrap_or("task");
    let commit = commit_of(root, reference);
    commit.map_or(Ok(()), |commit| save::keep_commit(root, task, &commit).map(drop))
}

/// Takes back what a task has brought onto the branch of `root` as `landed`, which was put on `from`, by one commit with this
/// message; returns it. `None`: nothing of it is left there.
///
/// # Errors
/// If that conflicts with later work, or the user's files are in the way. Nothing has changed then.
pub fn take_back(
    root: &Path,
    (from, landed): (&str, &str),
    named: &str,
    message: &str,
) -> Result<Option<String>, RevertError> {
    check_idle(root)?;
    let head = head(root).filter(|head| is_ancestor(root, landed, head));
    let Some(head) = head else { return Err(RevertError::NotHere { commit: landed.to_owned() }) };
    let tree = match merge_since(root, &head, from, landed)? {
        Merged::Tree(tree) => tree,
        Merged::Conflict(files) => {
            let reason = format!("later work has changed {}", shown(files.iter()));
            return Err(RevertError::Conflict { commit: named.to_owned(), reason });
        }
    };
    if files_of(root, &head).as_ref() == Some(&tree) {
        return Ok(None);
    }
    let made = commit(root, &tree, &[&head], message, &[])?;
    change(root, &["merge", "--ff-only", "--quiet", "--no-autostash", &made])
        .map_err(|error| RevertError::Git(error.of("merge", root)))?;
    Ok(Some(made))
}

/// Whose commits since `base` have changed these files, in lines `COMMIT SUBJECT`; at most `most`.
#[must_use]
pub fn who_changed(root: &Path, base: &str, tip: &str, files: &[String], most: usize) -> Vec<String> {
    let (range, most) = (format!("{base}..{tip}"), format!("--max-count={most}"));
    let words = ["log", "--no-merges", "--format=%h %s", &most, &range, "--"];
    let words: Vec<&str> = words.into_iter().chain(files.iter().map(String::as_str)).collect();
    let output = run(root, &words, LIMIT).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().map(str::to_owned).collect()
}

/// The commit from which two lines of work go apart; `None` if they have nothing in common.
#[must_use]
pub fn fork(root: &Path, one: &str, other: &str) -> Option<String> {
    let output = run(root, &["merge-base", one, other], LIMIT).ok()?;
    Some(String::from_utf8_lossy(&output).trim().to_owned())
}

#[cfg(test)]
mod tests;
