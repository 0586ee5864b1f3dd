//! Events as JSON: what `--json` prints and what the events log keeps.

use chrono::{DateTime, Local, SecondsFormat};
use serde_json::{Value, json};

use crate::engine::event::{Event, Identity, Stamped};
use crate::engine::report::Report;
use crate::engine::stop::{Ask, Request, Urgency};
use crate::engine::tally::Tally;
use crate::reply::show::Show;

/// The version of the format, in every object as `v`. It grows when a field changes its meaning or goes away;
/// new fields and new events may come without.
pub const VERSION: u32 = 1;

/// An event as lines, each a JSON object with `v`, `at` (RFC 3339), `run`, `loop` and `event`: one line for each
/// thing that was shown, one for any other event, and none for raw bytes, which have a log of their own.
#[must_use]
pub fn to_lines(stamped: &Stamped<'_>) -> String {
    let bodies = match &stamped.event {
        Event::Shown(shows) => shows.iter().map(shown).collect(),
        event => Vec::from_iter(body(event)),
    };
    let common = envelope(stamped.at, stamped.identity).to_string();
    let mut lines = String::new();
    for body in bodies {
        // `{…}` and `{…}`, neither of them empty, become `{…,…}`.
        lines.push_str(&common[..common.len() - 1]);
        lines.push(',');
        lines.push_str(&body.to_string()[1..]);
        lines.push('\n');
    }
    lines
}

/// What every object has.
#[must_use]
pub fn envelope(at: DateTime<Local>, identity: &Identity) -> Value {
    json!({
        "v": VERSION,
        "at": at.to_rfc3339_opts(SecondsFormat::Millis, false),
        "run": identity.run,
        "loop": identity.name,
        "mode": identity.mode,
        "agent": identity.agent,
    })
}

fn body(event: &Event<'_>) -> Option<Value> {
    Some(match event {
        Event::LoopStarted { project, limits, .. } => json!({
            "event": "loop_started",
            "project": project.display().to_string(),
            "max_iterations": limits.max_iterations,
            "max_retries": limits.max_retries,
        }),
        Event::AttemptStarted { tally, head } => json!({
            "event": "attempt_started",
            "iteration": tally.iteration,
            "retry": tally.retries,
            "head": head,
        }),
        Event::Output { .. } | Event::Shown(_) => return None,
        Event::AttemptEnded { tally, report, head, changed } => attempt_ended(tally, report, *head, *changed),
        Event::Validating => json!({ "event": "validating" }),
        Event::Validated { ok, output } => json!({ "event": "validated", "ok": ok, "output": output }),
        Event::Retrying { iteration, retry, max_retries, pause } => json!({
            "event": "retrying",
            "iteration": iteration,
            "retry": retry,
            "max_retries": max_retries,
            "pause_s": pause.as_secs_f64(),
        }),
        Event::Waiting { until, .. } => json!({
            "event": "waiting",
            "reason": "usage_limit",
            "until": until.to_rfc3339(),
        }),
        Event::Queued => json!({ "event": "queued" }),
        Event::Paused { .. } => json!({ "event": "paused" }),
        Event::Resumed { .. } => json!({ "event": "resumed" }),
        Event::Asked { ask, urgency } => json!({
            "event": "asked",
            "what": what(ask),
            "note": match ask {
                Ask::Request(Request::Note(text)) => Some(text),
                _ => None,
            },
            "stopping": how(*urgency),
        }),
        Event::Published(message) => json!({ "event": "published", "message": message }),
        Event::Notice(message) => json!({ "event": "notice", "message": message }),
        Event::LoopEnded { outcome, detail, tally, duration } => json!({
            "event": "loop_ended",
            "exit_reason": outcome.word(),
            "exit_code": outcome.code(),
            "status": outcome.status(),
            "detail": detail,
            "iterations": tally.iteration,
            "succeeded": tally.succeeded,
            "failed": tally.error_count,
            "duration_s": duration.as_secs_f64(),
            "cost_usd": tally.cost_usd,
            "input_tokens": tally.input_tokens,
            "output_tokens": tally.output_tokens,
        }),
    })
}

fn attempt_ended(tally: &Tally, report: &Report, head: Option<&str>, changed: Option<bool>) -> Value {
    json!({
        "event": "attempt_ended",
        "iteration": tally.iteration,
        "retry": tally.retries,
        "status": report.status,
        "duration_s": report.duration.as_secs_f64(),
        "exit_code": report.exit_code,
        "signal": report.signal,
        "failure": report.failure,
        "complete": report.complete,
        "replan": report.replan,
        "usage": report.usage,
        "balance": report.balance,
        "skipped_lines": report.skipped_lines,
        "head": head,
        "changed": changed,
    })
}

fn shown(show: &Show) -> Value {
    match show {
        Show::Text(text) => json!({ "event": "text", "text": text }),
        Show::Delta(text) => json!({ "event": "text_delta", "text": text }),
        Show::Tool { name, input } => json!({ "event": "tool", "name": name, "input": input }),
        Show::Error(message) => json!({ "event": "agent_error", "message": message }),
        Show::Notice(message) => json!({ "event": "agent_notice", "message": message }),
    }
}

fn what(ask: &Ask) -> &'static str {
    match ask {
        Ask::Interrupt => "interrupt",
        Ask::Terminate => "terminate",
        Ask::Request(Request::Pause) => "pause",
        Ask::Request(Request::Resume) => "resume",
        Ask::Request(Request::Cancel) => "cancel",
        Ask::Request(Request::CancelNow) => "cancel_now",
        Ask::Request(Request::Note(_)) => "note",
    }
}

fn how(urgency: Urgency) -> &'static str {
    match urgency {
        Urgency::None => "not",
        Urgency::AfterAttempt => "after_attempt",
        Urgency::Now => "now",
        Urgency::AtOnce => "at_once",
    }
}

#[cfg(test)]
pub(crate) mod tests;
