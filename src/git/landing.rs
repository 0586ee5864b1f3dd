//! What landing needs of git: candidates without a work tree, the landed tip, the trunk that follows it, and work trees that are
//! used for one task after the other.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::call::{LIMIT, run};
use super::change::{ChangeOptions, alone, attempt, change, change_with};
use super::changes::LOOK_LIMIT;
use super::error::{CutOff, GitError, RemoveError};
use super::half_made;
use super::head_file;
use super::identity::signs;
use super::progress::in_progress;
use super::range::is_ancestor;
use super::refs::{branch_commit, commit_of};
use super::repository::head;
use super::revert::{RevertError, check_idle, shown};
use super::save::{self, Saved};
use super::trees::{Tree, list, without_links};
use super::uncommitted::Uncommitted;
use crate::files::theirs;

/// The refs of landed tips.
const LANDED: &str = "refs/ralph/landed";
/// The refs that keep up to which commit a trunk is known, to see that it was rewritten.
const KNOWN: &str = "refs/ralph/trunk";
/// Where the refs of tasks' commits are.
const TASKS: &str = "refs/ralph/tasks";
/// Where it is noted as which commits those of tasks have landed that were made again.
const REPLAYED: &str = "refs/ralph/replayed";
/// No hook of the repository runs in a tree that is only put on another commit.
const NO_HOOKS: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

/// What became of a merge that needs no work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// A tree of files.
    Tree(String),
    /// These files conflict.
    Conflict(Vec<String>),
}

/// Merges two commits; with `since`, only what came after that commit into `theirs`.
///
/// # Errors
/// If git fails.
pub fn merge(root: &Path, ours: &str, theirs: &str, since: Option<&str>) -> Result<Merged, GitError> {
    let since = since.map(|commit| format!("--merge-base={commit}"));
    let words = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"].into_iter();
    let words: Vec<&str> = words.chain(since.as_deref()).chain([ours, theirs]).collect();
    let how = ChangeOptions::default();
    let failed = |error: super::change::ChangeError| error.of("merge-tree", root);
    let captured = attempt(root, &words, &how).map_err(|error| failed(error.into()))?;
    let code = CutOff::or_code(captured.end, how.limit)
        .map_err(|end| failed(super::change::ChangeError::CutOff(end)))?;
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

/// The refs of one trunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trunk {
    /// Any work tree of the repository.
    root: PathBuf,
    /// The name of the branch.
    name: String,
}

/// Makes the landed tip of a trunk, or takes up an earlier one. `anew`: the user has named the branch once more, which accepts
/// what is there.
///
/// # Errors
/// If the branch is not what it was, or git fails.
pub fn begin(trunk: &Trunk, anew: bool) -> Result<(), GitError> {
    let stand = trunk.begin(anew)?;
    trunk.problem(&stand).map_or(Ok(()), Err)
}

/// What the trunk is, seen from the landed tip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stand {
    /// It is the tip.
    Level,
    /// The tip has all that it has, and more.
    Behind,
    /// It has commits of others, which the tip has not; this is its commit.
    Ahead(String),
    /// It does not have any more what it had.
    Rewritten,
    /// There is no such branch.
    Gone,
}

/// What became of an attempt to bring the trunk to the tip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// It is there, and was before.
    Level,
    /// It is there now.
    Moved,
    /// It cannot now, for this reason.
    InTheWay(String),
}

impl Trunk {
    /// The branch of this name in the repository of `root`.
    #[must_use]
    pub fn new(root: &Path, name: &str) -> Self {
        Self { root: root.to_owned(), name: name.to_owned() }
    }

    /// The name of the branch.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The ref of the landed tip.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{LANDED}/{}", self.name)
    }

    fn known(&self) -> String {
        format!("{KNOWN}/{}", self.name)
    }

    /// The landed tip; `None` before anything was to land.
    #[must_use]
    pub fn tip(&self) -> Option<String> {
        commit_of(&self.root, &self.reference())
    }

    /// The commit of the branch.
    #[must_use]
    pub fn commit(&self) -> Option<String> {
        branch_commit(&self.root, &self.name)
    }

    /// Makes the landed tip where there is none; a tip that the branch has overtaken goes on from there only after a gate.
    /// `anew`: what is there is accepted, although the branch was rewritten; the last tip is kept.
    ///
    /// # Errors
    /// If git fails.
    fn begin(&self, anew: bool) -> Result<Stand, GitError> {
        let Some(commit) = self.commit() else { return Ok(Stand::Gone) };
        let Some(tip) = self.tip() else {
            self.set(&self.reference(), &commit, Some(""))?;
            self.set(&self.known(), &commit, None)?;
            return Ok(Stand::Level);
        };
        match self.stand(&tip) {
            Stand::Rewritten if anew => {
                if !is_ancestor(&self.root, &tip, &commit) {
                    save::keep_commit(&self.root, &self.name, &tip)?;
                }
                self.set(&self.reference(), &commit, Some(&tip))?;
                self.set(&self.known(), &commit, None)?;
                Ok(Stand::Level)
            }
            stand => Ok(stand),
        }
    }

    /// How the branch stands to this tip.
    #[must_use]
    pub fn stand(&self, tip: &str) -> Stand {
        let Some(commit) = self.commit() else { return Stand::Gone };
        if commit == tip {
            return Stand::Level;
        }
        let known = commit_of(&self.root, &self.known());
        if known.is_some_and(|known| !is_ancestor(&self.root, &known, &commit)) {
            return Stand::Rewritten;
        }
        if is_ancestor(&self.root, &commit, tip) { Stand::Behind } else { Stand::Ahead(commit) }
    }

    /// What to do about a trunk that nothing can land on; `None`: it is as it should be.
    #[must_use]
    pub fn problem(&self, stand: &Stand) -> Option<GitError> {
        let name = &self.name;
        let what = match stand {
            Stand::Gone => format!("the branch {name} is gone"),
            Stand::Rewritten => format!("the branch {name} was rewritten, and lacks commits that it had"),
            Stand::Level | Stand::Behind | Stand::Ahead(_) => return None,
        };
        let reference = self.reference();
        let way_out = match stand {
            Stand::Gone => format!("bring back what has landed with 'git branch {name} {reference}'"),
            _ => format!(
                "put it on what has landed with 'git branch -f {name} {reference}', or run again with --onto {name} to take it as it \
                 is"
            ),
        };
        Some(GitError::in_the_way(what, reference, way_out))
    }

    /// The error about a landed tip that is gone while something is to land.
    #[must_use]
    pub fn tip_is_gone(&self) -> GitError {
        let way_out = format!("run again to land on {} as it is", self.name);
        GitError::in_the_way("the ref of what has landed was removed", self.reference(), way_out)
    }

    /// Moves the landed tip from `old` to `new`, and nowhere else: fails if it is not there any more. `again`: refs of tasks whose
    /// commits were made again, with the last one of the new ones, which are noted in the same step.
    ///
    /// # Errors
    /// If git refuses.
    pub fn advance(&self, old: &str, new: &str, again: &[(String, String)]) -> Result<(), GitError> {
        let mut input = format!("start\nupdate {} {new} {old}\n", self.reference());
        for (reference, commit) in again {
            let _ = writeln!(input, "update {} {commit}", replayed_ref(reference));
        }
        input.push_str("prepare\ncommit\n");
        let how = ChangeOptions { input: input.into(), ..ChangeOptions::default() };
        change_with(&self.root, &["update-ref", "-m", "ralph: landed", "--stdin"], &how)
            .map(drop)
            .map_err(|error| error.of("update-ref", &self.root))
    }

    fn set(&self, reference: &str, commit: &str, old: Option<&str>) -> Result<(), GitError> {
        let words = ["update-ref", "-m", "ralph: landed", reference, commit].into_iter().chain(old);
        change(&self.root, &words.collect::<Vec<_>>()).map_err(|error| error.of("update-ref", &self.root))
    }

    /// Brings the branch to the tip by a fast-forward: where it is checked out, with its files. Afterwards removes the refs of
    /// tasks whose commits it has.
    ///
    /// # Errors
    /// If git fails for another reason than files in the way.
    pub fn follow(&self, tip: &str) -> Result<Followed, GitError> {
        let commit = match self.stand(tip) {
            Stand::Level => {
                self.set(&self.known(), tip, None)?;
                self.forget_landed()?;
                return Ok(Followed::Level);
            }
            Stand::Behind => self.commit().unwrap_or_default(),
            // Others decide what to do then.
            Stand::Ahead(_) | Stand::Rewritten | Stand::Gone => return Ok(Followed::Level),
        };
        let trees = list(&self.root)?;
        if let Some(tree) = trees.iter().find(|tree| self.is_being_changed_in(tree)) {
            let place = tree.path.display();
            return Ok(Followed::InTheWay(format!("{place} is at work on {}: finish that", self.name)));
        }
        let out: Vec<&Tree> =
            trees.iter().filter(|tree| tree.branch.as_deref() == Some(&self.name) && !tree.is_gone).collect();
        match out.as_slice() {
            [] => {
                let reference = format!("refs/heads/{}", self.name);
                self.set(&reference, tip, Some(&commit))?;
            }
            [tree] => {
                let words = ["merge", "--ff-only", "--quiet", "--no-autostash", tip];
                if let Err(error) = change(&tree.path, &words) {
                    return Ok(Followed::InTheWay(format!("{}: {error}", tree.path.display())));
                }
            }
            [one, other, ..] => {
                return Ok(Followed::InTheWay(format!(
                    "{} is checked out twice, in {} and {}: leave it in one of them",
                    self.name,
                    one.path.display(),
                    other.path.display()
                )));
            }
        }
        self.set(&self.known(), tip, None)?;
        self.forget_landed()?;
        Ok(Followed::Moved)
    }

    /// Whether a rebase of this branch is in progress there.
    fn is_being_changed_in(&self, tree: &Tree) -> bool {
        let Ok(Some(git_dir)) = head_file::git_dir(&tree.path) else { return false };
        let names = ["rebase-merge/head-name", "rebase-apply/head-name"];
        let heads = names.iter().filter_map(|name| theirs::text(&git_dir.join(name)).ok());
        let own = format!("refs/heads/{}", self.name);
        heads.into_iter().any(|head| head.trim_end() == own)
    }

    /// Removes the refs of tasks whose commits the branch has.
    fn forget_landed(&self) -> Result<(), GitError> {
        let merged = format!("--merged=refs/heads/{}", self.name);
        let output = run(&self.root, &["for-each-ref", "--format=delete %(refname)", &merged, TASKS], LIMIT)?;
        if output.is_empty() {
            return Ok(());
        }
        let how = ChangeOptions { input: output, ..ChangeOptions::default() };
        change_with(&self.root, &["update-ref", "--stdin"], &how)
            .map(drop)
            .map_err(|error| error.of("update-ref", &self.root))
    }
}

/// Keeps a commit under a ref of a task.
///
/// # Errors
/// If git fails.
pub fn keep(root: &Path, reference: &str, commit: &str) -> Result<(), GitError> {
    change(root, &["update-ref", "-m", "ralph: handed in", reference, commit])
        .map_err(|error| error.of("update-ref", root))
}

/// Where it is noted as what the commits of a task's ref have landed, if they were made again.
fn replayed_ref(reference: &str) -> String {
    format!("{REPLAYED}{}", reference.strip_prefix(TASKS).unwrap_or(reference))
}

/// The commit as which those of a task's ref were made again; `None` if they were not.
#[must_use]
pub fn replayed(root: &Path, reference: &str) -> Option<String> {
    commit_of(root, &replayed_ref(reference))
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

/// Keeps commits that have landed as others.
///
/// # Errors
/// If git refuses.
pub fn keep_old(root: &Path, name: &str, commit: &str) -> Result<(), GitError> {
    save::keep_commit(root, name, commit).map(drop)
}

/// Commits all that is not committed in a work tree, with this message and without hooks; returns the files, some of them. `None`
/// if there was nothing.
///
/// # Errors
/// If git refuses.
pub fn commit_rest(tree: &Path, message: &str) -> Result<Option<String>, GitError> {
    let words = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal"];
    let listed = run(tree, &words, LOOK_LIMIT)?;
    let names: Vec<String> = listed
        .split(|&byte| byte == 0)
        .filter_map(|entry| Some(String::from_utf8_lossy(entry.get(3..)?).into_owned()))
        .collect();
    if names.is_empty() {
        return Ok(None);
    }
    let of = |command: &'static str| move |error: super::change::ChangeError| error.of(command, tree);
    change(tree, &["add", "--all", "--", "."]).map_err(of("add"))?;
    // Only ignored changes of submodules may be left.
    if run(tree, &["diff", "--cached", "--quiet", "--no-ext-diff"], LOOK_LIMIT).is_ok() {
        return Ok(None);
    }
    let words: Vec<&str> =
        NO_HOOKS.into_iter().chain(["commit", "--quiet", "--no-verify", "-m", message]).collect();
    change(tree, &words).map_err(of("commit"))?;
    Ok(Some(shown(names.iter())))
}

/// Makes a detached work tree at `tree` on `commit`, if there is none; returns whether it is new.
///
/// # Errors
/// If something is in the way.
pub fn add(root: &Path, tree: &Path, commit: &str) -> Result<bool, GitError> {
    let real = without_links(tree);
    let is_there = || real.join(".git").symlink_metadata().is_ok();
    if !is_there() {
        half_made::wait_for_other(&real)?;
    }
    let known = list(root)?.into_iter().find(|known| known.path == real);
    if let Some(known) = &known
        && let Some(why) =
            known.locked.as_ref().filter(|why| !why.starts_with("initializing") && known.is_gone)
    {
        let what = format!("a work tree is locked ({why}), and its folder is gone");
        let way_out = "mount the disk it is on, or give it up with 'git worktree unlock'";
        return Err(GitError::in_the_way(what, real.display(), way_out));
    }
    let is_whole = known.is_some() && is_there() && head_file::git_dir(&real).ok().flatten().is_some();
    if is_whole && !is_half_made(&real) {
        return Ok(false);
    }
    if known.is_none()
        && fs::read_dir(&real).is_ok_and(|mut entries| entries.next().is_some())
        && !is_of(root, &real)
    {
        let what = "the place of a work tree for tasks is taken";
        return Err(GitError::in_the_way(what, real.display(), "move it away"));
    }
    // A git that was killed has left it so, or its folder was removed.
    super::clean_tree::remove(root, &real)?;
    let _alone = alone();
    let _ = real.parent().map(fs::create_dir_all);
    let words =
        ["worktree", "add", "--quiet", "--force", "--detach", "--no-checkout"].map(OsStr::new).into_iter();
    let words: Vec<&OsStr> = words.chain([real.as_os_str(), OsStr::new(commit)]).collect();
    let how = ChangeOptions { limit: super::worktrees::ADD_LIMIT, ..ChangeOptions::default() };
    change_with(root, &words, &how).map_err(|error| error.of("worktree add", &real))?;
    Ok(true)
}

/// Whether the git that made a tree was killed before its files were written.
fn is_half_made(tree: &Path) -> bool {
    let git_dir = head_file::git_dir(tree).ok().flatten();
    git_dir.is_none_or(|git_dir| !half_made::is_whole(&git_dir))
}

/// Whether what is at `tree` was a work tree of this repository.
fn is_of(root: &Path, tree: &Path) -> bool {
    let Ok(text) = theirs::text(&tree.join(".git")) else { return false };
    let common = head_file::common_dir(root).map(|common| without_links(&common));
    let leads_to = text.trim_end().strip_prefix("gitdir: ").map(PathBuf::from);
    common.zip(leads_to).is_some_and(|(common, leads_to)| without_links(&leads_to).starts_with(&common))
}

/// Puts a work tree of ours on a commit. What is uncommitted there, and commits that no ref leads to, are kept first, under the
/// name in `keep`; without one they are given up. Ignored files stay.
///
/// # Errors
/// If git refuses, or something cannot be saved.
pub fn put(root: &Path, tree: &Path, keep: Option<&str>, commit: &str) -> Result<Vec<Saved>, RemoveError> {
    let mut saved = Vec::new();
    let git_dir =
        head_file::git_dir(tree).map_err(GitError::unreadable(tree))?.ok_or(RemoveError::Changed)?;
    let is_new = !git_dir.join("index").exists();
    let is_busy = in_progress(tree)?.is_some();
    if let Some(name) = keep.filter(|_| !is_new) {
        let words =
            ["status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=none"];
        if is_busy || !run(tree, &words, LOOK_LIMIT)?.is_empty() {
            let uncommitted = Uncommitted::read(tree, &git_dir)?;
            if let Some((commit, what)) = uncommitted.commit()? {
                saved.push(save::keep(root, name, &commit, what)?);
            }
            if !uncommitted.is_still_so()? {
                return Err(RemoveError::Changed);
            }
        }
        // Earlier commits of the tree are in its own log, which stays.
        if let Some(head) = head(tree).filter(|head| saved.is_empty() && head != commit)
            && run(root, &["for-each-ref", "--count=1", "--contains", &head], LIMIT)?.is_empty()
        {
            saved.push(save::keep_commit(root, name, &head)?);
        }
    }
    let git = |words: &[&str]| {
        let words: Vec<&str> = NO_HOOKS.into_iter().chain(words.iter().copied()).collect();
        let how = ChangeOptions { limit: super::worktrees::ADD_LIMIT, ..ChangeOptions::default() };
        change_with(tree, &words, &how).map_err(|error| error.of(words[2], tree))
    };
    if is_busy {
        // What they were about is saved by now.
        for operation in ["rebase", "cherry-pick", "revert", "am", "bisect"] {
            let end = if operation == "bisect" { "reset" } else { "--quit" };
            let _ = git(&[operation, end]);
        }
    }
    git(&["checkout", "--quiet", "--detach", "--force", "--no-recurse-submodules", commit, "--"])?;
    git(&["clean", "--quiet", "-d", "--force", "--force"])?;
    Ok(saved)
}

/// Merges a commit into a work tree of ours, which is clean. Returns the files that conflict: their markers are left there.
///
/// # Errors
/// If git fails for another reason.
pub fn merge_into(tree: &Path, commit: &str, message: &str) -> Result<Vec<String>, GitError> {
    let words = ["merge", "--quiet", "--no-verify", "--no-edit", "-m", message, commit];
    let words: Vec<&str> = NO_HOOKS.into_iter().chain(words).collect();
    let Err(error) = change(tree, &words) else { return Ok(Vec::new()) };
    let unmerged = run(tree, &["diff", "--name-only", "--diff-filter=U", "-z", "--no-ext-diff"], LOOK_LIMIT)?;
    let names: Vec<String> = unmerged
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    if names.is_empty() { Err(error.of("merge", tree)) } else { Ok(names) }
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
    let tree = match merge(root, &head, from, Some(landed))? {
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
