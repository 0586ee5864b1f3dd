use std::path::Path;
use std::time::Duration;

use chrono::{Local, Utc};

use super::*;
use crate::engine::event::{Identity, Stream};
use crate::engine::outcome::Outcome;
use crate::engine::policy::Limits;
use crate::engine::report::{AttemptStatus, Balance, Report};
use crate::engine::tally::Tally;
use crate::reply::usage::{Class, Fault, Usage};
use crate::reply::verdict::{Failure, Kind};

#[path = "../../../tests/schema/mod.rs"]
pub(crate) mod schema;

fn report() -> Report {
    let message = "limit reached".to_owned();
    let mut usage = Usage::default();
    usage.cost_usd = Some(0.1);
    usage.input_tokens = Some(1);
    usage.output_tokens = Some(2);
    usage.model = Some("m".into());
    usage.session_id = Some("s".into());
    usage.fault = Some(Fault { class: Class::Limit, message: message.clone(), reset_at: Some(1) });
    Report {
        status: AttemptStatus::UsageLimit,
        duration: Duration::from_millis(1500),
        exit_code: None,
        signal: Some(9),
        failure: Some(Failure { kind: Kind::Reported, class: Class::Limit, message, reset_at: Some(1) }),
        complete: false,
        replan: false,
        text: String::new(),
        usage,
        balance: Some(Balance { spent: None, left: 1.0 }),
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
    take(Event::AttemptStarted { tally, head: Some("a") });
    for show in [
        Show::Text("t".into()),
        Show::Delta("t".into()),
        Show::Tool { name: "n".into(), input: "i".into() },
        Show::Error("e".into()),
        Show::Notice("n".into()),
    ] {
        take(Event::Shown(std::slice::from_ref(&show)));
    }
    for changed in [None, Some(true)] {
        take(Event::AttemptEnded { tally, report: &report, head: None, changed });
    }
    let bare = Report { failure: None, usage: Usage::default(), balance: None, ..report };
    take(Event::AttemptEnded { tally, report: &bare, head: Some("b"), changed: None });
    take(Event::Validating);
    take(Event::Validated { ok: false, output: "o" });
    take(Event::Retrying { iteration: 1, retry: 1, max_retries: 3, pause: Duration::ZERO });
    take(Event::Waiting { until, tally });
    take(Event::Queued);
    take(Event::Paused { tally });
    take(Event::Resumed { tally });
    let requests =
        [Request::Pause, Request::Resume, Request::Cancel, Request::CancelNow, Request::Note("n".into())];
    let asks = [Ask::Interrupt, Ask::Terminate].into_iter().chain(requests.map(Ask::Request));
    let urgencies = [Urgency::None, Urgency::AfterAttempt, Urgency::Now, Urgency::AtOnce].into_iter().cycle();
    for (ask, urgency) in asks.zip(urgencies) {
        take(Event::Asked { ask: &ask, urgency });
    }
    take(Event::Published("p"));
    take(Event::Notice("n"));
    take(Event::LoopEnded {
        outcome: Outcome::BudgetReached,
        detail: Some("d"),
        tally,
        duration: Duration::from_secs(1),
    });
}

#[test]
fn every_event_is_as_the_schema_says_and_none_is_missing_there() {
    let schema = schema::schema();
    let text = "x".to_owned();
    let identity = Identity { run: text.clone(), name: text.clone(), mode: text.clone(), agent: text };
    let mut seen = Vec::new();
    each(|event| {
        let lines = to_lines(&Stamped { at: Local::now(), identity: &identity, event });
        let json: Value = serde_json::from_str(&lines).unwrap();
        schema::check_event(&schema, &json).unwrap();
        seen.push(json["event"].clone());
    });
    for name in schema["properties"]["event"]["enum"].as_array().unwrap() {
        // The one line that no loop writes; the table of the branches has a test of its own.
        if name == "build_ended" {
            continue;
        }
        assert!(seen.contains(name), "{name} is in the schema, but no event");
    }
    let raw = Event::Output { stream: Stream::Stdout, bytes: b"{}" };
    assert_eq!(to_lines(&Stamped { at: Local::now(), identity: &identity, event: raw }), "");
}

#[test]
fn the_schema_finds_what_is_wrong() {
    let schema = schema::schema();
    let good = json!({
        "v": VERSION, "at": "x", "run": "x", "loop": "x", "mode": "x", "agent": "x",
        "event": "notice", "message": "m"
    });
    schema::check_event(&schema, &good).unwrap();
    for (key, value) in
        [("v", json!(2)), ("message", json!(1)), ("event", json!("other")), ("more", json!(1))]
    {
        let mut bad = good.clone();
        bad[key] = value;
        assert!(schema::check_event(&schema, &bad).is_err(), "{key}");
    }
}

#[test]
fn what_came_together_is_one_line_each() {
    let text = || "}".to_owned();
    let identity = Identity { run: text(), name: text(), mode: text(), agent: text() };
    let shows = [Show::Text("a\n{}".into()), Show::Error("b".into())];
    let together = to_lines(&Stamped { at: Local::now(), identity: &identity, event: Event::Shown(&shows) });
    let read: Vec<Value> = together.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (read.len(), &read[0]["text"], &read[1]["event"]),
        (2, &json!("a\n{}"), &json!("agent_error"))
    );
    assert!(read.iter().all(|object| object["v"] == VERSION && object["agent"] == "}"));
}
