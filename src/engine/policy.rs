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

/// The longest pause while an agent does not say when its usage limit ends, in seconds.
const MAX_BLIND_PAUSE: u64 = 60;
/// The longest pause before a retry.
const MAX_RETRY_PAUSE: Duration = Duration::from_mins(5);
/// The first pause while a provider is overloaded or out of order, where the user has chosen none; each is three times as long
/// as the one before.
const OVERLOAD_PAUSE: Duration = Duration::from_secs(5);
/// The longest of these pauses.
const MAX_OVERLOAD_PAUSE: Duration = Duration::from_mins(10);

/// What a loop may use up, and what ends it.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Iterations that may begin; `None` for no limit.
    pub max_iterations: Option<u64>,
    /// How often one iteration may be tried again after its first attempt.
    pub max_retries: u32,
    /// The pause before a first retry; it doubles with every further one. `None` for no pause.
    pub retry_pause: Option<Duration>,
    /// The pause after an iteration that failed for good; it doubles with every further one in a row. `None` for no pause.
    pub failure_pause: Option<Duration>,
    /// What an iteration that failed for good means for the loop.
    pub on_failure: OnFailure,
    /// The loop's outcome when such an iteration ends it.
    pub failed_end: Outcome,
    /// Whether a loop whose last iteration failed has failed when it reaches its limit of iterations.
    pub last_counts: bool,
    /// The loop ends when this many iterations in a row have failed for good.
    pub breaker: Option<u64>,
    /// The loop's outcome in that case.
    pub breaker_end: Outcome,
    /// The loop ends when this many iterations in a row have changed nothing.
    pub idle: Option<u64>,
    /// No attempt may begin when any of these limits is reached.
    pub budget: Budget,
    /// The longest time in a row that a loop waits for a usage limit to pass, or for an overloaded provider.
    pub max_limit_wait: Duration,
    /// How much of a file system must be free before an attempt.
    pub free_space_floor: Floor,
}

impl Limits {
    /// The pause after this many failed iterations in a row; `None` for no pause.
    #[must_use]
    pub fn pause_after(&self, failures: u64) -> Option<Duration> {
        let before = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.failure_pause.map(|first| retry_pause(first, before))
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
        /// How long to wait first, because a provider was overloaded.
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
            if until - now.time > longest_wait(limits) {
                Step::End(Outcome::LimitTooFar)
            } else {
                Step::Wait(until)
            }
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
        Last::Overloaded => {
            spent(limits, tally, now).map_or_else(|| wait_for_provider(limits, tally, now.time), Step::End)
        }
        Last::Failed(Class::Auth) => Step::End(Outcome::NotLoggedIn),
        Last::Failed(Class::Billing) => Step::End(Outcome::OutOfCredit),
        // The prompt would overflow the context again, and what is forbidden stays forbidden.
        Last::Failed(Class::Context | Class::Permission) => Step::End(Outcome::AgentFailed),
        Last::Failed(class) if may_retry(limits.max_retries, tally.retries, class) => {
            let pause = match (class, limits.retry_pause) {
                (Class::Overload, _) => overload_pause(limits, tally.blind_waits),
                (_, Some(first)) => retry_pause(first, tally.retries),
                (_, None) => Duration::ZERO,
            };
            let retry = Step::Retry { retry: tally.retries + 1, pause };
            spent(limits, tally, now).map_or(retry, Step::End)
        }
        Last::Failed(_) => match limits.on_failure {
            OnFailure::End => Step::End(limits.failed_end),
            OnFailure::Count => begin(limits, tally, now),
        },
    }
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
        Step::End(match (failed && limits.last_counts, tally.unproven) {
            (true, _) => Outcome::LastFailed,
            (false, true) => Outcome::Unproven,
            (false, false) => Outcome::MaxIterations,
        })
    } else {
        spent(limits, tally, now).map_or_else(|| begin_after_pause(limits, tally), Step::End)
    }
}

/// After an attempt that met an overload when it had already called tools, the loop pauses as before a retry.
fn begin_after_pause(limits: &Limits, tally: &Tally) -> Step {
    match (tally.last, limits.failure_pause) {
        (Last::Failed(Class::Overload), _) => {}
        (Last::Failed(_), Some(_)) => {
            let pause = limits.pause_after(tally.consecutive_errors).unwrap_or_default();
            return Step::BackOff { pause };
        }
        _ => return Step::Begin { pause: Duration::ZERO },
    }
    let all = (0..=tally.blind_waits).fold(Duration::ZERO, |all, done| all + overload_pause(limits, done));
    let pause = overload_pause(limits, tally.blind_waits);
    if all <= limits.max_limit_wait { Step::Begin { pause } } else { Step::End(Outcome::Overloaded) }
}

/// The end of a loop whose budget is used up.
fn spent(limits: &Limits, tally: &Tally, now: Now) -> Option<Outcome> {
    let used = Used { spent: tally.spent().and(now.spent_by_others), seconds: now.running.as_secs_f64() };
    limits.budget.reached(&used).map(|limit| limit.outcome(tally.unproven))
}

/// Until the named reset where it lies ahead, else 2, 4, 8 … 60 seconds.
fn wait_for_limit(limits: &Limits, tally: &Tally, reset: Option<i64>, now: DateTime<Utc>) -> Step {
    let until = named_reset(reset, now).unwrap_or_else(|| now + blind_pause(tally.blind_waits));
    wait(limits, tally, now, until).unwrap_or(Step::End(Outcome::LimitTooFar))
}

/// 5, 15, 45 seconds … 10 minutes.
fn wait_for_provider(limits: &Limits, tally: &Tally, now: DateTime<Utc>) -> Step {
    let until = now + overload_pause(limits, tally.blind_waits);
    wait(limits, tally, now, until).unwrap_or(Step::End(Outcome::Overloaded))
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

/// Until when the usage limit of the latest attempt lasts, if it met one: as the agent said, else a guess.
pub(super) fn limit_until(tally: &Tally, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let Last::Limited { reset } = tally.last else { return None };
    Some(named_reset(reset, now).unwrap_or_else(|| now + blind_pause(tally.blind_waits)))
}

/// The next blind pause for a usage limit after `done` of them in a row.
fn blind_pause(done: u32) -> Duration {
    Duration::from_secs(2_u64.saturating_pow(done.saturating_add(1)).min(MAX_BLIND_PAUSE))
}

/// The next pause for a provider that is overloaded, after `done` of them in a row.
fn overload_pause(limits: &Limits, done: u32) -> Duration {
    let first = limits.retry_pause.unwrap_or(OVERLOAD_PAUSE);
    first.saturating_mul(3_u32.saturating_pow(done)).min(MAX_OVERLOAD_PAUSE)
}

/// The pause before a retry that follows `done` others, or after a failure that follows `done` others.
fn retry_pause(first: Duration, done: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(done)).min(MAX_RETRY_PAUSE)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod waits;
