//! Where the next prompt comes from and where its result is booked.

pub mod prompt_file;
pub mod ralph_md;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::agent::{AgentCommand, Context, Report};
use crate::engine::outcome::Outcome;
use crate::record::RecordError;

/// Where the next prompt comes from and where its result is booked.
pub trait Source {
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
}

/// What one iteration is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The prompt.
    pub prompt: String,
    /// Who works on it; `None` for the loop's own agent.
    pub agent: Option<AgentCommand>,
}

/// What a successful attempt means for the work as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// There is more to do.
    Continue,
    /// All is done, the agent says.
    Complete,
    /// What the assistant said matches the user's pattern.
    Done,
    /// The plan is wrong.
    Replan,
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

impl From<RecordError> for SourceError {
    fn from(error: RecordError) -> Self {
        Self { outcome: Outcome::RecordFailed, message: error.to_string() }
    }
}
