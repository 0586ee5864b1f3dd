//! The text blocks of a session: iteration header, iteration footer, session summary.

use std::fmt::Write as _;
use std::time::Duration;

use chrono::{DateTime, Local, TimeZone};

use crate::engine::event::Event;
use crate::engine::outcome::{Ended, Outcome};
use crate::engine::report::Report;
use crate::engine::tally::Tally;
use crate::text::line::{last_lines, one_line_within};
use crate::text::{count, duration, timestamp};

const DOUBLE: &str = "================================================================================";
/// So many of the last lines that a validation has printed are told.
const VALIDATION: usize = 10;
/// So much of a reason is told in a line, in characters.
const REASON: usize = 300;
const SINGLE: &str = "--------------------------------------------------------------------------------";

/// What there is to say about the task of an iteration, in one line; `None` for any other event.
#[must_use]
pub fn task_line(event: Event<'_>) -> Option<String> {
    Some(match event {
        Event::TaskStarted { task, verifies, .. } => {
            let what = if verifies { "verifies" } else { "works on" };
            let model = task.model.map(|model| format!(" with {model}")).unwrap_or_default();
            format!("{what} {}{model}: {}", task.id, task.title)
        }
        Event::Verifying { task } => format!("a fresh agent verifies {}", task.id),
        Event::Verified { task, ok: true, .. } => format!("{} has passed its verification", task.id),
        Event::Verified { task, ok: false, reason } => {
            format!("{} has not passed its verification: {}", task.id, one_line_within(reason, REASON))
        }
        Event::TaskEnded { task, became, reason, counts } => {
            let id = task.id;
            let what = match became {
                "done" => format!("{id} is done"),
                "failed" => format!("{id} has failed"),
                "retried" => format!("{id} is to be done again"),
                _ => format!("{id} goes back"),
            };
            let reason = one_line_within(reason, REASON);
            let why = if reason.is_empty() { reason } else { format!(": {reason}") };
            format!("{what} ({}/{} tasks){why}", counts.done, counts.total)
        }
        _ => return None,
    })
}

/// What a start has read of an earlier process that was cut off, in one line.
#[must_use]
pub fn recovered_line(attempts: u64, cost_usd: Option<f64>) -> String {
    let (are, cost) = (if attempts == 1 { "is" } else { "are" }, cost_usd.filter(|cost| *cost > 0.0));
    let cost = cost.map(|cost| format!(" (${cost:.2})")).unwrap_or_default();
    let attempts = count::of(attempts, "attempt");
    format!("the last run was cut off: {attempts} that it had not booked {are} counted{cost}")
}

/// The block before an attempt, which began at this moment of that zone.
#[must_use]
pub fn header<Z: TimeZone>(iteration: u64, mode: &str, at: &DateTime<Z>) -> String {
    let time = timestamp::told(at);
    format!("{DOUBLE}\nITERATION {iteration}\n{DOUBLE}\nMode: {mode}\nStart Time: {time}\n{SINGLE}\n")
}

/// The block after an attempt.
#[must_use]
pub fn footer(tally: &Tally, report: &Report, at: DateTime<Local>) -> String {
    let word = if report.is_success() { "COMPLETE" } else { "ENDED" };
    let mut text = format!(
        "{SINGLE}\nITERATION {} {word}\nEnd Time: {}\nDuration: {}\n",
        tally.iteration,
        timestamp::local(&at),
        duration::in_seconds(report.duration)
    );
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}: {value}");
    };
    if let Some(balance) = report.balance {
        if let Some(spent) = balance.spent {
            line("Iteration Cost", &format_args!("${spent:.2}"));
        }
        line("Balance", &format_args!("${:.2}", balance.left));
    }
    if tally.retries > 0 {
        line("Retries", &tally.retries);
    }
    if let Some(tokens) = report.usage.input_tokens {
        line("Input Tokens", &tokens);
    }
    if let Some(tokens) = report.usage.output_tokens {
        line("Output Tokens", &tokens);
    }
    if let Some(cost) = report.usage.cost_usd {
        line("Agent Cost", &format_args!("${cost:.4}"));
    }
    if let Some(context) = report.usage.context() {
        line("Context", &context);
    }
    if report.skipped_lines > 0 {
        line("Skipped Lines", &report.skipped_lines);
    }
    line("Status", &report.status.word());
    text + DOUBLE + "\n\n"
}

/// The block at the end of a session.
#[must_use]
pub fn summary(tally: &Tally, outcome: Outcome, duration: Duration) -> String {
    let mut text = format!(
        "{DOUBLE}\nSESSION SUMMARY\n{DOUBLE}\nTotal Iterations: {}\nSuccessful: {}\nFailed: {}\n\
         Total Duration: {}\nExit Reason: {}\nExit Code: {}\n",
        tally.ran(),
        tally.succeeded,
        tally.failed,
        duration::in_seconds(duration),
        outcome.reason(),
        outcome.code()
    );
    // Writing to a String cannot fail.
    if tally.durations.count > tally.ran() {
        let _ = writeln!(text, "Attempts: {} ({} failed)", tally.durations.count, tally.error_count);
    }
    for line in unproven(tally, outcome) {
        let _ = writeln!(text, "Validation: {line}");
    }
    text + DOUBLE + "\n"
}

/// What the validation printed last, of a loop that ends because it fails.
#[must_use]
pub fn unproven(tally: &Tally, outcome: Outcome) -> Vec<&str> {
    let output = tally.last_validation_error().filter(|_| outcome.ended() == Ended::Unproven);
    output.map(|output| last_lines(output, VALIDATION)).unwrap_or_default()
}
