//! What can go wrong with tmux.

use std::io;
use std::time::Duration;

/// tmux cannot be used, or refused something.
#[derive(Debug, thiserror::Error)]
pub enum TmuxError {
    /// There is none.
    #[error("tmux is not installed: install it ('apt-get install tmux', 'brew install tmux') and try again")]
    Missing,
    /// It lacks what we need.
    #[error(
        "tmux is too old: this is '{found}', and 3.2 or later is needed: install that ('apt-get install tmux', 'brew install tmux')"
    )]
    TooOld {
        /// What it says of itself.
        found: String,
    },
    /// A server does not answer.
    #[error("tmux did not answer to '{command}' within {} s: see what holds its server ('tmux {server} ls')", .limit.as_secs())]
    Silent {
        /// The command.
        command: String,
        /// How long it was waited for.
        limit: Duration,
        /// The server, as options of tmux.
        server: String,
    },
    /// It said no.
    #[error("tmux refused '{command}': {said}: look at 'tmux {server} ls'")]
    Refused {
        /// The command.
        command: String,
        /// What it said.
        said: String,
        /// The server, as options of tmux.
        server: String,
    },
    /// The pane, or the whole server, is not there any more.
    #[error("the tmux pane is gone, or its server is ({0}): start a new one")]
    Gone(String),
    /// The connection to a server was closed.
    #[error("the connection to tmux was closed ({0}): connect again")]
    Closed(String),
    /// What is to be typed is not.
    #[error("cannot type into a tmux pane: {0}")]
    Input(String),
    /// The system refused something.
    #[error("cannot run tmux: {0}: see to that and try again")]
    System(#[from] io::Error),
}

impl TmuxError {
    /// Whether it says that the pane is not there any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone(_))
    }
}

/// How tmux begins to say that what was asked for is not there. Sources: `cmd-find.c`, `client.c`, `cmd-paste-buffer.c`.
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

/// What it means that tmux refused a command.
pub(super) fn refused(command: String, said: &str, server: String) -> TmuxError {
    let said = said.trim().to_owned();
    if GONE.iter().any(|beginning| said.starts_with(beginning)) {
        return TmuxError::Gone(said);
    }
    TmuxError::Refused { command, said, server }
}
