//! What a worker is set up with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a worker is set up with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Worker {
    /// Its command line.
    pub command: Vec<String>,
    /// Where that runs; absolute.
    pub cwd: PathBuf,
    /// Variables that it gets, with their values; as they are kept, with marks in the place of secrets, like the command line.
    pub env: BTreeMap<String, String>,
    /// Variables whose values are taken anew each time from whoever starts it.
    pub env_names: Vec<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// The work tree that was made for it.
    pub worktree: Option<WorkerTree>,
    /// The tmux server, by the name or the path of its socket.
    pub socket: String,
    /// The name of its session there.
    pub session: String,
    /// The regular expression of a screen that takes a prompt, where its user has given one.
    pub ready_pattern: Option<String>,
    /// How long it may take to show such a screen, in seconds.
    pub ready_timeout: f64,
    /// The folder that it asks about may be trusted.
    pub trust: bool,
    /// The done pattern is looked for while the agent works, too.
    pub check_done_continuous: bool,
    /// How often it is nudged, in seconds.
    pub heartbeat: Option<f64>,
    /// What it is nudged with.
    pub heartbeat_message: String,
}

impl Worker {
    /// With other words in the place of those that may hold secrets: its command line, the values of its variables, and
    /// what it is nudged with.
    ///
    /// # Errors
    /// That of `word`.
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
    /// Its folder; absolute.
    pub path: PathBuf,
    /// The branch that was checked out there.
    pub branch: String,
}
