//! Ctrl+C, SIGTERM, SIGHUP, closed terminals and pipes: every way to stop a loop, and every way not to.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::processes::{await_stderr, send, tail};
use crate::scratch::{Run, Scratch, finish, wait_for};

/// Waits for the test, then ends well. Heeds no signal.
const PATIENT: &str = "trap '' INT TERM; cat > /dev/null; touch $HOME/began
until [ -e $HOME/go ]; do sleep 0.02; done; say hello; result";

/// Ends only by KILL.
const STUBBORN: &str = "trap '' INT TERM; touch $HOME/began; while :; do sleep 0.1; done";

fn began(scratch: &Scratch) {
    wait_for("the agent", || scratch.home().join("began").exists().then_some(()));
}

fn go(scratch: &Scratch) {
    std::fs::write(scratch.home().join("go"), "").unwrap();
}

#[track_caller]
fn assert_ended(scratch: &Scratch, run: &Run, reason: &str, status: &str) {
    assert_eq!(run.code, Some(130), "{run:?}");
    let log = scratch.session_log();
    assert!(log.contains(&format!("Exit Reason: {reason}\n")), "{}", tail(&log));
    scratch.assert_true_files(run, status);
    scratch.assert_nothing_left();
}

#[test]
fn the_first_signal_lets_the_attempt_end_by_itself() {
    for (signal, reason, status) in [
        (Signal::INT, "interrupted", "stopped"),
        (Signal::TERM, "terminated", "paused"),
        (Signal::HUP, "terminated", "paused"),
    ] {
        let scratch = Scratch::new();
        scratch.agent("claude", PATIENT);
        let ralph = scratch.start("prompt p.md 3");
        began(&scratch);
        scratch.ask_to_stop(ralph.id(), signal);
        go(&scratch);
        let run = finish(ralph);
        assert_ended(&scratch, &run, reason, status);
        assert!(run.stdout.contains("Status: success\n"), "{run:?}");
        assert!(run.stdout.contains("Total Iterations: 1\nSuccessful: 1\nFailed: 0\n"), "{run:?}");
        assert_eq!(scratch.state()["exit_reason"].as_str(), Some(reason));
    }
}

#[test]
fn no_retry_follows_the_first_ctrl_c() {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("{PATIENT}; exit 7"));
    let ralph = scratch.start("prompt p.md 3");
    began(&scratch);
    scratch.ask_to_stop(ralph.id(), Signal::INT);
    go(&scratch);
    let run = finish(ralph);
    assert_ended(&scratch, &run, "interrupted", "stopped");
    assert!(run.stdout.contains("Status: agent-failure\n") && !run.stderr.contains("retry"), "{run:?}");
}

#[test]
fn a_finished_iteration_is_interrupted_all_the_same() {
    let scratch = Scratch::new();
    scratch.agent("claude", &PATIENT.replace("hello", "<promise>COMPLETE</promise>"));
    let ralph = scratch.start("prompt p.md 1");
    began(&scratch);
    scratch.ask_to_stop(ralph.id(), Signal::INT);
    go(&scratch);
    assert_ended(&scratch, &finish(ralph), "interrupted", "stopped");
}

/// Presses Ctrl+C twice. The agent heeds the last of these signals, KILL when there is none, and notes all of them; it
/// takes so many seconds, at least and at most.
#[track_caller]
fn ends_by_the_ladder(scratch: &Scratch, signals: &[&str], at_least: f64, at_most: f64) {
    let (last, before) = signals.split_last().unwrap();
    let ignores = before.iter().map(|signal| format!("trap 'echo {signal} >> $HOME/signals' {signal}\n"));
    let heeds = format!("trap 'echo {last} >> $HOME/signals; exit' {last}");
    let heeds = if *last == "KILL" { "" } else { &heeds };
    let agent =
        format!("{}{heeds}\ntouch $HOME/began; while :; do sleep 0.05; done", ignores.collect::<String>());
    scratch.agent("claude", &agent);
    let mut stranger = scratch.look_alike("claude");
    let ralph = scratch.start("prompt p.md 3");
    began(scratch);
    scratch.ask_to_stop(ralph.id(), Signal::INT);
    let asked = Instant::now();
    scratch.ask_to_stop(ralph.id(), Signal::INT);
    let run = finish(ralph);
    let took = asked.elapsed().as_secs_f64();
    // The moment before ralph has heard it counts for it, too.
    assert!((at_least..at_most).contains(&took), "{took} s");
    let noted = std::fs::read_to_string(scratch.home().join("signals")).unwrap();
    let noted: Vec<&str> = noted.lines().collect();
    assert_eq!(noted, if *last == "KILL" { before } else { signals });
    assert_ended(scratch, &run, "interrupted", "stopped");
    assert!(run.stdout.contains("Status: interrupted\n"), "{run:?}");
    stranger.assert_alive();
}

#[test]
fn the_second_ctrl_c_interrupts_the_agent() {
    // Long waits would show.
    let scratch = Scratch::with_default_ladder();
    scratch.write(".ralph/config", "AGENT_INTERRUPT_WAIT=1m\nAGENT_TERMINATE_WAIT=1m\n");
    ends_by_the_ladder(&scratch, &["INT"], 0.0, 15.0);
}

#[test]
fn an_agent_that_ignores_an_interrupt_is_terminated_after_three_seconds() {
    ends_by_the_ladder(&Scratch::with_default_ladder(), &["INT", "TERM"], 3.0, 13.0);
}

#[test]
fn an_agent_that_ignores_that_too_is_killed_after_two_more() {
    ends_by_the_ladder(&Scratch::with_default_ladder(), &["INT", "TERM", "KILL"], 5.0, 15.0);
}

#[test]
fn the_waits_of_the_ladder_can_be_set() {
    let scratch = Scratch::with_default_ladder();
    scratch.write(".ralph/config", "AGENT_INTERRUPT_WAIT=0.2\n");
    scratch.write("ralph.toml", "agent.terminate_wait = 0.6\n");
    ends_by_the_ladder(&scratch, &["INT", "TERM", "KILL"], 0.8, 4.9);
}

#[test]
fn the_third_leaves_at_once() {
    let scratch = Scratch::new();
    scratch.agent("claude", STUBBORN);
    let ralph = scratch.start("prompt p.md 3");
    began(&scratch);
    // A second SIGTERM counts as the second Ctrl+C.
    for signal in [Signal::TERM, Signal::INT, Signal::TERM] {
        scratch.ask_to_stop(ralph.id(), signal);
    }
    let asked = Instant::now();
    let run = finish(ralph);
    assert!(asked.elapsed() < Duration::from_secs(3), "{run:?}");
    assert_ended(&scratch, &run, "terminated", "paused");
}

#[test]
fn a_wait_for_a_usage_limit_stops_at_once() {
    let scratch = Scratch::new();
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/claude/e429long.ndjson");
    scratch.agent("claude", &format!("cat > /dev/null; cat '{recording}'; exit 1"));
    let mut ralph = scratch.start("prompt p.md 3");
    await_stderr(&mut ralph, "waiting until");
    assert_eq!(scratch.state()["status"].as_str(), Some("waiting"));
    let asked = Instant::now();
    send(ralph.id(), Signal::INT);
    let run = finish(ralph);
    assert!(asked.elapsed() < Duration::from_secs(2), "{run:?}");
    assert_ended(&scratch, &run, "interrupted", "stopped");
}

/// Ralph, started by a shell that did something before.
fn behind_a_shell(scratch: &Scratch, before: &str, redirections: &str) -> Command {
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let mut shell = scratch.command("bash");
    shell.args(["-c", &format!("{before}\nexec '{ralph}' prompt p.md 2 {redirections}")]);
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let scratch = Scratch::new();
    scratch.agent("claude", PATIENT);
    let ralph = behind_a_shell(&scratch, "trap '' INT HUP", "").spawn().unwrap();
    began(&scratch);
    for signal in [Signal::INT, Signal::HUP, Signal::INT] {
        send(ralph.id(), signal);
    }
    // Heard after the others, if they had been heard.
    scratch.ask_to_stop(ralph.id(), Signal::TERM);
    assert_eq!(scratch.events().matches(r#""event":"asked""#).count(), 1);
    go(&scratch);
    let run = finish(ralph);
    assert!(run.stderr.contains("■ SIGTERM came: "), "{run:?}");
    assert_ended(&scratch, &run, "terminated", "paused");
}

#[test]
fn a_loop_whose_output_is_not_read_goes_on() {
    for redirections in
        ["| head -n 1", "2>&1 | head -n 1", ">&- 2>&-", "> /dev/full 2>&1", "--json | head -n 1"]
    {
        let scratch = Scratch::new();
        scratch.agent("claude", "cat > /dev/null; for n in {1..50}; do say $n; done; result");
        let mut shell = scratch.command("bash");
        let ralph = env!("CARGO_BIN_EXE_ralph");
        let line = format!("set -o pipefail; '{ralph}' prompt p.md 2 {redirections}");
        shell.args(["-c", &line]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let run = finish(shell.spawn().unwrap());
        assert_eq!(run.code, Some(0), "{redirections}: {run:?}");
        let log = scratch.session_log();
        assert!(log.contains("Total Iterations: 2\nSuccessful: 2\n"), "{redirections}: {}", tail(&log));
        scratch.assert_true_files(&run, "stopped");
        scratch.assert_nothing_left();
    }
}

#[test]
fn a_reader_that_does_not_read_does_not_block() {
    let scratch = Scratch::new();
    scratch.agent(
        "claude",
        "cat > /dev/null; for n in {1..20000}; do say $n; done; say '<promise>COMPLETE</promise>'; result",
    );
    let ralph = scratch.start("prompt p.md 2");
    // Its pipes stay full, and the loop ends nevertheless.
    wait_for("the end of the loop", || (scratch.events().contains(r#""event":"loop_ended""#)).then_some(()));
    wait_for("a true state", || (scratch.state()["active"].as_bool() == Some(false)).then_some(()));
    // What is left to show, a Ctrl+C gives up.
    send(ralph.id(), Signal::INT);
    let status = wait_for("the end of ralph", {
        let mut ralph = ralph;
        move || ralph.try_wait().unwrap()
    });
    assert_eq!(status.code(), Some(0));
}

#[test]
fn ctrl_c_at_a_terminal_reaches_ralph_and_not_the_agent() {
    let scratch = Scratch::new();
    scratch.agent(
        "claude",
        "trap 'touch $HOME/hit' INT TERM HUP TSTP; cat > /dev/null; touch $HOME/began
        until [ -e $HOME/go ]; do sleep 0.02; done; say hello; result",
    );
    let mut terminal = rexpect::session::spawn_command(scratch.ralph("prompt p.md 3"), Some(20_000)).unwrap();
    began(&scratch);
    terminal.send_control('c').unwrap();
    terminal.exp_string("stopping after this attempt").unwrap();
    go(&scratch);
    terminal.exp_string("ralph resume prompt").unwrap();
    terminal.exp_eof().unwrap();
    assert!(!scratch.home().join("hit").exists(), "the agent was hit");
    let log = scratch.session_log();
    assert!(log.contains("Successful: 1\n"), "{}", tail(&log));
    scratch.assert_nothing_left();
}

#[test]
fn ctrl_c_at_a_terminal_is_heard_at_any_moment() {
    let scratch = Scratch::new();
    // Most of such a loop is starting and ending agents.
    scratch.agent("claude", "exit 1");
    for moment in 0..8 {
        let mut terminal =
            rexpect::session::spawn_command(scratch.ralph("prompt p.md 3 --max-retries 1000"), Some(20_000))
                .unwrap();
        terminal.exp_string("retry 1").unwrap();
        std::thread::sleep(Duration::from_millis(7 * moment));
        terminal.send_control('c').unwrap();
        terminal.exp_string("ralph resume prompt").unwrap();
        terminal.exp_eof().unwrap();
    }
    scratch.assert_nothing_left();
}

#[test]
fn no_timer_fires_when_ralph_was_stopped_for_a_while() {
    let scratch = Scratch::new();
    scratch.agent(
        "claude",
        &PATIENT.replace("until", "until [ -e $HOME/stopped ]; do sleep 0.02; done; say woken\nuntil"),
    );
    let ralph = scratch.start("prompt p.md 1 --inactivity-timeout 4s --timeout 5s --max-retries 0");
    began(&scratch);
    stop_for(&ralph, Duration::from_secs(6));
    // Some of both limits is left now; a timer that fires at once ends the agent before it is heard again.
    std::fs::write(scratch.home().join("stopped"), "").unwrap();
    wait_for("the agent to be heard", || scratch.events().contains("woken").then_some(()));
    go(&scratch);
    let run = finish(ralph);
    assert_eq!(run.code, Some(0), "{run:?}");
    scratch.assert_true_files(&run, "stopped");
}

/// As Ctrl+Z and `fg` do.
fn stop_for(ralph: &Child, time: Duration) {
    send(ralph.id(), Signal::STOP);
    std::thread::sleep(time);
    send(ralph.id(), Signal::CONT);
}
