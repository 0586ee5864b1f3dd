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
/// What takes time listens to the context and gives up when the loop is asked to stop. What has to be renewed while others
/// are at work, such as a claim, is put into the context, see [`Context::renew`].
pub trait Source {
    /// The work of iteration `iteration` (from 1), read afresh, with what is `given` to its prompt. It may be asked for twice
    /// and answers the same work then, as far as that is still there. When the loop is asked to stop meanwhile, nobody looks
    /// at the answer, and it is released.
    ///
    /// # Errors
    /// When there is nothing to go on with: the loop ends.
    fn next(&mut self, iteration: u64, given: &Given, context: &mut Context<'_>) -> Result<Work, End>;

    /// The file that prompts come from; absolute. `None` when there is none.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Goes by what was changed, from the next [`next`](Self::next) on; answers whether that is something else than before.
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

    /// What of the work is left to do, where an agent says that nothing is: what is wrong in the first line, and below it what
    /// the next agent has to know. `None`: nothing speaks against that claim.
    fn refutes(&self) -> Option<String> {
        None
    }

    /// Books an attempt that is over, whatever came of it, after it was validated and told. One that failed may be followed by
    /// another one at the same work, without [`next`](Self::next).
    ///
    /// # Errors
    /// When the loop cannot go on.
    fn book(&mut self, _booked: &Booked<'_>, _context: &mut Context<'_>) -> Result<(), End> {
        Ok(())
    }

    /// Takes back work that was handed out and that no attempt was made at.
    ///
    /// # Errors
    /// When the loop cannot go on.
    fn release(&mut self, _context: &mut Context<'_>) -> Result<(), End> {
        Ok(())
    }

    /// What the user can do about an outcome, in one line, where this source knows better than the outcome's own words.
    fn advice(&self, _outcome: Outcome) -> Option<String> {
        None
    }

    /// What a person who has pressed Ctrl+C is asked when the attempt is over; an answer lets the loop go on. `None`: nothing.
    fn question(&self) -> Option<String> {
        None
    }

    /// What they have answered; it goes into the next prompt as well.
    ///
    /// # Errors
    /// When the loop cannot go on.
    fn hear(&mut self, _answer: &str) -> Result<(), End> {
        Ok(())
    }

    /// Does what is left to do for the work as a whole when the loop comes to this `end`; how that goes may lead to another
    /// one.
    fn close(&mut self, end: End, _tally: &Tally, _context: &mut Context<'_>) -> End {
        end
    }
}

/// What one iteration is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Work {
    /// The prompt.
    pub prompt: String,
    /// By whom, and how.
    pub how: How,
    /// Which of many tasks it is; `None` where the work is one whole.
    pub about: Option<String>,
}

/// An attempt that is over.
#[derive(Debug, Clone, Copy)]
pub struct Booked<'a> {
    /// The number of its iteration, from 1.
    pub iteration: u64,
    /// What it left. One that the loop had to give up says so by its status.
    pub report: &'a Report,
    /// What it means for the work as a whole, after validation.
    pub signal: Signal,
    /// What the validation found; `None` where there was none, or it was cut off.
    pub proof: Option<&'a Validation>,
    /// Whether anything changed; `None` when nobody looked.
    pub changed: Option<bool>,
}
