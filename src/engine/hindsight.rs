//! What the policy would have decided with other limits, at a step of a loop.

use std::fmt;

use super::outcome::Outcome;
use super::policy::{Limits, Now, Step, step};
use super::tally::Tally;

/// The next step of a loop, without the length of a pause before it.
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

    /// Whether a loop can take that step when the policy decides this one.
    #[must_use]
    pub fn explains(self, taken: Self, tally: &Tally) -> bool {
        match (taken, self) {
            // Its work, an agent, a record or its closing has led to another end.
            (Self::End(taken), _) if !taken.is_by_limits() => true,
            (Self::End(taken), Self::End(decided)) => decided.word() == taken.word(),
            // It waits for a provider before it begins.
            (Self::Wait, Self::Iteration) => tally.outage().is_some(),
            (taken, decided) => taken == decided,
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

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindsight {
    /// The other limits lead to the same step.
    Same,
    /// The other limits lead to this step.
    Other(Next),
    /// The loop's own limits do not lead to the step that it took, so that other limits cannot be compared.
    Unexplained,
}

/// Compares the step that a loop took with the one that other limits lead to, after the same history.
#[must_use]
pub fn compare(taken: Next, own: &Limits, other: &Limits, tally: &Tally, now: Now) -> Hindsight {
    let decided = Next::decided(own, tally, now);
    let other = Next::decided(other, tally, now);
    if !decided.explains(taken, tally) {
        Hindsight::Unexplained
    } else if other == decided {
        Hindsight::Same
    } else {
        Hindsight::Other(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_end_by_the_limits_needs_the_policy() {
        let tally = Tally::default();
        for (decided, taken, is_explained) in [
            (Next::End(Outcome::Idle), Next::End(Outcome::Complete), true),
            (Next::Iteration, Next::End(Outcome::Complete), true),
            (Next::Iteration, Next::End(Outcome::MaxIterations), false),
            (Next::End(Outcome::Idle), Next::End(Outcome::MaxIterations), false),
            (Next::End(Outcome::Idle), Next::Iteration, false),
            (Next::Iteration, Next::Retry, false),
        ] {
            assert_eq!(decided.explains(taken, &tally), is_explained, "{decided:?}, {taken:?}");
        }
    }
}
