//! Where a value came from.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The table.
    Default,
    /// The user's `ralph.toml`.
    UserToml {
        /// The file.
        path: PathBuf,
        /// The line of its key.
        line: usize,
    },
    /// The project's `ralph.toml`.
    ProjectToml {
        /// The file.
        path: PathBuf,
        /// The line of its key.
        line: usize,
    },
    /// The shell-style config.
    ShellConfig {
        /// The file.
        path: PathBuf,
        /// The line of the last assignment.
        line: usize,
    },
    /// A variable of the environment.
    Env(&'static str),
    /// A flag, with its dashes.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::UserToml { path, line }
            | Self::ProjectToml { path, line }
            | Self::ShellConfig { path, line } => {
                write!(f, "{} line {line}", path.display())
            }
            Self::Env(name) => write!(f, "{name} in the environment"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}
