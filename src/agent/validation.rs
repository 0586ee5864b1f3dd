//! The command that proves an agent's work.

use std::time::{Duration, Instant};

use super::Context;
use super::beside::run_beside;
use crate::engine::stop::Urgency;
use crate::engine::{Validation, Validator};
use crate::files::FileError;
use crate::process::capture::{Captured, Ended};
use crate::process::supervised::{Launch, StartError};
use crate::text::duration;

/// How many bytes of each of the command's two outputs are kept; what reaches the prompt is cut again.
const ROOM: usize = 64 * 1024;

/// A command for `sh -c`, run after an iteration. Exit code 0 means that the work is good.
#[derive(Debug)]
pub struct ValidationCommand {
    launch: Launch,
    limit: Duration,
}

impl ValidationCommand {
    /// `command` is for `sh`; where and with what environment it runs comes from the agent's own `launch`.
    #[must_use]
    pub fn new(command: &str, limit: Duration, launch: &Launch) -> Self {
        let args = vec!["-c".into(), command.into()];
        Self { launch: Launch { program: "sh".into(), args, ..launch.clone() }, limit }
    }
}

impl Validator for ValidationCommand {
    fn validate(
        &mut self,
        deadline: Option<Instant>,
        context: &mut Context<'_>,
    ) -> Result<Option<Validation>, FileError> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let limit = left.map_or(self.limit, |left| left.min(self.limit));
        let captured = run_beside(&self.launch, limit, ROOM, Urgency::Now, context)?;
        if limit < self.limit && captured.as_ref().is_ok_and(|captured| captured.end == Ended::TimedOut) {
            return Ok(None);
        }
        Ok(self.validation(captured))
    }
}

impl ValidationCommand {
    fn validation(&self, captured: Result<Captured, StartError>) -> Option<Validation> {
        let captured = match captured {
            Ok(captured) => captured,
            Err(error) => return Some(Validation { ok: false, output: error.to_string() }),
        };
        let ending = match captured.end {
            Ended::Cancelled => return None,
            Ended::Exited(0) => String::new(),
            Ended::Exited(code) => format!("(exit code {code})"),
            Ended::Signaled(signal) => format!("(ended by signal {signal})"),
            Ended::TimedOut => format!("(did not end within {} and was ended)", duration::format(self.limit)),
        };
        let mut output = captured.stdout.text() + &captured.stderr.text();
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        Some(Validation { ok: ending.is_empty(), output: output + &ending })
    }
}
