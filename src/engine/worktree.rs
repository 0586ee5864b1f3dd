//! What the engine needs to know about the project's files.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::policy::Rooms;

/// What was committed while a loop ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "LineWork"))]
pub struct WorkDone {
    /// How many were made.
    pub commits: u64,
    /// Lines that went.
    pub deletions: u64,
    /// Files that differ.
    pub files: u64,
    /// The commit that HEAD named before; null: there was none.
    pub from: Option<String>,
    /// Lines that came.
    pub insertions: u64,
}

/// The project's files, looked at from outside.
pub trait Worktree {
    /// The commit that HEAD names.
    fn head(&self) -> Option<String>;

    /// What the file systems have that hold the project and the ralph dir.
    fn rooms(&self) -> Rooms {
        [None; 2]
    }

    /// What was committed since HEAD named `from`; `None` where that is nothing, or cannot be told.
    fn work_since(&self, from: Option<&str>) -> Option<WorkDone>;

    /// An iteration begins: what changes from here on is its doing, as far as its agents do it.
    fn iteration_begins(&mut self);

    /// An agent begins: what was written since the last look was not its doing, and shall not count as a change.
    fn agent_begins(&mut self);

    /// Whether agents have changed anything since the iteration began. `None` when that cannot be told. Expensive: git has to walk
    /// the whole tree.
    fn has_changed(&mut self) -> Option<bool>;

    /// Whether a file was written since then. `None` when that cannot be told. It needs no look before, and passes over files
    /// that were deleted.
    fn is_written_since(&self, time: SystemTime) -> Option<bool>;
}
