//! Where the next prompt comes from and where its result is booked.

pub mod branch;
pub mod prompt_file;
pub mod ralph_md;

use std::path::Path;

use crate::agent::{AgentCommand, Context};
use crate::engine::End;
use crate::engine::outcome::Outcome;
use crate::engine::report::{Report, Signal};
use crate::engine::tally::Tally;
use crate::files::FileError;

/// Where the next prompt comes from and where its result is booked.
pub trait Source {
    /// Waits until the loop may put an agent to work, as when others of its kind are at work already. `false`: it had to
    /// wait, or was asked to stop or to hold meanwhile, so that everything has to be looked at again.
    ///
    /// # Errors
    /// When a record cannot be written.
    fn admit(&mut self, _context: &mut Context<'_>) -> Result<bool, FileError> {
        Ok(true)
    }

    /// The work of iteration `iteration` (from 1), read afresh. What takes time listens to `context` and gives up
    /// when the loop is asked to stop; nobody looks at the answer then.
    ///
    /// # Errors
    /// When there is nothing to go on with: the loop ends.
    fn next(&mut self, iteration: u64, context: &mut Context<'_>) -> Result<Work, SourceError>;

    /// The file that prompts come from; absolute. `None` when there is none.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Books a successful attempt and says what it means for the work as a whole.
    fn settle(&mut self, report: &Report) -> Signal {
        match (report.complete, report.replan) {
            (true, _) => Signal::Complete,
            (false, true) => Signal::Replan,
            (false, false) => Signal::Continue,
        }
    }

    /// Books an attempt that is over, whatever came of it, after it was validated and told. What takes time listens
    /// to `context`.
    ///
    /// # Errors
    /// When a record cannot be written.
    fn book(&mut self, _context: &mut Context<'_>) -> Result<(), FileError> {
        Ok(())
    }

    /// Does what is left to do for the work as a whole when the loop comes to this `end`; how that goes may lead to
    /// another one. What takes time listens to `context`.
    ///
    /// # Errors
    /// When a record cannot be written.
    fn close(&mut self, end: End, _tally: &Tally, _context: &mut Context<'_>) -> Result<End, FileError> {
        Ok(end)
    }
}

/// What one iteration is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The prompt.
    pub prompt: String,
    /// Who works on it; `None` for the loop's own agent.
    pub agent: Option<AgentCommand>,
}

/// A source has no next prompt.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    /// How the loop ends.
    pub outcome: Outcome,
    /// What, where, and what to do.
    pub message: String,
}

impl From<FileError> for SourceError {
    fn from(error: FileError) -> Self {
        Self { outcome: Outcome::RecordFailed, message: error.to_string() }
    }
}
