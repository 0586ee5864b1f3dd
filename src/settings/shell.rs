//! Reads the shell-style `config` file without running it.
//!
//! Assignments mean exactly what they mean to `bash` (`tests/it/shell_reader.rs` compares both). Anything that would run code,
//! or that this reader does not know, is an error with its position and a way out: a value is never silently different from
//! the shell's.

mod escape;
mod expand;
mod parse;
mod syntax;
mod word;

use thiserror::Error;

/// One variable that the file set, with its final value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable's name.
    pub name: String,
    /// The value after the last assignment to it.
    pub value: String,
    /// Whether programs started after sourcing the file would see it: the file exported it, or it was in the
    /// environment before.
    pub exported: bool,
    /// Line of the last assignment, counted from 1.
    pub line: usize,
}

/// Why a file cannot be read, and where. The message reads on from a file name: `line 3, column 5: …`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ShellError {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// What is wrong and what to do instead, on one line.
    pub message: String,
}

/// Reads a config file's text. `env` looks up the environment for names the file has not set itself.
///
/// The result holds every variable once, in the order of first assignment. `${NAME:=x}` counts as an assignment
/// also when the value comes from the environment, because then the file asked for that value. `\r\n` ends a line
/// like `\n`.
pub fn parse(source: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Assignment>, ShellError> {
    let source = Source::new(source);
    let statements = parse::statements(&source)?;
    expand::run(&statements, &source, env)
}

type Result<T, E = ShellError> = std::result::Result<T, E>;

/// The text as characters, with what is needed to turn an index into line and column.
struct Source {
    chars: Vec<char>,
    line_starts: Vec<usize>,
}

impl Source {
    fn new(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let chars: Vec<char> = text.replace("\r\n", "\n").chars().collect();
        let after_newlines = chars.iter().enumerate().filter(|(_, c)| **c == '\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(after_newlines).collect();
        Self { chars, line_starts }
    }

    /// The line that holds the character at index `at`, counted from 1.
    fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    fn error(&self, at: usize, message: impl Into<String>) -> ShellError {
        let line = self.line(at);
        ShellError { line, column: at - self.line_starts[line - 1] + 1, message: message.into() }
    }
}

#[cfg(test)]
mod tests;
