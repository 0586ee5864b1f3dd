//! The scripted agent plays failures of real agents.

use std::time::Duration;

use crate::policies::assert_end;
use crate::scratch::{Run, Scratch};

fn play(scratch: &Scratch, plays: &str, args: &str) -> Run {
    let mut command = scratch.ralph(&format!("prompt p.md 1 --agent script {args}"));
    Scratch::finish(command.env("RALPH_SCRIPT_PLAY", plays))
}

#[test]
fn a_limit_and_an_overload_are_waited_for_one_after_the_other() {
    let scratch = Scratch::new();
    let run = play(&scratch, "limit 2, limit, overload, offline", "--max-retries 0 --backoff 0.2 --json");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    let count = |text: &str| run.stdout.matches(text).count();
    assert_eq!((count(r#""reason":"usage_limit""#), count(r#""reason":"overload""#)), (2, 1), "{run:?}");
    assert_eq!((count(r#""reason":"network""#), count(r#""event":"attempt_ended""#)), (1, 5), "{run:?}");
    // Each run begins with the first.
    let run = play(&scratch, "auth", "");
    assert_end(&scratch, &run, 4, "not_logged_in", "failed");
}

#[test]
fn every_refusal_has_its_end() {
    for (plays, code, reason, words) in [
        ("auth", 4, "not_logged_in", "Not logged in"),
        ("context", 4, "failed", "The prompt is too long"),
        ("limit 90000", 4, "usage_limit", "it lasts until"),
        ("work, auth", 0, "complete", ""),
        ("sleep", 4, "failed", "which is none of limit [SECONDS]"),
    ] {
        let scratch = Scratch::new();
        let run = play(&scratch, plays, "--max-retries 0");
        assert_end(&scratch, &run, code, reason, if code == 0 { "stopped" } else { "failed" });
        assert!(run.stderr.contains(words), "{plays}: {run:?}");
        let left = scratch.git(&["status", "--porcelain", "--untracked-files=all"]);
        assert!(!left.contains("count"), "{left}");
    }
}

#[test]
fn silence_is_ended_and_tried_again() {
    let scratch = Scratch::new();
    let run = play(&scratch, "hang", "--inactivity-timeout 1");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(run.stderr.contains("no sign of life for 1s"), "{run:?}");
}

#[test]
fn work_that_goes_on_after_the_result_counts() {
    let scratch = Scratch::new();
    let run = play(&scratch, "background 1", "");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(run.elapsed > Duration::from_secs(1), "{run:?}");
    assert!(run.stderr.contains("I wait for it.") && run.stderr.contains("I change nothing"), "{run:?}");
}

fn play_tasks(scratch: &Scratch, plays: &str, args: &str) -> Run {
    let mut command = scratch.ralph(&format!("{args} --agent script"));
    Scratch::finish(command.env("RALPH_SCRIPT_PLAY", plays))
}

#[test]
fn tasks_can_be_rehearsed() {
    let scratch = Scratch::new();
    let add = |title: &str| {
        let run = scratch.run(&format!("task add {title}"));
        assert_eq!(run.code, Some(0), "{run:?}");
        run.stdout.trim().to_owned()
    };
    let id = add("first");
    let plays = "silence, done, verify fail, done, verify pass";
    let run = play_tasks(&scratch, plays, "run --all");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(
        run.stdout.contains(&format!("{id} is to be done again (0/1 tasks): as it was told to say")),
        "{run:?}"
    );

    let id = add("second");
    let run = play_tasks(&scratch, "failed", "run --all");
    assert_end(&scratch, &run, 4, "tasks_failed", "failed");
    assert!(run.stdout.contains(&format!("{id} has failed")), "{run:?}");

    // It reports what it cannot build, and keeps what it is told to remember.
    add("third");
    let run = play_tasks(&scratch, "journal a word about it, knowledge what is known", "run --all");
    assert_end(&scratch, &run, 4, "tasks_failed", "failed");
    let journal = scratch.run("journal --lines 1").stdout;
    assert!(journal.contains("a word about it"), "{journal}");

    let run = play_tasks(&scratch, "review changes", "feature spec x nothing");
    assert_end(&scratch, &run, 4, "failed", "failed");
    assert!(run.stderr.contains("no requirement that I can build in the brief"), "{run:?}");
}
