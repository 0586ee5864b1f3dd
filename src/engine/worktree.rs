//! What the engine needs to know about the project's files.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::policy::Rooms;

/// What was committed while a loop ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "LineWork"))]
pub struct WorkDone {
    /// The number of commits.
    pub commits: u64,
    /// Removed lines.
    pub deletions: u64,
    /// Files that differ.
    pub files: u64,
    /// The commit that HEAD named before; null: there was none.
    pub from: Option<String>,
    /// Added lines.
    pub insertions: u64,
}

/// The state of the project's files.
pub trait Worktree {
    /// The commit that HEAD names.
    fn head(&self) -> Option<String>;

    /// Why the repository has lost the commit that HEAD named before, and what to do; `None` if it has that commit, or git
    /// cannot tell.
    fn lost(&self, _head: &str) -> Option<String> {
        None
    }

    /// Free space on the file systems of the project and of the ralph dir.
    fn rooms(&self) -> Rooms {
        [None; 2]
    }

    /// What was committed since HEAD named `from`; `None` if that is nothing, or unknown.
    fn work_since(&self, from: Option<&str>) -> Option<WorkDone>;

    /// An iteration begins: changes from here on by its agents are its own.
    fn iteration_begins(&mut self);

    /// An agent begins: what was written since the last check was not written by an agent, and does not count as a change.
    fn agent_begins(&mut self);

    /// Whether agents have changed anything since the iteration began; `None` if that is unknown. Expensive: git has to walk the
    /// whole tree.
    fn has_changed(&mut self) -> Option<bool>;

    /// An attempt has ended: what its walls have kept git from clearing up is cleared up.
    fn clear_up(&mut self) {}

    /// Whether a file was written since then; `None` if that is unknown. It needs no earlier check, and ignores deleted files.
    fn is_written_since(&self, time: SystemTime) -> Option<bool>;
}
