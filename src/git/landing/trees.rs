//! Work trees of ours, in which agents work on one task after the other, and the gate runs.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::files::{atomic, theirs};
use crate::git::call::{LIMIT, run};
use crate::git::change::{ChangeError, ChangeOptions, alone, change, change_with};
use crate::git::changes::LOOK_LIMIT;
use crate::git::clean_tree::{entry, entry_in};
use crate::git::error::{GitError, RemoveError};
use crate::git::progress::{in_progress, own_file, own_text, rebase_says};
use crate::git::range::is_ancestor;
use crate::git::repository::head;
use crate::git::revert::shown;
use crate::git::save::{self, Saved};
use crate::git::trees::{CheckedOut, checked_out, list, without_links};
use crate::git::uncommitted::Uncommitted;
use crate::git::worktrees::ADD_LIMIT;
use crate::git::{clean_tree, half_made, head_file, left_locks, nested};
use crate::text::jitter;

/// How often a tree is made once more while another run makes one, and the first pause before that.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);
/// In git's folder of a tree: by which command it was prepared, and what one has found good there.
const PREPARED: &str = "ralph-prepared";
const GOOD: &str = "ralph-good";
/// So many trees of files are known to be good.
pub(super) const MOST_GOOD: usize = 100;
/// How the first and the last line of a conflict begin, and how long the name of a commit is at least, in bytes.
const BEGINS: &[u8] = b"<<<<<<< ";
const ENDS: &[u8] = b">>>>>>> ";
const HASH: usize = 40;
/// In files up to this size, in bytes, conflict markers are looked for.
const LARGEST: u64 = 64 << 20;
/// No hook of the repository runs in a tree that is only put on another commit.
const NO_HOOKS: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

/// Commits all that is not committed in a work tree, with this message and without hooks; returns the files, some of them. `None`
/// if there was nothing. A merge is finished by that.
///
/// # Errors
/// If git refuses, or there are conflict markers of a merge.
pub fn commit_rest(tree: &Path, message: &str) -> Result<Option<String>, GitError> {
    left_locks::remove_in_ours(tree);
    let words = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal"];
    let listed = run(tree, &words, LOOK_LIMIT)?;
    let names: Vec<String> = listed
        .split(|&byte| byte == 0)
        .filter_map(|entry| Some(String::from_utf8_lossy(entry.get(3..)?).into_owned()))
        .collect();
    let operation = in_progress(tree)?;
    let is_merging = operation.is_some_and(|operation| operation.what == "merge");
    if let Some(operation) = operation.filter(|_| !is_merging) {
        if names.is_empty() && end_operation(tree, operation.what)? {
            // What it had set aside is there again.
            return commit_rest(tree, message);
        }
        let what = format!("the agent has left a {} in progress", operation.what);
        return Err(GitError::in_the_way(what, tree.display(), "finish it"));
    }
    if names.is_empty() && !is_merging {
        return Ok(None);
    }
    let mut marked = unmerged(tree)?;
    marked.retain(|name| has_markers(&tree.join(name)));
    if !marked.is_empty() {
        let what = format!("there are conflict markers in {}", shown(marked.iter()));
        return Err(GitError::in_the_way(what, tree.display(), "resolve these conflicts"));
    }
    let of = |command: &'static str| move |error: ChangeError| error.of(command, tree);
    let nested = nested::known(tree, &[])?;
    let words = ["add", "--all", "--"].into_iter().map(OsString::from).chain(nested::all_but(&nested));
    change(tree, &words.collect::<Vec<_>>()).map_err(of("add"))?;
    if !nested.is_empty() {
        let paths = nested.into_iter().map(PathBuf::into_os_string);
        let words = ["update-index", "--remove", "--"].into_iter().map(OsString::from).chain(paths);
        change(tree, &words.collect::<Vec<_>>()).map_err(of("update-index"))?;
    }
    // All of it may be ignored, or undone meanwhile.
    if !is_merging && run(tree, &["diff", "--cached", "--quiet", "--no-ext-diff"], LOOK_LIMIT).is_ok() {
        return Ok(None);
    }
    let words: Vec<&str> =
        NO_HOOKS.into_iter().chain(["commit", "--quiet", "--no-verify", "-m", message]).collect();
    change(tree, &words).map_err(of("commit"))?;
    Ok(Some(shown(names.iter())))
}

/// Ends an operation that an agent has left in a clean work tree, if no commit is lost by that; returns whether it has ended.
fn end_operation(tree: &Path, what: &str) -> Result<bool, GitError> {
    let ends: &[[&str; 2]] = match what {
        "rebase" if has_only_replayed(tree) => &[["rebase", "--abort"]],
        "bisect" if has_only_searched(tree) => &[["bisect", "reset"]],
        "rebase" | "bisect" => &[],
        "patch series" => &[["am", "--quit"]],
        _ => &[["cherry-pick", "--quit"], ["revert", "--quit"]],
    };
    for end in ends {
        // Whichever it is not refuses, and whatever does not end is seen below.
        let _ = change(tree, &NO_HOOKS.into_iter().chain(*end).collect::<Vec<_>>());
    }
    Ok(in_progress(tree)?.is_none())
}

/// Whether a rebase that has stopped has made no other commits than those it began with.
fn has_only_replayed(tree: &Path) -> bool {
    let Some((before, onto)) = rebase_says(tree, "orig-head").zip(rebase_says(tree, "onto")) else {
        return false;
    };
    let listed = run(tree, &["cherry", &before, "HEAD", &onto], LOOK_LIMIT);
    listed.is_ok_and(|listed| !listed.split(|&byte| byte == b'\n').any(|line| line.starts_with(b"+")))
}

/// Whether a search has made no commits.
fn has_only_searched(tree: &Path) -> bool {
    let start = own_text(tree, "BISECT_START");
    start.zip(head(tree)).is_some_and(|(start, head)| is_ancestor(tree, &head, &start))
}

/// [`relink_in`] the repository of the work tree `root`.
///
/// # Errors
/// If something cannot be read or written.
pub fn relink(root: &Path, tree: &Path) -> Result<bool, GitError> {
    head_file::common_dir(root).map_or(Ok(false), |repository| relink_in(&repository, tree))
}

/// Leads a work tree back to its repository, the folder of git's, where an agent has removed that link; a repository of its own in
/// that place is moved into git's folder of the tree. Returns whether it is a work tree of the repository now.
///
/// # Errors
/// If something cannot be read or written.
pub fn relink_in(repository: &Path, tree: &Path) -> Result<bool, GitError> {
    let (real, link) = (without_links(tree), without_links(tree).join(".git"));
    let Some(entry) = entry_in(repository, &real)?.filter(|_| real.is_dir()) else { return Ok(false) };
    if leads_to_entry(&real, &entry) {
        return Ok(true);
    }
    let free =
        (1..=u8::MAX).map(|number| entry.join(format!("moved-{number}"))).find(|place| !place.exists());
    if let Some(free) = free.filter(|_| link.symlink_metadata().is_ok()) {
        fs::rename(&link, free).map_err(GitError::unreadable(&link))?;
    }
    let text = [b"gitdir: ", entry.as_os_str().as_bytes(), b"\n"].concat();
    atomic::write_theirs(&link, &text)?;
    Ok(true)
}

/// Whether a work tree leads to this folder, which is what its repository has of it.
fn leads_to_entry(tree: &Path, entry: &Path) -> bool {
    leads_to(tree).is_some_and(|target| target == without_links(entry))
}

/// Takes all work trees below a folder off their branches. No agent may be at work there.
///
/// # Errors
/// If git fails.
pub fn detach_all(root: &Path, folder: &Path) -> Result<(), GitError> {
    let folder = without_links(folder);
    for tree in list(root)?.into_iter().filter(|tree| tree.branch.is_some() && tree.path.starts_with(&folder))
    {
        detach(root, &tree.path);
    }
    Ok(())
}

/// The commit of a work tree's HEAD, also if the tree does not lead to its repository any more, or is gone.
#[must_use]
pub fn head_of(root: &Path, tree: &Path) -> Option<String> {
    let entry = entry(root, tree).ok()??;
    if leads_to_entry(tree, &entry) {
        return head(tree);
    }
    let git_dir = format!("--git-dir={}", entry.to_str()?);
    let output = run(root, &[&git_dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"], LIMIT).ok()?;
    Some(String::from_utf8_lossy(&output).trim().to_owned())
}

/// Takes a work tree off the branch that was checked out in it; its files stay as they are. If that fails, the branch does not
/// follow, which is reported then.
pub fn detach(root: &Path, tree: &Path) {
    // An operation in progress would be forgotten.
    let is_idle = matches!(in_progress(tree), Ok(None));
    let is_ours = || matches!(entry(root, tree), Ok(Some(entry)) if leads_to_entry(tree, &entry));
    if is_idle && is_ours() && matches!(checked_out(tree), Ok(CheckedOut::Branch(_))) {
        let words = NO_HOOKS.into_iter().chain(["checkout", "--quiet", "--detach"]);
        let _ = change(tree, &words.collect::<Vec<_>>());
    }
}

/// Makes a detached work tree at `tree` on `commit`, if there is none; returns whether it is new.
///
/// # Errors
/// If something is in the way.
pub fn add(root: &Path, tree: &Path, commit: &str) -> Result<bool, GitError> {
    let real = without_links(tree);
    if real.join(".git").symlink_metadata().is_err() {
        half_made::wait_for_other(&real)?;
    }
    let is_linked = relink(root, &real)?;
    let known = list(root)?.into_iter().find(|known| known.path == real);
    if let Some(known) = &known
        && let Some(why) =
            known.locked.as_ref().filter(|why| !why.starts_with("initializing") && known.is_gone)
    {
        let what = format!("a work tree is locked ({why}), and its folder is gone");
        let way_out = "mount the disk it is on, or give it up with 'git worktree unlock'";
        return Err(GitError::in_the_way(what, real.display(), way_out));
    }
    if known.is_some() && is_linked && !is_half_made(&real) {
        return Ok(false);
    }
    if known.is_none()
        && fs::read_dir(&real).is_ok_and(|mut entries| entries.next().is_some())
        && !is_of(root, &real)
    {
        let what = "the place of a work tree for tasks is taken";
        return Err(GitError::in_the_way(what, real.display(), "move it away"));
    }
    let mut tries = 0;
    loop {
        // A git that was killed has left it so, or its folder was removed.
        clean_tree::remove(root, &real)?;
        match make(root, &real, commit) {
            // git reads the entries of all trees, also one that the git of another run is making just now.
            Err(GitError::Refused { .. }) if tries < TRIES => {
                tries += 1;
                thread::sleep(jitter::around(PAUSE * tries));
            }
            made => return made.map(|()| true),
        }
    }
}

/// Adds a detached work tree without its files.
fn make(root: &Path, real: &Path, commit: &str) -> Result<(), GitError> {
    let _alone = alone();
    let _ = real.parent().map(fs::create_dir_all);
    let words =
        ["worktree", "add", "--quiet", "--force", "--detach", "--no-checkout"].map(OsStr::new).into_iter();
    let words: Vec<&OsStr> = words.chain([real.as_os_str(), OsStr::new(commit)]).collect();
    let how = ChangeOptions { limit: ADD_LIMIT, ..ChangeOptions::default() };
    change_with(root, &words, &how).map(drop).map_err(|error| error.of("worktree add", real))
}

/// Whether the git that made a tree was killed before its files were written.
fn is_half_made(tree: &Path) -> bool {
    let git_dir = head_file::git_dir(tree).ok().flatten();
    git_dir.is_none_or(|git_dir| !half_made::is_whole(&git_dir))
}

/// Whether what is at `tree` was a work tree of this repository.
fn is_of(root: &Path, tree: &Path) -> bool {
    let common = head_file::common_dir(root).map(|common| without_links(&common));
    common.zip(leads_to(tree)).is_some_and(|(common, target)| target.starts_with(&common))
}

/// The folder of git's that a work tree names.
fn leads_to(tree: &Path) -> Option<PathBuf> {
    let text = theirs::text(&tree.join(".git")).ok()?;
    let target = text.trim_end().strip_prefix("gitdir: ")?;
    Some(without_links(&tree.join(target)))
}

/// Whether a work tree was prepared by this command: it has what a new one lacks.
#[must_use]
pub fn is_prepared(tree: &Path, by: &str) -> bool {
    own_file(tree, PREPARED).is_some_and(|file| theirs::text(&file).is_ok_and(|text| text == by))
}

/// Notes that, for as long as the work tree lasts. If it cannot be noted, the tree is prepared once more.
pub fn set_prepared(tree: &Path, by: &str) {
    if let Some(file) = own_file(tree, PREPARED) {
        let _ = atomic::write_theirs(&file, by.as_bytes());
    }
}

/// The trees of files that were found good in a work tree by this command, the oldest first.
#[must_use]
pub fn known_good(tree: &Path, by: &str) -> Vec<String> {
    let text = own_file(tree, GOOD).and_then(|file| theirs::text(&file).ok()).unwrap_or_default();
    let mut lines = text.lines().map(str::to_owned);
    if lines.next() == Some(by.escape_debug().to_string()) { lines.collect() } else { Vec::new() }
}

/// Notes that, for as long as the work tree lasts. If it cannot be noted, the command runs once more.
pub fn set_good(tree: &Path, by: &str, files: &str) {
    let mut known = known_good(tree, by);
    if !known.iter().any(|one| one == files) {
        known.push(files.to_owned());
        let last = &known[known.len().saturating_sub(MOST_GOOD)..];
        let text = format!("{}\n{}\n", by.escape_debug(), last.join("\n"));
        let _ = own_file(tree, GOOD).map(|file| atomic::write_theirs(&file, text.as_bytes()));
    }
}

/// Puts a work tree of ours on a commit. What is uncommitted there, and commits that no ref leads to, are kept first, under the
/// name in `keep`; without one they are given up. Ignored files stay.
///
/// # Errors
/// If git refuses, or something cannot be saved.
pub fn put(root: &Path, tree: &Path, keep: Option<&str>, commit: &str) -> Result<Vec<Saved>, RemoveError> {
    left_locks::remove_in_ours(tree);
    let mut saved = Vec::new();
    let git_dir =
        head_file::git_dir(tree).map_err(GitError::unreadable(tree))?.ok_or(RemoveError::Changed)?;
    let is_new = !git_dir.join("index").exists();
    let is_busy = in_progress(tree)?.is_some();
    if let Some(name) = keep.filter(|_| !is_new) {
        let words = ["status", "--porcelain=v1", "-z", "--untracked-files=normal"];
        if is_busy || !run(tree, &words, LOOK_LIMIT)?.is_empty() {
            let uncommitted = Uncommitted::read(tree, &git_dir)?;
            if let Some((commit, what)) = uncommitted.commit()? {
                saved.push(save::keep(root, name, &commit, what)?);
            }
            if !uncommitted.is_still_so()? {
                return Err(RemoveError::Changed);
            }
        }
        if let Some(before) = rebase_says(tree, "orig-head").filter(|before| before != commit) {
            saved.push(save::keep_commit(root, name, &before)?);
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
        let how = ChangeOptions { limit: ADD_LIMIT, ..ChangeOptions::default() };
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
    // Whatever the user's settings of merges are: this one is ours.
    let words = [
        "merge",
        "--ff",
        "--no-verify-signatures",
        "--quiet",
        "--no-verify",
        "--no-edit",
        "-m",
        message,
        commit,
    ];
    let words: Vec<&str> = NO_HOOKS.into_iter().chain(words).collect();
    let Err(error) = change(tree, &words) else { return Ok(Vec::new()) };
    let names = unmerged(tree)?;
    if names.is_empty() { Err(error.of("merge", tree)) } else { Ok(names) }
}

/// The files of a merge that are not marked as resolved.
fn unmerged(tree: &Path) -> Result<Vec<String>, GitError> {
    names(tree, &["diff", "--name-only", "--diff-filter=U", "-z", "--no-ext-diff"])
}

/// The names that git prints, with a NUL after each.
fn names(tree: &Path, words: &[&str]) -> Result<Vec<String>, GitError> {
    let listed = run(tree, words, LOOK_LIMIT)?;
    let names = listed.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// The files of a work tree with a difference to `base` in which markers of [`merge_into`] are left.
///
/// # Errors
/// If git fails.
pub fn still_marked(tree: &Path, base: &str) -> Result<Vec<String>, GitError> {
    let mut changed = names(tree, &["diff", "--name-only", "-z", "--no-ext-diff", base, "HEAD", "--"])?;
    // That merges a commit, which these name; files that have markers as their content name other things.
    let is_of_merge = |label: &[u8]| label.len() >= HASH && label.iter().all(u8::is_ascii_hexdigit);
    changed.retain(|name| {
        let text = theirs::read(&tree.join(name), LARGEST).unwrap_or_default();
        let mut lines = text.split(|&byte| byte == b'\n');
        lines.any(|line| line.trim_ascii_end().strip_prefix(ENDS).is_some_and(is_of_merge))
    });
    Ok(changed)
}

/// Whether there are conflict markers in a file.
fn has_markers(file: &Path) -> bool {
    let text = theirs::read(file, LARGEST).unwrap_or_default();
    let starts = |start: &[u8]| text.split(|&byte| byte == b'\n').any(|line| line.starts_with(start));
    starts(BEGINS) && starts(ENDS)
}
