//! Starts, supervises and ends programs.
//!
//! Every program of a loop runs under a small *supervisor*: our own executable, started with a hidden verb. It adopts
//! what the program leaves behind, and ends all of it when it is asked to, when the program ends, or when ralph dies.
//! [`supervisor`] is that process, [`supervised`] is ralph's end of the connection. Usually ralph starts it, in its
//! own session, with pipes, and has it run one program after the other ([`pool`]); in a terminal opened by tmux, it
//! is started there for one program that outlives its monitor ([`pane`]). The programs' output comes in through
//! [`mod@pump`]. [`short`] runs ralph's own short commands.

use std::sync::OnceLock;

pub mod actor;
pub mod ancestry;
pub mod capture;
pub mod group;
pub mod ladder;
pub mod launch;
pub mod note;
pub mod pane;
mod pane_folder;
pub mod pool;
pub mod programs;
pub mod pump;
pub mod short;
pub mod supervised;
pub mod supervisor;
pub mod sweep;
pub mod walls;

/// Why the end of a program is unknown.
pub const OUT_OF_SIGHT: &str = "the process that supervises it was killed";

/// Variables that no program below a supervisor gets either.
static WITHHELD: OnceLock<&'static [&'static str]> = OnceLock::new();

/// Keeps these variables of ours from all programs that are started below a supervisor from here on.
pub fn withhold(names: &'static [&'static str]) {
    let _ = WITHHELD.set(names);
}

/// Variables that would make git use another repository than the one in the working directory. No program that we
/// start inherits them.
pub(crate) const REPOSITORY_VARIABLES: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];
