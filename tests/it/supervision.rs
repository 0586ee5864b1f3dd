//! Nothing of ours outlives an iteration, a crash of ralph included; nothing of anyone else's is touched.

use std::time::Duration;

use rustix::process::Signal;

use crate::processes::{send, supervisors_of};
use crate::scratch::{Scratch, finish, wait_for};

/// Children in all the ways to get out of sight; each holds the agent's stdout open and ignores what it can.
const GRANDCHILDREN: &str = r#"
setsid bash -c "$(declare -f note)"'; note; trap "" INT TERM HUP; while :; do sleep 600; done' &
nohup bash -c "$(declare -f note)"'; note; sleep 600' 2> /dev/null &
( ( setsid bash -c "$(declare -f note)"'; note; sleep 600; :' & ) & )
until [ "$(wc -l < "$HOME/pids")" -ge 4 ]; do sleep 0.01; done
"#;

const DONE: &str = "cat > /dev/null; say '<promise>COMPLETE</promise>'; result";

#[test]
fn what_an_agent_leaves_behind_is_ended() {
    let scratch = Scratch::with_default_ladder();
    scratch.agent("claude", &format!("{GRANDCHILDREN}{DONE}"));
    let mut stranger = scratch.look_alike("claude");
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(0), "{run:?}");
    // One of them ignores TERM, which it gets two seconds for.
    assert!(run.elapsed > Duration::from_millis(1900), "{run:?}");
    scratch.assert_nothing_left();
    scratch.assert_true_files(&run, "stopped");
    stranger.assert_alive();
}

#[test]
fn a_child_without_our_environment_is_ended_all_the_same() {
    let unmarked = r#"setsid env -i HOME="$HOME" PATH="$PATH" bash -c "$(declare -f note)"'; note; sleep 600; :' &
        until [ "$(wc -l < "$HOME/pids")" -ge 2 ]; do sleep 0.01; done"#;
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("{unmarked}\n{DONE}"));
    assert_eq!(scratch.run("prompt p.md 3").code, Some(0));
    scratch.assert_nothing_left();

    // Also when the next start sweeps before the supervisor of the last one is done.
    std::fs::remove_file(scratch.home().join("pids")).unwrap();
    scratch.agent("claude", &format!("trap '' INT TERM; {unmarked}\nwhile :; do sleep 600; done"));
    let ralph = scratch.start("prompt p.md 3");
    scratch.await_noted(2);
    send(ralph.id(), Signal::KILL);
    finish(ralph);
    scratch.agent("claude", DONE);
    let run = scratch.run("prompt p.md 3");
    assert!(run.code == Some(0) && run.stderr.contains("loop that was killed"), "{run:?}");
    scratch.await_nothing_left();
}

#[test]
fn an_agent_that_stops_its_supervisor_is_ended() {
    let scratch = Scratch::new();
    scratch.agent("claude", "kill -STOP $PPID; trap '' INT TERM; while :; do say more; sleep 0.1; done");
    let run = scratch.run("prompt p.md 3 --timeout 1s --max-retries 0");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("Status: timeout\n"), "{run:?}");
    // Even before the supervisor could report that the agent runs.
    assert!(run.elapsed < Duration::from_secs(20), "{run:?}");
    scratch.assert_nothing_left();
}

#[test]
fn a_stopped_supervisor_goes_on_when_ralph_is_killed() {
    let scratch = Scratch::new();
    scratch.agent("claude", "trap '' INT TERM; say hello; while :; do sleep 600; done");
    let mut stranger = scratch.look_alike("claude");
    let ralph = scratch.start("prompt p.md 3");
    // Before it has spoken, ralph might continue its supervisor.
    wait_for("the agent's words", || scratch.events().contains("hello").then_some(()));
    for supervisor in supervisors_of(ralph.id()) {
        send(supervisor, Signal::STOP);
    }
    send(ralph.id(), Signal::KILL);
    finish(ralph);
    scratch.await_nothing_left();
    stranger.assert_alive();
}

#[test]
fn one_supervisor_serves_one_program_after_the_other() {
    let scratch = Scratch::new();
    scratch.agent("claude", "cat > /dev/null; echo $PPID >> $HOME/supervisors; say on; result");
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(0), "{run:?}");
    let supervisors = std::fs::read_to_string(scratch.home().join("supervisors")).unwrap();
    let first = supervisors.lines().next().unwrap();
    assert_eq!(supervisors, format!("{first}\n").repeat(3));
    scratch.assert_nothing_left();
}

#[test]
fn an_idle_supervisor_may_be_stopped_or_ended_by_anyone() {
    for signal in [Signal::STOP, Signal::KILL, Signal::TERM] {
        let scratch = Scratch::new();
        scratch.agent("claude", "cat > /dev/null; say on; result");
        let ralph = scratch.start("prompt p.md 2 --delay 1s");
        wait_for("the end of an iteration", || scratch.events().contains("\"attempt_ended\"").then_some(()));
        send(supervisors_of(ralph.id())[0], signal);
        let run = finish(ralph);
        assert_eq!(run.code, Some(0), "{signal:?}: {run:?}");
        assert_eq!(scratch.events().matches("\"attempt_ended\"").count(), 2, "{signal:?}: {run:?}");
        assert!(!run.stderr.contains("supervisor"), "{signal:?}: {run:?}");
        scratch.assert_nothing_left();
    }
}

#[test]
fn an_idle_supervisor_does_not_outlive_a_killed_ralph() {
    for stopped in [false, true] {
        let scratch = Scratch::new();
        scratch.agent("claude", "cat > /dev/null; say on; result");
        let ralph = scratch.start("prompt p.md 2 --delay 10m");
        wait_for("the end of an iteration", || scratch.events().contains("\"attempt_ended\"").then_some(()));
        if stopped {
            send(supervisors_of(ralph.id())[0], Signal::STOP);
        }
        send(ralph.id(), Signal::KILL);
        finish(ralph);
        scratch.await_nothing_left();
    }
}

#[test]
fn an_agent_that_is_killed_with_ralph_leaves_nothing() {
    for agent in ["sleep 600", "trap '' INT TERM; while :; do sleep 600; done", GRANDCHILDREN] {
        let scratch = Scratch::new();
        scratch.agent("claude", &format!("{agent}\nsleep 600"));
        let mut stranger = scratch.look_alike("claude");
        let ralph = scratch.start("prompt p.md 3");
        scratch.await_noted(if agent == GRANDCHILDREN { 4 } else { 1 });
        send(ralph.id(), Signal::KILL);
        assert_eq!(finish(ralph).code, None);
        scratch.await_nothing_left();
        stranger.assert_alive();
        assert_told_of_a_crash(&scratch);
        assert_next_start_is_fine(&scratch, false);
    }
}

#[test]
fn a_ralph_killed_on_the_ladder_leaves_nothing() {
    let scratch = Scratch::new();
    scratch.agent("claude", "trap '' INT TERM; while :; do sleep 600; done");
    let ralph = scratch.start("prompt p.md 3");
    scratch.await_noted(1);
    scratch.ask_to_stop(ralph.id(), Signal::INT);
    scratch.ask_to_stop(ralph.id(), Signal::INT);
    send(ralph.id(), Signal::KILL);
    finish(ralph);
    scratch.await_nothing_left();
    assert_next_start_is_fine(&scratch, false);
}

#[test]
fn a_ralph_killed_at_any_moment_leaves_nothing() {
    let scratch = Scratch::new();
    scratch.agent("claude", "cat > /dev/null; sleep 0.01 & say hello; result; exit $((RANDOM % 2))");
    for moment in 0..12 {
        let ralph = scratch.start("prompt p.md 1000 --max-retries 1000");
        std::thread::sleep(Duration::from_millis(5 + 13 * moment));
        send(ralph.id(), Signal::KILL);
        finish(ralph);
        scratch.await_nothing_left();
    }
    assert_next_start_is_fine(&scratch, false);
}

#[test]
fn what_ralph_and_supervisor_left_is_swept_at_the_next_start() {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("trap '' INT TERM\n{GRANDCHILDREN}\nwhile :; do sleep 600; done"));
    let mut stranger = scratch.look_alike("claude");
    let mut ralph = scratch.start("prompt p.md 3");
    scratch.await_noted(4);
    let supervisors = supervisors_of(ralph.id());
    assert_eq!(supervisors.len(), 1);
    send(ralph.id(), Signal::STOP);
    send(supervisors[0], Signal::KILL);
    send(ralph.id(), Signal::KILL);
    drop((ralph.stdout.take(), ralph.stderr.take()));
    ralph.wait().unwrap();
    assert!(scratch.living().len() >= 4, "the agent should have been orphaned");

    assert_told_of_a_crash(&scratch);
    assert_next_start_is_fine(&scratch, true);
    stranger.assert_alive();
}

#[test]
fn the_loss_of_a_supervisor_is_one_failed_attempt() {
    let scratch = Scratch::new();
    scratch.agent(
        "claude",
        &format!(
            "[ $RALPH_ITERATION = 1 ] && [ ! -e $HOME/again ] || {{ {DONE}; exit; }}\n\
             touch $HOME/again\ntrap '' INT TERM\nwhile :; do say more; sleep 0.1; done"
        ),
    );
    let mut stranger = scratch.look_alike("claude");
    let ralph = scratch.start("prompt p.md 3");
    scratch.await_noted(1);
    let supervisors = supervisors_of(ralph.id());
    send(supervisors[0], Signal::KILL);
    let run = finish(ralph);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("Agent failure on iteration 1, retry 1/3..."), "{run:?}");
    scratch.assert_nothing_left();
    scratch.assert_true_files(&run, "stopped");
    stranger.assert_alive();
}

#[test]
fn an_agent_that_forks_while_it_is_ended_does_not_get_away() {
    // Each process starts the next one and ends: there is always exactly one, and never for long.
    const WALK: &str = "trap '' INT TERM\nwalk() { ( walk ) & }\nwalk; walk; exec sleep 600";
    let scratch = Scratch::new();
    scratch.agent("claude", WALK);
    let mut stranger = scratch.look_alike("claude");
    for signals in [2, 3] {
        let ralph = scratch.start("prompt p.md 3");
        wait_for("a supervisor", || supervisors_of(ralph.id()).pop());
        scratch.await_noted(signals - 1);
        for _ in 0..signals {
            scratch.ask_to_stop(ralph.id(), Signal::INT);
        }
        let run = finish(ralph);
        assert_eq!(run.code, Some(130), "{run:?}");
        assert!(!run.stderr.contains("left behind"), "{run:?}");
        scratch.assert_nothing_left();
    }
    stranger.assert_alive();
}

#[test]
fn a_display_that_ends_early_does_not_end_the_agent() {
    let scratch = Scratch::new();
    scratch.write(".ralph/config", "AGENT_DISPLAY_FILTER='head -n 1'\n");
    scratch.agent("claude", &format!("for n in 1 2 3 4 5 6 7 8 9 10; do say $n; sleep 0.1; done\n{DONE}"));
    let run = scratch.run("prompt p.md 3 --max-retries 0");
    assert_eq!(run.code, Some(0), "{run:?}");
    scratch.assert_nothing_left();
}

/// What ralph could write last is true: it was at work.
#[track_caller]
fn assert_told_of_a_crash(scratch: &Scratch) {
    let state = scratch.state();
    assert_eq!(
        (state["active"].as_bool(), state["status"].as_str()),
        (Some(true), Some("running")),
        "{state}"
    );
    assert!(scratch.read(".ralph/iterations.log").trim_end().ends_with("[START] iteration 1/3"));
    assert!(!scratch.session_log().contains("SESSION SUMMARY"));
}

/// The next loop runs, and has something to sweep or not.
#[track_caller]
fn assert_next_start_is_fine(scratch: &Scratch, swept: bool) {
    scratch.agent("claude", DONE);
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stderr.contains("processes of a prompt loop that was killed"), swept, "{run:?}");
    scratch.assert_nothing_left();
}
