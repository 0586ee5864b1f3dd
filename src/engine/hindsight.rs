//! What the policy would have decided with other limits, at a step that a loop has taken.

use std::fmt;

use super::outcome::Outcome;
use super::policy::{Limits, Now, Step, step};
use super::tally::Tally;

/// What a loop does next. Two steps that differ only in how long the loop pauses before are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The next iteration begins.
    Iteration,
    /// The iteration is tried again.
    Retry,
    /// The iteration runs once more, because its attempt did not count.
    Again,
    /// The loop waits for a usage limit to pass, for a provider, or for room on the disk.
    Wait,
    /// The loop ends.
    End(Outcome),
}

impl Next {
    /// What the policy decides.
    #[must_use]
    pub fn decided(limits: &Limits, tally: &Tally, now: Now) -> Self {
        match step(limits, tally, now) {
            // Before the first iteration there is nothing to repeat.
            Step::Again if tally.iteration > 0 => Self::Again,
            Step::Begin { .. } | Step::BackOff { .. } | Step::Again => Self::Iteration,
            Step::Retry { .. } => Self::Retry,
            Step::Wait(_) | Step::AwaitRoom(_) => Self::Wait,
            Step::End(outcome) => Self::End(outcome),
        }
    }
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iteration => f.write_str("next iteration"),
            Self::Retry => f.write_str("retry"),
            Self::Again => f.write_str("again"),
            Self::Wait => f.write_str("wait"),
            Self::End(outcome) => write!(f, "stop, {}", outcome.reason()),
        }
    }
}

/// A step that other limits lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// What the loop did by its own limits.
    pub own: Next,
    /// What it would have done by the others.
    pub other: Next,
}

/// Compares what two sets of limits lead to, after the same history.
#[must_use]
pub fn difference(own: &Limits, other: &Limits, tally: &Tally, now: Now) -> Option<Difference> {
    let (own, other) = (Next::decided(own, tally, now), Next::decided(other, tally, now));
    (own != other).then_some(Difference { own, other })
}
