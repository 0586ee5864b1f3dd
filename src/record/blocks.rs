//! The text blocks of a session: iteration header, iteration footer, session summary.

use std::fmt::Write as _;
use std::time::Duration;

use chrono::{DateTime, Local};

use crate::engine::outcome::Outcome;
use crate::engine::report::Report;
use crate::engine::tally::Tally;
use crate::text::{duration, timestamp};

const DOUBLE: &str = "================================================================================";
const SINGLE: &str = "--------------------------------------------------------------------------------";

/// The block before an attempt.
#[must_use]
pub fn header(iteration: u64, mode: &str, at: DateTime<Local>) -> String {
    let time = timestamp::local(&at);
    format!("{DOUBLE}\nITERATION {iteration}\n{DOUBLE}\nMode: {mode}\nStart Time: {time}\n{SINGLE}\n")
}

/// The block after an attempt.
#[must_use]
pub fn footer(tally: &Tally, report: &Report, at: DateTime<Local>) -> String {
    let mut text = format!(
        "{SINGLE}\nITERATION {} COMPLETE\nEnd Time: {}\nDuration: {}\n",
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
    format!(
        "{DOUBLE}\nSESSION SUMMARY\n{DOUBLE}\nTotal Iterations: {}\nSuccessful: {}\nFailed: {}\n\
         Total Duration: {}\nExit Reason: {}\nExit Code: {}\n{DOUBLE}\n",
        tally.iteration,
        tally.succeeded,
        tally.error_count,
        duration::in_seconds(duration),
        outcome.reason(),
        outcome.code()
    )
}
