//! Errors in a plan are reported before anything starts; an error in one work tree stops only that branch.

use std::fs;

use rustix::process::Signal;

use crate::branch_project::{BranchProject, plan};
use crate::processes::send;
use crate::scratch::{executable, wait_for};

/// A section with everything that it needs.
const GOOD: &str = "## Branch: good\nGoal: g\n- [ ] t\n";

#[test]
fn every_fault_of_a_plan_is_an_error_with_its_line() {
    for (text, expected) in [
        ("## Branch: x\n- [ ] t\n", "line 1: branch 'x' has no goal"),
        ("## Branch: x\nGoal: g\n", "line 1: branch 'x' has no task"),
        (
            "## Branch: x\nGoal: g\n- [ ] t\n\n## Branch: x\nGoal: g\n- [ ] t\n",
            "line 5: branch 'x' stands in line 1",
        ),
        ("\n## Branch: a..b\nGoal: g\n- [ ] t\n", "line 2: 'a..b' is no name for a branch"),
        (
            "## Branch: x\nGoal: g\n- [ ] t\n## Branch: x/y\nGoal: g\n- [ ] t\n",
            "line 4: git cannot have 'x/y' beside 'x'",
        ),
        (
            "## Branch: x\nGoal: g\nBase: nothing\n- [ ] t\n",
            "line 3: 'nothing', the base of 'x', names no commit",
        ),
        (
            "## Branch: x\nGoal: g\nBase: y\n- [ ] t\n## Branch: y\nGoal: g\nBase: x\n- [ ] t\n",
            "line 3: branch 'x' waits for",
        ),
        ("## Branch: x\nGoal: g\nBase: x\n- [ ] t\n", "line 3: branch 'x' cannot start from itself"),
        ("## Branch: x\nGoal: g\nStatus: perfect\n- [ ] t\n", "line 3: 'perfect' is no status"),
    ] {
        // A fault anywhere stops everything.
        let project = BranchProject::without_remote(&format!("{text}\n{GOOD}"));
        let before = (project.scratch.snapshot(), project.scratch.read(".git/info/exclude"));
        for command in ["loop build", "loop build --dry-run"] {
            let run = project.scratch.run(command);
            assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
            let message = format!("IMPLEMENTATION_PLAN.md {expected}");
            assert!(run.stderr.contains(&message) && run.stderr.lines().count() == 1, "{expected}: {run:?}");
        }
        assert_eq!((project.scratch.snapshot(), project.scratch.read(".git/info/exclude")), before);
    }
}

#[test]
fn a_plan_that_is_missing_or_has_no_branch() {
    let project = BranchProject::without_remote("# Plan\n\nNothing yet.\n");
    let run = project.scratch.run("loop build");
    assert!(run.code == Some(1) && run.stderr.contains("has no section '## Branch: NAME'"), "{run:?}");
    fs::remove_file(project.scratch.path("IMPLEMENTATION_PLAN.md")).unwrap();
    let run = project.scratch.run("loop build");
    let message = "error: Implementation plan not found. Run 'ralph loop plan' first.\n";
    assert_eq!((run.code, run.stderr.as_str()), (Some(2), message));
    assert!(!project.scratch.path(".ralph").exists() && !project.scratch.path(".worktrees").exists());
}

#[test]
fn a_dry_run_shows_what_would_be_built_and_changes_nothing() {
    let done = "## Branch: old\nGoal: Be old\nStatus: done\nPR: https://example.com/7\n- [x] gone\n";
    let next = "## Branch: next\nGoal: Be next\nBase: one\n- [ ] later\n";
    let project = BranchProject::new(&format!("{}{done}\n{next}", plan(&[("one", 2)])));
    let before = project.scratch.snapshot();
    let run = project.scratch.run("loop build --dry-run");
    assert_eq!(run.code, Some(0), "{run:?}");
    for text in [
        "one from master: Have one",
        "in .worktrees/one",
        "[ ] Do 2 of one",
        "done: https://example.com/7",
        "in .worktrees/next, when 'one' is done",
        "2 of 3 branches would be built.",
    ] {
        assert!(run.stdout.contains(text), "{text}: {run:?}");
    }
    let run = project.scratch.run("loop build --dry-run --json");
    let branches: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(branches[0]["branch"], "one");
    assert_eq!((&branches[1]["done"], &branches[2]["waits_for"]), (&true.into(), &"one".into()));
    assert_eq!(project.scratch.snapshot(), before);
}

#[test]
fn a_work_tree_that_cannot_be_made_stops_its_branch_alone() {
    let project = BranchProject::new(&plan(&[("taken", 1), ("elsewhere", 1), ("fine", 1)]));
    let scratch = &project.scratch;
    scratch.write(".worktrees/taken/precious.txt", "mine");
    scratch.git(&["worktree", "add", "--quiet", "-b", "elsewhere", "../other"]);
    let run = scratch.run("loop build");
    assert_eq!(run.code, Some(5), "{run:?}");
    assert!(run.stderr.contains("the branch elsewhere is checked out elsewhere"), "{run:?}");
    assert_eq!(scratch.read(".worktrees/taken/precious.txt"), "mine");
    assert_eq!((project.calls("taken"), project.calls("elsewhere")), (0, 0));
    assert_eq!(project.commits("fine"), ["Do 1 of fine"]);
    assert_eq!(project.plan().matches("Status: done").count(), 1);
}

#[test]
fn a_work_tree_that_was_never_finished_is_made_anew_and_work_in_one_stays() {
    let project = BranchProject::without_remote(&plan(&[("torn", 1), ("mine", 1)]));
    let scratch = &project.scratch;
    for branch in ["torn", "mine"] {
        scratch.git(&["worktree", "add", "--quiet", "-b", branch, &format!(".worktrees/{branch}")]);
        fs::remove_file(scratch.path(&format!(".git/worktrees/{branch}/index"))).unwrap();
    }
    // Without this file git cannot list any tree.
    scratch.write(".git/worktrees/torn/commondir", "");
    fs::remove_file(scratch.path(".worktrees/torn/code.txt")).unwrap();
    scratch.write(".git/worktrees/mine/locked", "initializing");
    scratch.write(".worktrees/mine/code.txt", "mine");

    let run = scratch.run("loop build");
    assert_eq!(run.code, Some(5), "{run:?}");
    assert!(run.stderr.contains("holds a file that no checkout wrote"), "{run:?}");
    assert_eq!((scratch.read(".worktrees/mine/code.txt").as_str(), project.calls("mine")), ("mine", 0));
    assert_eq!(project.commits("torn"), ["Do 1 of torn"]);
    assert_eq!(scratch.read(".worktrees/torn/code.txt"), "code\n");
    assert!(scratch.git(&["ls-tree", "-r", "--name-only", "torn"]).starts_with("code.txt\n"));
}

#[test]
fn what_a_killed_build_left_of_a_branch_without_logs_goes_at_the_next_start() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    let left = ".ralph/runs/20260101T000000000000000-1/one/.ralph-0123abcd-1-x.tmp";
    project.scratch.write(left, "");
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!project.scratch.path(left).exists());
}

#[test]
fn the_lock_of_another_git_is_named_and_never_deleted() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    let scratch = &project.scratch;
    scratch.write("ralph.toml", "[git.worktree]\nname = 'Bot'\n");
    // Old, empty, and not open in any process: it may still be in use.
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_hours(24);
    for (lock, code) in [("config", 1), ("refs/heads/one", 5)] {
        let lock = scratch.path(&format!(".git/{lock}.lock"));
        fs::File::create(&lock).unwrap().set_modified(old).unwrap();
        let run = scratch.run("loop build");
        assert!(run.code == Some(code) && lock.exists() && project.calls("one") == 0, "{run:?}");
        let told =
            run.stderr.lines().find(|line| line.contains("a lock of git's is in the way, since 1970-01-0"));
        let told = told.unwrap_or_else(|| panic!("{run:?}"));
        assert!(told.contains("when none works in this repository any more"), "{told}");
        // Follows its advice.
        let (_, command) = told.split_once("delete it with '").unwrap();
        let command = command.split_once('\'').unwrap().0;
        assert!(scratch.command("sh").args(["-c", command]).status().unwrap().success());
        assert!(!lock.exists(), "{command}");
    }
    assert_eq!(scratch.run("loop build").code, Some(0));
}

#[test]
fn a_lock_that_is_soon_gone_is_waited_for() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    let scratch = &project.scratch;
    scratch.write("ralph.toml", "[git.worktree]\nname = 'Bot'\n");
    scratch.write(".git/config.lock", "");
    let ralph = scratch.start("loop build");
    // It holds the project's lock before it writes the configuration.
    wait_for("ralph to be at it", || scratch.path(".ralph/lock").exists().then_some(()));
    fs::remove_file(scratch.path(".git/config.lock")).unwrap();
    let run = crate::scratch::finish(ralph);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        scratch.git(&["log", "-1", "--format=%an", "one"]),
        "Bot\n",
        "the setting wins over the environment"
    );
}

#[test]
fn two_builds_cannot_run_at_once() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    let scratch = &project.scratch;
    project.agent(r#"while [ ! -e "$HOME/go" ]; do sleep 0.05; done; work; end"#);
    let first = scratch.start("loop build");
    wait_for("an agent", || (project.calls("one") == 1).then_some(()));
    fs::create_dir_all(scratch.path("specs")).unwrap();
    for command in ["loop build", "loop plan --agent script", "plan --agent script", "clean --worktrees"] {
        let run = scratch.run(command);
        assert!(run.code == Some(1) && run.stderr.contains("loop build, pid"), "{command}: {run:?}");
    }
    fs::write(scratch.outside().join("home/go"), "").unwrap();
    assert_eq!(crate::scratch::finish(first).code, Some(0));
}

/// A git in front of the real one that runs a script when a work tree is added.
fn git_that(project: &BranchProject, does: &str) {
    let text = format!(
        "#!/bin/bash\nreal=/usr/bin/git\ncase \"$*\" in *'worktree add'*) {does};; esac\nexec $real \"$@\"\n"
    );
    executable(&project.scratch.outside().join("bin/git"), &text);
}

#[test]
fn a_git_that_is_ended_from_outside_is_not_told_as_a_hook() {
    for (does, told) in [
        ("kill -9 $$", "git was killed by signal 9"),
        ("$real \"$@\"; kill -9 $$", "git was killed by signal 9"),
        ("$real \"$@\"; kill -15 $$", "git was killed by signal 15"),
        ("kill -9 $PPID; exec sleep 60", "the process that supervises it was killed"),
        ("$real \"$@\"; kill -9 $PPID; exec sleep 60", "the process that supervises it was killed"),
    ] {
        let project = BranchProject::without_remote(&plan(&[("one", 1)]));
        git_that(&project, does);
        let run = project.scratch.run("loop build");
        assert!(run.code == Some(5) && run.stderr.contains(told), "{does}: {run:?}");
        assert!(
            !run.stderr.contains("hook failed") && !run.stderr.contains("fix the hook"),
            "{does}: {run:?}"
        );
        assert!(run.stderr.contains("start again"), "{does}: {run:?}");
        assert_eq!(project.calls("one"), 0, "{does}");
        // Follows its advice.
        fs::remove_file(project.scratch.outside().join("bin/git")).unwrap();
        let run = project.scratch.run("loop build");
        assert!(run.code == Some(0) && project.commits("one") == ["Do 1 of one"], "{does}: {run:?}");
    }
}

#[test]
fn a_git_that_was_to_end_because_the_user_leaves_is_not_told_as_a_hook() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    git_that(&project, "touch \"$HOME/begun\"; exec sleep 60");
    let ralph = project.scratch.start("loop build");
    wait_for("git", || project.home_path("begun").exists().then_some(()));
    // Two signals at once would count as one.
    send(ralph.id(), Signal::INT);
    send(ralph.id(), Signal::TERM);
    let run = crate::scratch::finish(ralph);
    assert_eq!(run.code, Some(130), "{run:?}");
    assert!(run.stderr.contains("git was ended, because ralph was told to leave now"), "{run:?}");
    assert!(!run.stderr.contains("hook") && !run.stderr.contains("timed out"), "{run:?}");
}
