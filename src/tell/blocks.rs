//! The text blocks of a session: iteration header, iteration footer, session summary.

use std::fmt::Write as _;

use chrono::{DateTime, Local, TimeZone};

use super::words;
use crate::engine::fact::{AttemptEnded, LoopEnded};
use crate::engine::outcome::Outcome;
use crate::engine::tally::Tally;
use crate::text::{duration, timestamp};

const DOUBLE: &str = "================================================================================";
const SINGLE: &str = "--------------------------------------------------------------------------------";

/// The block before an attempt that began at this time.
#[must_use]
pub(crate) fn header<Z: TimeZone>(iteration: u64, mode: &str, at: &DateTime<Z>) -> String {
    let time = timestamp::told(at);
    format!("{DOUBLE}\nITERATION {iteration}\n{DOUBLE}\nMode: {mode}\nStart Time: {time}\n{SINGLE}\n")
}

/// The line before a retry.
#[must_use]
pub(crate) fn retry_line(iteration: u64, retry: u32, max_retries: u32) -> String {
    format!("Agent failure on iteration {iteration}, retry {retry}/{max_retries}...")
}

/// The block after an attempt.
#[must_use]
pub(crate) fn footer(ended: &AttemptEnded<'_>, at: DateTime<Local>) -> String {
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
pub(crate) fn summary(ended: &LoopEnded<'_>, outcome: Outcome, tally: &Tally) -> String {
    let mut text = format!(
        "{DOUBLE}\nSESSION SUMMARY\n{DOUBLE}\nTotal Iterations: {}\nSuccessful: {}\nFailed: {}\n\
         Total Duration: {}\nExit Reason: {}\nExit Code: {}\n",
        tally.ran(),
        tally.succeeded,
        tally.failed,
        duration::in_seconds(ended.duration()),
        outcome.reason(),
        outcome.code()
    );
    // Writing to a String cannot fail.
    if tally.durations.count > tally.ran() {
        let _ = writeln!(text, "Attempts: {} ({} failed)", tally.durations.count, tally.error_count);
    }
    if let Some(proof) = &ended.proof {
        let _ = writeln!(text, "Proof: {}", words::proof(proof).text);
    }
    text + DOUBLE + "\n"
}
