//! Where the next prompt comes from and where its result is booked.

pub mod prompt_file;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::agent::Report;
use crate::engine::outcome::Outcome;

/// Where the next prompt comes from and where its result is booked.
pub trait Source {
    /// The prompt of iteration `iteration` (from 1), read afresh.
    ///
    /// # Errors
    /// When there is nothing to go on with: the loop ends.
    fn next(&mut self, iteration: u64) -> Result<String, SourceError>;

    /// The file that prompts come from; absolute. `None` when there is none.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Books a successful attempt and says what it means for the work.
    fn settle(&mut self, report: &Report) -> Signal;
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
