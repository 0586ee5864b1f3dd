//! The setup of a worker.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The setup of a worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Worker {
    /// Its command line.
    pub command: Vec<String>,
    /// Its working directory; absolute.
    pub cwd: PathBuf,
    /// Its variables with their values. As for the command line, secrets are replaced by marks.
    pub env: BTreeMap<String, String>,
    /// Variables whose values come from the environment at each start.
    pub env_names: Vec<String>,
    /// Tags to find it by.
    pub tags: Vec<String>,
    /// The work tree that was created for it.
    pub worktree: Option<WorkerTree>,
    /// The name or the socket path of its tmux server.
    pub socket: String,
    /// The name of its tmux session.
    pub session: String,
    /// The user's regular expression for a screen that accepts a prompt, if any.
    pub ready_pattern: Option<String>,
    /// How long it may take to show such a screen, in seconds.
    pub ready_timeout: f64,
    /// Whether to accept a question whether the folder is trusted.
    pub trust: bool,
    /// Whether to look for the done pattern while the agent works, too.
    pub check_done_continuous: bool,
    /// The interval of heartbeats in seconds.
    pub heartbeat: Option<f64>,
    /// The text of a heartbeat.
    pub heartbeat_message: String,
}

impl Worker {
    /// Replaces the texts that may hold secrets: the command line, the values of variables, the text of a heartbeat.
    ///
    /// # Errors
    /// The error of `word`.
    pub fn with_words<E>(self, word: impl Fn(String) -> Result<String, E>) -> Result<Self, E> {
        Ok(Self {
            command: self.command.into_iter().map(&word).collect::<Result<_, E>>()?,
            env: self
                .env
                .into_iter()
                .map(|(name, value)| Ok((name, word(value)?)))
                .collect::<Result<_, E>>()?,
            heartbeat_message: word(self.heartbeat_message)?,
            ..self
        })
    }
}

/// A work tree that was made for a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerTree {
    /// Its absolute path.
    pub path: PathBuf,
    /// The branch that was checked out there.
    pub branch: String,
}
