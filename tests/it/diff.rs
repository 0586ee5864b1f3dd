//! `ralph diff`: what the work of a loop, a task or a run has changed, as git itself shows it.

use std::fs;

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Scratch, Started, claude_says, wait_for};

/// A project whose agent commits a file for each of its iterations.
fn committing() -> Scratch {
    let scratch = Scratch::new();
    let says = claude_says("on it");
    let commits = "echo more >> made; git add made; git commit -qm more";
    scratch.agent("claude", &format!("cat > /dev/null\n{commits}\n{says}"));
    scratch
}

#[test]
fn the_newest_run_or_one_by_its_id() {
    let scratch = committing();
    let run = scratch.run("diff");
    assert!(run.code == Some(1) && run.stderr.contains("a loop has to be started first"), "{run:?}");
    assert_eq!(scratch.run("prompt p.md 2").code, Some(0));
    let first = scratch.run("diff").stdout;
    assert!(first.contains("+++ b/made\n") && first.contains("\n+more\n+more\n"), "{first}");
    assert_eq!(scratch.run("prompt p.md 1 --name other").code, Some(0));
    let second = scratch.run("diff other").stdout;
    assert!(second.contains("\n more\n more\n+more\n"), "{second}");
    assert_eq!(scratch.run("diff").stdout, second);
    assert_eq!(scratch.run("diff prompt").stdout, first);
    let stat = scratch.run("diff --stat").stdout;
    assert!(stat.ends_with(" 1 file changed, 1 insertion(+)\n"), "{stat}");
    let mut runs: Vec<String> = fs::read_dir(scratch.path(".ralph/runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    runs.sort();
    assert_eq!(scratch.run(&format!("diff {}", runs[0])).stdout, first);

    // git's own settings hold.
    scratch.git(&["config", "diff.noprefix", "true"]);
    assert!(scratch.run("diff").stdout.contains("+++ made\n"));
    let run = scratch.run("diff nothing");
    assert!(run.code == Some(1) && run.stderr.contains("'ralph history' lists"), "{run:?}");
    // What is gone is told.
    scratch.git(&["update-ref", "-d", "HEAD"]);
    scratch.git(&["rm", "--quiet", "--cached", "made"]);
    scratch.git(&["reflog", "expire", "--expire=now", "--all"]);
    scratch.git(&["gc", "--prune=now", "--quiet"]);
    let run = scratch.run("diff");
    assert!(
        run.code == Some(1) && run.stderr.contains("does not know the commits of 'other' any more"),
        "{run:?}"
    );
}

#[test]
fn a_running_loop_also_shows_what_is_not_committed() {
    let scratch = Scratch::new();
    scratch.write("kept", "before\n");
    scratch.git(&["add", "kept"]);
    scratch.git(&["commit", "--quiet", "-m", "kept"]);
    scratch.agent("claude", "cat > /dev/null; echo after > kept; touch written; sleep 60");
    let ralph = Started::new(&scratch, "prompt p.md 1");
    wait_for("the agent's work", || scratch.path("written").exists().then_some(()));
    let run = scratch.run("diff prompt");
    assert!(run.stdout.contains("\n-before\n+after\n"), "{run:?}");
    assert!(
        run.stderr.starts_with("not shown, since git does not know it yet: ")
            && run.stderr.contains("written"),
        "{run:?}"
    );
    drop(ralph);
    let run = wait_for("its end", || {
        let run = scratch.run("diff prompt");
        (run.code == Some(1)).then_some(run)
    });
    assert!(run.stderr.contains("'prompt' committed nothing"), "{run:?}");
}

#[test]
fn branches_one_by_one_or_how_much_each_is() {
    let project = BranchProject::without_remote(&plan(&[("one", 1), ("two", 1)]));
    let scratch = &project.scratch;
    assert_eq!(scratch.run("loop build").code, Some(0));
    let run = scratch.run("diff");
    assert!(
        run.code == Some(1)
            && run.stderr.contains("has the work of one, two: name one ('ralph diff one', 'ralph diff two')"),
        "{run:?}"
    );
    let stat = scratch.run("diff --stat").stdout;
    assert!(stat.starts_with("one\n ") && stat.contains("\ntwo\n "), "{stat}");
    let one = scratch.run("diff one").stdout;
    assert!(one.starts_with("diff --git "), "{one}");
    // What was kept of earlier runs is not needed for it.
    for run in fs::read_dir(scratch.path(".ralph/runs")).unwrap() {
        let _ = fs::remove_file(run.unwrap().path().join("summary.json"));
    }
    assert_eq!(scratch.run("diff one").stdout, one);
    // Whatever becomes of the work tree.
    assert_eq!(scratch.run("clean --worktrees").code, Some(0));
    assert_eq!(scratch.run("diff one").stdout, one);
}

#[test]
fn a_run_that_has_changed_nothing_says_nothing_of_the_work_before() {
    let project = BranchProject::without_remote(&plan(&[("one", 2)]));
    let scratch = &project.scratch;
    assert_eq!(scratch.run("loop build -m 1").code, Some(0));
    let before = scratch.run("diff one");
    assert!(before.stdout.starts_with("diff --git ") && before.stderr.is_empty(), "{before:?}");
    project.agent("exit 7");
    let failed = scratch.run("loop build -m 1");
    assert!(format!("{failed:?}").contains("exited with code 7"), "{failed:?}");
    let after = scratch.run("diff one");
    assert_eq!(after.stdout, before.stdout, "{after:?}");
    assert!(
        after.stderr.contains(" has changed nothing of 'one': this is what it was after run "),
        "{after:?}"
    );
    let whole = scratch.run("diff").stderr;
    assert!(
        whole.contains("this run committed nothing") && whole.contains(" committed: 'ralph diff one'"),
        "{whole}"
    );
}

#[test]
fn what_was_committed_before_a_kill_is_told_of() {
    let scratch = Scratch::new();
    let commits = "echo x > made; git add made; git commit -qm real";
    scratch.agent("claude", &format!("cat > /dev/null; {commits}; touch committed; sleep 60"));
    let ralph = Started::new(&scratch, "prompt p.md 1");
    wait_for("the commit", || scratch.path("committed").exists().then_some(()));
    assert!(scratch.run("report").stdout.contains("+1 −0  1 commit"), "while it is at work");
    drop(ralph);
    let told = wait_for("its end", || {
        let told = scratch.run("report").stdout;
        told.contains("✗ prompt  killed").then_some(told)
    });
    assert!(told.contains("+1 −0  1 commit"), "{told}");
    assert!(scratch.run("diff prompt").stdout.contains("+++ b/made\n"));
    // A link among the runs is no run.
    std::os::unix::fs::symlink("..", scratch.path(".ralph/runs/20990101T000000000000000-1")).unwrap();
    assert!(scratch.run("report").stdout.contains("✗ prompt  killed"));
}

#[test]
fn the_end_of_a_run_is_told_where_its_log_is_torn() {
    let scratch = committing();
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let events = scratch.session_logs()[0].with_extension("events.jsonl").canonicalize().unwrap();
    let text = fs::read(&events).unwrap();
    fs::write(&events, &text[..text.len() - 100]).unwrap();
    let told = scratch.run("report").stdout;
    assert!(told.contains("■ prompt  limit  ") && told.contains("1 commit"), "{told}");
}
