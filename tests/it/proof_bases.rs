//! A claim is measured against the commit where its own work began.

use std::fs;

use crate::run_tasks::{GOOD, add, ends, status, tasks};
use crate::scratch::{Run, Scratch, Started, executable, wait_for};

/// Tasks whose agents do this, where `./check` looks for a word in `code`.
fn checked(body: &str) -> Scratch {
    let scratch = tasks(body);
    scratch.write("code", "one\n");
    executable(&scratch.path("check"), "#!/bin/sh\ngrep -q one code\n");
    scratch.git(&["add", "code", "check"]);
    scratch.git(&["commit", "--quiet", "-m", "check"]);
    scratch
}

/// The code and its check change together, so that the one before does not pass.
const TURN: &str = "echo two > code; printf '#!/bin/sh\\ngrep -q two code\\n' > check; git commit -qam turn";

fn run(scratch: &Scratch, on_protected: &str) -> Run {
    let mut ralph = scratch.ralph("run --all --no-verify --proof base --validate ./check");
    Scratch::finish(ralph.env("RALPH_PROOF_ON_PROTECTED", on_protected))
}

/// The proofs of all runs, the oldest first, as their events tell of them.
fn proofs(scratch: &Scratch) -> Vec<serde_json::Value> {
    let logs = scratch.session_logs().into_iter().map(|log| log.with_extension("events.jsonl"));
    let lines: String = logs.map(|log| fs::read_to_string(log).unwrap_or_default()).collect();
    let events = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    events.filter(|event: &serde_json::Value| event["event"] == "proof").collect()
}

#[test]
fn what_one_task_has_changed_is_no_matter_of_the_next_ones() {
    let scratch = checked(&format!("if [ $n = 1 ]; then {TURN}; else work; fi; done_"));
    add(&scratch, "first");
    add(&scratch, "second");
    let ended = run(&scratch, "tell");
    ends(&scratch, &ended, 0, "complete");
    let proofs = proofs(&scratch);
    let protected: Vec<_> = proofs.iter().map(|proof| proof["protected"][0]["path"].clone()).collect();
    assert_eq!(protected, [serde_json::json!("check"), serde_json::Value::Null], "{proofs:?}");
    // It begins where the first one was proven, so nothing has to be looked at anew.
    assert_eq!(proofs[1]["base"], proofs[0]["commit"]);
    assert_eq!(proofs[1]["runs"][0]["of"], "base");
    assert_eq!(proofs[1]["runs"][0]["digest"], proofs[0]["runs"][1]["digest"]);
}

#[test]
fn work_that_was_cut_off_is_measured_against_where_it_began() {
    let body = format!(
        "if [ $n = 1 ]; then {TURN}; touch ../began; sleep 600; fi; if [ $n = 2 ]; then done_; else git checkout -q HEAD~1 -- . && git commit -qam back; {GOOD}; fi"
    );
    let scratch = checked(&body);
    let id = add(&scratch, "first");
    let mut ralph = scratch.ralph("run --all --no-verify --proof base --validate ./check");
    let first = Started::quietly(ralph.env("RALPH_PROOF_ON_PROTECTED", "refuse"));
    wait_for("the agent's commit", || scratch.root().parent().unwrap().join("began").exists().then_some(()));
    drop(first);
    let ended = run(&scratch, "refuse");
    ends(&scratch, &ended, 0, "complete");
    assert_eq!(status(&scratch, &id), "done");
    let proofs = proofs(&scratch);
    assert_eq!(
        proofs.iter().map(|proof| proof["ok"] == true).collect::<Vec<_>>(),
        [false, true],
        "{proofs:?}"
    );
    assert!(proofs[0]["by"].as_str().unwrap().contains("check"), "{proofs:?}");
}
