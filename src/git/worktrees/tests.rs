use std::process::Command;
use std::thread;

use super::super::call::LIMIT;
use super::super::exclude::keep_plan_out;
use super::super::tests::{git, repository};
use super::super::trees::checked_out;
use super::*;
use crate::files::testing::without_descriptors;

/// A repository with one commit of `files`, and that commit.
pub(in super::super) fn with_files(files: &[&str]) -> (tempfile::TempDir, PathBuf, String) {
    let (guard, root) = repository();
    git(&root, &["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    for file in files {
        fs::write(root.join(file), "content\n").unwrap();
        git(&root, &["add", file]);
    }
    git(&root, &["commit", "--quiet", "--allow-empty", "-m", "one"]);
    let id = git(&root, &["rev-parse", "HEAD"]).trim().to_owned();
    (guard, root, id)
}

pub(in super::super) fn place(root: &Path, branch: &str) -> PathBuf {
    root.join(".worktrees").join(branch)
}

pub(in super::super) fn add_at(root: &Path, branch: &str, start: &str) -> Result<Added, GitError> {
    add(root, &place(root, branch), branch, start, None)
}

pub(in super::super) fn said(result: Result<Added, GitError>) -> String {
    let said = result.unwrap_err().to_string();
    assert!(!said.contains('\n'), "{said}");
    said
}

fn branch_of(tree: &Path) -> String {
    git(tree, &["symbolic-ref", "HEAD"]).trim().to_owned()
}

#[test]
fn a_new_branch_then_its_tree_again_then_the_branch_without_a_tree() {
    let (_guard, root, id) = with_files(&["a"]);
    git(&root, &["config", "branch.autoSetupMerge", "always"]);
    let tree = place(&root, "feature/x");
    assert_eq!(add_at(&root, "feature/x", &id).unwrap(), Added::New);
    assert_eq!(branch_of(&tree), "refs/heads/feature/x");
    assert_eq!(fs::read(tree.join("a")).unwrap(), b"content\n");
    assert_eq!(
        git(&root, &["config", "--list", "--local"]).matches("branch.feature").count(),
        0,
        "follows none"
    );

    fs::write(tree.join("mine"), "x").unwrap();
    assert_eq!(add_at(&root, "feature/x", &id).unwrap(), Added::Reused);
    assert!(tree.join("mine").exists());
    git(&tree, &["commit", "--quiet", "--allow-empty", "-m", "two"]);
    let two = git(&tree, &["rev-parse", "HEAD"]);

    git(&root, &["worktree", "remove", "--force", tree.to_str().unwrap()]);
    // A tag or a file of that name is ignored.
    git(&root, &["tag", "feature/x", &id]);
    assert_eq!(add_at(&root, "feature/x", &id).unwrap(), Added::Branch);
    assert_eq!(
        (branch_of(&tree).as_str(), git(&tree, &["rev-parse", "HEAD"])),
        ("refs/heads/feature/x", two)
    );
}

#[test]
fn names_that_look_like_something_else_are_branches() {
    let (_guard, root, id) = with_files(&["a"]);
    for name in ["deadbeef", "a", "a-b", "+c", "x;y", "$HOME", "\u{e9}'\"", "refs/heads/z", "stash"] {
        assert_eq!(add_at(&root, name, &id).unwrap(), Added::New, "{name}");
        assert_eq!(branch_of(&place(&root, name)), format!("refs/heads/{name}"));
        assert_eq!(add_at(&root, name, &id).unwrap(), Added::Reused, "{name}");
        git(&root, &["worktree", "remove", place(&root, name).to_str().unwrap()]);
        assert_eq!(add_at(&root, name, &id).unwrap(), Added::Branch, "{name}");
    }
}

#[test]
fn trees_that_were_read_before_are_enough() {
    let (_guard, root, id) = with_files(&[]);
    let known = list(&root).unwrap();
    for number in 0..4 {
        let name = format!("b{number}");
        assert_eq!(add(&root, &place(&root, &name), &name, &id, Some(&known)).unwrap(), Added::New);
    }
    assert_eq!(list(&root).unwrap().len(), 5);
}

#[test]
fn many_threads_make_their_trees_at_once() {
    let (_guard, root, id) = with_files(&["a"]);
    let known = list(&root).unwrap();
    thread::scope(|scope| {
        for number in 0..12 {
            let (root, known, id) = (&root, &known, &id);
            scope.spawn(move || {
                let name = format!("b/{number}");
                add(root, &place(root, &name), &name, id, Some(known)).unwrap()
            });
        }
    });
    assert_eq!(list(&root).unwrap().len(), 13);
}

#[test]
fn what_is_in_the_way_is_named_and_stays() {
    let (guard, root, id) = with_files(&["a"]);
    fs::create_dir_all(place(&root, "taken")).unwrap();
    fs::write(place(&root, "taken").join("f"), "f").unwrap();
    fs::write(place(&root, "file"), "f").unwrap();
    std::os::unix::fs::symlink("/nowhere", place(&root, "link")).unwrap();
    for name in ["taken", "file", "link"] {
        let said = said(add_at(&root, name, &id));
        let place = place(&root, name);
        let start = format!("the place of the work tree for the branch {name} is taken, {}", place.display());
        assert!(said.starts_with(&start), "{said}");
        assert_eq!(branch_commit(&root, name), None, "no branch is left behind");
    }
    assert!(place(&root, "taken").join("f").exists());
    fs::create_dir(place(&root, "empty")).unwrap();
    assert_eq!(add_at(&root, "empty", &id).unwrap(), Added::New);

    let elsewhere = guard.path().join("elsewhere");
    git(&root, &["worktree", "add", "--quiet", "-b", "used", elsewhere.to_str().unwrap()]);
    let elsewhere = fs::canonicalize(elsewhere).unwrap();
    let expected = format!("the branch used is checked out elsewhere, {}: ", elsewhere.display());
    assert!(said(add_at(&root, "used", &id)).starts_with(&expected));
    assert!(said(add_at(&root, "trunk", &id)).contains(&format!("elsewhere, {}: ", root.display())));
    assert!(said(add_at(&root, "empty/inner", &id)).contains("lies in another work tree"));
    assert!(said(add_at(&root, "new", "nope")).contains("nope"));
    assert!(said(add(guard.path(), &place(&root, "y"), "y", &id, None)).contains("not a git repository"));
}

#[test]
fn a_tree_on_another_branch_is_not_used() {
    let (_guard, root, id) = with_files(&["a"]);
    add_at(&root, "x", &id).unwrap();
    git(&place(&root, "x"), &["switch", "--quiet", "-c", "y"]);
    assert!(said(add_at(&root, "x", &id)).starts_with("the work tree for the branch x is on the branch y, "));
    git(&place(&root, "x"), &["switch", "--quiet", "--detach"]);
    assert!(said(add_at(&root, "x", &id)).contains("is on no branch"));
}

#[test]
fn a_locked_tree_may_be_away_and_another_one_is_gone() {
    let (_guard, root, id) = with_files(&["a"]);
    for name in ["away", "gone", "here"] {
        add_at(&root, name, &id).unwrap();
    }
    git(&root, &["worktree", "lock", "--reason", "on a stick", place(&root, "away").to_str().unwrap()]);
    for name in ["away", "gone"] {
        fs::remove_dir_all(place(&root, name)).unwrap();
    }
    let mut found: Vec<_> = super::super::trees::list(&root).unwrap().split_off(1);
    found.sort_by(|one, other| one.path.cmp(&other.path));
    let states: Vec<_> = found.iter().map(|tree| (tree.is_gone, tree.locked.as_deref())).collect();
    assert_eq!(states, [(false, Some("on a stick")), (true, None), (false, None)]);
}

#[test]
fn a_tree_whose_folder_is_gone_is_made_again_if_nothing_is_forgotten() {
    let (_guard, root, id) = with_files(&["a"]);
    for name in ["x", "detached", "locked", "no-branch"] {
        add_at(&root, name, &id).unwrap();
    }
    git(&place(&root, "detached"), &["switch", "--quiet", "--detach"]);
    git(&place(&root, "detached"), &["commit", "--quiet", "--allow-empty", "-m", "on no branch"]);
    git(&root, &["worktree", "lock", "--reason", "on a\nstick", place(&root, "locked").to_str().unwrap()]);
    fs::remove_dir_all(root.join(".worktrees")).unwrap();
    git(&root, &["update-ref", "-d", "refs/heads/no-branch"]);

    assert_eq!(add_at(&root, "x", &id).unwrap(), Added::Branch);
    assert_eq!(branch_of(&place(&root, "x")), "refs/heads/x");
    assert_eq!(add_at(&root, "no-branch", &id).unwrap(), Added::New);
    assert!(said(add_at(&root, "detached", &id)).contains("'git worktree prune'"));
    // Back on its branch, with a commit that only its entry leads to.
    let entry = root.join(".git/worktrees/detached");
    fs::write(entry.join("HEAD"), "ref: refs/heads/detached\n").unwrap();
    let refused = said(add_at(&root, "detached", &id));
    assert!(refused.contains(entry.join("logs/HEAD").to_str().unwrap()), "{refused}");
    let said = said(add_at(&root, "locked", &id));
    assert!(
        said.starts_with("a work tree is locked (on a stick)") && said.contains("git worktree unlock"),
        "{said}"
    );
    assert_eq!(list(&root).unwrap().len(), 5);
}

#[test]
fn folders_behind_links_are_recognised() {
    let (guard, root, id) = with_files(&["a"]);
    fs::create_dir(guard.path().join("disk")).unwrap();
    std::os::unix::fs::symlink(guard.path().join("disk"), root.join(".worktrees")).unwrap();
    assert_eq!(add_at(&root, "a/b", &id).unwrap(), Added::New);
    assert_eq!(add_at(&root, "a/b", &id).unwrap(), Added::Reused);
    fs::remove_dir_all(guard.path().join("disk/a")).unwrap();
    assert_eq!(add_at(&root, "a/b", &id).unwrap(), Added::Branch);
    // A linked work tree can be the project too.
    let inner = place(&root, "a/b");
    assert_eq!(add_at(&inner, "c", &id).unwrap(), Added::New);
    assert_eq!(add_at(&inner, "c", &id).unwrap(), Added::Reused);
}

#[test]
fn a_failing_hook_is_named_and_the_next_run_goes_on() {
    let (_guard, root, id) = with_files(&["a"]);
    let (text, hook) = (root.join(".git/text"), root.join(".git/hooks/post-checkout"));
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&text, "#!/bin/sh\npwd > \"$0.ran\"\necho no disk >&2\nexit 3\n").unwrap();
    // Another process writes the hook: a child of a parallel test could keep our file open for writing, and the hook
    // could not be started.
    let installed = Command::new("install").args(["-m", "755"]).args([&text, &hook]).status();
    assert!(installed.unwrap().success());
    assert!(said(add_at(&root, "x", &id)).starts_with("the post-checkout hook failed (no disk), "));
    let ran = fs::read_to_string(root.join(".git/hooks/post-checkout.ran")).unwrap();
    assert_eq!(Path::new(ran.trim()), place(&root, "x"));
    assert_eq!(add_at(&root, "x", &id).unwrap(), Added::Reused);
}

#[test]
fn the_plans_copy_is_not_committed_by_accident() {
    let (_guard, root, id) = with_files(&["a", "PLAN.md"]);
    assert!(is_tracked(&root, &id, "PLAN.md") && is_tracked(&root, "trunk", "PLAN.md"));
    assert!(!is_tracked(&root, &id, "OTHER.md") && !is_tracked(&root, "--all", "a"));
    for (file, is_tracked) in [("PLAN.md", true), ("OTHER.md", false)] {
        let tree = place(&root, file);
        add_at(&root, file, &id).unwrap();
        for _ in 0..2 {
            keep_plan_out(&tree, file, is_tracked).unwrap();
        }
        fs::write(tree.join(file), "the copy").unwrap();
        git(&tree, &["add", "--all"]);
        assert_eq!(git(&tree, &["status", "--porcelain"]), "", "{file}");
    }
    fs::write(root.join("PLAN.md"), "of the main work tree").unwrap();
    assert_eq!(git(&root, &["status", "--porcelain"]).lines().next(), Some(" M PLAN.md"));
    assert!(keep_plan_out(&place(&root, "OTHER.md"), "MISSING.md", true).is_err());
}

#[test]
fn in_a_copy_of_a_project_the_way_out_leaves_the_original_alone() {
    for is_tree_copied in [true, false] {
        let (guard, root, id) = with_files(&["a"]);
        for branch in ["x", "y"] {
            add_at(&root, branch, &id).unwrap();
        }
        fs::write(place(&root, "x").join("mine"), "not committed").unwrap();
        let copy = guard.path().join("a copy");
        assert!(Command::new("cp").arg("-a").arg(&root).arg(&copy).status().unwrap().success());
        if !is_tree_copied {
            fs::remove_dir_all(copy.join(".worktrees")).unwrap();
        }
        for branch in ["x", "y"] {
            let said = said(add_at(&copy, branch, &id));
            assert!(
                said.contains(&format!("checked out elsewhere, {}", place(&root, branch).display())),
                "{said}"
            );
            // Follows its advice.
            let (_, command) = said.split_once("with '").unwrap();
            let end = command.find("' (not").unwrap_or(command.len() - 1);
            assert!(Command::new("sh").args(["-c", &command[..end]]).status().unwrap().success(), "{said}");
            let added = if is_tree_copied { Added::Reused } else { Added::Branch };
            assert_eq!(add_at(&copy, branch, &id).unwrap(), added, "{said}");
            assert_eq!(add_at(&root, branch, &id).unwrap(), Added::Reused, "{said}");
        }
        let commits = |tree: &Path| git(tree, &["log", "--format=%s"]).lines().count();
        git(&place(&copy, "x"), &["commit", "--quiet", "--allow-empty", "-m", "in the copy"]);
        assert_eq!((commits(&place(&copy, "x")), commits(&place(&root, "x"))), (2, 1));
        let new = git(&place(&copy, "x"), &["ls-files", "--others"]);
        assert_eq!(new, if is_tree_copied { "mine\n" } else { "" });
        assert_eq!(git(&place(&root, "x"), &["ls-files", "--others"]), "mine\n");
    }
}

#[test]
fn a_machine_without_descriptors_says_nothing_about_a_tree() {
    let full = "git::worktrees::tests::a_machine_without_descriptors_says_nothing_about_a_tree";
    let set_up = || {
        let (guard, root, id) = with_files(&["a"]);
        add_at(&root, "x", &id).unwrap();
        let known = list(&root).unwrap();
        (guard, root, id, known)
    };
    without_descriptors(full, set_up, |(_guard, root, id, known)| {
        let tree = place(&root, "x");
        let mut errors =
            vec![checked_out(&tree).unwrap_err().to_string(), list(&root).unwrap_err().to_string()];
        errors.push(add(&root, &tree, "x", &id, Some(&known)).unwrap_err().to_string());
        errors.push(super::super::revert::check_idle(&tree).unwrap_err().to_string());
        for error in errors {
            assert!(error.contains("Too many open files") && error.ends_with("('ulimit -n')"), "{error}");
        }
    });
}

#[test]
fn what_git_would_wait_for_in_the_entry_of_a_tree_is_named_at_once() {
    for name in ["HEAD", "gitdir", "commondir", "locked"] {
        let (_guard, root, id) = with_files(&["a"]);
        add_at(&root, "x", &id).unwrap();
        let path = root.join(".git/worktrees/x").join(name);
        let _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let start = std::time::Instant::now();
        let told = said(list(&root).map(|_| Added::New));
        assert_eq!(told, format!("git, {}: it is a FIFO, not a file: move it away", path.display()));
        assert!(start.elapsed() < LIMIT, "{name}");
    }
}
