//! Our own tmux server, and our panes in it.
//!
//! [`server`] runs short tmux commands, [`window`] opens and closes panes, [`screen`] reads them, [`paste`] types
//! into them, [`control`] reports their events. Panes are always addressed by id, and only in the server in which
//! they were opened: tmux matches names by prefix, and counts ids from 0 again in each server.

pub mod control;
pub mod error;
pub mod paste;
pub mod screen;
pub mod server;
mod turn;
pub mod version;
pub mod window;
mod words;

pub use control::Control;
pub use error::TmuxError;
pub use screen::Screen;
pub use server::Server;
pub use window::{Opening, Window};

/// A way to run tmux commands: a short process for each call, or a connection.
pub trait Asks {
    /// Runs these commands in order, up to the first that is refused; returns their output, line by line.
    ///
    /// # Errors
    /// If one is refused, or there is no answer.
    fn ask(&self, commands: &[Words]) -> Result<Vec<String>, TmuxError>;
}

pub use words::Words;
