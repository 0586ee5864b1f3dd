//! A detached work tree of ralph's own, in which a commit is laid out as it was committed: no hook runs there, and no
//! filter or setting that an agent can write into the repository's configuration decides about its files. It holds
//! nothing that is worth keeping.

mod objects;
mod place;
mod submodules;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::call::{LIMIT, run, run_with, run_within};
use super::change::alone;
use super::changes::{LOOK_LIMIT, touched};
use super::error::GitError;
use super::head_file;
use super::trees::without_links;
use place::{Place, environment, in_repository, known, settings};

pub use objects::{verify_commit, verify_since};
pub use place::{entry, entry_in};

/// The refs that keep the commits alive against which work is measured.
const BASES: &str = "refs/ralph/base";
/// How many bytes of a difference are shown, and how many paths it may be limited to.
const SHOWN: usize = 64 * 1024;
const MOST_PATHS: usize = 500;
/// How long a folder is removed again in which a program still writes that is about to end, and the pause before each try.
const STILL_WRITTEN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_millis(20));

/// Adds the tree at `tree` for `commit`, without its files. What was there before has been [removed](remove).
///
/// # Errors
/// If git refuses.
pub fn add(root: &Path, tree: &Path, commit: &str) -> Result<(), GitError> {
    let _alone = alone();
    // Twice: also where git still has a locked entry for this path.
    let words = ["worktree", "add", "--force", "--force", "--detach", "--no-checkout"].map(OsStr::new);
    let words: Vec<&OsStr> = words.into_iter().chain([tree.as_os_str(), OsStr::new(commit)]).collect();
    in_repository(root, &words)
}

/// Lays out `commit` in the tree. Ignored files that are no part of it stay, as they may be what a build has made;
/// other files are removed. Files that are as committed stay untouched.
///
/// # Errors
/// If git refuses, or a filter of the repository's cannot be switched off.
pub fn lay(root: &Path, tree: &Path, commit: &str) -> Result<(), GitError> {
    let place = Place::of(root, tree)?;
    let git = |words: &[&str]| place.git(words, Vec::new());
    let entry = known(root, tree)?;
    let is_empty = !has_files(tree);
    if !is_empty && !entry.join("index").exists() {
        // Without times in it, git compares contents.
        git(&["read-tree", commit])?;
        git(&["update-index", "-q", "--ignore-missing", "--refresh"])?;
    }
    git(&["checkout", "--quiet", "--detach", "--force", commit, "--"])?;
    if !is_empty {
        git(&["clean", "--quiet", "-d", "--force", "--force"])?;
    }
    submodules::lay(&place, root, tree, &entry)
}

/// Whether a tree has more than its `.git` file.
fn has_files(tree: &Path) -> bool {
    let entries = fs::read_dir(tree).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name() != ".git")
}

/// Has the next [`lay`] compare the contents of all files.
///
/// # Errors
/// If the index cannot be removed.
pub fn distrust_index(root: &Path, tree: &Path) -> Result<(), GitError> {
    let Some(entry) = entry(root, tree)? else { return Ok(()) };
    let removed = gone(fs::remove_file(entry.join("index"))).and_then(|()| submodules::distrust(&entry));
    removed.map_err(GitError::unreadable(&entry))
}

/// Removes the tree and git's entry for it, whatever state they are in.
///
/// # Errors
/// If something of it cannot be removed.
pub fn remove(root: &Path, tree: &Path) -> Result<(), GitError> {
    let _alone = alone();
    // The folder first: as long as the entry is there, an interrupted removal can be continued.
    remove_folder(tree).map_err(GitError::unreadable(tree))?;
    while let Some(entry) = entry(root, tree)? {
        remove_folder(&entry).map_err(GitError::unreadable(&entry))?;
    }
    Ok(())
}

/// Removes a folder with everything in it, also where folders are read-only, or a program still writes that was killed.
///
/// # Errors
/// If something of it cannot be removed.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    let deadline = Instant::now() + STILL_WRITTEN.0;
    let mut is_open = false;
    loop {
        match gone(fs::remove_dir_all(folder)) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied && !is_open => {
                open_folders(folder);
                is_open = true;
            }
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty && Instant::now() < deadline => {
                thread::sleep(STILL_WRITTEN.1);
            }
            result => return result,
        }
    }
}

fn open_folders(folder: &Path) {
    if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return;
    }
    // What still cannot be removed is reported then.
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        open_folders(&entry.path());
    }
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// The files of the commit that is laid out in the tree, relative to it.
///
/// # Errors
/// If git fails.
pub fn files(root: &Path, tree: &Path) -> Result<BTreeSet<PathBuf>, GitError> {
    let names =
        Place::of(root, tree)?.read(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD"])?;
    let names = names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
}

/// Whether files lie in the tree that are no part of its commit, and that git does not ignore; those that were `carried` there
/// do not count.
///
/// # Errors
/// If git fails.
pub fn has_strays(root: &Path, tree: &Path, carried: &[PathBuf]) -> Result<bool, GitError> {
    let words = ["ls-files", "--others", "--exclude-standard", "-z"];
    let listed = Place::of(root, tree)?.read(&words)?;
    let mut strays = listed.split(|&byte| byte == 0).filter(|path| !path.is_empty());
    Ok(strays.any(|path| !carried.iter().any(|carried| carried.as_os_str().as_bytes() == path)))
}

/// What lies in the work tree `root` beside its commit, relative to it: changed, untracked and ignored files, and folders
/// that are ignored as a whole.
///
/// # Errors
/// If git fails.
pub fn not_committed(root: &Path) -> Result<Vec<PathBuf>, GitError> {
    let words =
        ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching", "--no-renames"];
    let listed = run(root, &words, LOOK_LIMIT)?;
    let names = listed.split(|&byte| byte == 0).filter_map(|entry| entry.get(3..));
    Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
}

/// Whether files of the tree lack a filter that the repository's own configuration has defined since before `began`.
///
/// # Errors
/// If git fails.
pub fn lacks_filters(root: &Path, tree: &Path, began: SystemTime) -> Result<bool, GitError> {
    let config = head_file::common_dir(root).map(|common| common.join("config"));
    if config.and_then(|config| touched(&config)).is_none_or(|touched| touched >= began) {
        return Ok(false);
    }
    let place = Place::of(root, tree)?;
    let of_filter = |name: &String| format!(":(top,attr:filter={name})");
    let patterns: Vec<String> = place.filters.iter().map(of_filter).collect();
    let words: Vec<&str> =
        ["ls-files", "-z", "--"].into_iter().chain(patterns.iter().map(String::as_str)).collect();
    Ok(!patterns.is_empty() && !place.read(&words)?.is_empty())
}

/// What differs between two commits, as git prints it with `-z`: raw lines, then numbers of lines.
///
/// # Errors
/// If git fails.
pub fn differences(root: &Path, base: &str, commit: &str) -> Result<Vec<u8>, GitError> {
    let how =
        ["diff", "--raw", "--no-abbrev", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"];
    let words: Vec<&str> = settings(&[]).chain(how).chain([base, commit, "--"]).collect();
    run_with(root, &words, &environment(), LOOK_LIMIT)
}

/// The tree of a commit, by its name in git.
#[must_use]
pub fn tree_of(root: &Path, commit: &str) -> Option<String> {
    let name = format!("{commit}^{{tree}}");
    let words: Vec<&str> = settings(&[]).chain(["rev-parse", "--verify", &name]).collect();
    let tree = run_with(root, &words, &environment(), LIMIT).ok()?;
    Some(String::from_utf8_lossy(&tree).trim().to_owned())
}

/// A file of a commit; `None` if it has none there.
#[must_use]
pub fn file_of(root: &Path, commit: &str, path: &str) -> Option<Vec<u8>> {
    let name = format!("{commit}:{path}");
    let words: Vec<&str> = settings(&[]).chain(["cat-file", "blob", &name]).collect();
    run_with(root, &words, &environment(), LIMIT).ok()
}

/// The contents that have these names in git; `None` where there is none.
///
/// # Errors
/// If git fails.
pub fn contents(root: &Path, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
    let answer = place::asked(root, &["cat-file", "--batch"], (names.join("\n") + "\n").into_bytes())?;
    let mut rest = answer.as_slice();
    let mut next = || {
        let end = rest.iter().position(|&byte| byte == b'\n')?;
        let (head, after) = (String::from_utf8_lossy(&rest[..end]), &rest[end + 1..]);
        let length = head.rsplit_once(" blob ").and_then(|(_, length)| length.parse::<usize>().ok());
        let content = length.and_then(|length| after.get(..length));
        rest = content.map_or(after, |content| after.get(content.len() + 1..).unwrap_or_default());
        content.map(<[u8]>::to_vec)
    };
    Ok(names.iter().map(|_| next()).collect())
}

/// How these files differ between two commits, as git shows it, cut in the middle if it is long. Without `paths`: how all do.
///
/// # Errors
/// If git fails.
pub fn shown_difference(root: &Path, base: &str, commit: &str, paths: &[String]) -> Result<String, GitError> {
    let how = ["diff", "--no-color", "--no-renames", "--no-ext-diff", "--no-textconv", base, commit, "--"];
    let paths = paths.iter().take(MOST_PATHS).map(String::as_str);
    let words: Vec<&str> = settings(&[]).chain(how).chain(paths).collect();
    run_within(root, &words, environment(), LOOK_LIMIT, SHOWN)
}

/// Lays the versions of `base` of these files over the commit in the tree, and removes those that are new.
///
/// # Errors
/// If git refuses.
pub fn take_back(
    root: &Path,
    tree: &Path,
    base: &str,
    old: &[String],
    new: &[String],
) -> Result<(), GitError> {
    let place = Place::of(root, tree)?;
    if !old.is_empty() {
        let words = ["checkout", "--quiet", base, "--pathspec-from-file=-", "--pathspec-file-nul"];
        place.git(&words, old.join("\0").into_bytes())?;
    }
    for path in new.iter().map(|path| tree.join(path)) {
        gone(fs::remove_file(&path)).map_err(GitError::unreadable(&path))?;
    }
    submodules::lay(&place, root, tree, &known(root, tree)?)
}

/// Lays the files of another commit or tree over `commit`, which lies in the tree: of a commit with a common history those that came
/// or changed since then, otherwise all. Returns the paths of those that were not there.
///
/// # Errors
/// If git refuses.
pub fn lay_over(root: &Path, tree: &Path, commit: &str, other: &str) -> Result<Vec<PathBuf>, GitError> {
    let place = Place::of(root, tree)?;
    let words =
        |words: &[&str]| settings(&[]).chain(words.iter().copied()).map(str::to_owned).collect::<Vec<_>>();
    let git = |command: &[&str]| {
        let words = words(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        run_with(root, &words, &environment(), LIMIT)
    };
    let paths = match git(&["merge-base", commit, other]) {
        Ok(found) => {
            let since = String::from_utf8_lossy(&found).trim().to_owned();
            git(&["diff", "--name-only", "--no-renames", "--diff-filter=d", "-z", &since, other])?
        }
        Err(_) => git(&["ls-tree", "-r", "--name-only", "-z", other])?,
    };
    let names = paths.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let names = names.map(|name| PathBuf::from(OsStr::from_bytes(name)));
    let new = names.filter(|name| tree.join(name).symlink_metadata().is_err()).collect();
    if paths.is_empty() {
        return Ok(new);
    }
    let words = [
        "--literal-pathspecs",
        "checkout",
        "--quiet",
        "--force",
        other,
        "--pathspec-from-file=-",
        "--pathspec-file-nul",
    ];
    place.git(&words, paths)?;
    Ok(new)
}

/// Whether a commit or tree has no file.
#[must_use]
pub fn is_empty(root: &Path, tree: &str) -> bool {
    run(root, &["ls-tree", "-z", tree], LIMIT).is_ok_and(|listed| listed.is_empty())
}

/// Whether `commit` is `base` or descends from it, as the objects say.
#[must_use]
pub fn descends(root: &Path, commit: &str, base: &str) -> bool {
    let words: Vec<&str> = settings(&[]).chain(["merge-base", "--is-ancestor", base, commit]).collect();
    run_with(root, &words, &environment(), LIMIT).is_ok()
}

/// Keeps the commit alive against which the work of this name is measured.
///
/// # Errors
/// If git refuses.
pub fn keep_base(root: &Path, name: &str, commit: &str) -> Result<(), GitError> {
    // A ref may not contain two dots, nor end in one.
    let name = format!("{BASES}/{}", name.replace('.', "%2E"));
    in_repository(root, &["update-ref", &name, commit].map(OsStr::new))
}

/// Whether the tree has its `.git` file, and git a folder for it.
#[must_use]
pub fn is_whole(root: &Path, tree: &Path) -> bool {
    let leads_to = head_file::git_dir(tree).ok().flatten();
    let known = entry(root, tree).ok().flatten();
    leads_to.zip(known).is_some_and(|(leads_to, known)| without_links(&leads_to) == without_links(&known))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{git as run_git, repository};
    use super::*;

    fn committed() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let (guard, root) = repository();
        fs::write(root.join("a.txt"), "one\n").unwrap();
        fs::write(root.join(".gitignore"), "built\n").unwrap();
        run_git(&root, &["add", "."]);
        run_git(&root, &["commit", "--quiet", "-m", "one"]);
        let tree = guard.path().join("proof/tree");
        fs::create_dir_all(tree.parent().unwrap()).unwrap();
        (guard, root, tree)
    }

    fn commit(root: &Path) -> String {
        super::super::head(root).unwrap()
    }

    fn read(tree: &Path, name: &str) -> String {
        fs::read_to_string(tree.join(name)).unwrap_or_default()
    }

    #[test]
    fn a_commit_is_laid_out_without_hooks_and_filters_of_the_repository() {
        let (_guard, root, tree) = committed();
        let evil = root.join("evil");
        let touch = format!("touch {}", evil.display());
        fs::create_dir_all(root.join(".git/hooks")).unwrap();
        let hook = root.join(".git/hooks/post-checkout");
        fs::write(&hook, format!("#!/bin/sh\n{touch}\n")).unwrap();
        fs::set_permissions(&hook, Permissions::from_mode(0o755)).unwrap();
        run_git(&root, &["config", "filter.x.smudge", &format!("{touch}; echo other")]);
        run_git(&root, &["config", "filter.x.required", "true"]);
        fs::write(root.join(".git/info/attributes"), "*.txt filter=x\n").unwrap();
        add(&root, &tree, &commit(&root)).unwrap();
        lay(&root, &tree, &commit(&root)).unwrap();
        assert_eq!(read(&tree, "a.txt"), "one\n");
        assert!(!evil.exists());
        run_git(&root, &["config", "filter.x=y.smudge", "echo other"]);
        let said = lay(&root, &tree, &commit(&root)).unwrap_err().to_string();
        assert!(said.contains("x=y"), "{said}");
    }

    #[test]
    fn what_a_build_has_made_stays_and_everything_else_goes() {
        let (_guard, root, tree) = committed();
        add(&root, &tree, &commit(&root)).unwrap();
        lay(&root, &tree, &commit(&root)).unwrap();
        for name in ["a.txt", "built", "stray"] {
            fs::write(tree.join(name), "two").unwrap();
        }
        run_git(&tree, &["update-index", "--assume-unchanged", "a.txt"]);
        distrust_index(&root, &tree).unwrap();
        lay(&root, &tree, &commit(&root)).unwrap();
        assert_eq!((read(&tree, "a.txt"), read(&tree, "built")), ("one\n".into(), "two".into()));
        assert!(!tree.join("stray").exists());
        assert!(files(&root, &tree).unwrap().contains(Path::new("a.txt")));
    }

    #[test]
    fn a_tree_in_any_state_is_removed_and_made_again() {
        let (_guard, root, tree) = committed();
        let make = || add(&root, &tree, &commit(&root)).and_then(|()| lay(&root, &tree, &commit(&root)));
        make().unwrap();
        run_git(&root, &["worktree", "lock", tree.to_str().unwrap()]);
        let entry_of = || entry(&root, &tree).unwrap();
        fs::remove_dir_all(&tree).unwrap();
        make().unwrap();
        fs::write(entry_of().unwrap().join("index.lock"), "").unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", root.join(".git").display())).unwrap();
        fs::create_dir(tree.join("closed")).unwrap();
        fs::write(tree.join("closed/file"), "").unwrap();
        fs::set_permissions(tree.join("closed"), Permissions::from_mode(0o500)).unwrap();
        remove(&root, &tree).unwrap();
        assert!(!tree.exists() && entry_of().is_none() && root.join(".git/HEAD").exists());
        make().unwrap();
        assert_eq!(read(&tree, "a.txt"), "one\n");
    }

    #[test]
    fn a_folder_in_which_a_dying_program_still_writes_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("written");
        fs::create_dir(&folder).unwrap();
        let its = folder.clone();
        let began = Instant::now();
        let writer = thread::spawn(move || {
            // Many at once, so that some come between the two steps of a removal.
            for n in (0..).take_while(|_| began.elapsed() < Duration::from_millis(300)) {
                let _ = fs::write(its.join(format!("{n}")), "");
            }
        });
        while began.elapsed() < Duration::from_millis(300) {
            remove_folder(&folder).unwrap();
            let _ = fs::create_dir(&folder);
        }
        writer.join().unwrap();
        remove_folder(&folder).unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn submodules_are_laid_out_as_far_as_the_user_has_them() {
        let (guard, root, tree) = committed();
        let library = guard.path().join("library");
        fs::create_dir(&library).unwrap();
        run_git(&library, &["init", "--quiet"]);
        for content in ["one\n", "two\n"] {
            fs::write(library.join("lib.txt"), content).unwrap();
            run_git(&library, &["add", "."]);
            run_git(&library, &["commit", "--quiet", "-m", "c"]);
        }
        let allow = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
        run_git(&root, &[&allow[..], &[library.to_str().unwrap(), "deps/lib"]].concat());
        run_git(&root, &["commit", "--quiet", "-m", "with it"]);
        fs::write(root.join("deps/lib/lib.txt"), "not committed\n").unwrap();
        let (new, inner) = (commit(&root), root.join("deps/lib"));
        add(&root, &tree, &new).unwrap();
        lay(&root, &tree, &new).unwrap();
        assert_eq!(read(&tree, "deps/lib/lib.txt"), "two\n");
        fs::write(tree.join("deps/lib/lib.txt"), "other\n").unwrap();
        fs::write(tree.join("deps/lib/stray"), "").unwrap();
        run_git(&inner, &["checkout", "--quiet", "--force", "HEAD~1"]);
        run_git(&root, &["commit", "--quiet", "-am", "older"]);
        lay(&root, &tree, &commit(&root)).unwrap();
        assert_eq!(read(&tree, "deps/lib/lib.txt"), "one\n");
        assert!(!tree.join("deps/lib/stray").exists());
        assert_eq!(run_git(&inner, &["status", "--porcelain"]), "", "the user's own is untouched");
        distrust_index(&root, &tree).unwrap();
        fs::write(tree.join("deps/lib/lib.txt"), "xyz\n").unwrap();
        lay(&root, &tree, &new).unwrap();
        assert_eq!(read(&tree, "deps/lib/lib.txt"), "two\n");
    }

    #[test]
    fn a_commit_descends_as_the_objects_say() {
        let (_guard, root, _) = committed();
        let base = commit(&root);
        keep_base(&root, "a..b.lock", &base).unwrap();
        run_git(&root, &["commit", "--quiet", "--amend", "-m", "other"]);
        let other = commit(&root);
        assert!(descends(&root, &base, &base) && !descends(&root, &other, &base));
        run_git(&root, &["commit", "--quiet", "--allow-empty", "-m", "more"]);
        run_git(&root, &["replace", "--graft", &commit(&root), &base]);
        assert!(!descends(&root, &commit(&root), &base), "a replaced commit has its own parents");
        assert!(run_git(&root, &["for-each-ref", BASES]).contains(&base));
    }
}
