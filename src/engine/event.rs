//! What listeners of a loop get: a [`Fact`], its time and loop, and the count beside it.

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
    /// Its standard output, usually JSON lines.
    Stdout,
    /// Its standard error.
    Stderr,
}

/// The identity of a loop: constant for its life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopIdentity {
    /// Unique id of this run, also the run mark of its processes.
    pub run: String,
    /// The loop's name.
    pub name: String,
    /// What it runs: `plan`, `build`, `prompt`, `run`, `tasks`, `feature` or `spawn`.
    pub mode: String,
    /// The agent's name.
    pub agent: String,
}

/// A fact with its time and its loop.
#[derive(Debug, Clone, Copy)]
pub struct Stamped<'a> {
    /// Wall-clock time.
    pub at: DateTime<Local>,
    /// The loop.
    pub identity: &'a LoopIdentity,
    /// The count as it was last booked: at the start and the end of the loop, of an attempt and of a wait.
    pub tally: &'a Tally,
    /// The fact.
    pub fact: &'a Fact<'a>,
    /// What the engine knows of it besides its line.
    pub unwritten: Unwritten<'a>,
    /// Whether another fact follows at once: expensive work can wait for the last one.
    pub goes_on: bool,
}

/// What the line of a fact does not have, so that it is unknown for a loop that is read from its log.
#[derive(Debug, Clone, Copy)]
pub enum Unwritten<'a> {
    /// Nothing.
    Nothing,
    /// The outcome of the loop: several have the same words.
    Outcome(Outcome),
    /// The limit that an attempt exceeded, by its time or its silence.
    Exceeded(Duration),
    /// The change of its limits, or of how its worker is watched.
    Change(&'a Change),
}

impl<'a> Stamped<'a> {
    /// A fact as its line has it, and the count.
    #[must_use]
    pub fn new(
        at: DateTime<Local>,
        identity: &'a LoopIdentity,
        tally: &'a Tally,
        fact: &'a Fact<'a>,
    ) -> Self {
        Self { at, identity, tally, fact, unwritten: Unwritten::Nothing, goes_on: false }
    }

    /// The outcome of a loop that is over; `None` for any other fact, and for an end of another version.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        match (self.unwritten, self.fact) {
            (Unwritten::Outcome(outcome), _) => Some(outcome),
            (_, Fact::LoopEnded(ended)) => ended.outcome(),
            _ => None,
        }
    }

    /// The limit that an attempt exceeded, by its time or its silence; where it is unknown, how long the attempt took.
    #[must_use]
    pub fn exceeded(&self) -> Duration {
        match (self.unwritten, self.fact) {
            (Unwritten::Exceeded(limit), _) => limit,
            (_, Fact::AttemptEnded(ended)) => ended.duration(),
            _ => Duration::ZERO,
        }
    }
}
