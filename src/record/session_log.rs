//! `logs/session-….log`: everything an agent wrote, between the blocks that say when.

use super::blocks;
use super::whole_lines::WholeLines;
use crate::engine::event::{Stamped, Stream};
use crate::engine::fact::Fact;
use crate::files::{FileError, RecordFile};

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

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        self.lines.path()
    }

    /// Goes on in a new file where this one was removed or replaced; answers whether it was.
    pub fn keep(&mut self) -> Result<bool, FileError> {
        self.lines.keep()
    }

    /// Takes bytes that the agent wrote.
    pub fn take_raw(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), FileError> {
        self.lines.output(stream, bytes)?;
        self.lines.flush()
    }

    /// Takes one fact.
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
            Fact::Validated { ok, output, undecided } => {
                let verdict = match (ok, undecided) {
                    (true, _) => "passed",
                    (false, true) => "came to no verdict",
                    (false, false) => "failed",
                };
                self.printed(&format!("validation {verdict}"), output)?;
            }
            Fact::HookEnded { hook, ok, output } => {
                let verdict = if *ok { "is through" } else { "has failed" };
                self.printed(&format!("hook {hook} {verdict}"), output)?;
            }
            Fact::Notice { message } | Fact::Published { message } => {
                self.lines.end_lines()?;
                self.lines.write(&format!("[ralph] {message}\n"))?;
            }
            Fact::Recovered { attempts, cost_usd, .. } => {
                self.lines.end_lines()?;
                let line = blocks::recovered_line(*attempts, *cost_usd);
                self.lines.write(&format!("[ralph] {line}\n"))?;
            }
            Fact::Question { text } => {
                self.lines.end_lines()?;
                self.lines.write(&format!("[ralph] asks: {text}\n"))?;
            }
            Fact::Answered { text } => {
                let answer = text.as_ref().map_or("no answer".to_owned(), |text| format!("answer: {text}"));
                self.lines.write(&format!("[ralph] {answer}\n"))?;
            }
            Fact::TaskStarted { .. }
            | Fact::TaskEnded { .. }
            | Fact::Verifying { .. }
            | Fact::Verified { .. } => {
                self.lines.end_lines()?;
                let line = blocks::task_line(stamped.fact).unwrap_or_default();
                self.lines.write(&format!("[ralph] {line}\n"))?;
            }
            Fact::LoopEnded(ended) => {
                self.lines.end_lines()?;
                if let Some(detail) = &ended.detail {
                    self.lines.write(&format!("[ralph] {detail}\n"))?;
                }
                if let Some(outcome) = stamped.outcome() {
                    self.lines.write(&blocks::summary(stamped.tally, outcome, ended.duration()))?;
                }
            }
            _ => return Ok(()),
        }
        self.lines.flush()
    }

    /// What a command came to, with what it printed below.
    fn printed(&mut self, what: &str, output: &str) -> Result<(), FileError> {
        self.lines.end_lines()?;
        self.lines.write(&format!("[ralph] {what}\n{output}"))?;
        if !output.is_empty() && !output.ends_with('\n') {
            self.lines.write("\n")?;
        }
        Ok(())
    }
}
