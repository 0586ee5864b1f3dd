//! What the engine needs to know about the project's files.

use std::time::SystemTime;

/// The project's files, looked at from outside.
pub trait Worktree {
    /// The commit that HEAD names.
    fn head(&self) -> Option<String>;

    /// An iteration begins: what changes from here on is its doing, as far as its agents do it.
    fn iteration_begins(&mut self);

    /// An agent begins: what was written since the last look was not its doing, and shall not count as a change.
    fn agent_begins(&mut self);

    /// Whether agents have changed anything since the iteration began. `None` when that cannot be told. Dear: git has to walk
    /// the whole tree.
    fn has_changed(&mut self) -> Option<bool>;

    /// Whether a file was written since then. `None` when that cannot be told. It needs no look before, and passes over files
    /// that were deleted.
    fn is_written_since(&self, time: SystemTime) -> Option<bool>;
}
