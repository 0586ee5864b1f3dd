use std::fs;
use std::path::PathBuf;

use super::super::tests::{git, repository};
use super::*;

/// A repository on `main` with one commit of two files.
fn trunk() -> (tempfile::TempDir, PathBuf, Trunk) {
    let (guard, root) = repository();
    git(&root, &["symbolic-ref", "HEAD", "refs/heads/main"]);
    commit_file(&root, "a", "1\n2\n3\n");
    fs::write(root.join(".git/info/exclude"), "/.worktrees/\n").unwrap();
    let trunk = Trunk::new(&root, "main");
    begin(&trunk, false).unwrap();
    (guard, root, trunk)
}

fn commit_file(tree: &Path, name: &str, text: &str) -> String {
    fs::write(tree.join(name), text).unwrap();
    git(tree, &["add", "."]);
    git(tree, &["commit", "--quiet", "-m", name]);
    head(tree).unwrap()
}

/// A work tree of a job on this commit.
fn tree(root: &Path, name: &str, commit: &str) -> PathBuf {
    let tree = root.join(".worktrees/tasks").join(name);
    add(root, &tree, commit).unwrap();
    put(root, &tree, Some(name), commit).unwrap();
    tree
}

fn refs(root: &Path, folder: &str) -> Vec<String> {
    git(root, &["for-each-ref", "--format=%(refname)", folder]).lines().map(str::to_owned).collect()
}

#[test]
fn commits_are_merged_without_a_work_tree_and_conflicts_name_their_files() {
    let (_guard, root, trunk) = trunk();
    let tip = trunk.tip().unwrap();
    let one = tree(&root, "1", &tip);
    let (b, other) = (commit_file(&one, "b", "b\n"), tree(&root, "2", &tip));
    let c = commit_file(&other, "c", "c\n");
    let Merged::Tree(files) = merge(&root, &b, &c).unwrap() else { panic!() };
    let made = commit(&root, &files, &[&b, &c], "Merge both\n", &[]).unwrap();
    assert_eq!(git(&root, &["ls-tree", "--name-only", &made]), "a\nb\nc\n");
    assert_eq!(git(&root, &["log", "-1", "--format=%s %p", &made]).split(' ').count(), 4);
    assert_eq!(files_of(&root, &made), Some(files));
    let theirs = commit_file(&one, "a", "1\n2\nours\n");
    let ours = commit_file(&other, "a", "1\n2\ntheirs\n");
    assert_eq!(merge(&root, &ours, &theirs).unwrap(), Merged::Conflict(vec!["a".into()]));
    assert!(merge(&root, &ours, "nope").is_err());
    assert_eq!(who_changed(&root, &tip, &theirs, &["a".into()], 9).len(), 1);
}

#[test]
fn commits_are_made_again_on_another_one_by_their_own_author() {
    let (_guard, root, trunk) = trunk();
    let tip = trunk.tip().unwrap();
    let one = tree(&root, "1", &tip);
    fs::write(one.join("b"), "b").unwrap();
    git(&one, &["add", "."]);
    let author = "--author=Ada <ada@example.org>";
    git(&one, &["commit", "--quiet", "-m", "one\n\nbody", author, "--date=@1700000000 +0100"]);
    commit_file(&one, "c", "c");
    let head = head(&one).unwrap();
    let other = commit_file(&root, "d", "d");
    let listed = commits(&root, &tip, &head).unwrap();
    assert_eq!((listed.len(), has_merges(&root, &tip, &head).unwrap()), (2, false));
    let mut last = other.clone();
    for one in listed {
        let Merged::Tree(files) = merge_since(&root, &last, &one, &format!("{one}^")).unwrap() else {
            panic!()
        };
        last = commit_again(&root, &one, &files, &last, &[]).unwrap();
    }
    assert_eq!(git(&root, &["ls-tree", "--name-only", &last]), "a\nb\nc\nd\n");
    let first = git(&root, &["log", "-1", "--format=%an %ae %ai|%B", &format!("{last}^")]);
    assert_eq!(first.trim_end(), "Ada ada@example.org 2023-11-14 23:13:20 +0100|one\n\nbody");
}

#[test]
fn the_tip_moves_by_compare_and_swap_and_the_trunk_follows_it_with_its_files() {
    let (_guard, root, trunk) = trunk();
    let tip = trunk.tip().unwrap();
    let one = tree(&root, "1", &tip);
    let new = commit_file(&one, "b", "b\n");
    keep(&root, "refs/ralph/tasks/t-1/1", &new).unwrap();
    assert!(trunk.advance((&new, &new), &[], false).is_err(), "it is not there");
    trunk.advance((&tip, &new), &[], false).unwrap();
    assert_eq!((trunk.tip(), trunk.commit()), (Some(new.clone()), Some(tip.clone())));
    assert_eq!(trunk.stand(&new), Stand::Behind);
    assert!(trunk.advance((&tip, &tip), &[], false).is_err(), "another one was faster");
    // The user's file is in the way.
    fs::write(root.join("b"), "mine").unwrap();
    let Followed::InTheWay(why) = trunk.follow(&new).unwrap() else { panic!() };
    assert!(why.contains("would be overwritten"), "{why}");
    assert_eq!(fs::read_to_string(root.join("b")).unwrap(), "mine");
    fs::remove_file(root.join("b")).unwrap();
    assert_eq!(trunk.follow(&new).unwrap(), Followed::Moved);
    assert_eq!(fs::read_to_string(root.join("b")).unwrap(), "b\n");
    assert_eq!((trunk.follow(&new).unwrap(), refs(&root, TASKS)), (Followed::Level, Vec::new()));
    // Where it is checked out nowhere, only the branch moves.
    git(&root, &["switch", "--quiet", "-c", "side"]);
    let newer = commit_file(&one, "c", "c\n");
    trunk.advance((&new, &newer), &[], false).unwrap();
    assert_eq!((trunk.follow(&newer).unwrap(), trunk.commit()), (Followed::Moved, Some(newer)));
    assert!(!root.join("c").exists());
}

#[test]
fn a_branch_below_one_that_is_gone_can_be_a_trunk() {
    let (_guard, root, trunk) = trunk();
    let tip = trunk.tip().unwrap();
    git(&root, &["switch", "--quiet", "-c", "feature/x"]);
    git(&root, &["branch", "-D", "--quiet", "main"]);
    git(&root, &["update-ref", "refs/ralph/landed/feature", &tip]);
    let other = Trunk::new(&root, "feature/x");
    begin(&other, false).unwrap();
    assert_eq!(other.tip(), Some(tip));
    assert_eq!(refs(&root, "refs/ralph/landed"), ["refs/ralph/landed/feature/x", "refs/ralph/landed/main"]);
    assert_eq!(refs(&root, "refs/ralph/keep/feature").len(), 1);
}

#[test]
fn what_others_do_to_the_trunk_is_seen() {
    let (_guard, root, trunk) = trunk();
    let tip = trunk.tip().unwrap();
    let theirs = commit_file(&root, "u", "u");
    assert_eq!(trunk.stand(&tip), Stand::Ahead(theirs));
    git(&root, &["commit", "--quiet", "--amend", "-m", "other"]);
    assert!(matches!(trunk.stand(&tip), Stand::Ahead(_)), "nothing that was known is lost");
    git(&root, &["reset", "--quiet", "--hard", &tip]);
    git(&root, &["commit", "--quiet", "--amend", "-m", "rewritten"]);
    assert_eq!(trunk.stand(&tip), Stand::Rewritten);
    let said = begin(&trunk, false).unwrap_err().to_string();
    assert!(said.contains("--onto main") && !said.contains('\n'), "{said}");
    begin(&trunk, true).unwrap();
    assert_eq!((trunk.tip(), trunk.stand(&trunk.tip().unwrap())), (head(&root), Stand::Level));
    assert_eq!(git(&root, &["log", "-1", "--format=%H", &refs(&root, "refs/ralph/keep")[0]]).trim(), tip);
    git(&root, &["switch", "--quiet", "--detach"]);
    git(&root, &["branch", "--quiet", "-D", "main"]);
    assert_eq!(trunk.stand(&tip), Stand::Gone);
    assert!(begin(&trunk, true).unwrap_err().to_string().contains("git branch main refs/ralph/landed/main"));
}

#[test]
fn a_trunk_is_left_alone_that_is_rebased_or_checked_out_twice() {
    let (_guard, root, trunk) = trunk();
    let tip = trunk.tip().unwrap();
    let one = tree(&root, "1", &tip);
    let new = commit_file(&one, "b", "b\n");
    trunk.advance((&tip, &new), &[], false).unwrap();
    let second = root.join("second");
    git(&root, &["worktree", "add", "--quiet", "--force", second.to_str().unwrap(), "main"]);
    let Followed::InTheWay(why) = trunk.follow(&new).unwrap() else { panic!() };
    assert!(why.contains("checked out twice"), "{why}");
    git(&root, &["worktree", "remove", "--force", second.to_str().unwrap()]);
    git(&root, &["switch", "--quiet", "--detach"]);
    let state = root.join(".git/rebase-merge");
    fs::create_dir(&state).unwrap();
    fs::write(state.join("head-name"), "refs/heads/main\n").unwrap();
    assert!(matches!(trunk.follow(&new).unwrap(), Followed::InTheWay(_)));
    assert_eq!(trunk.commit(), Some(tip));
}

#[test]
fn a_tree_is_put_on_another_commit_and_what_only_it_has_is_kept() {
    let (_guard, root, trunk) = trunk();
    let tip = trunk.tip().unwrap();
    fs::write(root.join(".git/info/exclude"), "/.worktrees/\nbuilt\n").unwrap();
    let one = tree(&root, "1", &tip);
    assert!(!add(&root, &one, &tip).unwrap(), "it is there");
    for (name, text) in [("a", "changed"), ("new", "new"), ("built", "built")] {
        fs::write(one.join(name), text).unwrap();
    }
    let saved = put(&root, &one, Some("1"), &tip).unwrap();
    let kept = &saved[0].reference;
    assert_eq!(git(&root, &["show", &format!("{kept}:new")]), "new");
    assert_eq!(git(&root, &["show", &format!("{kept}:a")]), "changed");
    assert!(one.join("built").exists() && !one.join("new").exists());
    assert_eq!(git(&one, &["status", "--porcelain"]), "");
    // A commit that nothing leads to, in the middle of a merge.
    let lost = commit_file(&one, "a", "mine\n");
    let other = tree(&root, "2", &tip);
    let theirs = commit_file(&other, "a", "theirs\n");
    assert_eq!(merge_into(&one, &theirs, "Merge it").unwrap(), ["a"]);
    let saved = put(&root, &one, Some("1"), &tip).unwrap();
    assert!(is_ancestor(&root, &lost, &saved[0].reference), "{saved:?}");
    assert_eq!(head(&one), Some(tip.clone()));
    assert!(in_progress_of(&one).is_none());
    // Without a name nothing is worth keeping.
    fs::write(one.join("new"), "new").unwrap();
    assert_eq!(put(&root, &one, None, &tip).unwrap(), []);
    // Removed by hand, half made, or in the way.
    fs::remove_dir_all(&one).unwrap();
    assert!(add(&root, &one, &tip).unwrap());
    put(&root, &one, Some("1"), &tip).unwrap();
    assert!(one.join("a").exists());
    let taken = root.join(".worktrees/tasks/3");
    fs::create_dir_all(&taken).unwrap();
    fs::write(taken.join("mine"), "").unwrap();
    assert!(add(&root, &taken, &tip).unwrap_err().to_string().contains("move it away"));
    assert!(taken.join("mine").exists());
}

fn in_progress_of(tree: &Path) -> Option<super::super::progress::Operation> {
    super::super::progress::in_progress(tree).unwrap()
}

#[test]
fn what_is_left_is_committed_and_what_conflicts_keeps_its_markers() {
    let (_guard, root, trunk) = trunk();
    let tip = trunk.tip().unwrap();
    let one = tree(&root, "1", &tip);
    assert_eq!(commit_rest(&one, "t-1: x").unwrap(), None);
    fs::write(one.join("a"), "mine\n").unwrap();
    fs::write(one.join("new file"), "").unwrap();
    assert_eq!(commit_rest(&one, "t-1: x").unwrap().as_deref(), Some("a, new file"));
    assert_eq!(git(&one, &["log", "-1", "--format=%s"]), "t-1: x\n");
    let theirs = commit_file(&root, "a", "theirs\n");
    assert_eq!(merge_into(&one, &theirs, "Merge main into t-1").unwrap(), ["a"]);
    assert!(fs::read_to_string(one.join("a")).unwrap().contains("<<<<<<<"));
    let fine = tree(&root, "2", &tip);
    commit_file(&fine, "b", "b");
    assert_eq!(merge_into(&fine, &theirs, "Merge main into t-2").unwrap(), [""; 0]);
    assert_eq!(git(&fine, &["log", "-1", "--format=%s"]), "Merge main into t-2\n");
}

#[test]
fn what_has_landed_is_taken_back_by_one_commit() {
    let (_guard, root, trunk) = trunk();
    let tip = trunk.tip().unwrap();
    let landed = commit_file(&root, "b", "b\n");
    commit_file(&root, "c", "c\n");
    let made = take_back(&root, (&tip, &landed), "t-1", "Revert t-1: x\n").unwrap().unwrap();
    assert!(!root.join("b").exists() && root.join("c").exists());
    assert_eq!(git(&root, &["log", "-1", "--format=%H %s"]).trim(), format!("{made} Revert t-1: x"));
    assert_eq!(take_back(&root, (&tip, &landed), "t-1", "x").unwrap(), None, "nothing is left of it");
    // Later work stands on it.
    let landed = commit_file(&root, "a", "1\n2\nthree\n");
    let before = format!("{landed}^");
    commit_file(&root, "a", "1\n2\nthree!\n");
    let said = take_back(&root, (&before, &landed), "t-2", "x").unwrap_err().to_string();
    assert!(said.contains("t-2") && said.contains("later work has changed a"), "{said}");
    let elsewhere = tree(&root, "1", &tip);
    let other = commit_file(&elsewhere, "d", "d");
    assert!(matches!(take_back(&root, (&tip, &other), "t-3", "x"), Err(RevertError::NotHere { .. })));
}

#[test]
fn what_was_found_good_is_known_to_the_next_run_of_the_same_command() {
    let (_guard, root, trunk) = trunk();
    let one = tree(&root, "1", &trunk.tip().unwrap());
    set_good(&one, "make\ntest", "a");
    (0..trees::MOST_GOOD).for_each(|number| set_good(&one, "make\ntest", &number.to_string()));
    set_good(&one, "make\ntest", "0");
    let known = known_good(&one, "make\ntest");
    assert_eq!((known.len(), known[0].as_str()), (trees::MOST_GOOD, "0"), "the oldest one is forgotten");
    assert_eq!(known_good(&one, "make"), [""; 0]);
    set_good(&one, "make", "b");
    assert_eq!(known_good(&one, "make"), ["b"]);
    assert_eq!(known_good(&root, "make"), [""; 0]);
}

#[test]
fn commits_that_were_made_again_are_noted_with_the_tip() {
    let (_guard, root, trunk) = trunk();
    let tip = trunk.tip().unwrap();
    let one = tree(&root, "1", &tip);
    let (old, new) = (commit_file(&one, "b", "b"), commit_file(&root, "c", "c"));
    let reference = "refs/ralph/tasks/t-1/3";
    keep(&root, reference, &old).unwrap();
    trunk.advance((&tip, &new), &[(reference.to_owned(), new.clone())], false).unwrap();
    assert_eq!(replayed(&root, reference), Some(new));
    keep_old(&root, reference).unwrap();
    forget_replayed(&root, reference).unwrap();
    assert_eq!((replayed(&root, reference), refs(&root, TASKS)), (None, Vec::new()));
    assert_eq!(refs(&root, "refs/ralph/keep/t-1").len(), 1);
}
