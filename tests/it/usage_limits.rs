//! What a loop does when its agent meets a usage limit.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::policies::{assert_end, attempts, beside, number, project, prompt, signal};
use crate::scratch::{Scratch, finish, wait_for};

/// When the usage limit that the loop has met ends.
fn reset(scratch: &Scratch) -> i64 {
    scratch.state()["last"]["limited"]["reset"].as_integer().unwrap()
}

/// Waits until the loop says that it waits, and answers until when.
fn waiting_until(scratch: &Scratch) -> String {
    wait_for("status waiting", || {
        let state: toml::Table =
            std::fs::read_to_string(scratch.path(".ralph/state.toml")).ok()?.parse().ok()?;
        (state["status"].as_str() == Some("waiting")).then(|| state["waiting_until"].to_string())
    })
}

#[test]
fn a_usage_limit_is_waited_for_and_consumes_nothing() {
    let scratch = project("[ $n = 1 ] && limit $(( $(date +%s) + 3 )); date +%s > ../began; complete");
    let child = scratch.start("prompt p.md 1 --max-retries 0");
    waiting_until(&scratch);
    let reset = reset(&scratch);
    let run = finish(child);
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(run.stderr.contains("waiting until"), "{run:?}");
    let began: i64 = std::fs::read_to_string(beside(&scratch, "began")).unwrap().trim().parse().unwrap();
    assert!(began >= reset, "{began} is before {reset}: {run:?}");
    assert_eq!((attempts(&scratch), number(&scratch, "iteration"), number(&scratch, "retries")), (2, 1, 0));
    assert_eq!(prompt(&scratch, 1), prompt(&scratch, 2));
    assert!(scratch.session_log().contains("Status: usage-limit\n"));
}

#[test]
fn without_a_reset_the_pauses_double() {
    let scratch = project("[ $n -lt 3 ] && bad 429 x 'Too many requests'; complete");
    let run = scratch.run("prompt p.md 1 --max-retries 0 --json");
    assert_eq!(run.code, Some(0), "{run:?}");
    let time =
        |value: &serde_json::Value| chrono::DateTime::parse_from_rfc3339(value.as_str().unwrap()).unwrap();
    let pauses: Vec<f64> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|event| event["event"] == "waiting")
        .map(|event| (time(&event["until"]) - time(&event["at"])).as_seconds_f64().round())
        .collect();
    assert_eq!(pauses, [2.0, 4.0]);

    let scratch = project("bad 429 x 'Too many requests'");
    let run = scratch.run("prompt p.md 1 --max-limit-wait 5");
    assert_end(&scratch, &run, 4, "usage_limit", "failed");
    assert_eq!(attempts(&scratch), 2, "2 seconds, but not 4 more");
    assert!(run.stderr.contains("--max-limit-wait"), "{run:?}");
}

#[test]
fn a_reset_that_is_too_far_away_ends_the_loop() {
    let scratch = project("limit 4102444800");
    let run = scratch.run("prompt p.md 3");
    assert_end(&scratch, &run, 4, "usage_limit", "failed");
    assert!(run.stdout.contains("Exit Reason: usage limit is too far away"), "{run:?}");
    let reason = run.stderr.lines().find(|line| line.contains("--max-limit-wait")).expect("a clear reason");
    assert!(reason.contains("until 2"), "{reason}");
    assert_eq!(run.stderr.matches("You have hit your limit").count(), 1, "{run:?}");
    assert_eq!(attempts(&scratch), 1);

    // The advice can be followed.
    let scratch = project("[ $n = 1 ] && limit $(( $(date +%s) + 4 )); complete");
    let run = scratch.run("prompt p.md 3 --max-limit-wait 1");
    assert_end(&scratch, &run, 4, "usage_limit", "failed");
    let run = scratch.run("resume prompt --max-limit-wait 1m");
    assert_end(&scratch, &run, 0, "complete", "stopped");
}

#[test]
fn words_about_limits_that_are_no_error_events_are_no_limit() {
    let noise = "429 rate limit exceeded, usage limit reached, too many requests";
    let claude = format!(
        "tool_says '{noise}'; say '{noise}'; echo '{noise}' >&2; [ $n = 1 ] && bad 400 x 'Internal error'; complete"
    );
    let scratch = project(&claude);
    let run = scratch.run("prompt p.md 1");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(!run.stderr.contains("waiting until") && run.stderr.contains("retry 1/3"), "{run:?}");

    scratch.agent(
        "codex",
        &format!(
            r#"cat > /dev/null
            echo '{{"type":"item.completed","item":{{"id":"1","type":"command_execution","command":"x","aggregated_output":"{noise}","exit_code":1,"status":"failed"}}}}'
            echo '{{"type":"item.completed","item":{{"id":"2","type":"agent_message","text":"{noise}"}}}}'
            [ -f ../second ] || {{ touch ../second; echo '{{"type":"turn.failed","error":{{"message":"stream closed"}}}}'; exit 1; }}
            echo '{{"type":"item.completed","item":{{"id":"3","type":"agent_message","text":"<promise>COMPLETE</promise>"}}}}'
            echo '{{"type":"turn.completed","usage":{{"input_tokens":1,"output_tokens":1}}}}'"#
        ),
    );
    let run = scratch.run("prompt p.md 1 --agent codex");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(!run.stderr.contains("waiting until") && run.stderr.contains("retry 1/3"), "{run:?}");
}

#[test]
fn a_wait_ends_with_ctrl_c_at_once_and_goes_on_after_a_restart() {
    let scratch = project("[ $n = 1 ] && limit $(( $(date +%s) + 9 )); complete");
    let child = scratch.start("prompt p.md 1");
    let until = waiting_until(&scratch);
    for form in ["", " --md"] {
        let report = scratch.run(&format!("report{form}")).stdout;
        assert!(report.contains("waits until "), "{report}");
    }
    let asked = Instant::now();
    signal(&child, Signal::INT);
    let run = finish(child);
    assert_end(&scratch, &run, 130, "interrupted", "stopped");
    assert!(asked.elapsed() < Duration::from_secs(5), "{run:?}");

    // An unchanged reset, twice, and once more after a crash.
    let child = scratch.start("prompt p.md 1 --resume");
    assert_eq!(waiting_until(&scratch), until);
    signal(&child, Signal::KILL);
    assert_eq!(finish(child).code, None);
    let run = scratch.run("prompt p.md 1 --resume");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(run.stderr.contains("resuming at iteration 1"), "{run:?}");
    assert_eq!((attempts(&scratch), number(&scratch, "iteration")), (2, 1));
}

#[test]
fn a_reset_that_passed_meanwhile_is_not_waited_for() {
    let scratch = project("[ $n = 1 ] && limit $(( $(date +%s) + 3 )); complete");
    let child = scratch.start("prompt p.md 1");
    waiting_until(&scratch);
    signal(&child, Signal::KILL);
    assert_eq!(finish(child).code, None);
    let reset = reset(&scratch);
    wait_for("the reset", || (chrono::Utc::now().timestamp() > reset).then_some(()));
    let run = scratch.run("prompt p.md 1 --resume");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(!run.stderr.contains("waiting until"), "{run:?}");
    assert_eq!(attempts(&scratch), 2);
}

#[test]
fn a_wait_survives_being_stopped_and_continued() {
    let scratch = project("[ $n = 1 ] && limit $(( $(date +%s) + 5 )); complete");
    let child = scratch.start("prompt p.md 1");
    waiting_until(&scratch);
    signal(&child, Signal::STOP);
    let reset = reset(&scratch);
    wait_for("the reset", || (chrono::Utc::now().timestamp() > reset).then_some(()));
    assert_eq!(attempts(&scratch), 1);
    let continued = Instant::now();
    signal(&child, Signal::CONT);
    let run = finish(child);
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(continued.elapsed() < Duration::from_secs(5), "{run:?}");
}

#[test]
fn a_wait_without_a_named_end_can_be_looked_at_and_cancelled() {
    let scratch = project("bad 429 x 'You have hit your limit'");
    let child = scratch.start("prompt p.md 3");
    wait_for("the wait", || scratch.run("status prompt").stdout.contains("Status: waiting").then_some(()));
    assert_eq!(scratch.state()["status"].as_str(), Some("waiting"));
    let run = scratch.run("cancel");
    assert!(run.stdout.contains("cancelled (was at iteration 1)"), "{run:?}");
    assert_eq!(finish(child).code, Some(0));
}

#[test]
fn a_limit_that_was_too_far_away_is_taken_up_again_at_the_same_iteration() {
    let scratch = project("[ $n = 1 ] && limit $(( $(date +%s) + 90000 )); complete");
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(4), "{run:?}");
    let run = scratch.run("prompt p.md 3 --resume --max-limit-wait 1");
    assert_eq!(run.code, Some(4), "still too far: {run:?}");
    assert_eq!(scratch.state()["iteration"].as_integer(), Some(1), "{run:?}");
    // What is said to come next does not end again at once.
    let overview = scratch.run("").stdout;
    let next = overview.lines().find_map(|line| line.strip_prefix("Next: ralph "));
    let next = next.unwrap_or_else(|| panic!("{overview}")).split("  ").next().unwrap_or_default();
    assert!(next.starts_with("resume prompt --max-limit-wait 25h"), "{overview}");
    let child = scratch.start(next);
    wait_for("the wait", || scratch.run("status prompt").stdout.contains("Status: waiting").then_some(()));
    scratch.run("cancel");
    assert_eq!(finish(child).code, Some(0));
}
