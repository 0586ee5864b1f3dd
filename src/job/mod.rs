//! From settings to a running loop: the steps that every loop verb has in common.
//!
//! A verb opens its [`workspace`], has everything checked by a [`preflight`], makes its source, and hands all of it to
//! [`ready`], which opens the records and starts the engine.

pub(crate) mod agent_choice;
pub(crate) mod detached;
pub(crate) mod launch;
pub(crate) mod preflight;
pub(crate) mod ready;
pub(crate) mod resume;
mod secrets;
pub(crate) mod signals;
pub(crate) mod terminal;
mod tripwire;
pub(crate) mod variables;
pub(crate) mod workspace;
mod worktree;

use crate::engine::outcome::End;

/// A refusal with an exit code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    /// The process exit code.
    pub(crate) code: u8,
    /// The message: what, where, and what to do.
    pub(crate) message: String,
}

impl From<End> for Refused {
    /// A prompt that would end the loop at once is refused before it starts.
    fn from(end: End) -> Self {
        let message = end.detail.unwrap_or_else(|| end.outcome.reason().to_owned());
        Self { code: end.outcome.code(), message }
    }
}
