//! A detached work tree of ralph's own, in which a commit is laid out as it was committed: no hook runs there, and no
//! filter or setting that an agent can write into the repository's configuration decides about its files. It holds
//! nothing that is worth keeping.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::call::{LIMIT, run, run_with};
use super::change::{ChangeOptions, alone, change_with};
use super::changes::LOOK_LIMIT;
use super::error::GitError;
use super::trees::without_links;
use super::{half_made, head_file};

/// The time limit for laying out a commit: all files of the project may be written.
const LAY_LIMIT: Duration = Duration::from_hours(1);
/// Settings that count there, whatever the repository's say.
const CONFIG: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.sparseCheckout=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "core.ignoreStat=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.useReplaceRefs=false",
    "submodule.recurse=false",
];
/// No object stands for another one.
const ENVIRONMENT: [(&str, &str); 3] =
    [("GIT_NO_REPLACE_OBJECTS", "1"), ("GIT_GRAFT_FILE", "/dev/null"), ("GIT_LITERAL_PATHSPECS", "1")];
/// The refs that keep the commits alive against which work is measured.
const BASES: &str = "refs/ralph/base";

/// Adds the tree at `tree` for `commit`, without its files. What was there before has been [removed](remove).
///
/// # Errors
/// If git refuses.
pub fn add(root: &Path, tree: &Path, commit: &str) -> Result<(), GitError> {
    let _alone = alone();
    // Twice: also where git still has a locked entry for this path.
    let words = ["worktree", "add", "--force", "--force", "--detach", "--no-checkout"].map(OsStr::new);
    let words: Vec<&OsStr> = words.into_iter().chain([tree.as_os_str(), OsStr::new(commit)]).collect();
    git(root, &words).map(drop)
}

/// Lays out `commit` in the tree. Ignored files that are no part of it stay, as they may be what a build has made;
/// other files are removed. Files that are as committed stay untouched.
///
/// # Errors
/// If git refuses, or a filter of the repository's cannot be switched off.
pub fn lay(root: &Path, tree: &Path, commit: &str) -> Result<(), GitError> {
    let filters = filters_off(root, tree)?;
    let git = |words: &[&str]| {
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        git_in_tree(root, tree, &filters, &words, Vec::new())
    };
    if !entry(root, tree)?.is_some_and(|entry| entry.join("index").exists()) {
        // Without times in it, git compares contents.
        git(&["read-tree", commit])?;
        git(&["update-index", "-q", "--ignore-missing", "--refresh"])?;
    }
    git(&["checkout", "--quiet", "--detach", "--force", commit, "--"])?;
    git(&["clean", "--quiet", "-d", "--force", "--force"])
}

/// Has the next [`lay`] compare the contents of all files.
///
/// # Errors
/// If the index cannot be removed.
pub fn distrust_index(root: &Path, tree: &Path) -> Result<(), GitError> {
    let Some(index) = entry(root, tree)?.map(|entry| entry.join("index")) else { return Ok(()) };
    gone(fs::remove_file(&index)).map_err(GitError::unreadable(&index))
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

/// Removes a folder with everything in it, also where folders are read-only.
///
/// # Errors
/// If something of it cannot be removed.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    match gone(fs::remove_dir_all(folder)) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            open_folders(folder);
            gone(fs::remove_dir_all(folder))
        }
        result => result,
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

/// The folder in which git keeps what it knows of the tree. The tree's own `.git` file is not asked, because an agent
/// may have written it.
///
/// # Errors
/// If git's entries cannot be read.
pub fn entry(root: &Path, tree: &Path) -> Result<Option<PathBuf>, GitError> {
    let Some(common) = head_file::common_dir(root) else { return Ok(None) };
    half_made::entry_for(&without_links(&common.join("worktrees")), &without_links(tree).join(".git"))
}

/// The files of the commit that is laid out in the tree, relative to it.
///
/// # Errors
/// If git fails.
pub fn files(root: &Path, tree: &Path) -> Result<BTreeSet<PathBuf>, GitError> {
    let names = read_in_tree(root, tree, &["ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD"])?;
    let names = names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
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

/// What differs between two commits, as git prints it with `-z`: raw lines, then numbers of lines.
///
/// # Errors
/// If git fails.
pub fn differences(root: &Path, base: &str, commit: &str) -> Result<Vec<u8>, GitError> {
    let words = [
        "diff",
        "--raw",
        "--numstat",
        "-z",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        base,
        commit,
        "--",
    ];
    run_with(root, &words, &environment(), LOOK_LIMIT)
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
    let filters = filters_off(root, tree)?;
    let words =
        ["checkout", "--quiet", base, "--pathspec-from-file=-", "--pathspec-file-nul"].map(OsStr::new);
    git_in_tree(root, tree, &filters, &words, old.join("\0").into_bytes())?;
    for path in new.iter().map(|path| tree.join(path)) {
        gone(fs::remove_file(&path)).map_err(GitError::unreadable(&path))?;
    }
    Ok(())
}

/// Whether `commit` is `base` or descends from it, as the objects say.
#[must_use]
pub fn descends(root: &Path, commit: &str, base: &str) -> bool {
    let words = ["merge-base", "--is-ancestor", base, commit];
    run_with(root, &words, &environment(), LIMIT).is_ok()
}

/// Keeps the commit alive against which the work of this name is measured.
///
/// # Errors
/// If git refuses.
pub fn keep_base(root: &Path, name: &str, commit: &str) -> Result<(), GitError> {
    // A ref may not contain two dots, nor end in one.
    let name = format!("{BASES}/{}", name.replace('.', "%2E"));
    git(root, &["update-ref", &name, commit].map(OsStr::new)).map(drop)
}

fn environment() -> Vec<(OsString, OsString)> {
    ENVIRONMENT.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn git(place: &Path, words: &[&OsStr]) -> Result<Vec<u8>, GitError> {
    git_with(place, &[], &[], words, Vec::new())
}

fn git_in_tree(
    root: &Path,
    tree: &Path,
    more: &[String],
    words: &[&OsStr],
    input: Vec<u8>,
) -> Result<(), GitError> {
    git_with(tree, &named(root, tree)?, more, words, input).map(drop)
}

fn git_with(
    place: &Path,
    named: &[OsString],
    more: &[String],
    words: &[&OsStr],
    input: Vec<u8>,
) -> Result<Vec<u8>, GitError> {
    let settings = CONFIG.into_iter().chain(more.iter().map(String::as_str));
    let settings = settings.flat_map(|setting| ["-c", setting]).map(OsStr::new);
    let command: Vec<_> = words.iter().take(2).map(|word| word.to_string_lossy()).collect();
    let how = ChangeOptions { env: environment(), input, limit: LAY_LIMIT };
    let named = named.iter().map(OsString::as_os_str);
    let arguments: Vec<&OsStr> = named.chain(settings).chain(words.iter().copied()).collect();
    change_with(place, &arguments, &how).map_err(|error| error.of(&command.join(" "), place))
}

fn read_in_tree(root: &Path, tree: &Path, words: &[&str]) -> Result<Vec<u8>, GitError> {
    let named = named(root, tree)?.map(|option| option.into_string().unwrap_or_default());
    let words: Vec<&str> = named.iter().map(String::as_str).chain(words.iter().copied()).collect();
    run(tree, &words, LIMIT)
}

/// The options that name the tree and git's folder for it. git must not search for a repository: where the tree's own
/// `.git` file is missing it would find that of the user, which is around the tree, and change the user's files.
///
/// # Errors
/// If git has no folder for the tree.
fn named(root: &Path, tree: &Path) -> Result<[OsString; 2], GitError> {
    let Some(entry) = entry(root, tree)? else {
        let what = "git does not know the work tree of proofs any more";
        return Err(GitError::in_the_way(what, tree.display(), "start again: it is made anew"));
    };
    let option = |name: &str, path: &Path| {
        let mut option = OsString::from(name);
        option.push(path);
        option
    };
    Ok([option("--git-dir=", &entry), option("--work-tree=", tree)])
}

/// Whether the tree has its `.git` file, and git a folder for it.
#[must_use]
pub fn is_whole(root: &Path, tree: &Path) -> bool {
    let leads_to = head_file::git_dir(tree).ok().flatten();
    let known = entry(root, tree).ok().flatten();
    leads_to.zip(known).is_some_and(|(leads_to, known)| without_links(&leads_to) == without_links(&known))
}

/// The settings that switch off the filters that the repository's own configuration defines. Those of the user and of
/// the system stay: LFS is one.
fn filters_off(root: &Path, tree: &Path) -> Result<Vec<String>, GitError> {
    let words = ["config", "--show-scope", "--null", "--get-regexp", r"^filter\."];
    let listed = match read_in_tree(root, tree, &words) {
        // There is none.
        Err(GitError::Refused { .. }) => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut off = Vec::new();
    for name in filters_of_repository(&String::from_utf8_lossy(&listed)) {
        if name.contains(['=', char::REPLACEMENT_CHARACTER]) {
            let what = "a filter in the repository's configuration has a name that cannot be switched off";
            return Err(GitError::in_the_way(
                what,
                name.escape_debug(),
                "remove it with 'git config --edit'",
            ));
        }
        off.extend(
            ["clean=", "smudge=", "process=", "required=false"].map(|end| format!("filter.{name}.{end}")),
        );
    }
    Ok(off)
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

    #[test]
    fn filters_are_told_apart_by_who_defines_them() {
        let listed = "global\0filter.lfs.clean\ngit-lfs clean\0local\0filter.a.b.smudge\nx\ny\0\
                      worktree\0filter.c.required\0";
        let names: Vec<String> = filters_of_repository(listed).into_iter().collect();
        assert_eq!(names, ["a.b", "c"]);
    }
}
