//! The text blocks of a session: iteration header, iteration footer, session summary.

use std::fmt::Write as _;
use std::time::Duration;

use chrono::{DateTime, Local, TimeZone};

use crate::engine::fact::{AttemptEnded, Fact};
use crate::engine::outcome::{Ended, Outcome};
use crate::engine::tally::Tally;
use crate::text::line::{last_lines, one_line_within};
use crate::text::{count, duration, timestamp};

const DOUBLE: &str = "================================================================================";
/// So many of the last lines that a validation has printed are told.
const VALIDATION: usize = 10;
/// So much of a reason is told in a line, in characters.
const REASON: usize = 300;
const SINGLE: &str = "--------------------------------------------------------------------------------";

/// What there is to say about the task of an iteration, in one line; `None` for any other fact.
#[must_use]
pub fn task_line(fact: &Fact<'_>) -> Option<String> {
    Some(match fact {
        Fact::TaskStarted { task, verifies, .. } => {
            let what = if *verifies { "verifies" } else { "works on" };
            let model = task.model.as_ref().map(|model| format!(" with {model}")).unwrap_or_default();
            format!("{what} {}{model}: {}", task.id, task.title)
        }
        Fact::Verifying { task } => format!("a fresh agent verifies {}", task.id),
        Fact::Verified { task, ok: true, .. } => format!("{} has passed its verification", task.id),
        Fact::Verified { task, ok: false, reason } => {
            format!("{} has not passed its verification: {}", task.id, one_line_within(reason, REASON))
        }
        Fact::TaskEnded { outcome, reason, task, tasks } => {
            let id = &task.id;
            let what = match &**outcome {
                "done" => format!("{id} is done"),
                "failed" => format!("{id} has failed"),
                "retried" => format!("{id} is to be done again"),
                _ => format!("{id} goes back"),
            };
            let reason = one_line_within(reason, REASON);
            let why = if reason.is_empty() { reason } else { format!(": {reason}") };
            format!("{what} ({}/{} tasks){why}", tasks.done, tasks.total)
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
pub fn footer(ended: &AttemptEnded<'_>, at: DateTime<Local>) -> String {
    let (status, usage) = (ended.status(), &ended.usage);
    let word = if status.is_success() { "COMPLETE" } else { "ENDED" };
    let mut text = format!(
        "{SINGLE}\nITERATION {} {word}\nEnd Time: {}\nDuration: {}\n",
        ended.iteration,
        timestamp::local(&at),
        duration::in_seconds(ended.duration())
    );
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}: {value}");
    };
    if let Some(balance) = ended.balance {
        if let Some(spent) = balance.spent {
            line("Iteration Cost", &format_args!("${spent:.2}"));
        }
        line("Balance", &format_args!("${:.2}", balance.left));
    }
    if ended.retry > 0 {
        line("Retries", &ended.retry);
    }
    if let Some(tokens) = usage.input_tokens {
        line("Input Tokens", &tokens);
    }
    if let Some(tokens) = usage.output_tokens {
        line("Output Tokens", &tokens);
    }
    if let Some(cost) = usage.cost_usd {
        line("Agent Cost", &format_args!("${cost:.4}"));
    }
    if let Some(context) = usage.context() {
        line("Context", &context);
    }
    if ended.skipped_lines > 0 {
        line("Skipped Lines", &ended.skipped_lines);
    }
    line("Status", &status.word());
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
