//! The seam to validators: what proves that an iteration's work is good.

use std::time::Instant;

use super::agent::Agent;
use super::context::Context;
use super::outcome::End;
use super::report::{Report, Signal};
use super::source::Work;
use super::validation::Validation;
use crate::reply::usage::Usage;

/// What proves that an iteration's work is good.
pub trait Validator {
    /// Whether there is anything to validate in what an attempt has left.
    fn applies(&self, _report: &Report) -> bool {
        true
    }

    /// Books that the work of an attempt is about to be validated, before anything else is told or written of that.
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

    /// What validates the files as they are, whatever attempts have left them so; `None` where only the work of an attempt can be
    /// validated.
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

/// What became of a validation.
#[derive(Debug)]
pub enum Verdict {
    /// It is through.
    Found(Validation),
    /// It was cut off because the loop ends or holds; what it had cost by then.
    CutOff(Box<Usage>),
    /// The agent that it asked could not work, for a reason that passes with time or ends the loop: this is what that left. After
    /// a wait it is asked again.
    Unable(Report),
}

/// What is to be proven, and with what.
pub struct Proof<'a> {
    /// The number of the iteration, from 1.
    pub iteration: u64,
    /// What the agent was to do.
    pub work: &'a Work,
    /// What its attempt left.
    pub report: &'a Report,
    /// What that claims about the work as a whole.
    pub signal: Signal,
    /// The loop's agent, for a validator that asks one.
    pub agent: &'a mut dyn Agent,
    /// When the loop's own time is over.
    pub deadline: Option<Instant>,
}
