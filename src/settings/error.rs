//! Why there are no settings.

use std::path::PathBuf;

use thiserror::Error;

use super::shell;

/// Why there are no settings.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// The config the user named does not exist.
    #[error("config file not found: {}; check the path given with --config", .0.display())]
    NotFound(PathBuf),
    /// A file exists but cannot be read.
    #[error("cannot read {}: {problem}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The shell-style config has something that is not supported.
    #[error("{} {error}", path.display())]
    Shell {
        /// The file.
        path: PathBuf,
        /// What, and where in the file.
        error: shell::ShellError,
    },
    /// A `ralph.toml` is malformed or has unknown keys or wrong types.
    #[error("{} line {line}, column {column}: {problem}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A value that the setting cannot have.
    #[error("{place}: {problem}")]
    Invalid {
        /// The name that the user wrote, and where.
        place: String,
        /// What is wrong and what to do.
        problem: String,
    },
}
