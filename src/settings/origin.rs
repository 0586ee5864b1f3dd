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

impl Origin {
    /// How strong it is: a value of a stronger one counts more.
    #[must_use]
    pub const fn strength(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::UserToml { .. } => 1,
            Self::ProjectToml { .. } => 2,
            Self::ShellConfig { .. } => 3,
            Self::Env(_) => 4,
            Self::Flag(_) => 5,
        }
    }
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
