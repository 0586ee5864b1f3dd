//! Replays the facts of a loop from its events log, each with the tally at that time: for the views that showed them,
//! and for the policy.
//!
//! Facts that no line has are missing: raw bytes, and which time limit an attempt exceeded.

use std::io;
use std::ops::RangeInclusive;

use chrono::{DateTime, Datelike as _, FixedOffset, Local};

use super::event_line::EventLine;
use super::state::State;
use crate::engine::budget::Spent;
use crate::engine::event::{LoopIdentity, Stamped, Unwritten};
use crate::engine::fact::{Fact, WaitReason, Word};
use crate::engine::hindsight::Next;
use crate::engine::outcome::Outcome;
use crate::engine::policy::{Limits, Now};
use crate::engine::report::Signal;
use crate::engine::tally::{Last, Tally};
use crate::platform::identity::ProcessIdentity;
use crate::text::duration::of_seconds;
use crate::text::terminal::message;

/// The years that a loop's clock can show.
const YEARS: RangeInclusive<i32> = 1970..=9999;

/// Reads a line of an events log; `None` if it is torn, of another version, or has an impossible time.
#[must_use]
pub fn read(line: &[u8]) -> Option<EventLine<'_>> {
    let line = EventLine::read(std::str::from_utf8(line).ok()?).ok()?;
    let until = match &line.fact {
        Fact::Waiting { until, .. } => *until,
        _ => line.at,
    };
    [line.at, until].iter().all(|at| YEARS.contains(&at.year())).then_some(line)
}

/// A step that a loop took, and what the policy knew.
#[derive(Debug)]
pub struct Taken<'a> {
    /// The step.
    pub next: Next,
    /// The tally before the step.
    pub tally: &'a Tally,
    /// The time, and how long the loop had run.
    pub now: Now,
}

/// A loop, up to the last line that was read.
#[derive(Debug)]
pub struct Replayed {
    identity: LoopIdentity,
    /// The run id of every line.
    run: String,
    state: State,
    limits: Limits,
    /// Whether a line has told the limits; otherwise they are guessed.
    limits_are_known: bool,
    has_begun: bool,
    /// Whether a retry or a back-off has announced the next attempt.
    is_announced: bool,
    /// A time, and how many seconds the loop had run then.
    ran: (DateTime<FixedOffset>, f64),
    /// The time of the last line, and whether the time since then does not count as the loop's own.
    last: (DateTime<FixedOffset>, bool),
    /// What the other loops of the run had spent at the last line, and until the next one.
    others: [Spent; 2],
}

impl Replayed {
    /// The loop of this line. Its names are made safe for terminals.
    ///
    /// # Errors
    /// If the system does not report this process.
    pub fn of(line: &EventLine<'_>) -> io::Result<Self> {
        let [run, name, mode, agent] =
            [&line.run, &line.name, &line.mode, &line.agent].map(|word| message(word));
        let identity = LoopIdentity { run, name, mode, agent };
        let process = ProcessIdentity::of_self()?;
        Ok(Self {
            state: State::new(&identity, process, line.at.to_utc(), "/".into()),
            identity,
            run: line.run.to_string(),
            limits: Limits::UNKNOWN,
            limits_are_known: false,
            has_begun: false,
            is_announced: false,
            ran: (line.at, 0.0),
            last: (line.at, false),
            others: [Spent::default(); 2],
        })
    }

    /// The identity of the loop.
    #[must_use]
    pub fn identity(&self) -> &LoopIdentity {
        &self.identity
    }

    /// The loop's limits; `None` if no line has them, as from an older ralph.
    #[must_use]
    pub fn limits(&self) -> Option<&Limits> {
        self.limits_are_known.then_some(&self.limits)
    }

    /// What the loop has spent.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.state.tally.spent
    }

    /// Sets what the other loops that share the budget have spent until the next line.
    pub fn others_have_spent(&mut self, spent: Spent) {
        self.others[1] = spent;
    }

    /// The step that the next line reports; `None` if it reports none, or one that no limit has led to.
    #[must_use]
    pub fn taken(&self, line: &EventLine<'_>) -> Option<Taken<'_>> {
        let tally = &self.state.tally;
        if !self.has_begun || tally.in_attempt || line.run != self.run {
            return None;
        }
        // Work before an attempt or an end takes time; a pause or a wait is reported when it begins.
        let mut at = line.at;
        let mut closed_until = None;
        let next = match &line.fact {
            Fact::AttemptStarted { .. } if self.is_announced => return None,
            Fact::AttemptStarted { iteration, retry, .. } => {
                at = self.last.0;
                match (*iteration > tally.iteration, *retry > tally.retries) {
                    (true, _) => Next::Iteration,
                    (false, true) => Next::Retry,
                    (false, false) => Next::Again,
                }
            }
            Fact::Retrying { .. } => Next::Retry,
            Fact::BackingOff { .. } => Next::Iteration,
            Fact::Waiting { reason: Word::Known(reason), until, .. } if reason.is_for_provider() => {
                // Another loop reached the limit.
                let is_of_others =
                    *reason == WaitReason::UsageLimit && !matches!(tally.last, Last::Limited { .. });
                closed_until = is_of_others.then(|| until.to_utc());
                Next::Wait
            }
            Fact::LoopEnded(ended) => {
                at = self.last.0;
                Next::End(ended.outcome().filter(|outcome| !outcome.is_by_people())?)
            }
            _ => return None,
        };
        let running = of_seconds(self.ran.1 + seconds(self.ran.0, at));
        let [mut spent, mut otherwise] = self.others;
        if !matches!(next, Next::End(_)) {
            // The loop may have queued before its begin; after its end it may publish for long.
            std::mem::swap(&mut spent, &mut otherwise);
        }
        let mut now =
            Now { time: at.to_utc(), running, closed_until, spent_by_others: spent, rooms: [None; 2] };
        if !Next::decided(&self.limits, tally, now).explains(next, tally) {
            now.spent_by_others = otherwise;
        }
        Some(Taken { next, tally, now })
    }

    /// Applies the next line, and shows its fact. A line of another run is skipped.
    pub fn take(&mut self, line: &EventLine<'_>, see: &mut dyn FnMut(&Stamped<'_>)) {
        if line.run != self.run {
            return;
        }
        let outcome = self.outcome(line);
        self.state.apply(line.at.to_utc(), &line.fact);
        self.book(line);
        let unknown;
        let (fact, unwritten) = match (&line.fact, outcome) {
            (Fact::LoopEnded(ended), None) => {
                let why = &ended.exit_reason;
                unknown = format!("the loop ended: {why}, which this version of ralph does not know");
                (&Fact::notice(&unknown), Unwritten::Nothing)
            }
            (fact, outcome) => (fact, outcome.map_or(Unwritten::Nothing, Unwritten::Outcome)),
        };
        let at = line.at.with_timezone(&Local);
        see(&Stamped { unwritten, ..Stamped::new(at, &self.identity, &self.state.tally, fact) });
    }

    /// How the loop ended, if this line says so. Some outcomes share their words: the limits tell them apart.
    fn outcome(&self, line: &EventLine<'_>) -> Option<Outcome> {
        let Fact::LoopEnded(ended) = &line.fact else { return None };
        let recorded = ended.outcome();
        let decided = self.taken(line).map(|taken| Next::decided(&self.limits, taken.tally, taken.now));
        match (decided, recorded) {
            (Some(Next::End(decided)), Some(recorded)) if decided.has_words_of(recorded) => Some(decided),
            (_, Some(Outcome::Complete)) => Some(self.complete()),
            _ => recorded,
        }
    }

    /// How a complete loop ended: an agent has claimed completion, or the source had no more work.
    fn complete(&self) -> Outcome {
        let State { tally, at_task, .. } = &self.state;
        match tally.last {
            Last::Settled(Signal::Complete) => Outcome::Complete,
            Last::Settled(_) if at_task.is_none() => Outcome::Written,
            _ => Outcome::AllDone,
        }
    }

    /// Keeps what the next step depends on and the state does not have.
    fn book(&mut self, line: &EventLine<'_>) {
        let (before, stood_still) = self.last;
        if stood_still {
            self.ran.0 = self.ran.0.checked_add_signed(line.at - before).unwrap_or(line.at);
        }
        self.others[0] = self.others[1];
        self.last = (line.at, matches!(line.fact, Fact::Queued | Fact::Question { .. }));
        match &line.fact {
            Fact::LoopStarted { limits, max_iterations, max_retries, .. } => {
                self.has_begun = true;
                self.is_announced = false;
                self.limits_are_known = limits.is_some();
                let limits = limits.as_deref().map_or(Limits::UNKNOWN, Limits::from);
                let (max_iterations, max_retries) = (*max_iterations, *max_retries);
                self.limits = Limits { max_iterations, max_retries, ..limits };
                self.ran = (line.at, self.state.tally.elapsed_seconds);
            }
            Fact::LimitsChanged { max_iterations } => self.limits.max_iterations = *max_iterations,
            Fact::AttemptEnded(ended) => {
                let elapsed = ended.elapsed_s.unwrap_or_else(|| self.ran.1 + seconds(self.ran.0, line.at));
                self.ran = (line.at, elapsed);
            }
            Fact::Retrying { .. } | Fact::BackingOff { .. } => self.is_announced = true,
            Fact::AttemptStarted { .. } | Fact::Paused | Fact::Waiting { .. } => self.is_announced = false,
            _ => {}
        }
    }
}

/// The time between two moments in seconds; 0 if the clock was set back.
fn seconds(from: DateTime<FixedOffset>, to: DateTime<FixedOffset>) -> f64 {
    (to - from).to_std().unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
pub(super) mod tests;
