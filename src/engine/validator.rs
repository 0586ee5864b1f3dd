//! The seam to validators: what proves that an iteration's work is good.

use std::time::Instant;

use super::agent::{Agent, Inspects};
use super::context::Context;
use super::outcome::End;
use super::report::{Report, Signal};
use super::source::Work;
use super::validation::{Base, Validation};
use crate::reply::usage::Usage;

/// What proves that an iteration's work is good.
pub trait Validator {
    /// The loop of this name begins, or goes on: then `base` is that of its beginning. A validator that measures claims
    /// against a commit sets it.
    fn loop_begins(&mut self, _name: &str, _base: &mut Option<Base>) {}

    /// An iteration begins with this work. `is_other`: that of the last one was about something else; then `base` is set to
    /// where work on this began, if a claim of it is measured against that.
    fn work_begins(&mut self, _work: &Work, _is_other: bool, _base: &mut Option<Base>) {}

    /// Whether this attempt's result can be validated.
    fn applies(&self, _report: &Report) -> bool {
        true
    }

    /// Books that the work of an attempt is about to be validated, before any fact or record says so.
    ///
    /// # Errors
    /// When the loop cannot go on.
    fn begin(&mut self, _context: &mut Context<'_>) -> Result<(), End> {
        Ok(())
    }

    /// Validates the work of a successful attempt.
    ///
    /// # Errors
    /// When the loop cannot go on.
    fn validate(&mut self, proof: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End>;

    /// The validator of the files as they are, without an attempt; `None` if only the work of an attempt can be validated.
    fn of_files(&mut self) -> Option<&mut dyn FilesValidator> {
        None
    }
}

/// What proves that the files are good, without an attempt.
pub trait FilesValidator {
    /// Validates them as they are.
    ///
    /// # Errors
    /// When the loop cannot go on.
    fn validate_files(&mut self, context: &mut Context<'_>) -> Result<Verdict, End>;
}

/// How a validation ended.
#[derive(Debug)]
pub enum Verdict {
    /// It has a result.
    Found(Validation),
    /// It was cut off because the loop ends or holds; its cost by then.
    CutOff(Box<Usage>),
    /// Its agent could not work, for a reason that passes with time or ends the loop, as this report says. After a wait it is asked
    /// again.
    Unable(Report, Inspects),
}

/// What is to be proven, and with what.
pub struct Proof<'a> {
    /// The number of the iteration, from 1.
    pub iteration: u64,
    /// The agent's work.
    pub work: &'a Work,
    /// The report of its attempt.
    pub report: &'a Report,
    /// The claim of that report about the work as a whole.
    pub signal: Signal,
    /// Whether what the work is taken from refutes that claim.
    pub is_refuted: bool,
    /// The loop's agent, for a validator that asks one.
    pub agent: &'a mut dyn Agent,
    /// The end of the loop's own time.
    pub deadline: Option<Instant>,
}

impl Proof<'_> {
    /// This proof, for another validator that is asked in turn.
    #[must_use]
    pub fn again(&mut self) -> Proof<'_> {
        Proof { agent: &mut *self.agent, ..*self }
    }

    /// Whether the agent says that its work is done.
    #[must_use]
    pub fn claims(&self) -> bool {
        matches!(self.signal, Signal::Complete | Signal::Done)
    }
}
