use std::path::Path;
use std::time::Duration;

use chrono::{Local, Utc};
use serde_json::{Value, json};

use super::*;
use crate::engine::event::{Recovered, Stream, TaskCounts};
use crate::engine::outcome::Outcome;
use crate::engine::policy::Limits;
use crate::engine::report::{self, AttemptStatus};
use crate::engine::stop::Change;
use crate::engine::tally::{Last, Tally};
use crate::engine::worktree::WorkDone;
use crate::files::room::Shortage;
use crate::reply::show::Leave;
use crate::reply::sigil::Sigils;
use crate::reply::usage::{self, Class};
use crate::reply::verdict::{self, Kind};

fn report() -> Report {
    let message = "limit reached".to_owned();
    let mut usage = usage::Usage::default();
    usage.cost_usd = Some(0.1);
    usage.input_tokens = Some(1);
    usage.output_tokens = Some(2);
    usage.model = Some("m".into());
    usage.session_id = Some("s".into());
    usage.fault = Some(usage::Fault { class: Class::Limit, message: message.clone(), reset_at: Some(1) });
    Report {
        status: AttemptStatus::UsageLimit,
        duration: Duration::from_millis(1500),
        exit_code: None,
        signal: Some(9),
        failure: Some(verdict::Failure {
            kind: Kind::Reported,
            class: Class::Limit,
            message,
            reset_at: Some(1),
        }),
        sigils: Sigils::default(),
        text: String::new(),
        matches_done: false,
        usage,
        balance: Some(report::Balance { spent: None, left: 1.0 }),
        skipped_lines: 0,
        exceeded: None,
    }
}

/// Every kind of event with everything in it.
fn each(mut take: impl FnMut(Event<'_>)) {
    let (limits, tally, report) =
        (Limits { max_iterations: Some(3), ..Limits::EXAMPLE }, Tally::default(), report());
    let (tally, until) = (&tally, Utc::now());
    take(Event::LoopStarted { project: Path::new("/p"), limits: &limits, tally });
    let counted = Tally { last: Last::Waited, cost_usd: Some(0.5), ..Tally::default() };
    take(Event::LoopStarted { project: Path::new("/p"), limits: &limits, tally: &counted });
    take(Event::Resumed { tally: &counted });
    let recovered = Recovered { from: "r".into(), attempts: 1, cost_usd: Some(0.5) };
    take(Event::Recovered(&recovered));
    take(Event::LimitsChanged { limits: &limits, tally });
    take(Event::AttemptStarted { tally, head: Some("a") });
    take(Event::AgentStarted { command: "c" });
    take(Event::AgentKnown { model: Some("m"), session: None });
    for show in [
        Show::Text("t".into()),
        Show::Delta("t".into()),
        Show::Tool { name: "n".into(), input: "i".into() },
        Show::Error("e".into()),
        Show::Notice("n".into()),
        Show::Thought("h".into()),
        Show::permission(Leave::Refused, "edit".into(), "w"),
    ] {
        take(Event::Shown(std::slice::from_ref(&show)));
    }
    for changed in [None, Some(true)] {
        take(Event::AttemptEnded { tally, report: &report, head: None, changed });
    }
    let bare = Report { failure: None, usage: usage::Usage::default(), balance: None, ..report };
    take(Event::AttemptEnded { tally, report: &bare, head: Some("b"), changed: None });
    take(Event::Background { tasks: "tests", at_most: Duration::from_mins(30) });
    let counts = TaskCounts { done: 7, failed: 1, total: 20 };
    let usual = TaskAtWork { id: "t-1a2b3c", title: "t", feature: None, model: None };
    let task = TaskAtWork { feature: Some("f"), model: Some("m"), ..usual };
    take(Event::TaskStarted { task: usual, verifies: false, counts });
    take(Event::TaskEnded { task, became: "done", reason: "", counts });
    take(Event::Verifying { task });
    take(Event::Verified { task, ok: false, reason: "r" });
    take(Event::Validating);
    take(Event::Validated { ok: false, undecided: true, output: "o" });
    take(Event::Retrying { iteration: 1, retry: 1, max_retries: 3, pause: Duration::ZERO });
    take(Event::BackingOff { tally, breaker: Some(5), pause: Duration::from_secs(4) });
    take(Event::Attention(Some("s")));
    take(Event::Attention(None));
    take(Event::Waiting { until, shortage: None, tally });
    take(Event::Waiting { until, shortage: Some(Shortage { free: 1, wanted: 2 }), tally });
    take(Event::Queued);
    take(Event::Paused { tally });
    take(Event::Resumed { tally });
    let requests = [Request::Pause, Request::Resume, Request::Cancel, Request::CancelNow, Request::Detach];
    let requests =
        requests.into_iter().chain([Request::Note("n".into()), Request::Change(Change::default())]);
    let asks = [Ask::Interrupt, Ask::Terminate].into_iter().chain(requests.map(Ask::Request));
    let urgencies = [Urgency::None, Urgency::AfterAttempt, Urgency::Now, Urgency::AtOnce].into_iter().cycle();
    for (ask, urgency) in asks.zip(urgencies) {
        take(Event::Asked { ask: &ask, urgency });
    }
    take(Event::Question("q"));
    take(Event::Answered(Some("a")));
    take(Event::Answered(None));
    take(Event::Published("p"));
    take(Event::HookEnded { hook: "on_end", ok: true, output: "o" });
    take(Event::Notice("n"));
    take(Event::LoopEnded {
        outcome: Outcome::BudgetReached,
        detail: Some("d"),
        tally,
        duration: Duration::from_secs(1),
        work: Some(&WorkDone { from: Some("a".into()), commits: 1, files: 2, insertions: 3, deletions: 4 }),
    });
}

fn identity(text: &str) -> LoopIdentity {
    let text = || text.to_owned();
    LoopIdentity { run: text(), name: text(), mode: text(), agent: text() }
}

#[test]
fn every_event_is_read_back_as_it_was_written() {
    let schema: Value = serde_json::from_str(include_str!("../../../schemas/events.schema.json")).unwrap();
    let known =
        schema["oneOf"].as_array().unwrap().iter().map(|event| &event["properties"]["event"]["const"]);
    // The one line that no loop writes; the table of the branches has a test of its own.
    let mut missing: Vec<&Value> = known.filter(|name| *name != "build_ended").collect();
    let identity = identity("x");
    each(|event| {
        let line = to_lines(&Stamped { at: Local::now(), identity: &identity, event });
        assert_eq!(EventLine::read(&line).unwrap().write().unwrap(), line);
        let written: Value = serde_json::from_str(&line).unwrap();
        missing.retain(|name| **name != written["event"]);
    });
    assert_eq!(missing, [&Value::Null; 0], "in the schema, but not among the events above");
    let raw = Event::Output { stream: Stream::Stdout, bytes: b"{}" };
    assert_eq!(to_lines(&Stamped { at: Local::now(), identity: &identity, event: raw }), "");
}

#[test]
fn what_came_together_is_one_line_each() {
    let identity = identity("}");
    let shows = [Show::Text("a\n{}".into()), Show::Error("b".into())];
    let together = to_lines(&Stamped { at: Local::now(), identity: &identity, event: Event::Shown(&shows) });
    let read: Vec<Value> = together.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (read.len(), &read[0]["text"], &read[1]["event"]),
        (2, &json!("a\n{}"), &json!("agent_error"))
    );
    assert!(read.iter().all(|object| object["v"] == 1 && object["agent"] == "}"));
}
