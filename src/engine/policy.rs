//! The pure function from what happened so far to the next step.
//!
//! [`Tally`] is the fold over everything that matters for that decision and for `status`; its serialised form is
//! the state file. Nothing here looks at a clock, a file or a process.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use crate::agent::{AttemptStatus, Report};
use crate::reply::usage::Class;
use crate::source::Signal;

/// The longest back-off while an agent does not say when its usage limit ends.
const MAX_BACK_OFF: u64 = 60;
/// How many iteration durations are kept.
const KEPT_DURATIONS: usize = 100;

/// What a loop may use up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Iterations that may begin; `None` for no limit.
    pub max_iterations: Option<u64>,
    /// How often one iteration may be tried again after its first attempt.
    pub max_retries: u32,
    /// The longest wait for a usage limit to pass, blind back-offs in a row included.
    pub max_limit_wait: Duration,
}

/// What happened so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// Iterations begun.
    pub iteration: u64,
    /// Retries used in the current iteration.
    pub retries: u32,
    /// Attempts that succeeded.
    pub succeeded: u64,
    /// Attempts that failed, timeouts and usage limits included.
    pub failed: u64,
    /// Attempts that failed in a row.
    pub consecutive_failures: u64,
    /// Blind back-offs in a row.
    pub back_offs: u32,
    /// Seconds spent on them.
    pub backed_off_seconds: u64,
    /// Money spent as far as agents reported it, in US dollars.
    pub cost_usd: f64,
    /// Tokens read by the models, cached ones included.
    pub input_tokens: u64,
    /// Tokens written by the models.
    pub output_tokens: u64,
    /// How long attempts took.
    pub durations: Durations,
    /// The most recent failure, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// How the latest attempt ended.
    pub last: Last,
}

/// Durations of attempts, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Durations {
    /// Of all attempts together.
    pub sum: f64,
    /// How many there were.
    pub count: u64,
    /// The most recent ones, oldest first.
    pub last: VecDeque<f64>,
}

/// How the latest attempt ended, as far as the next step depends on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Last {
    /// There was none yet.
    #[default]
    Nothing,
    /// It succeeded, and its source booked this.
    Settled(Signal),
    /// It failed.
    Failed(Class),
    /// It met a usage limit that ends at this time, in seconds since the epoch, if the agent named one.
    Limited(Option<i64>),
    /// A wait for a usage limit is over: the same iteration again.
    Waited,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Begin the next iteration with a new prompt.
    Begin,
    /// Try the current iteration again, with the same prompt; the number of this retry.
    Retry(u32),
    /// Run the current iteration again; the attempt before did not count.
    Again,
    /// Wait until then, and ask again.
    Wait(DateTime<Utc>),
    /// End the loop.
    End(Outcome),
}

/// Decides the next step.
#[must_use]
pub fn step(limits: &Limits, tally: &Tally, now: DateTime<Utc>) -> Step {
    match tally.last {
        Last::Settled(Signal::Complete) => Step::End(Outcome::Complete),
        Last::Settled(Signal::Replan) => Step::End(Outcome::Replan),
        Last::Nothing | Last::Settled(Signal::Continue) => {
            let spent = limits.max_iterations.is_some_and(|limit| tally.iteration >= limit);
            if spent { Step::End(Outcome::MaxIterations) } else { Step::Begin }
        }
        Last::Waited => Step::Again,
        Last::Limited(reset) => wait_for_limit(limits, tally, reset, now),
        Last::Failed(Class::Auth) => Step::End(Outcome::NotLoggedIn),
        // The same prompt would overflow the context again.
        Last::Failed(Class::Context) => Step::End(Outcome::AgentFailed),
        Last::Failed(_) if tally.retries < limits.max_retries => Step::Retry(tally.retries + 1),
        Last::Failed(_) => Step::End(Outcome::AgentFailed),
    }
}

/// Until the named reset where it lies ahead, else 2, 4, 8 … 60 seconds.
fn wait_for_limit(limits: &Limits, tally: &Tally, reset: Option<i64>, now: DateTime<Utc>) -> Step {
    let longest = TimeDelta::from_std(limits.max_limit_wait).unwrap_or(TimeDelta::MAX);
    let (until, total) = if let Some(reset) = named_reset(reset, now) {
        (reset, reset - now)
    } else {
        let pause = back_off_seconds(tally.back_offs);
        let total = i64::try_from(tally.backed_off_seconds.saturating_add(pause)).unwrap_or(i64::MAX);
        let pause = i64::try_from(pause).unwrap_or(i64::MAX);
        (now + TimeDelta::seconds(pause), TimeDelta::try_seconds(total).unwrap_or(TimeDelta::MAX))
    };
    if total > longest { Step::End(Outcome::LimitTooFar) } else { Step::Wait(until) }
}

/// The reset time that an agent named, where it still lies ahead.
fn named_reset(reset: Option<i64>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    reset.and_then(|seconds| DateTime::from_timestamp(seconds, 0)).filter(|reset| *reset > now)
}

/// The length of the next blind back-off after `done` of them in a row.
fn back_off_seconds(done: u32) -> u64 {
    2_u64.saturating_pow(done.saturating_add(1)).min(MAX_BACK_OFF)
}

impl Tally {
    /// A new iteration begins.
    pub fn begin(&mut self) {
        self.iteration += 1;
        self.retries = 0;
    }

    /// A retry of the current iteration begins.
    pub fn retry(&mut self) {
        self.retries += 1;
    }

    /// A wait for a usage limit that began at `began` is over.
    pub fn waited(&mut self, began: DateTime<Utc>) {
        if let Last::Limited(reset) = self.last {
            if named_reset(reset, began).is_none() {
                self.backed_off_seconds =
                    self.backed_off_seconds.saturating_add(back_off_seconds(self.back_offs));
                self.back_offs = self.back_offs.saturating_add(1);
            }
            self.last = Last::Waited;
        }
    }

    /// Books what an attempt left, and what its source made of it.
    pub fn book(&mut self, report: &Report, signal: Signal) {
        let seconds = report.duration.as_secs_f64();
        self.durations.sum += seconds;
        self.durations.count += 1;
        self.durations.last.push_back(seconds);
        if self.durations.last.len() > KEPT_DURATIONS {
            self.durations.last.pop_front();
        }
        self.cost_usd += report.cost_usd().unwrap_or_default();
        self.input_tokens += report.usage.input_tokens.unwrap_or_default();
        self.output_tokens += report.usage.output_tokens.unwrap_or_default();
        if let Some(failure) = &report.failure {
            self.last_error = Some(failure.message.clone());
        }
        match report.status {
            AttemptStatus::Success => {
                self.succeeded += 1;
                self.consecutive_failures = 0;
                self.last = Last::Settled(signal);
            }
            AttemptStatus::UsageLimit => {
                self.failed += 1;
                let reset = report.failure.as_ref().and_then(|failure| failure.reset_at);
                self.last = Last::Limited(reset);
                return;
            }
            AttemptStatus::AgentFailure | AttemptStatus::Timeout => {
                self.failed += 1;
                self.consecutive_failures += 1;
                let class = report.failure.as_ref().map_or(Class::Other, |failure| failure.class);
                self.last = Last::Failed(class);
            }
            // The loop ends anyway, and nobody is to blame.
            AttemptStatus::Interrupted => {}
        }
        self.back_offs = 0;
        self.backed_off_seconds = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::usage::Usage;
    use crate::reply::verdict::{Failure, Kind};
    use proptest::prelude::*;

    fn limits(max_iterations: u64, max_retries: u32, hours: u64) -> Limits {
        let max_limit_wait = Duration::from_secs(hours * 3600);
        Limits { max_iterations: Some(max_iterations), max_retries, max_limit_wait }
    }

    fn report(status: AttemptStatus, class: Class, reset_at: Option<i64>) -> Report {
        let failed = status != AttemptStatus::Success && status != AttemptStatus::Interrupted;
        let message = "it failed".to_owned();
        Report {
            status,
            duration: Duration::from_millis(1500),
            exit_code: Some(0),
            signal: None,
            failure: failed.then_some(Failure { kind: Kind::Reported, class, message, reset_at }),
            complete: false,
            replan: false,
            usage: Usage::default(),
            balance: None,
            skipped_lines: 0,
        }
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_000_000 + seconds, 0).unwrap()
    }

    #[test]
    fn a_named_reset_is_waited_for_and_a_far_one_ends_the_loop() {
        let limits = limits(10, 3, 6);
        let mut tally = Tally::default();
        tally.begin();
        tally.book(
            &report(AttemptStatus::UsageLimit, Class::Limit, Some(at(600).timestamp())),
            Signal::Continue,
        );
        assert_eq!(step(&limits, &tally, at(0)), Step::Wait(at(600)));
        assert_eq!(step(&limits, &tally, at(-7 * 3600)), Step::End(Outcome::LimitTooFar));
        tally.waited(at(0));
        assert_eq!(step(&limits, &tally, at(600)), Step::Again);
        assert_eq!((tally.iteration, tally.retries, tally.back_offs), (1, 0, 0));
    }

    #[test]
    fn blind_back_offs_double_up_to_a_minute_and_are_bounded_as_a_whole() {
        let limits = Limits { max_limit_wait: Duration::from_secs(200), ..limits(10, 3, 0) };
        let mut tally = Tally::default();
        tally.begin();
        let mut waits = Vec::new();
        let end = loop {
            tally.book(&report(AttemptStatus::UsageLimit, Class::Limit, Some(0)), Signal::Continue);
            match step(&limits, &tally, at(0)) {
                Step::Wait(until) => waits.push((until - at(0)).num_seconds()),
                end => break end,
            }
            tally.waited(at(0));
            assert_eq!(step(&limits, &tally, at(0)), Step::Again);
        };
        assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(end, Step::End(Outcome::LimitTooFar));
    }

    #[test]
    fn what_cannot_get_better_is_not_tried_again() {
        for (class, outcome) in [(Class::Auth, Outcome::NotLoggedIn), (Class::Context, Outcome::AgentFailed)]
        {
            let mut tally = Tally::default();
            tally.begin();
            tally.book(&report(AttemptStatus::AgentFailure, class, None), Signal::Continue);
            assert_eq!(step(&limits(10, 3, 6), &tally, at(0)), Step::End(outcome));
        }
    }

    #[test]
    fn the_tally_survives_its_file() {
        let mut tally = Tally::default();
        for status in [AttemptStatus::Success, AttemptStatus::Timeout, AttemptStatus::UsageLimit] {
            tally.begin();
            tally.book(&report(status, Class::Other, Some(7)), Signal::Continue);
            let text = toml::to_string(&tally).unwrap();
            assert_eq!(toml::from_str::<Tally>(&text).unwrap(), tally, "{text}");
        }
    }

    fn any_report() -> impl Strategy<Value = (Report, Signal)> {
        use AttemptStatus::{AgentFailure, Success, Timeout, UsageLimit};
        let status = prop::sample::select(vec![Success, AgentFailure, Timeout, UsageLimit]);
        let class = prop::sample::select(vec![Class::Other, Class::Other, Class::Permission, Class::Auth]);
        let signal =
            prop::sample::select(vec![Signal::Continue, Signal::Continue, Signal::Complete, Signal::Replan]);
        (status, class, signal, prop::option::of(-100..100_000_i64)).prop_map(
            |(status, class, signal, reset)| {
                let class = if status == UsageLimit { Class::Limit } else { class };
                let reset = reset.map(|seconds| at(seconds).timestamp());
                (report(status, class, reset), if status == Success { signal } else { Signal::Continue })
            },
        )
    }

    proptest! {
        /// For any sequence of reports: limits are exact, a wait consumes nothing, and the loop ends for the
        /// reason that its last report gives.
        #[test]
        fn limits_are_exact_and_every_end_has_its_reason(
            max_iterations in 1_u64..6,
            max_retries in 0_u32..4,
            reports in prop::collection::vec(any_report(), 60),
        ) {
            let limits = limits(max_iterations, max_retries, 6);
            let mut tally = Tally::default();
            let (mut begun, mut tries) = (0, 0);
            let mut reports = reports.into_iter();
            let mut last: Option<(Report, Signal)> = None;
            let mut clock = 0;
            loop {
                let before = tally.clone();
                match step(&limits, &tally, at(clock)) {
                    Step::Begin => {
                        tally.begin();
                        begun += 1;
                        tries = 1;
                    }
                    Step::Retry(retry) => {
                        tally.retry();
                        prop_assert_eq!(retry, tries);
                        tries += 1;
                    }
                    Step::Again => prop_assert_eq!(before.last, Last::Waited),
                    Step::Wait(until) => {
                        prop_assert!(until > at(clock) && until <= at(clock) + TimeDelta::hours(6));
                        tally.waited(at(clock));
                        clock = (until - at(0)).num_seconds();
                        prop_assert_eq!((tally.iteration, tally.retries), (before.iteration, before.retries));
                        continue;
                    }
                    Step::End(outcome) => {
                        let (report, signal) = last.expect("no loop ends before it began");
                        match outcome {
                            Outcome::Complete => prop_assert_eq!(signal, Signal::Complete),
                            Outcome::Replan => prop_assert_eq!(signal, Signal::Replan),
                            Outcome::MaxIterations => {
                                prop_assert_eq!(report.status, AttemptStatus::Success);
                                prop_assert_eq!(begun, max_iterations);
                            }
                            Outcome::AgentFailed => prop_assert_eq!(tries, max_retries + 1),
                            Outcome::NotLoggedIn => {
                                prop_assert_eq!(report.failure.unwrap().class, Class::Auth);
                            }
                            Outcome::LimitTooFar => prop_assert_eq!(report.status, AttemptStatus::UsageLimit),
                            other => prop_assert!(false, "{:?} is not for the policy to decide", other),
                        }
                        break;
                    }
                }
                prop_assert!(begun <= max_iterations && tries <= max_retries + 1);
                prop_assert_eq!(tally.iteration, begun);
                let Some((report, signal)) = reports.next() else { break };
                tally.book(&report, signal);
                last = Some((report, signal));
            }
            prop_assert_eq!(tally.succeeded + tally.failed, tally.durations.count);
        }
    }
}
