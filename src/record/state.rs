//! `state.toml`: where a loop stands, true at every step.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::RecordError;
use super::atomic::{self, Durability};
use crate::engine::event::{Event, Stamped};
use crate::engine::outcome::Status;
use crate::engine::policy::Tally;
use crate::process::identity::Identity;

/// The version of the format.
pub const VERSION: u32 = 1;

/// The state file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct State {
    /// Version of the format.
    pub version: u32,
    /// Unique id of the run.
    pub run: String,
    /// The loop's name.
    pub name: String,
    /// `plan`, `build` or `prompt`.
    pub mode: String,
    /// The agent's name.
    pub agent: String,
    /// Whether the loop is at work (also while it waits).
    pub active: bool,
    /// Where it stands. Only as true as `process` is alive.
    pub status: Status,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_reason: Option<String>,
    /// The process exit code it ended with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When the latest attempt began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_iteration_at: Option<DateTime<Utc>>,
    /// Until when it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_until: Option<DateTime<Utc>>,
    /// How many iterations may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    /// The command line it was started with.
    pub argv: Vec<String>,
    /// Where it was started.
    pub cwd: PathBuf,
    /// Which process it is.
    pub process: Identity,
    /// What happened so far.
    pub tally: Tally,
}

/// Keeps the state file true.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    state: State,
}

impl StateFile {
    /// Nothing is written before the loop starts.
    #[must_use]
    pub fn new(path: &Path, state: State) -> Self {
        Self { path: path.to_owned(), state }
    }

    /// Takes one event.
    pub fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), RecordError> {
        let state = &mut self.state;
        // What must survive a power cut is synchronised; the steps between come often and need not.
        let durability = match stamped.event {
            Event::LoopStarted { tally, limits, .. } => {
                state.tally = tally.clone();
                state.max_iterations = limits.max_iterations;
                Durability::Synced
            }
            Event::AttemptStarted { tally } => {
                state.tally = tally.clone();
                state.status = Status::Running;
                state.waiting_until = None;
                state.last_iteration_at = Some(stamped.at.to_utc());
                Durability::Atomic
            }
            Event::AttemptEnded { tally, .. } => {
                state.tally = tally.clone();
                Durability::Atomic
            }
            Event::Waiting { until, tally } => {
                state.tally = tally.clone();
                state.status = Status::Waiting;
                state.waiting_until = Some(until);
                Durability::Synced
            }
            Event::LoopEnded { outcome, tally, .. } => {
                state.tally = tally.clone();
                state.active = false;
                state.status = outcome.status();
                state.waiting_until = None;
                state.exit_reason = Some(outcome.word().to_owned());
                state.exit_code = Some(outcome.code());
                Durability::Synced
            }
            _ => return Ok(()),
        };
        let text = toml::to_string(state)
            .map_err(|error| RecordError { path: self.path.clone(), reason: std::io::Error::other(error) })?;
        atomic::write(&self.path, text.as_bytes(), durability)
    }
}
