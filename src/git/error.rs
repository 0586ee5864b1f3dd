//! Errors of git calls, and what the user can do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::files::{self, FileError};
use crate::process::OUT_OF_SIGHT;
use crate::process::capture::Ended;
use crate::text::duration;

/// A git operation failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program could not be started, or one of its files could not be read.
    #[error("git, {path}: {reason}: {way_out}", path = .path.display(), way_out = way_out(.reason))]
    Run {
        /// The working directory.
        path: PathBuf,
        /// The system's message.
        reason: io::Error,
    },
    /// The installed git is too old.
    #[error("git {found} is too old for this: install git {}.{} or newer", .oldest.0, .oldest.1)]
    TooOld {
        /// Its version.
        found: String,
        /// The oldest one that will do.
        oldest: (u32, u32),
    },
    /// git ran and refused.
    #[error("git {command}, {path}: {message}: run it there by hand to see more", path = .path.display())]
    Refused {
        /// The subcommand.
        command: String,
        /// The working directory.
        path: PathBuf,
        /// The last line of its output.
        message: String,
    },
    /// git was ended before it finished.
    #[error("git {command}, {path}: {end}: {way_out}", path = .path.display(), way_out = .end.way_out())]
    CutOff {
        /// The subcommand.
        command: String,
        /// The working directory.
        path: PathBuf,
        /// What ended it.
        end: CutOff,
    },
    /// An obstacle that only the user can judge.
    #[error("{what}, {place}: {way_out}")]
    InTheWay {
        /// The obstacle.
        what: String,
        /// The folder, file, branch or key in question.
        place: String,
        /// What the user can do.
        way_out: String,
    },
    /// The repository's `info/exclude` could not be read or created.
    #[error("ignore rules, {path}: {reason}: fix that file, or ignore ralph's files in .gitignore", path = .path.display())]
    Exclude {
        /// The file or folder in question.
        path: PathBuf,
        /// The system's message.
        reason: io::Error,
    },
    /// The repository's `info/exclude` could not be written.
    #[error(transparent)]
    Write(#[from] FileError),
}

impl GitError {
    pub(super) fn in_the_way(
        what: impl Into<String>,
        place: impl std::fmt::Display,
        way_out: impl Into<String>,
    ) -> Self {
        Self::InTheWay { what: what.into(), place: place.to_string(), way_out: way_out.into() }
    }

    /// An error about an unreadable file or folder of git.
    pub(super) fn unreadable(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |reason| Self::Run { path: path.to_path_buf(), reason }
    }

    /// Whether git was ended from outside, which has nothing to do with what it was called for.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        matches!(self, Self::CutOff { end: CutOff::Killed(_) | CutOff::OutOfSight | CutOff::Leaving, .. })
    }

    /// Whether git was ended because the user has asked ralph to exit now.
    #[must_use]
    pub const fn is_leaving(&self) -> bool {
        matches!(self, Self::CutOff { end: CutOff::Leaving, .. })
    }

    pub(super) fn refused(command: &str, path: &Path, message: String) -> Self {
        Self::Refused { command: command.to_owned(), path: path.to_path_buf(), message }
    }
}

/// Why git did not finish, apart from its own and its hooks' errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutOff {
    /// Another process sent this signal.
    Killed(i32),
    /// Its supervisor was killed, and ralph ended the rest.
    OutOfSight,
    /// It exceeded this time limit.
    TimedOut(Duration),
    /// The user has asked ralph to exit now.
    Leaving,
}

impl CutOff {
    /// The exit code of a git that finished, or why it did not finish within `limit`.
    pub(super) fn or_code(end: Ended, limit: Duration) -> Result<i32, Self> {
        match end {
            Ended::Exited(code) => Ok(code),
            Ended::Signaled(signal) => Err(Self::Killed(signal)),
            Ended::OutOfSight => Err(Self::OutOfSight),
            Ended::TimedOut => Err(Self::TimedOut(limit)),
            Ended::Cancelled => Err(Self::Leaving),
        }
    }

    /// What the user can do.
    pub(super) fn way_out(self) -> &'static str {
        match self {
            Self::Killed(_) => {
                "a person or a program did that, or the kernel, out of memory ('dmesg' shows it): fix that and start again"
            }
            Self::TimedOut(_) => "look for a hook or a filter that hangs, and start again",
            Self::OutOfSight | Self::Leaving => "start again",
        }
    }
}

impl fmt::Display for CutOff {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed(signal) => write!(to, "git was killed by signal {signal}"),
            Self::OutOfSight => write!(to, "git was ended, because {OUT_OF_SIGHT}"),
            Self::TimedOut(limit) => {
                write!(to, "git did not end within {} and was ended", duration::format(*limit))
            }
            Self::Leaving => write!(to, "git was ended, because ralph was told to leave now"),
        }
    }
}

/// Why a work tree was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// git does not remove it.
    #[error("git does not remove it ({reason}): look at 'git status' there")]
    Refused {
        /// git's message.
        reason: String,
    },
    /// A file that has to be saved cannot be read.
    #[error("it cannot be saved, {path}: {reason}: fix that first", path = .path.display())]
    Io {
        /// The file or folder in question.
        path: PathBuf,
        /// The system's message.
        reason: io::Error,
    },
    /// Another process works there.
    #[error("something changed while it was being saved: see who works there, and try again")]
    Changed,
}

/// What the user can do if git could not be started.
fn way_out(reason: &io::Error) -> &'static str {
    // Without an OS error number, something other than the program was not found.
    if reason.kind() == io::ErrorKind::NotFound && reason.raw_os_error().is_some() {
        return "make sure that git is installed and on PATH";
    }
    files::way_to_read(reason)
}
