//! The seam to sources: where the next prompt comes from and where its result is booked.

use std::path::Path;

use super::agent::How;
use super::context::Context;
use super::outcome::{End, Outcome};
use super::report::{Report, Signal};
use super::stop::Change;
use super::tally::{Given, Tally};
use super::validation::Validation;

/// Where the next prompt comes from and where its result is booked.
///
/// Work that [`next`](Self::next) hands out comes back in one of two ways: each attempt at it is [booked](Self::book), or it is
/// [released](Self::release) without one. An attempt that failed may be repeated with the same work, until the next iteration
/// is asked for or the loop [closes](Self::close).
///
/// A call that takes time listens to the context and gives up when the loop has to stop. What must be renewed while an agent
/// works, such as a claim, is put into the context, see [`Context::renew`].
pub trait Source {
    /// The work of iteration `iteration` (from 1), read afresh, with what is `given` to its prompt. It may be asked for twice and
    /// returns the same work then, as far as it still exists. If a request to stop comes meanwhile, the work is released.
    ///
    /// # Errors
    /// When there is no more work: the loop ends.
    fn next(&mut self, iteration: u64, given: &Given, context: &mut Context<'_>) -> Result<Work, End>;

    /// The file that prompts come from; absolute. `None` when there is none.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Takes a change of the loop, from the next call of [`next`](Self::next) on; returns whether it makes a difference.
    fn change(&mut self, _change: &Change) -> bool {
        false
    }

    /// What a successful attempt means for the work as a whole. Changes nothing.
    fn settle(&self, report: &Report) -> Signal {
        match (report.sigils.complete(), report.sigils.replan()) {
            (true, _) => Signal::Complete,
            (false, true) => Signal::Replan,
            (false, false) => Signal::Continue,
        }
    }

    /// Why an agent's claim that nothing is left is wrong: the reason in the first line, below it what the next agent must know.
    /// `None`: nothing refutes that claim.
    fn refutes(&self) -> Option<String> {
        None
    }

    /// What proves that claim where no validator looks at it and nothing refutes it; `None`: the agent's word.
    fn proves(&self) -> Option<String> {
        None
    }

    /// The loop begins; an earlier process of it has found these tasks [gone](Self::gone).
    fn loop_begins(&mut self, _gone: &[String]) {}

    /// Tasks that are gone from its plan without being done, as of now.
    fn gone(&self) -> Vec<String> {
        Vec::new()
    }

    /// Books an attempt that is over, with any result, after it was validated and passed on. A failed one may be followed by
    /// another attempt at the same work, without [`next`](Self::next).
    ///
    /// # Errors
    /// When the loop cannot go on.
    fn book(&mut self, _booked: &Booked<'_>, _context: &mut Context<'_>) -> Result<(), End> {
        Ok(())
    }

    /// Takes back work that was handed out and that no attempt was made on.
    ///
    /// # Errors
    /// When the loop cannot go on.
    fn release(&mut self, _context: &mut Context<'_>) -> Result<(), End> {
        Ok(())
    }

    /// What the user can do about an outcome, in one line, if this source knows more than the outcome's own words say.
    fn advice(&self, _outcome: Outcome) -> Option<String> {
        None
    }

    /// The question to a person who has pressed Ctrl+C, when the attempt is over; an answer lets the loop go on. `None`: no question.
    ///
    /// # Errors
    /// When the loop cannot go on.
    fn question(&mut self, _context: &mut Context<'_>) -> Result<Option<String>, End> {
        Ok(None)
    }

    /// Takes the person's answer, which goes into the next prompt as well.
    ///
    /// # Errors
    /// When the loop cannot go on.
    fn hear(&mut self, _answer: &str, _context: &mut Context<'_>) -> Result<(), End> {
        Ok(())
    }

    /// Finishes the work as a whole when the loop has this `end`; the result may be another end.
    fn close(&mut self, end: End, _tally: &Tally, _context: &mut Context<'_>) -> End {
        end
    }
}

/// The work of one iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Work {
    /// The prompt.
    pub prompt: String,
    /// By whom, and how.
    pub how: How,
    /// Which of several tasks it is; `None` if the work is one whole.
    pub about: Option<String>,
    /// The commit that a claim of it is measured against; `None`: the one where work on it began.
    pub base: Option<String>,
}

/// An attempt that is over.
#[derive(Debug, Clone, Copy)]
pub struct Booked<'a> {
    /// The number of its iteration, from 1.
    pub iteration: u64,
    /// Its report; the status says if the loop had to give it up.
    pub report: &'a Report,
    /// Its meaning for the work as a whole, after validation.
    pub signal: Signal,
    /// The result of the validation; `None` if there was none, or it was cut off.
    pub proof: Option<&'a Validation>,
    /// Whether anything changed; `None` if that was not checked.
    pub changed: Option<bool>,
}
