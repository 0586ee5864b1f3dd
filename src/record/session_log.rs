//! `logs/session-….log`: everything an agent wrote, between the blocks that say when.

use super::blocks;
use super::whole_lines::WholeLines;
use crate::engine::event::{Event, Stamped};
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

    /// Takes one event.
    pub fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), FileError> {
        match stamped.event {
            Event::Output { stream, bytes } => self.lines.output(stream, bytes)?,
            Event::AttemptStarted { tally, .. } => {
                let text = blocks::header(tally.iteration, &stamped.identity.mode, &stamped.at);
                self.lines.write(&text)?;
            }
            Event::AttemptEnded { tally, report, .. } => {
                self.lines.end_lines()?;
                if let Some(failure) = &report.failure {
                    self.lines.write(&format!("[ralph] {}\n", failure.message))?;
                }
                self.lines.write(&blocks::footer(tally, report, stamped.at))?;
            }
            Event::Validated { ok, undecided, output } => {
                let verdict = match (ok, undecided) {
                    (true, _) => "passed",
                    (false, true) => "came to no verdict",
                    (false, false) => "failed",
                };
                self.printed(&format!("validation {verdict}"), output)?;
            }
            Event::HookEnded { hook, ok, output } => {
                let verdict = if ok { "is through" } else { "has failed" };
                self.printed(&format!("hook {hook} {verdict}"), output)?;
            }
            Event::Notice(message) | Event::Published(message) => {
                self.lines.end_lines()?;
                self.lines.write(&format!("[ralph] {message}\n"))?;
            }
            Event::Recovered(read) => {
                self.lines.end_lines()?;
                let line = blocks::recovered_line(read.attempts, read.cost_usd);
                self.lines.write(&format!("[ralph] {line}\n"))?;
            }
            Event::Question(text) => {
                self.lines.end_lines()?;
                self.lines.write(&format!("[ralph] asks: {text}\n"))?;
            }
            Event::Answered(text) => {
                let answer = text.map_or("no answer".to_owned(), |text| format!("answer: {text}"));
                self.lines.write(&format!("[ralph] {answer}\n"))?;
            }
            Event::TaskStarted { .. }
            | Event::TaskEnded { .. }
            | Event::Verifying { .. }
            | Event::Verified { .. } => {
                self.lines.end_lines()?;
                let line = blocks::task_line(stamped.event).unwrap_or_default();
                self.lines.write(&format!("[ralph] {line}\n"))?;
            }
            Event::LoopEnded { outcome, detail, tally, duration, .. } => {
                self.lines.end_lines()?;
                if let Some(detail) = detail {
                    self.lines.write(&format!("[ralph] {detail}\n"))?;
                }
                self.lines.write(&blocks::summary(tally, outcome, duration))?;
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
