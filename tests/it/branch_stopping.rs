//! Many branches at once: how many, in which order, and how all of them stop.

use std::collections::BTreeMap;
use std::fs;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Run, Started, await_end, executable, finish, process_in, wait_for};

/// Notes begin and end of each agent, waits for `go` in its home between.
const HELD: &str = r#"echo "+ $RALPH_BRANCH" >> "$HOME/times"
while [ ! -e "$HOME/go" ]; do sleep 0.02; done
echo "- $RALPH_BRANCH" >> "$HOME/times"
work; end"#;

fn signal(ralph: &Child, signal: Signal) {
    kill_process(Pid::from_child(ralph), signal).unwrap();
}

fn begun(project: &BranchProject) -> usize {
    project.home("times").lines().filter(|line| line.starts_with('+')).count()
}

fn go(project: &BranchProject) {
    fs::write(project.scratch.outside().join("home/go"), "").unwrap();
}

/// `status` and `exit_reason` of each branch that has a state.
fn states(project: &BranchProject, branches: &[&str]) -> BTreeMap<String, (String, Option<String>)> {
    let state = |branch: &&str| {
        let state = project.state(branch);
        let text = |key: &str| state.get(key).and_then(toml::Value::as_str).map(str::to_owned);
        ((*branch).to_owned(), (text("status").unwrap(), text("exit_reason")))
    };
    branches.iter().map(state).collect()
}

/// Waits until each of these has received this many requests; two signals in a row may become one.
fn heard(project: &BranchProject, branches: &[&str], times: usize) {
    let asked = |branch: &&str| project.events(branch).matches("\"asked\"").count();
    wait_for("it to be heard by all", || branches.iter().all(|branch| asked(branch) >= times).then_some(()));
}

fn ended(ralph: Child, code: i32) -> Run {
    let run = finish(ralph);
    assert_eq!(run.code, Some(code), "{run:?}");
    run
}

#[test]
fn one_after_the_other_in_the_order_of_the_plan() {
    let names = ["delta", "alpha", "charlie", "bravo"];
    let project = BranchProject::without_remote(&plan(&names.map(|name| (name, 2))));
    assert_eq!(project.scratch.run("loop build --sequential").code, Some(0));
    let calls = project.home("calls");
    let order: Vec<&str> = calls.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(order, names.iter().flat_map(|name| [*name, *name]).collect::<Vec<_>>());
}

#[test]
fn no_more_at_once_than_there_are_jobs() {
    let names = ["a", "b", "c", "d", "e"];
    let project = BranchProject::without_remote(&plan(&names.map(|name| (name, 1))));
    project.agent(HELD);
    let ralph = project.scratch.start("loop build --jobs 2");
    wait_for("two agents", || (begun(&project) == 2).then_some(()));
    wait_for("the others to wait", || {
        let waiting = |branch: &&str| {
            let path = project.scratch.path(&BranchProject::state_file(branch));
            fs::read_to_string(path).is_ok_and(|state| state.contains("status = \"waiting\""))
        };
        (names.iter().filter(|name| waiting(name)).count() == 3).then_some(())
    });
    assert_eq!(begun(&project), 2);
    go(&project);
    let run = ended(ralph, 0);
    assert_eq!(run.stderr.matches("⏸ waiting for a free place\n").count(), 3, "{run:?}");
    let (mut now, mut most) = (0_usize, 0);
    for line in project.home("times").lines() {
        now = if line.starts_with('+') { now + 1 } else { now - 1 };
        most = most.max(now);
    }
    assert_eq!((begun(&project), most), (5, 2));
}

#[test]
fn the_first_ctrl_c_lets_every_attempt_end_and_starts_nothing_more() {
    let text = plan(&[("a", 2), ("b", 2), ("c", 2)]) + "## Branch: d\nGoal: on a\nBase: a\n- [ ] t\n";
    let project = BranchProject::without_remote(&text);
    project.agent(HELD);
    let ralph = project.scratch.start("loop build --jobs 2");
    wait_for("two agents", || (begun(&project) == 2).then_some(()));
    signal(&ralph, Signal::INT);
    wait_for("the waiting branch to end", || {
        let state = project.scratch.read_if_there(&BranchProject::state_file("c"));
        state.contains("exit_reason").then_some(())
    });
    go(&project);
    let run = ended(ralph, 130);
    assert_eq!(begun(&project), 2, "{run:?}");
    assert!(run.stdout.contains("not started"), "{run:?}");
    assert!(!project.scratch.path(".worktrees/d").exists());
    let interrupted = || ("stopped".to_owned(), Some("interrupted".to_owned()));
    assert!(states(&project, &["a", "b", "c"]).into_values().all(|state| state == interrupted()));
    // What was finished is kept, and the next build goes on.
    assert_eq!(project.commits("a"), ["Do 1 of a"]);
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(project.commits("a"), ["Do 1 of a", "Do 2 of a"]);
    assert_eq!(project.commits("c"), ["Do 1 of c", "Do 2 of c"]);
    project.scratch.await_nothing_left();
}

#[test]
fn the_second_ctrl_c_ends_all_agents_and_the_third_leaves_at_once() {
    let project = BranchProject::without_remote(&plan(&[("a", 1), ("b", 1), ("c", 1)]));
    project.agent(&format!("trap '' INT TERM\n{HELD}"));
    let ralph = project.scratch.start("loop build");
    wait_for("three agents", || (begun(&project) == 3).then_some(()));
    for step in 1..=3 {
        signal(&ralph, Signal::INT);
        heard(&project, &["a", "b", "c"], step);
    }
    let run = ended(ralph, 130);
    assert!(run.stderr.contains("killing the agent"), "{run:?}");
    project.scratch.await_nothing_left();
    assert_eq!(project.scratch.run("loop build --dry-run").code, Some(0));
}

#[test]
fn a_termination_pauses_all_and_resume_starts_the_build_once() {
    let project = BranchProject::without_remote(&plan(&[("a", 1), ("feature/b", 1)]));
    project.agent(HELD);
    let ralph = project.scratch.start("loop build");
    wait_for("two agents", || (begun(&project) == 2).then_some(()));
    signal(&ralph, Signal::TERM);
    heard(&project, &["a", "feature/b"], 1);
    signal(&ralph, Signal::TERM);
    ended(ralph, 130);
    let paused = ("paused".to_owned(), Some("terminated".to_owned()));
    assert!(states(&project, &["a", "feature/b"]).into_values().all(|state| state == paused));
    go(&project);
    let run = project.scratch.run("resume");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!((project.commits("a").len(), project.commits("feature/b").len()), (1, 1));
    assert_eq!(run.stderr.matches("starting loop").count(), 1, "{run:?}");
}

#[test]
fn one_branch_is_steered_by_its_name_and_all_without() {
    let project = BranchProject::without_remote(&plan(&[("a", 2), ("feature/b", 2), ("c", 2)]));
    project.agent(HELD);
    let scratch = &project.scratch;
    let ralph = scratch.start("loop build");
    wait_for("three agents", || (begun(&project) == 3).then_some(()));
    let say = |args: &str| {
        let run = scratch.run(args);
        assert_eq!(run.code, Some(0), "{args}: {run:?}");
        run.stdout
    };
    assert!(say("status feature/b").starts_with("Ralph Loop: feature/b\nStatus: running\n"));
    assert!(say("status feature/b").contains("\nTasks: 0/2 done\n"), "{}", say("status feature/b"));
    assert_eq!(say("status --json").matches("\"name\":").count(), 3);
    assert!(say("status feature/b --json").contains(r#""tasks":{"done":0,"failed":0,"total":2}"#));
    assert!(say("ls").contains("feature/b"));
    assert!(say("logs feature/b").contains("[START] iteration 1/20"));
    assert!(say("cancel c").contains("cancelled"));
    assert!(say("pause feature/b").contains("paused ralph loop for feature/b"));
    let note = scratch.ralph("note a").arg("mind the gap").output().unwrap();
    assert!(note.status.success(), "{note:?}");
    go(&project);
    wait_for("the others to end", || {
        let state = states(&project, &["a", "feature/b", "c"]);
        let ended =
            state["a"].1.as_deref() == Some("complete") && state["c"].1.as_deref() == Some("cancelled");
        (ended && state["feature/b"].0 == "paused").then_some(())
    });
    assert!(project.home("prompt-a-2").contains("mind the gap"));
    assert!(say("resume").contains("resumed ralph loop for feature/b"));
    let run = ended(ralph, 0);
    assert!(run.stdout.contains("  cancelled  "), "{run:?}");
    assert_eq!((project.commits("feature/b").len(), project.commits("c").len()), (2, 1));
}

#[test]
fn branches_that_are_cancelled_after_a_kill_are_cancelled_in_every_report() {
    let project = BranchProject::without_remote(&plan(&[("a", 2), ("feature/b", 2)]));
    project.agent(HELD);
    let scratch = &project.scratch;
    let ralph = Started::new(scratch, "loop build");
    wait_for("two agents", || (begun(&project) == 2).then_some(()));
    drop(ralph); // kill -9
    assert!(scratch.run("history").stdout.contains("2 killed"));
    let run = scratch.run("cancel feature/b");
    assert!(run.code == Some(0) && run.stdout.contains("cancelled (was at iteration 1)"), "{run:?}");
    assert!(
        scratch.run("history").stdout.contains("1 killed, 1 cancelled"),
        "{}",
        scratch.run("history").stdout
    );
    assert_eq!(scratch.run("cancel").code, Some(0));
    for verb in ["history", "report", "status", "ls"] {
        let said = scratch.run(verb).stdout;
        assert!(said.contains("cancelled") && !said.contains("killed"), "{verb}: {said}");
    }
}

#[test]
fn a_usage_limit_that_one_meets_is_known_to_all() {
    let project = BranchProject::without_remote(&plan(&[("a", 2), ("b", 2), ("c", 1)]));
    project.agent(
        r#"echo "$(date +%s) $RALPH_BRANCH" >> "$HOME/times"
           if [ "$RALPH_BRANCH" = a ] && mkdir "$HOME/limited" 2> /dev/null; then
             while [ "$(grep -c '^b ' "$HOME/calls")" = 0 ]; do sleep 0.02; done
             reset=$(( $(date +%s) + 3 )); echo $reset > "$HOME/reset"
             printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s}}\n' $reset
             echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You have hit your limit"}'
             exit 1
           fi
           while [ ! -e "$HOME/reset" ]; do sleep 0.02; done
           # Not before it is known: whoever begins after this one has to wait.
           until grep -q '"event":"waiting"' ../../.ralph/runs/*/a/*.events.jsonl; do sleep 0.02; done
           work; end"#,
    );
    let run = project.scratch.run("loop build --jobs 2");
    assert_eq!(run.code, Some(0), "{run:?}");
    let reset: u64 = project.home("reset").trim().parse().unwrap();
    let starts: Vec<u64> =
        project.home("times").lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    // The two that began before the limit was known, and all others after it.
    assert_eq!(starts.iter().filter(|start| **start < reset).count(), 2, "{starts:?} {reset}: {run:?}");
    assert_eq!((project.commits("a").len(), project.state("a")["iteration"].as_integer()), (2, Some(2)));
    assert_eq!(run.stderr.matches("⏸ usage limit reached; waiting until").count(), 1, "told once: {run:?}");
    assert!(run.stderr.contains("all branches: 'ralph resume' tries now"), "{run:?}");
}

#[test]
fn a_work_tree_that_takes_for_ever_is_ended_by_the_second_ctrl_c() {
    let project = BranchProject::without_remote(&plan(&[("a", 1), ("b", 1)]));
    let pid = project.scratch.outside().join("hook.pid");
    let hook = project.scratch.path(".git/hooks/post-checkout");
    executable(&hook, &format!("#!/bin/sh\necho $$ > {}\nsleep 600\n", pid.display()));
    let ralph = project.scratch.start("loop build");
    let at_work = process_in(&pid);
    // There is no message about it, and two signals at once would count as one.
    signal(&ralph, Signal::INT);
    signal(&ralph, Signal::TERM);
    let run = ended(ralph, 130);
    assert_eq!(project.home("calls"), "", "{run:?}");
    assert!(run.stderr.contains("git was ended, because ralph was told to leave now"), "{run:?}");
    await_end(&at_work);
    fs::remove_file(hook).unwrap();
    assert_eq!(project.scratch.run("loop build").code, Some(0), "the next build fixes what is half made");
}

#[test]
fn a_branch_that_waits_for_a_place_is_steered_by_its_name() {
    let project = BranchProject::without_remote(&plan(&[("a", 1), ("feature/b", 1)]));
    project.agent(HELD);
    let ralph = project.scratch.start("loop build --sequential");
    let becomes = |wanted: &str| {
        wait_for(wanted, || {
            let state = project.scratch.read_if_there(&BranchProject::state_file("feature/b"));
            state.contains(&format!("status = \"{wanted}\"")).then_some(())
        });
    };
    becomes("waiting");
    for (verb, status) in [("pause", "paused"), ("resume", "waiting"), ("cancel", "stopped")] {
        let run = project.scratch.run(&format!("{verb} feature/b"));
        assert_eq!(run.code, Some(0), "{verb}: {run:?}");
        becomes(status);
    }
    go(&project);
    let run = ended(ralph, 0);
    assert_eq!((begun(&project), project.plan().matches("Status: done").count()), (1, 1), "{run:?}");
}

#[test]
fn ctrl_c_ends_the_wait_of_all_for_a_usage_limit() {
    let project = BranchProject::without_remote(&plan(&[("a", 1), ("b", 1)]));
    project.agent(
        r#"printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s}}\n' $(( $(date +%s) + 600 ))
           echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You have hit your limit"}'
           exit 1"#,
    );
    let ralph = project.scratch.start("loop build");
    for branch in ["a", "b"] {
        wait_for("both to wait", || {
            let state = project.scratch.read_if_there(&BranchProject::state_file(branch));
            state.contains("waiting_until").then_some(())
        });
    }
    signal(&ralph, Signal::INT);
    let run = ended(ralph, 130);
    assert!(run.elapsed < Duration::from_secs(5), "{run:?}");
    let stopped = ("stopped".to_owned(), Some("interrupted".to_owned()));
    assert!(states(&project, &["a", "b"]).into_values().all(|state| state == stopped));
}
