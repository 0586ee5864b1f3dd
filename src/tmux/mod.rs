//! A tmux server of our own, and the panes in it that belong to us.
//!
//! [`server`] runs the short commands of tmux, [`window`] opens and closes panes, [`screen`] looks at them, [`paste`] types into
//! them, [`control`] hears of them without asking. Whatever is done to a pane is done by its id, and only in the server that
//! it was opened in: tmux finds names by their beginning, and counts ids from 0 again in each server.

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

/// Whoever has tmux run commands: a short process for each call, or a connection.
pub trait Asks {
    /// Has these commands run, one right after the other, up to the first that is refused; what they answered, line by line.
    ///
    /// # Errors
    /// If one is refused, or there is no answer.
    fn ask(&self, commands: &[Words]) -> Result<Vec<String>, TmuxError>;
}

pub use words::Words;
