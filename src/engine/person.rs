//! The seam to a person who can be asked while a loop runs: somebody at a terminal.

use super::inbox::Port;

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This, without its newline.
    Line(String),
    /// Nothing more will come.
    Gone,
}

/// Somebody who can be asked.
pub trait Person {
    /// Reads one answer and posts it. When what this returns is dropped, nobody reads any more.
    ///
    /// # Errors
    /// When nobody can read: there is no answer then.
    fn listen(&mut self, port: Port<Answer>) -> std::io::Result<Box<dyn Listening>>;
}

/// Somebody reads as long as it is there.
pub trait Listening {}
