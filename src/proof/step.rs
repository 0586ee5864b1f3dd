//! The steps of a proof, each of which may be the last.

use std::sync::atomic::AtomicBool;

use super::judgement::Unproven;
use super::tree::TreeError;
use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::engine::stop::Urgency;
use crate::engine::validator::Verdict;
use crate::side_command::beside;

/// What came of a step.
pub(super) enum Step<T> {
    /// The next one follows.
    Goes(T),
    /// It was the last.
    Ends(Box<Verdict>),
}

/// Takes the result of a step, or ends with its verdict.
macro_rules! goes {
    ($step:expr) => {
        match $step {
            Step::Goes(found) => found,
            Step::Ends(verdict) => return Ok(Step::Ends(verdict)),
        }
    };
}
pub(super) use goes;

/// Does something with the tree while the loop listens. Where it cannot be made, nothing is proven.
pub(super) fn with_tree<T: Send + 'static>(
    context: &mut Context<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<Step<T>, TreeError> + Send + 'static,
) -> Result<Step<T>, End> {
    let done = beside(Urgency::Now, context, work)?;
    Ok(match done.map_err(|error| TreeError::Thread(error.to_string())).flatten() {
        Ok(step) => step,
        Err(TreeError::Cancelled) => ends(Verdict::CutOff(Box::default())),
        Err(error) => unproven(&Unproven::NoTree(error.to_string())),
    })
}

pub(super) fn ends<T>(verdict: Verdict) -> Step<T> {
    Step::Ends(Box::new(verdict))
}

pub(super) fn unproven<T>(why: &Unproven) -> Step<T> {
    ends(Verdict::Found(why.validation()))
}
