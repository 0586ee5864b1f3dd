use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::engine::policy::OnFailure;
use crate::record::event_line::line_of;

/// The lines of a loop's log, as version 1 of the format first wrote them.
fn recorded(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/event_lines").join(name);
    fs::read_to_string(path).unwrap()
}

/// The lines of each loop in each recording.
fn all_recorded() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/event_lines");
    let mut logs = BTreeMap::<_, String>::new();
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        for line in recorded(&name).split_inclusive('\n').filter(|line| !line.contains("\"build_ended\"")) {
            let run = EventLine::read(line).unwrap().run.into_owned();
            *logs.entry((name.clone(), run)).or_default() += line;
        }
    }
    logs.into_iter().map(|((name, _), log)| (name, log)).collect()
}

/// The replayed facts of a log as lines, and each step that the policy does not explain. `limits` replaces what an
/// older log does not have.
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
            // Older lines do not report the end of a wait.
            let is_older = limits.is_some() && (taken.next, decided) == (Next::Again, Next::Wait);
            if !is_older && !decided.explains(taken.next, taken.tally) {
                unexplained.push(format!("{}: {:?}, by the policy {decided:?}", line.at, taken.next));
            }
        }
        replayed.take(&line, &mut |stamped| lines += &line_of(stamped));
    }
    (lines, unexplained)
}

#[test]
fn the_facts_of_a_log_are_shown_as_they_are() {
    for (name, log) in all_recorded() {
        let again = |line: &str| EventLine::read(line).unwrap().write().unwrap();
        assert_eq!(replayed(&log, None).0, log.lines().map(again).collect::<String>(), "{name}");
    }
}

#[test]
fn an_end_that_is_not_known_is_reported_as_one() {
    let log = recorded("success.events.jsonl").replace(r#""exit_reason":""#, r#""exit_reason":"later_"#);
    let (again, _) = replayed(&log, None);
    assert!(again.lines().last().unwrap().contains("the loop ended: later_"), "{again}");
}

#[test]
fn each_step_of_a_log_is_what_the_policy_decides() {
    for (name, log) in all_recorded() {
        let unknown = Limits::UNKNOWN;
        // The defaults of the verbs.
        let limits = match &*name {
            "ralph_md.events.jsonl" => unknown,
            branch if branch.starts_with("loop_build") => {
                Limits { breaker: Some(3), idle: Some(2), failed_end: Outcome::StoppedOnError, ..unknown }
            }
            _ => Limits { on_failure: OnFailure::End, max_limit_wait: Duration::from_hours(6), ..unknown },
        };
        let (_, unexplained) = replayed(&log, Some(&limits));
        assert_eq!(unexplained, Vec::<String>::new(), "{name}");
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
