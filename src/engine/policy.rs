//! The pure function from what happened so far to the next step.
//!
//! [`Tally`] is the fold over everything that matters for that decision and for `status`; its serialised form is
//! the heart of the state file. Nothing here looks at a clock, a file or a process.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::budget::{Budget, Spent, Used};
use super::outcome::Outcome;
use super::report::Signal;
use super::tally::{Last, Tally, may_retry, named_reset};
use crate::files::room::{Floor, Room, Shortage};
use crate::reply::usage::Class;
use crate::text::bytes;
use crate::text::pauses::Pauses;

/// The longest pause while an agent does not say when its usage limit ends, in seconds.
const MAX_BLIND_PAUSE: u64 = 60;
/// The longest pause after failed iterations of a worker.
const MAX_FAILURE_PAUSE: Duration = Duration::from_mins(5);
/// The first pause while a provider is overloaded or cannot be reached, where the user has chosen none; each is three times as
/// long as the one before.
pub(crate) const OUTAGE_PAUSE: Duration = Duration::from_secs(15);
/// The longest of them.
const MAX_OUTAGE_PAUSE: Duration = Duration::from_mins(15);

/// What a loop may use up, and what ends it.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Iterations that may begin; `None` for no limit.
    pub max_iterations: Option<u64>,
    /// How often one iteration may be tried again after its first attempt.
    pub max_retries: u32,
    /// The pauses before retries of an iteration.
    pub retry_pauses: Pauses,
    /// The first pause for a provider that is overloaded or cannot be reached.
    pub outage_pause: Duration,
    /// The pause after an iteration that failed for good; it doubles with every further one in a row. `None` for no pause.
    pub failure_pause: Option<Duration>,
    /// What an iteration that failed for good means for the loop.
    pub on_failure: OnFailure,
    /// The loop's outcome when such an iteration ends it.
    pub failed_end: Outcome,
    /// Whether a loop whose last iteration failed has failed when it reaches a limit.
    pub last_counts: bool,
    /// The loop ends when this many iterations in a row have failed for good.
    pub breaker: Option<u64>,
    /// The loop's outcome in that case.
    pub breaker_end: Outcome,
    /// The loop ends when this many iterations in a row have changed nothing.
    pub idle: Option<u64>,
    /// No attempt may begin when any of these limits is reached.
    pub budget: Budget,
    /// The longest time that is waited in a row for a usage limit to pass, or for a provider.
    pub max_limit_wait: Duration,
    /// How much of a file system must be free before an attempt.
    pub free_space_floor: Floor,
}

impl Limits {
    /// The pause after this many failed iterations in a row; `None` for no pause.
    #[must_use]
    pub fn pause_after(&self, failures: u64) -> Option<Duration> {
        let before = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.failure_pause
            .map(|first| first.saturating_mul(2_u32.saturating_pow(before)).min(MAX_FAILURE_PAUSE))
    }
}

#[cfg(test)]
impl Limits {
    /// For tests: ten iterations, three retries, six hours of patience; nothing else is limited.
    pub(crate) const EXAMPLE: Self = Self {
        max_iterations: Some(10),
        max_retries: 3,
        on_failure: OnFailure::End,
        max_limit_wait: Duration::from_hours(6),
        free_space_floor: Floor::USUAL,
        ..Self::UNKNOWN
    };
}

/// What an iteration that failed for good means for the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The loop ends.
    End,
    /// The loop goes on.
    Count,
}

/// The current situation, as far as the policy needs it.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// The wall clock.
    pub time: DateTime<Utc>,
    /// How long the loop has run, in all its processes.
    pub running: Duration,
    /// Until when the agent's usage limit is known to last; any of the loops may have met it.
    pub closed_until: Option<DateTime<Utc>>,
    /// What the other loops with the same budget have spent.
    pub spent_by_others: Spent,
    /// Free space on the file systems that the loop writes to.
    pub rooms: Rooms,
}

/// Free space on the file systems of the project and of the ralph dir; `None` where it is unknown.
pub type Rooms = [Option<Room>; 2];

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Begin the next iteration with a new prompt.
    Begin {
        /// How long to wait before, because a provider was overloaded or not to be reached.
        pause: Duration,
    },
    /// Begin the next iteration after a pause, because the latest one has failed.
    BackOff {
        /// How long to pause first.
        pause: Duration,
    },
    /// Try the current iteration again with the same prompt, after a pause.
    Retry {
        /// The number of this retry, from 1.
        retry: u32,
        /// How long to wait first, without jitter.
        pause: Duration,
    },
    /// Run the current iteration again; the attempt before did not count.
    Again,
    /// Wait until then for a usage limit to pass or for a provider, then decide again.
    Wait(DateTime<Utc>),
    /// Wait until the disk has space again, then decide again.
    AwaitRoom(Shortage),
    /// End the loop.
    End(Outcome),
}

/// Decides the next step.
#[must_use]
pub fn step(limits: &Limits, tally: &Tally, now: Now) -> Step {
    match (by_itself(limits, tally, now), now.closed_until) {
        // Another loop has met the limit; an attempt would only meet it again.
        (Step::Begin { .. } | Step::BackOff { .. } | Step::Retry { .. } | Step::Again, Some(until))
            if until > now.time =>
        {
            wait(limits, tally, now.time, until).unwrap_or(Step::End(Outcome::LimitTooFar))
        }
        (step @ (Step::Begin { .. } | Step::BackOff { .. } | Step::Retry { .. } | Step::Again), _) => {
            shortage(limits, now.rooms).map_or(step, Step::AwaitRoom)
        }
        (step, _) => step,
    }
}

/// The disk space that an attempt would lack; of two file systems, on the one that lacks more.
pub(super) fn shortage(limits: &Limits, rooms: Rooms) -> Option<Shortage> {
    let lacks = rooms.into_iter().flatten().filter_map(|room| limits.free_space_floor.lacks(room));
    lacks.max_by_key(|lack| lack.wanted - lack.free)
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (free, wanted) = (bytes::short(self.free), bytes::short(self.wanted));
        write!(f, "only {free} are free on the disk, {wanted} have to be")
    }
}

/// The next step by what this loop alone knows.
fn by_itself(limits: &Limits, tally: &Tally, now: Now) -> Step {
    match tally.last {
        Last::Settled(Signal::Complete) => Step::End(Outcome::Complete),
        Last::Settled(Signal::Done) => Step::End(Outcome::DonePattern),
        Last::Settled(Signal::Replan) => Step::End(Outcome::Replan),
        Last::Settled(Signal::Failure) => Step::End(Outcome::GivenUp),
        Last::Nothing | Last::Settled(Signal::Continue) => begin(limits, tally, now),
        Last::Waited | Last::Cut => spent(limits, tally, now).map_or(Step::Again, Step::End),
        // A wait is pointless if no attempt may follow it.
        Last::Limited { reset } => spent(limits, tally, now)
            .map_or_else(|| wait_for_limit(limits, tally, reset, now.time), Step::End),
        Last::Overloaded | Last::Unconnected => {
            spent(limits, tally, now).map_or_else(|| wait_for_provider(limits, tally, now.time), Step::End)
        }
        Last::Failed(Class::Auth) => Step::End(Outcome::NotLoggedIn),
        Last::Failed(Class::Billing) => Step::End(Outcome::OutOfCredit),
        Last::Failed(Class::Model) => Step::End(Outcome::NoModel),
        // The prompt would overflow the context again, and what is forbidden stays forbidden.
        Last::Failed(Class::Context | Class::Permission) => Step::End(agent_failed(tally)),
        Last::Failed(class) if may_retry(limits.max_retries, tally.retries, class) => {
            let pause = if class.is_outage() {
                outage_pause(limits, tally.blind_waits)
            } else {
                limits.retry_pauses.after(tally.retries)
            };
            let retry = Step::Retry { retry: tally.retries + 1, pause };
            spent(limits, tally, now).map_or(retry, Step::End)
        }
        Last::Failed(_) => match limits.on_failure {
            OnFailure::End if limits.failed_end == Outcome::AgentFailed => Step::End(agent_failed(tally)),
            OnFailure::End => Step::End(limits.failed_end),
            OnFailure::Count => begin(limits, tally, now),
        },
    }
}

/// The end of a loop whose iteration has failed for good.
fn agent_failed(tally: &Tally) -> Outcome {
    if tally.retries == 0 { Outcome::NotRetried } else { Outcome::AgentFailed }
}

/// The next iteration, or the reason why there is none.
fn begin(limits: &Limits, tally: &Tally, now: Now) -> Step {
    let reached = |count: u64, limit: Option<u64>| limit.is_some_and(|limit| count >= limit);
    let failed = matches!(tally.last, Last::Failed(_));
    if failed && reached(tally.consecutive_errors, limits.breaker) {
        Step::End(limits.breaker_end)
    } else if !failed && reached(tally.idle_iterations, limits.idle) {
        Step::End(if tally.unproven { Outcome::Unproven } else { Outcome::Idle })
    } else if reached(tally.ran(), limits.max_iterations) {
        Step::End(at_limit(Outcome::MaxIterations, limits, tally))
    } else {
        spent(limits, tally, now).map_or_else(|| begin_after_pause(limits, tally), Step::End)
    }
}

/// After an attempt that met an outage when it had already called tools, its provider gets time as it does before a retry.
fn begin_after_pause(limits: &Limits, tally: &Tally) -> Step {
    match (tally.last, limits.failure_pause) {
        (Last::Failed(class), _) if class.is_outage() => {}
        (Last::Failed(_), Some(_)) => {
            let pause = limits.pause_after(tally.consecutive_errors).unwrap_or_default();
            return Step::BackOff { pause };
        }
        _ => return Step::Begin { pause: Duration::ZERO },
    }
    let all = (0..=tally.blind_waits).fold(Duration::ZERO, |all, done| all + outage_pause(limits, done));
    let pause = outage_pause(limits, tally.blind_waits);
    if all <= limits.max_limit_wait { Step::Begin { pause } } else { Step::End(out_of_reach(tally)) }
}

/// The end of a loop whose budget is used up.
fn spent(limits: &Limits, tally: &Tally, now: Now) -> Option<Outcome> {
    let used = Used { spent: tally.spent.and(now.spent_by_others), seconds: now.running.as_secs_f64() };
    limits.budget.reached(&used).map(|limit| at_limit(limit.outcome(), limits, tally))
}

/// The end of a loop at a limit with this outcome, after its last iteration.
fn at_limit(outcome: Outcome, limits: &Limits, tally: &Tally) -> Outcome {
    let has_failed = limits.last_counts && matches!(tally.last, Last::Failed(_));
    let instead = match (has_failed, tally.unproven) {
        (true, _) => outcome.if_failed(),
        (false, true) => outcome.if_unproven(),
        (false, false) => None,
    };
    instead.unwrap_or(outcome)
}

/// Until the named reset where it lies ahead, else 2, 4, 8 … 60 seconds.
fn wait_for_limit(limits: &Limits, tally: &Tally, reset: Option<i64>, now: DateTime<Utc>) -> Step {
    let until = limit_until(tally, reset, now);
    wait(limits, tally, now, until).unwrap_or(Step::End(Outcome::LimitTooFar))
}

/// 15, 45 seconds … 15 minutes.
fn wait_for_provider(limits: &Limits, tally: &Tally, now: DateTime<Utc>) -> Step {
    let until = now + outage_pause(limits, tally.blind_waits);
    wait(limits, tally, now, until).unwrap_or(Step::End(out_of_reach(tally)))
}

/// The end of a loop whose provider has not worked for too long.
fn out_of_reach(tally: &Tally) -> Outcome {
    if tally.outage() == Some(Class::Network) { Outcome::NoConnection } else { Outcome::Overloaded }
}

/// `None`: all waits in a row would be too long.
fn wait(limits: &Limits, tally: &Tally, now: DateTime<Utc>, until: DateTime<Utc>) -> Option<Step> {
    let waited = i64::try_from(tally.waited_seconds).ok().and_then(TimeDelta::try_seconds)?;
    let total = waited.checked_add(&(until - now))?;
    (total <= longest_wait(limits)).then_some(Step::Wait(until))
}

fn longest_wait(limits: &Limits) -> TimeDelta {
    TimeDelta::from_std(limits.max_limit_wait).unwrap_or(TimeDelta::MAX)
}

/// Until when a usage limit lasts that an attempt has met now: as its agent said, else a guess.
pub(super) fn limit_until(tally: &Tally, reset: Option<i64>, now: DateTime<Utc>) -> DateTime<Utc> {
    named_reset(reset, now).unwrap_or_else(|| now + blind_pause(tally.blind_waits))
}

/// The next blind pause for a usage limit after `done` of them in a row.
fn blind_pause(done: u32) -> Duration {
    Duration::from_secs(2_u64.saturating_pow(done.saturating_add(1)).min(MAX_BLIND_PAUSE))
}

/// The next pause for a provider that is overloaded or cannot be reached, after `done` of them in a row.
fn outage_pause(limits: &Limits, done: u32) -> Duration {
    limits.outage_pause.saturating_mul(3_u32.saturating_pow(done)).min(MAX_OUTAGE_PAUSE)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod waits;
