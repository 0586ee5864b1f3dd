//! What the engine needs to know about the project's files.

/// The project's files, looked at from outside.
pub trait Worktree {
    /// The commit that HEAD names.
    fn head(&self) -> Option<String>;

    /// An agent begins: what was written since the last look was not its doing, and shall not count as a change.
    fn agent_begins(&mut self);

    /// A number for how the files look now; another one than at an earlier look means that they were changed in between.
    /// `None` when that cannot be told. Dear: git has to walk the whole tree.
    fn look(&mut self) -> Option<u64>;
}
