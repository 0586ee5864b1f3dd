//! The events of real runs against the schema in the project.

use serde_json::Value;

use crate::scratch::{Scratch, claude_says};

#[path = "../schema/mod.rs"]
pub mod check;

#[test]
fn what_runs_write_is_what_the_schema_says() {
    let scratch = Scratch::new();
    let good = claude_says("<promise>COMPLETE</promise>");
    let agent =
        format!("if [ $RALPH_ITERATION = 1 ] && [ ! -e failed ]; then touch failed; exit 7; fi\n{good}");
    scratch.agent("claude", &agent);
    let mut command = scratch.ralph("prompt p.md 3 --idle 2 --backoff 0.01s --json");
    let run =
        Scratch::finish(command.args(["--validate", "test $RALPH_ITERATION != 1 || { echo no; exit 1; }"]));
    let schema = check::schema();
    let mut names = Vec::new();
    for line in run.stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        check::check_event(&schema, &event).unwrap_or_else(|why| panic!("{why}: {line}"));
        names.push(event["event"].as_str().unwrap().to_owned());
    }
    for name in ["loop_started", "retrying", "validated", "attempt_ended", "loop_ended"] {
        assert!(names.iter().any(|seen| seen == name), "{name}: {run:?}");
    }
    let log = scratch.session_logs().pop().unwrap().with_extension("events.jsonl");
    assert_eq!(std::fs::read_to_string(log).unwrap(), run.stdout);
}
