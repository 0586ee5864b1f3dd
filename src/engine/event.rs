//! What those who listen to a loop hear: a [`Fact`], when and of which loop, and beside it the count.

use std::time::Duration;

use chrono::{DateTime, Local};
use serde::{Deserialize, Serialize};

use super::fact::Fact;
use super::outcome::Outcome;
use super::stop::Change;
use super::tally::Tally;

/// Which of an agent's two pipes bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// What it says, usually JSON lines.
    Stdout,
    /// What it complains about.
    Stderr,
}

/// Who runs: constant for the life of a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopIdentity {
    /// Unique id of this run, also the run mark of its processes.
    pub run: String,
    /// The loop's name.
    pub name: String,
    /// `plan`, `build` or `prompt`.
    pub mode: String,
    /// The agent's name.
    pub agent: String,
}

/// A fact and when it became one.
#[derive(Debug, Clone, Copy)]
pub struct Stamped<'a> {
    /// Wall-clock time.
    pub at: DateTime<Local>,
    /// Which loop.
    pub identity: &'a LoopIdentity,
    /// The count as it was booked last: at the begin and the end of the loop, of an attempt and of a wait.
    pub tally: &'a Tally,
    /// The fact.
    pub fact: &'a Fact<'a>,
    /// What the engine knows of it besides.
    pub unwritten: Unwritten<'a>,
    /// What came together with it follows at once: what is expensive can wait for the last of them.
    pub goes_on: bool,
}

/// What no line tells of a fact, so that it is not known of a loop that is read from its log.
#[derive(Debug, Clone, Copy)]
pub enum Unwritten<'a> {
    /// Nothing.
    Nothing,
    /// The outcome of the loop: some have the same words.
    Outcome(Outcome),
    /// The limit that an attempt ran or kept silent beyond.
    Exceeded(Duration),
    /// The change of its limits, or of how its worker is watched.
    Change(&'a Change),
}

impl<'a> Stamped<'a> {
    /// A fact of which no more is known than its line tells, and the count.
    #[must_use]
    pub fn new(
        at: DateTime<Local>,
        identity: &'a LoopIdentity,
        tally: &'a Tally,
        fact: &'a Fact<'a>,
    ) -> Self {
        Self { at, identity, tally, fact, unwritten: Unwritten::Nothing, goes_on: false }
    }

    /// The outcome of a loop that is over; `None` for any other fact, and for an end that only another version knows.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        match (self.unwritten, self.fact) {
            (Unwritten::Outcome(outcome), _) => Some(outcome),
            (_, Fact::LoopEnded(ended)) => ended.outcome(),
            _ => None,
        }
    }

    /// The limit that an attempt ran or kept silent beyond, or how long it took where that is not known.
    #[must_use]
    pub fn exceeded(&self) -> Duration {
        match (self.unwritten, self.fact) {
            (Unwritten::Exceeded(limit), _) => limit,
            (_, Fact::AttemptEnded(ended)) => ended.duration(),
            _ => Duration::ZERO,
        }
    }
}
