//! The seam to a person at a terminal who can be asked while a loop runs.

use super::inbox::Port;

/// A person's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A line, without its newline.
    Line(String),
    /// There will be no answer.
    Gone,
}

/// A person who can be asked.
pub trait Person {
    /// Reads one answer and posts it. Dropping what this returns stops the reading.
    ///
    /// # Errors
    /// When the terminal cannot be read: there is no answer then.
    fn listen(&mut self, port: Port<Answer>) -> std::io::Result<Box<dyn Listening>>;
}

/// An answer is read as long as this exists.
pub trait Listening {}
