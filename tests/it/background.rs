//! An agent whose final `result` comes while its background work still runs: that `result` is not the last one.

use std::time::Duration;

use crate::scratch::{Run, Scratch};

/// What claude prints around work in the background.
const WORDS: &str = r#"
init() { echo '{"type":"system","subtype":"init","model":"m","session_id":"s"}'; }
background() { echo '{"type":"system","subtype":"background_tasks_changed","tasks":['"$1"']}'; }
wakes() { echo '{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"w","name":"ScheduleWakeup","input":{"delaySeconds":60}}]},"parent_tool_use_id":null}'; }
tests='{"task_id":"b1","task_type":"local_bash","description":"the tests"}'
cat > /dev/null
init
"#;

/// An agent that still runs after its final event is given up after a moment.
fn scratch(body: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.write(".ralph/config", "AGENT_GRACE=1\n");
    scratch.agent("claude", &format!("{WORDS}{body}"));
    scratch
}

#[track_caller]
fn ends(run: &Run, reason: &str) {
    assert!(run.stdout.contains(&format!("Exit Reason: {reason}\n")), "{run:?}");
}

#[test]
fn what_it_has_announced_is_waited_for() {
    for announce in ["background \"$tests\"", "wakes"] {
        let scratch = scratch(&format!(
            "{announce}; say waiting; result; sleep 4.5; background ''
            init; sleep 1.5; say '<promise>COMPLETE</promise>'; result; touch $HOME/through"
        ));
        // It is silent for longer than the limit.
        let run = scratch.run("prompt p.md 1 --inactivity-timeout 2s --max-retries 0");
        ends(&run, "completion signal detected");
        assert!(scratch.home().join("through").exists(), "it was not let through: {run:?}");
        assert!(run.stderr.contains("waits for what it has in the background"), "{run:?}");
        assert!(scratch.events().contains(r#""event":"background""#), "{run:?}");
        scratch.assert_nothing_left();
    }
}

#[test]
fn a_result_after_which_nothing_is_announced_is_the_last() {
    let scratch = scratch(
        "background \"$tests\"; say one; result; sleep 0.5; background ''; init
        say '<promise>COMPLETE</promise>'; result; while :; do sleep 0.1; done",
    );
    let run = scratch.run("prompt p.md 1 --max-retries 0");
    ends(&run, "completion signal detected");
    assert!(run.elapsed < Duration::from_secs(10), "{run:?}");
    scratch.assert_nothing_left();
}

#[test]
fn a_task_that_ends_without_another_word_leaves_the_last_one_standing() {
    let scratch = scratch(
        "background \"$tests\"; say '<promise>COMPLETE</promise>'; result; background ''; while :; do sleep 0.1; done",
    );
    let run = scratch.run("prompt p.md 1 --max-retries 0");
    ends(&run, "completion signal detected");
    assert!(run.elapsed < Duration::from_secs(10), "{run:?}");
}

#[test]
fn what_takes_too_long_is_ended_and_the_last_result_counts() {
    let tests = "( trap '' TERM INT; note; while :; do sleep 600; done ) > /dev/null 2>&1 &";
    let body = format!("{tests} background \"$tests\"; say '<promise>COMPLETE</promise>'; result; sleep 600");
    for (args, notice) in [
        ("", "ended what went on in the background for 1s: the tests (BACKGROUND_WAIT)"),
        (
            "--timeout 1s",
            "the attempt's time was over while this went on in the background: the tests (--timeout)",
        ),
        (
            "--max-duration 2s",
            "the loop's time was over while this went on in the background: the tests (--max-duration)",
        ),
    ] {
        let scratch = scratch(&body);
        let wait = if args.is_empty() { "1s" } else { "30m" };
        let mut ralph = scratch.ralph(&format!("prompt p.md 1 --max-retries 0 {args}"));
        let run = Scratch::finish(ralph.env("RALPH_BACKGROUND_WAIT", wait));
        ends(&run, "completion signal detected");
        assert!(run.stderr.contains(notice), "{run:?}");
        assert!(run.elapsed < Duration::from_secs(20), "{run:?}");
        scratch.assert_nothing_left();
    }
}

#[test]
fn a_turn_that_comes_to_no_end_takes_the_last_result_back() {
    let scratch = scratch(
        "background \"$tests\"; say '<promise>COMPLETE</promise>'; result; background ''; init; say 'The tests fail.'",
    );
    let run = scratch.run("prompt p.md 1 --max-retries 0");
    ends(&run, "agent failure, not retried");
    assert!(run.stderr.contains("claude ended without its final event"), "{run:?}");
}

#[test]
fn an_agent_that_leaves_before_what_it_has_announced_is_through_is_told() {
    let scratch = scratch("background \"$tests\"; say '<promise>COMPLETE</promise>'; result");
    let run = scratch.run("prompt p.md 1 --max-retries 0");
    ends(&run, "completion signal detected");
    assert!(
        run.stderr.contains("the agent has ended while this went on in the background: the tests"),
        "{run:?}"
    );
}

#[test]
fn what_is_announced_in_the_middle_of_a_turn_hides_no_hang() {
    let hang = "mkfifo $HOME/never; exec 3<> $HOME/never; read -r <&3";
    let scratch = scratch(&format!("background \"$tests\"; say working; {hang}"));
    let run = scratch.run("prompt p.md 1 --inactivity-timeout 1s --max-retries 0");
    assert!(run.stdout.contains("Status: timeout"), "{run:?}");
    assert!(run.stderr.contains("no tool call in flight but what is not waited for"), "{run:?}");
    // As long as it is at work it is a sign of life; it still is when the agent goes on.
    let scratch = self::scratch(
        "sleep 0.2; sleep 60 & background \"$tests\"; mkfifo $HOME/later; exec 3<> $HOME/later
        read -r -t 2.6 <&3; say '<promise>COMPLETE</promise>'; kill %1; background ''; result",
    );
    let run = scratch.run("prompt p.md 1 --inactivity-timeout 1s --max-retries 0");
    ends(&run, "completion signal detected");
}

#[test]
fn a_silent_tool_that_is_told_only_when_it_is_over_is_no_hang() {
    let step = r#"echo '{"type":"step_start","sessionID":"s","part":{"type":"step-start"}}'"#;
    let text = r#"echo '{"type":"text","sessionID":"s","part":{"type":"text","text":"<promise>COMPLETE</promise>"}}'"#;
    let scratch = Scratch::new();
    scratch.write(".ralph/config", "AGENT_TYPE=opencode\n");
    scratch.agent("opencode", &format!("cat > /dev/null; {step}; sleep 0.2; sleep 4; {text}"));
    let run = scratch.run("prompt p.md 1 --inactivity-timeout 1s --max-retries 0");
    ends(&run, "completion signal detected");

    // Without a tool it is one.
    scratch
        .agent("opencode", &format!("{step}; mkfifo $HOME/never; exec 3<> $HOME/never; read -r <&3; {text}"));
    let run = scratch.run("prompt p.md 1 --inactivity-timeout 1s --max-retries 0");
    assert!(run.stdout.contains("Status: timeout"), "{run:?}");
}

#[test]
fn a_session_whose_end_is_never_told_does_not_hide_a_hang() {
    let started = r#"echo '{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"make","status":"in_progress"}}'"#;
    let scratch = Scratch::new();
    scratch.write(".ralph/config", "AGENT_TYPE=codex\n");
    let hang = "mkfifo $HOME/never; exec 3<> $HOME/never; read -r <&3";
    scratch.agent("codex", &format!("cat > /dev/null; {started}; {hang}"));
    let run = scratch.run("prompt p.md 1 --inactivity-timeout 1s --max-retries 0");
    assert!(run.stdout.contains("Status: timeout"), "{run:?}");

    // As long as it is at work it is a sign of life.
    let over = r#"echo '{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"<promise>COMPLETE</promise>"}}'
        echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'"#;
    scratch.agent("codex", &format!("cat > /dev/null; {started}; sleep 0.2; sleep 4; {over}"));
    let run = scratch.run("prompt p.md 1 --inactivity-timeout 1s --max-retries 0");
    ends(&run, "completion signal detected");
}
