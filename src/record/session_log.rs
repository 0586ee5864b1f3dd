//! `logs/session-….log`: all output of the agents, between blocks with the time.

use super::whole_lines::WholeLines;
use crate::engine::event::{Stamped, Stream};
use crate::engine::fact::Fact;
use crate::files::{FileError, RecordFile};
use crate::tell::{blocks, words};

/// The log of one session.
#[derive(Debug)]
pub struct SessionLog {
    lines: WholeLines,
}

impl SessionLog {
    /// The log of a new session in its new file.
    #[must_use]
    pub fn new(file: RecordFile) -> Self {
        Self { lines: WholeLines::new(file) }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        self.lines.path()
    }

    /// Continues in a new file if this one was removed or replaced; returns whether it was.
    pub fn keep(&mut self) -> Result<bool, FileError> {
        self.lines.keep()
    }

    /// Writes bytes of the agent.
    pub fn take_raw(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), FileError> {
        self.lines.output(stream, bytes)?;
        self.lines.flush()
    }

    /// Writes one fact.
    pub fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), FileError> {
        match stamped.fact {
            Fact::AttemptStarted { iteration, .. } => {
                let text = blocks::header(*iteration, &stamped.identity.mode, &stamped.at);
                self.lines.write(&text)?;
            }
            Fact::AttemptEnded(ended) => {
                self.lines.end_lines()?;
                if let Some(failure) = &ended.failure {
                    self.lines.write(&format!("[ralph] {}\n", failure.message))?;
                }
                self.lines.write(&blocks::footer(ended, stamped.at))?;
            }
            Fact::Validated { output, .. }
            | Fact::HookEnded { output, .. }
            | Fact::GateEnded { output, .. } => {
                self.said("", stamped, output)?;
            }
            Fact::Question { .. } => self.said("asks: ", stamped, "")?,
            Fact::Answered { text: Some(_) } => self.said("answer: ", stamped, "")?,
            Fact::Answered { .. }
            | Fact::Notice { .. }
            | Fact::Refused(_)
            | Fact::Published { .. }
            | Fact::Recovered { .. }
            | Fact::TaskStarted { .. }
            | Fact::TaskEnded { .. }
            | Fact::Verifying { .. }
            | Fact::Verified { .. }
            | Fact::LandingQueued { .. }
            | Fact::GateStarted { .. }
            | Fact::Landed { .. }
            | Fact::Returned { .. } => self.said("", stamped, "")?,
            Fact::LoopEnded(ended) => {
                self.lines.end_lines()?;
                if let Some(detail) = &ended.detail {
                    self.lines.write(&format!("[ralph] {detail}\n"))?;
                }
                if let Some(outcome) = stamped.outcome() {
                    self.lines.write(&blocks::summary(ended, outcome, stamped.tally))?;
                }
            }
            _ => return Ok(()),
        }
        self.lines.flush()
    }

    /// Writes a fact in words after `before`, followed by the output of a command.
    fn said(&mut self, before: &str, stamped: &Stamped<'_>, output: &str) -> Result<(), FileError> {
        let Some(entry) = words::entry(stamped.fact, &stamped.at) else { return Ok(()) };
        self.lines.end_lines()?;
        let output = entry.below(output);
        self.lines.write(&format!("[ralph] {before}{}\n{output}", entry.text))?;
        if !output.is_empty() && !output.ends_with('\n') {
            self.lines.write("\n")?;
        }
        Ok(())
    }
}
