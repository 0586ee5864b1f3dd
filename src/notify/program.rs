//! A command beside a loop, usually the user's, with an event on its stdin.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::process::OUT_OF_SIGHT;
use crate::process::capture::{Ended, capture};
use crate::process::launch::Launch;
use crate::text::duration;
use crate::text::line::last_lines;

/// How many bytes of each of its outputs are kept.
const ROOM: usize = 16 * 1024;

/// The failure of a command.
#[derive(Debug)]
pub(super) struct Failed {
    /// The reason in one line.
    pub(super) why: String,
    /// Its output.
    pub(super) output: String,
}

/// Runs a command and returns its output. Its whole process tree has ended then.
pub(super) fn run(
    launch: &Launch,
    line: &str,
    limit: Duration,
    cancelled: &AtomicBool,
) -> Result<String, Failed> {
    let captured = capture(launch, line.as_bytes().to_vec(), limit, ROOM, cancelled)
        .map_err(|error| Failed { why: error.to_string(), output: String::new() })?;
    let mut output = captured.stdout.text();
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
    output += &captured.stderr.text();
    let why = match captured.end {
        Ended::Exited(0) => return Ok(output),
        Ended::Exited(code) => format!("exit code {code}"),
        Ended::Signaled(signal) => format!("ended by signal {signal}"),
        Ended::OutOfSight => OUT_OF_SIGHT.to_owned(),
        Ended::TimedOut => format!("it did not end within {} and was ended", duration::format(limit)),
        Ended::Cancelled => "it was ended with the run".to_owned(),
    };
    let last = last_lines(&output, 1).concat();
    let why = if last.trim().is_empty() { why } else { format!("{why}: {}", last.trim()) };
    Err(Failed { why, output })
}
