use std::fs;

use super::*;
use crate::record::event_json::to_lines;

/// The lines of a loop's log, as version 1 of the format first wrote them.
fn recorded(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/event_lines").join(name);
    fs::read_to_string(path).unwrap()
}

fn all_recorded() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/event_lines");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| recorded(name.to_str().unwrap())).collect()
}

/// The events of a log again, as lines; and each step that the policy does not explain, by limits that may fill in what an older
/// log does not tell.
pub(in crate::record) fn replayed(log: &str, limits: Option<&Limits>) -> (String, Vec<String>) {
    let (mut lines, mut unexplained) = (String::new(), Vec::new());
    let mut replayed: Option<Replayed> = None;
    for line in log.lines() {
        let Some(line) = read(line.as_bytes()) else { continue };
        let replayed = replayed.get_or_insert_with(|| Replayed::of(&line).unwrap());
        if let Some(taken) = replayed.taken(&line) {
            let own = Limits {
                max_iterations: replayed.limits.max_iterations,
                max_retries: replayed.limits.max_retries,
                ..limits.unwrap_or(&replayed.limits).clone()
            };
            let decided = Next::decided(&own, taken.tally, taken.now);
            let is_explained = match (taken.next, decided) {
                (Next::End(taken), Next::End(decided)) => {
                    decided.word() == taken.word() || decided.if_unproven() == Some(taken)
                }
                // Its work, an agent or a record has ended it.
                (Next::End(taken), _) => !is_of_limits(taken),
                // It waits for a provider before it begins.
                (Next::Wait, Next::Iteration) => taken.tally.waits_for_provider(),
                (taken, decided) => taken == decided,
            };
            if !is_explained {
                unexplained.push(format!("{}: {:?}, by the policy {decided:?}", line.at, taken.next));
            }
        }
        replayed.take(&line, &mut |stamped| lines += &to_lines(stamped));
    }
    (lines, unexplained)
}

/// Whether only the policy ends loops so.
fn is_of_limits(outcome: Outcome) -> bool {
    use Outcome::{BudgetReached, DurationReached, Idle, LastFailed, LimitTooFar, MaxIterations, Overloaded};
    matches!(
        outcome,
        BudgetReached | DurationReached | Idle | LastFailed | LimitTooFar | MaxIterations | Overloaded
    )
}

/// A line without what older logs do not have.
fn plain(line: &str) -> serde_json::Value {
    let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
    let fields = line.as_object_mut().unwrap();
    for newer in ["limits", "spent", "means", "elapsed_s", "tally", "unvalidated", "unproven", "said_alone"] {
        fields.remove(newer);
    }
    // What reports no longer have, no view shows.
    for gone in ["complete", "replan"] {
        fields.remove(gone);
    }
    if let Some(usage) = fields.get_mut("usage").and_then(|usage| usage.as_object_mut()) {
        ["session_id", "fault"].map(|gone| usage.remove(gone));
    }
    for newer in ["attempts", "failed_iterations", "end", "blind_waits", "waited_s", "waited_for"] {
        fields.remove(newer);
    }
    line
}

#[test]
fn the_lines_of_a_log_become_the_events_that_they_were() {
    for log in all_recorded() {
        let (again, _) = replayed(&log, None);
        let lines: Vec<_> = log.lines().filter(|line| !line.contains("build_ended")).map(plain).collect();
        let again: Vec<_> = again.lines().map(plain).collect();
        assert_eq!(again, lines);
    }
}

#[test]
fn each_step_of_a_log_is_what_the_policy_decides() {
    for log in all_recorded() {
        let limits = Limits { on_failure: OnFailure::End, ..unknown_limits() };
        let (_, unexplained) = replayed(&log, Some(&limits));
        assert_eq!(unexplained, Vec::<String>::new(), "{log}");
    }
}

#[test]
fn what_is_no_line_of_ours_is_passed_over() {
    for torn in ["", "{", "[]", "\u{0}\u{0}", r#"{"v":2,"event":"text"}"#] {
        assert_eq!(read(torn.as_bytes()), None, "{torn}");
    }
    assert_eq!(read(b"\xff\xfe"), None);
    let line = recorded("success.events.jsonl").lines().next().unwrap().to_owned();
    assert!(read(line.as_bytes()).is_some());
    assert_eq!(read(line.replace("\"at\":\"2026", "\"at\":\"+262000").as_bytes()), None);
}

#[test]
fn names_of_a_foreign_log_drive_no_terminal() {
    let line = recorded("success.events.jsonl").lines().next().unwrap().to_owned();
    let line = line.replace("\"mode\":\"", "\"mode\":\"\\u001b]0;title\\u0007\\u001b[2J");
    let replayed = Replayed::of(&read(line.as_bytes()).unwrap()).unwrap();
    assert!(!replayed.identity().mode.contains(char::is_control), "{:?}", replayed.identity());
}
