//! What workers, landers, the store and the remote say to each other.

use super::commits::Commit;

/// The right to book the result of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Claim {
    pub(super) task: usize,
    pub(super) number: u64,
    pub(super) nonce: u64,
}

/// A task's commits on their way to the trunk, as the lander reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Landing {
    /// The claim that made them.
    pub(super) claim: Claim,
    /// Where work on them began.
    pub(super) base: Commit,
    pub(super) head: Commit,
    /// How often they were returned.
    pub(super) returned: u32,
}

/// The right to land.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lead {
    pub(super) number: u64,
    /// The process that has it.
    pub(super) holder: u64,
}

/// Why a booking is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    Claim,
    Lead,
}
