//! Errors of tmux.

use std::io;
use std::time::Duration;

/// tmux cannot be used, or refused a command.
#[derive(Debug, thiserror::Error)]
pub enum TmuxError {
    /// It is not installed.
    #[error("tmux is not installed: install it ('apt-get install tmux', 'brew install tmux') and try again")]
    Missing,
    /// It is too old.
    #[error(
        "tmux is too old: this is '{found}', and 3.2 or later is needed: install that ('apt-get install tmux', 'brew install tmux')"
    )]
    TooOld {
        /// The version that it reports.
        found: String,
    },
    /// A server does not answer.
    #[error("tmux did not answer to '{command}' within {} s: see what holds its server ('tmux {server} ls')", .limit.as_secs())]
    Silent {
        /// The command.
        command: String,
        /// How long it was awaited.
        limit: Duration,
        /// The server, as options of tmux.
        server: String,
    },
    /// It refused a command.
    #[error("tmux refused '{command}': {said}: look at 'tmux {server} ls'")]
    Refused {
        /// The command.
        command: String,
        /// Its message.
        said: String,
        /// The server, as options of tmux.
        server: String,
    },
    /// The pane, or the whole server, does not exist any more.
    #[error("the tmux pane is gone, or its server is ({0}): start a new one")]
    Gone(String),
    /// The connection to a server was closed.
    #[error("the connection to tmux was closed ({0}): connect again")]
    Closed(String),
    /// The text cannot be typed.
    #[error("cannot type into a tmux pane: {0}")]
    Input(String),
    /// A system error.
    #[error("cannot run tmux: {0}: see to that and try again")]
    System(#[from] io::Error),
}

impl TmuxError {
    /// Whether it means that the pane does not exist any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone(_))
    }
}

/// How tmux's messages about missing targets begin. Sources: `cmd-find.c`, `client.c`, `cmd-paste-buffer.c`.
const GONE: [&str; 9] = [
    "can't find pane",
    "can't find window",
    "can't find session",
    "no current target",
    "no server running",
    "error connecting",
    "server exited",
    "lost server",
    "target pane has exited",
];

/// The error for a refused command.
pub(super) fn refused(command: String, said: &str, server: String) -> TmuxError {
    let said = said.trim().to_owned();
    if GONE.iter().any(|beginning| said.starts_with(beginning)) {
        return TmuxError::Gone(said);
    }
    TmuxError::Refused { command, said, server }
}
