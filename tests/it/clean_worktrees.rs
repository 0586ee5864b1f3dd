//! `ralph clean --worktrees`: removes worktrees, never branches, and loses nothing.

use std::fs;
use std::path::Path;

use crate::scratch::{Run, Scratch, Started, wait_for};

pub(crate) const PLAN: &str = "IMPLEMENTATION_PLAN.md";

/// A repository with one commit, and worktrees of these branches below `.worktrees/`.
pub(crate) fn with_trees(branches: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    scratch.write(".gitignore", "*.log\ntarget/\n");
    scratch.write("file", "one\n");
    scratch.write(PLAN, "the plan\n");
    scratch.git(&["add", ".gitignore", "file", "p.md", PLAN]);
    scratch.git(&["commit", "--quiet", "-m", "start"]);
    for branch in branches {
        let tree = format!(".worktrees/{branch}");
        scratch.git(&["worktree", "add", "--quiet", &tree, "-b", branch]);
        scratch.git(&["-C", &tree, "update-index", "--skip-worktree", PLAN]);
    }
    scratch
}

/// Runs git in the tree of branch `x`.
pub(crate) fn in_x(scratch: &Scratch, args: &[&str]) -> String {
    scratch.git(&[&["-C", ".worktrees/x"], args].concat())
}

/// Runs git, which has to fail.
pub(crate) fn fails_in_x(scratch: &Scratch, args: &[&str]) {
    let status = scratch.command("git").args(["-C", ".worktrees/x"]).args(args).output().unwrap().status;
    assert!(!status.success(), "git {args:?}");
}

pub(crate) fn commit(scratch: &Scratch, name: &str) -> String {
    scratch.write(&format!(".worktrees/x/{name}"), format!("content of {name}\n"));
    in_x(scratch, &["add", name]);
    in_x(scratch, &["commit", "--quiet", "-m", &format!("write {name}")]);
    in_x(scratch, &["rev-parse", "HEAD"]).trim().to_owned()
}

#[track_caller]
pub(crate) fn gone(scratch: &Scratch, run: &Run) {
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    assert!(!scratch.path(".worktrees/x").exists(), "{run:?}");
    assert!(!scratch.git(&["worktree", "list"]).contains(".worktrees/x"), "{run:?}");
    scratch.git(&["rev-parse", "--verify", "refs/heads/x"]);
}

#[track_caller]
fn kept(scratch: &Scratch, args: &str, words: &[&str]) {
    let before = snapshot(scratch);
    let run = scratch.run(args);
    assert!(run.code == Some(1) && run.stdout.starts_with("kept .worktrees/x:\n  "), "{run:?}");
    for word in words {
        assert!(run.stdout.contains(word), "'{word}' is missing: {run:?}");
    }
    assert!(snapshot(scratch) == before, "something changed: {run:?}");
}

/// Every file of the tree but ralph's own.
fn snapshot(scratch: &Scratch) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let is_own = |path: &Path| path.components().any(|part| part.as_os_str() == ".ralph");
    let files = scratch.snapshot().into_iter();
    files.filter(|(path, _)| path.starts_with(scratch.path(".worktrees")) && !is_own(path)).collect()
}

/// The refs that keep something, oldest first.
pub(crate) fn refs(scratch: &Scratch) -> Vec<String> {
    let output = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/ralph/keep"]);
    output.lines().map(str::to_owned).collect()
}

#[test]
fn clean_trees_go_and_branches_stay() {
    let scratch = with_trees(&["x", "feature/y", "z"]);
    commit(&scratch, "more");
    for name in [".ralph/state.toml", ".ralph/logs/session-1.log", "target/a", "b.log"] {
        scratch.write(&format!(".worktrees/x/{name}"), "x");
    }
    scratch.write(&format!(".worktrees/x/{PLAN}"), "the copy\n");
    let run = scratch.run("clean --worktrees x");
    gone(&scratch, &run);
    assert_eq!(
        run.stdout,
        "removed .worktrees/x; branch x stays\n  ignored files went with it: b.log, target/\n"
    );
    assert!(scratch.path(".worktrees/z").exists());
    assert_eq!(scratch.read(PLAN), "the plan\n");

    scratch.write(".worktrees/notes", "mine");
    let run = scratch.run("clean --worktrees");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!scratch.path(".worktrees/feature").exists() && !scratch.path(".worktrees/z").exists());
    assert!(run.stderr.contains(".worktrees/notes is no work tree"), "{run:?}");
    assert_eq!(scratch.read(".worktrees/notes"), "mine");
    assert_eq!(scratch.git(&["branch", "--format=%(refname:short)"]), "feature/y\nmain\nx\nz\n");
    assert_eq!(refs(&scratch), [""; 0]);

    fs::remove_file(scratch.path(".worktrees/notes")).unwrap();
    assert_eq!(scratch.run("clean --worktrees --force").stdout, "no worktrees to clean\n");
}

#[test]
fn a_copy_of_the_plan_that_git_sees_does_not_count() {
    let scratch = with_trees(&["x"]);
    in_x(&scratch, &["update-index", "--no-skip-worktree", PLAN]);
    scratch.write(&format!(".worktrees/x/{PLAN}"), "the copy\n");
    gone(&scratch, &scratch.run("clean --worktrees"));

    scratch.git(&["rm", "--quiet", "--cached", PLAN]);
    scratch.git(&["commit", "--quiet", "-m", "no plan"]);
    scratch.git(&["worktree", "add", "--quiet", ".worktrees/y", "-b", "y"]);
    scratch.write(&format!(".worktrees/y/{PLAN}"), "the copy\n");
    assert_eq!(scratch.run("clean --worktrees y").code, Some(0));
    assert!(!scratch.path(".worktrees/y").exists());
}

#[test]
fn changes_keep_a_tree() {
    let scratch = with_trees(&["x"]);
    let tree = |name: &str| format!(".worktrees/x/{name}");
    scratch.write(&tree("new"), "untracked");
    kept(&scratch, "clean --worktrees", &["uncommitted changes (new): commit them", "--force"]);
    in_x(&scratch, &["add", "new"]);
    kept(&scratch, "clean --worktrees x", &["uncommitted changes (new)"]);
    in_x(&scratch, &["rm", "--quiet", "-f", "new"]);
    scratch.write(&tree("file"), "two\n");
    // Configuration must not hide anything.
    scratch.git(&["config", "status.showUntrackedFiles", "no"]);
    scratch.write(&tree("new"), "untracked");
    kept(&scratch, "clean --worktrees", &["(file, new)"]);
    in_x(&scratch, &["checkout", "--quiet", "file"]);
    fs::remove_file(scratch.path(&tree("new"))).unwrap();

    for mark in ["skip-worktree", "assume-unchanged"] {
        in_x(&scratch, &["update-index", &format!("--{mark}"), "file"]);
        scratch.write(&tree("file"), "hidden\n");
        kept(&scratch, "clean --worktrees", &["whose changes git does not show (file)"]);
        in_x(&scratch, &["update-index", &format!("--no-{mark}"), "file"]);
        in_x(&scratch, &["checkout", "--quiet", "file"]);
    }
    in_x(&scratch, &["update-index", "--no-skip-worktree", PLAN]);
    scratch.write(&tree(PLAN), "somebody wants to commit this");
    in_x(&scratch, &["add", PLAN]);
    kept(&scratch, "clean --worktrees", &[PLAN]);
}

#[test]
fn what_git_is_in_the_middle_of_keeps_a_tree() {
    let scratch = with_trees(&["x"]);
    commit(&scratch, "a");
    scratch.write(".worktrees/x/file", "x's\n");
    in_x(&scratch, &["commit", "--quiet", "-am", "ours"]);
    scratch.write("file", "main's\n");
    scratch.git(&["commit", "--quiet", "-am", "theirs"]);
    let abort = |what: &str| in_x(&scratch, &[what, "--abort"]);

    fails_in_x(&scratch, &["merge", "main"]);
    kept(&scratch, "clean --worktrees", &["a merge is in progress", "git merge --abort", "(file)"]);
    abort("merge");
    fails_in_x(&scratch, &["rebase", "main"]);
    kept(&scratch, "clean --worktrees x", &["a rebase is in progress", "git rebase --abort"]);
    abort("rebase");
    fails_in_x(&scratch, &["cherry-pick", "main"]);
    kept(&scratch, "clean --worktrees", &["a cherry-pick is in progress", "git cherry-pick --abort"]);
    abort("cherry-pick");
    scratch.write(".worktrees/x/file", "x's again\n");
    in_x(&scratch, &["commit", "--quiet", "-am", "again"]);
    fails_in_x(&scratch, &["revert", "HEAD~1"]);
    kept(&scratch, "clean --worktrees", &["a revert is in progress", "git revert --abort"]);
    abort("revert");
    in_x(&scratch, &["format-patch", "--quiet", "-1", "main", "--output-directory", "../../.git"]);
    fails_in_x(&scratch, &["am", "../../.git/0001-theirs.patch"]);
    kept(&scratch, "clean --worktrees", &["a patch series is in progress", "git am --abort"]);
    abort("am");
    in_x(&scratch, &["bisect", "start"]);
    kept(&scratch, "clean --worktrees", &["a bisect is in progress", "git bisect reset"]);
    in_x(&scratch, &["bisect", "reset"]);
    gone(&scratch, &scratch.run("clean --worktrees"));
}

#[test]
fn a_commit_on_no_branch_keeps_a_tree_until_force_saves_it() {
    let scratch = with_trees(&["x"]);
    in_x(&scratch, &["checkout", "--quiet", "--detach"]);
    let lone = commit(&scratch, "lone");
    kept(&scratch, "clean --worktrees", &["is on no branch", &lone[..10], "git switch -c NAME"]);

    let run = scratch.run("clean --worktrees x --force");
    gone(&scratch, &run);
    let [keep] = &refs(&scratch)[..] else { panic!("one ref: {run:?}") };
    assert!(keep.starts_with("refs/ralph/keep/x/2"), "{keep}");
    assert_eq!(scratch.git(&["rev-parse", keep]).trim(), lone);
    assert!(run.stdout.contains(&format!("git switch -c NAME {keep}")), "{run:?}");
    assert!(run.stdout.contains(&format!("saved commit {} 'write lone'", &lone[..10])), "{run:?}");
}

#[test]
fn commits_that_only_the_tree_knows_are_saved_without_force_too() {
    let scratch = with_trees(&["x"]);
    in_x(&scratch, &["checkout", "--quiet", "--detach"]);
    let first = commit(&scratch, "first");
    in_x(&scratch, &["checkout", "--quiet", "--detach", "x"]);
    let second = commit(&scratch, "second");
    in_x(&scratch, &["update-ref", "refs/worktree/mine", "HEAD"]);
    in_x(&scratch, &["checkout", "--quiet", "x"]);
    // What the branch's reflog keeps needs no ref.
    commit(&scratch, "third");
    in_x(&scratch, &["commit", "--quiet", "--amend", "-m", "amended"]);
    let run = scratch.run("clean --worktrees");
    gone(&scratch, &run);
    let mut saved: Vec<String> =
        refs(&scratch).iter().map(|keep| scratch.git(&["rev-parse", keep]).trim().to_owned()).collect();
    saved.sort();
    let mut expected = [first, second];
    expected.sort();
    assert_eq!(saved, expected, "{run:?}");
}

#[test]
fn some_trees_stay_whatever_is_said() {
    let scratch = with_trees(&["x"]);
    let force = "clean --worktrees --force";
    scratch.git(&["worktree", "lock", "--reason", "on a stick", ".worktrees/x"]);
    kept(&scratch, force, &["git has it locked (on a stick)", "git worktree unlock"]);
    scratch.git(&["worktree", "unlock", ".worktrees/x"]);

    for inside in ["deep/repo", "target/repo"] {
        scratch.git(&["init", "--quiet", &format!(".worktrees/x/{inside}")]);
        kept(&scratch, force, &[&format!("repositories of their own are in it ({inside})")]);
        fs::remove_dir_all(scratch.path(".worktrees/x").join(inside)).unwrap();
    }
    scratch.write(".git/worktrees/x/index.lock", "");
    kept(&scratch, force, &["a git is at work in it, or was killed", "/.git/worktrees/x/index.lock"]);
    fs::remove_file(scratch.path(".git/worktrees/x/index.lock")).unwrap();

    scratch.git(&["init", "--quiet", "../module"]);
    scratch.git(&["-C", "../module", "commit", "--quiet", "--allow-empty", "-m", "module"]);
    in_x(&scratch, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../../../module"]);
    in_x(&scratch, &["commit", "--quiet", "-m", "module"]);
    kept(&scratch, force, &["module"]);
    in_x(&scratch, &["submodule", "--quiet", "deinit", "--force", "module"]);
    kept(&scratch, force, &["/.git/worktrees/x/modules"]);

    let git_file = scratch.read(".worktrees/x/.git");
    scratch.git(&["init", "--quiet", "../other"]);
    scratch
        .write(".worktrees/x/.git", format!("gitdir: {}\n", scratch.outside().join("other/.git").display()));
    kept(&scratch, force, &["does not lead to this repository", "git worktree repair"]);
    scratch.write(".worktrees/x/.git", git_file);

    fs::rename(scratch.path(".worktrees/x"), scratch.outside().join("away")).unwrap();
    kept(&scratch, force, &["its folder is gone", "git worktree prune"]);
}

#[test]
fn what_a_tree_without_its_folder_knew_is_saved() {
    let scratch = with_trees(&["x"]);
    in_x(&scratch, &["checkout", "--quiet", "--detach"]);
    let lone = commit(&scratch, "lone");
    fs::remove_dir_all(scratch.path(".worktrees/x")).unwrap();
    kept(&scratch, "clean --worktrees", &["its folder is gone", &lone[..10]]);
    kept(&scratch, "clean --worktrees", &["its folder is gone"]);
    let [keep] = &refs(&scratch)[..] else { panic!("one ref") };
    assert_eq!(scratch.git(&["rev-parse", keep]).trim(), lone);
}

#[test]
fn the_folder_of_the_trees_may_be_elsewhere() {
    let scratch = with_trees(&[]);
    fs::create_dir(scratch.outside().join("disk")).unwrap();
    std::os::unix::fs::symlink("../disk", scratch.path(".worktrees")).unwrap();
    scratch.git(&["worktree", "add", "--quiet", ".worktrees/x", "-b", "x"]);
    gone(&scratch, &scratch.run("clean --worktrees"));
}

#[test]
fn refs_may_be_in_tables() {
    let scratch = with_trees(&[]);
    fs::remove_dir_all(scratch.path(".git")).unwrap();
    let init = ["init", "--quiet", "--ref-format=reftable", "--initial-branch=main"];
    if !scratch.command("git").args(init).output().unwrap().status.success() {
        return; // this git does not know them
    }
    scratch.git(&["add", "file"]);
    scratch.git(&["commit", "--quiet", "-m", "start"]);
    scratch.git(&["worktree", "add", "--quiet", ".worktrees/x", "-b", "x"]);
    in_x(&scratch, &["checkout", "--quiet", "--detach"]);
    let first = commit(&scratch, "first");
    in_x(&scratch, &["checkout", "--quiet", "--detach", "HEAD~"]);
    in_x(&scratch, &["switch", "--quiet", "x"]);
    gone(&scratch, &scratch.run("clean --worktrees"));
    let [keep] = &refs(&scratch)[..] else { panic!("one ref") };
    assert_eq!(scratch.git(&["rev-parse", keep]).trim(), first);
}

#[test]
fn nothing_is_removed_when_saving_fails() {
    let scratch = with_trees(&["x"]);
    scratch.write(".worktrees/x/new", "untracked");
    // The place of the ref is taken.
    scratch.git(&["update-ref", "refs/ralph/keep", "HEAD"]);
    kept(&scratch, "clean --worktrees --force", &["git update-ref"]);
    scratch.git(&["update-ref", "-d", "refs/ralph/keep"]);
    gone(&scratch, &scratch.run("clean --worktrees --force"));
}

#[test]
fn files_that_a_sparse_checkout_leaves_out_are_not_deleted() {
    let scratch = with_trees(&[]);
    scratch.write("in/a", "a");
    scratch.write("out/b", "b");
    scratch.git(&["add", "in", "out"]);
    scratch.git(&["commit", "--quiet", "-m", "folders"]);
    scratch.git(&["worktree", "add", "--quiet", ".worktrees/x", "-b", "x"]);
    in_x(&scratch, &["sparse-checkout", "set", "in"]);
    assert!(!scratch.path(".worktrees/x/out").exists());
    scratch.write(".worktrees/x/in/a", "changed");
    gone(&scratch, &scratch.run("clean --worktrees --force"));
    let keep = &refs(&scratch)[0];
    assert_eq!(scratch.git(&["diff", "--name-status", "x", keep]), "M\tin/a\n");
}

#[test]
fn a_running_loop_keeps_its_tree() {
    let scratch = with_trees(&["x", "y"]);
    scratch.agent("claude", "cat > /dev/null; touch started.log; sleep 600");
    let mut command = scratch.ralph("prompt p.md 2");
    let ralph = Started::quietly(command.current_dir(scratch.path(".worktrees/x")));
    wait_for("the agent", || scratch.path(".worktrees/x/started.log").exists().then_some(()));
    let run = scratch.run("clean --worktrees --force");
    assert!(run.code == Some(1) && run.stdout.contains("loop 'prompt' is running in it"), "{run:?}");
    assert!(scratch.path(".worktrees/x/file").exists() && !scratch.path(".worktrees/y").exists(), "{run:?}");
    drop(ralph);

    wait_for("its end", || (scratch.run("clean --worktrees").code == Some(0)).then_some(()));
    assert_eq!(scratch.run("ls").stdout, "no loops on this machine\n");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let scratch = with_trees(&["x"]);
    let in_tree = |args: &str| Scratch::finish(scratch.ralph(args).current_dir(scratch.path(".worktrees/x")));
    for (run, words) in [
        (scratch.run("clean --force"), "--worktrees"),
        (scratch.run("clean --worktrees --all"), "'--all'"),
        (scratch.run("clean --worktrees nobody"), "no worktree of branch 'nobody'"),
        (in_tree("clean --worktrees"), "is a work tree of"),
    ] {
        assert!(run.code == Some(1) && run.stderr.contains(words), "{words}: {run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    }
    assert!(scratch.path(".worktrees/x/file").exists());
}
