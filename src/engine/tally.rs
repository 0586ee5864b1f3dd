//! The tally of a loop: the fold over reports by which the policy decides, and which `status` shows.

use std::collections::VecDeque;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::budget::{Spent, Used};
use super::outcome::Ended;
use super::refused::Refused;
use super::report::{AttemptStatus, Report, Signal};
use super::validation::{Base, Evidence, Validation, reason};
use crate::reply::sigil::TASK_FAILED;
use crate::reply::usage::Class;
use crate::text::texts::{New, Texts};

/// How many durations are kept.
const KEPT_DURATIONS: usize = 100;

/// The tally of a loop. The names are those of the state file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and a field of the state file")]
pub struct Tally {
    /// Iterations begun.
    pub iteration: u64,
    /// Of these, how many were begun before the current allowance.
    pub allowance_from: u64,
    /// Retries used in the current iteration.
    pub retries: u32,
    /// Iterations that succeeded, each by one attempt.
    pub succeeded: u64,
    /// Iterations that failed for good.
    pub failed: u64,
    /// Attempts that failed, timeouts included; one that met a usage limit or an overloaded provider is none.
    pub error_count: u64,
    /// Of these, how many ran or were silent for too long.
    pub timeouts: u64,
    /// Iterations in a row that failed for good.
    pub consecutive_errors: u64,
    /// Successful iterations in a row that changed nothing.
    pub idle_iterations: u64,
    /// Waits in a row without a known end: for a usage limit, or for a provider that is overloaded.
    pub blind_waits: u32,
    /// Seconds of all waits in a row, including those with a known end.
    pub waited_seconds: u64,
    /// What the loop has spent.
    #[serde(flatten)]
    pub spent: Spent,
    /// How long the loop has run, in seconds, in all its processes.
    pub elapsed_seconds: f64,
    /// An attempt has begun and is not booked: it runs, or it was cut off.
    pub in_attempt: bool,
    /// The most recent failure, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The commit that HEAD named after the latest attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_commit: Option<String>,
    /// What the validation command printed when it failed after the latest iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_error: Option<String>,
    /// The latest validation had no verdict; its error says why.
    pub validation_undecided: bool,
    /// What the latest validation was made by; see [`Validation::by`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validated_by: Option<String>,
    /// The latest attempt has passed it.
    pub has_passed: bool,
    /// The latest claim was not proven, or the last validation has failed. With several tasks, it is about the current one.
    pub unproven: bool,
    /// The current one of several tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// What claims are measured against; `None` where the validation asks for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// An agent may have changed the files since the last validation, or there was no validation.
    pub changed_since_validation: bool,
    /// Notes of the user for the next prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What walls have refused to the latest agent and to what looks at its work, for the next prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Markers that had a line for themselves in the latest iteration, if its agent changed nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said_alone: Vec<String>,
    /// Tasks that are gone from the plan that it builds without being ticked; a later process could not see that in the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// What the loop added to the prompt of the current iteration, in case it must run again after a restart.
    pub given: Given,
    /// How the latest attempt ended.
    pub last: Last,
    /// How long attempts took.
    pub durations: Durations,
}

/// What the loop added to a prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Given {
    /// What the validation command printed when it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_error: Option<String>,
    /// It had no verdict, and its output says why.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// Notes of the user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the walls around the agent before have refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

/// Durations of attempts, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Durations {
    /// Of all attempts together.
    pub sum: f64,
    /// The number of attempts.
    pub count: u64,
    /// The most recent ones, oldest first.
    pub last: VecDeque<f64>,
}

/// How the latest attempt ended, as far as the next step depends on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Last {
    /// There was no attempt yet.
    #[default]
    Nothing,
    /// It succeeded, with this signal about the work.
    Settled(Signal),
    /// It failed.
    Failed(Class),
    /// It met a usage limit.
    Limited {
        /// When the limit ends, in seconds since the epoch, if the agent named a time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reset: Option<i64>,
    },
    /// Its provider was overloaded or out of order before the agent called a tool.
    Overloaded,
    /// It had no connection to its provider, before it called a tool.
    Unconnected,
    /// A wait for a usage limit or a provider is over: the iteration runs again.
    Waited,
    /// It was cut off: the iteration runs again.
    Cut,
}

/// The result of an attempt, beyond its report.
#[derive(Debug, Clone, Default)]
pub struct Settled {
    /// What it means for the work.
    pub signal: Signal,
    /// Whether it changed anything; `None` if that was not checked.
    pub changed: Option<bool>,
    /// The result of the validation; `None` if there was none, or it was cut off.
    pub proof: Option<Validation>,
    /// Markers that had a line for themselves, if nothing was changed.
    pub said_alone: Vec<String>,
}

impl Texts for Tally {
    fn replace_texts(&mut self, new: New<'_>) {
        let Self {
            last_error, validation_error, validated_by, notes, refused, said_alone, gone, given, ..
        } = self;
        [last_error, validation_error, validated_by, &mut given.validation_error].replace_texts(new);
        for texts in [notes, refused, said_alone, gone, &mut given.notes, &mut given.refused] {
            texts.replace_texts(new);
        }
    }
}

impl Tally {
    /// The number of the last iteration that may begin with this limit; `None` for no limit.
    #[must_use]
    pub fn last_iteration(&self, max_iterations: Option<u64>) -> Option<u64> {
        max_iterations.map(|limit| limit.saturating_add(self.allowance_from))
    }

    /// The state of the provider that the loop waits for: overloaded or out of order, or not to be reached; `None` where it does
    /// not wait for one.
    #[must_use]
    pub fn outage(&self) -> Option<Class> {
        match self.last {
            Last::Overloaded => Some(Class::Overload),
            Last::Unconnected => Some(Class::Network),
            Last::Failed(class) => Some(class).filter(|class| class.is_outage()),
            _ => None,
        }
    }

    /// Iterations begun in the current allowance; its time, money and other counts are about these.
    #[must_use]
    pub fn ran(&self) -> u64 {
        self.iteration.saturating_sub(self.allowance_from)
    }

    /// What the prompt of the next iteration gets.
    #[must_use]
    pub fn upcoming(&self) -> Given {
        Given {
            validation_error: self.validation_error.clone(),
            undecided: self.validation_undecided && self.validation_error.is_some(),
            notes: self.notes.clone(),
            refused: self.refused.clone(),
        }
    }

    /// The output of the last failed validation, unless it has passed since.
    #[must_use]
    pub fn last_validation_error(&self) -> Option<&str> {
        // The prompt of an iteration that was cut off had it.
        let given = self.given.validation_error.as_deref().filter(|_| self.unproven);
        self.validation_error.as_deref().or(given)
    }

    /// Books the output of the latest validation, unless it has passed.
    pub fn validated(&mut self, by: Option<&str>, ok: bool, undecided: bool, output: &str) {
        self.validation_error = (!ok).then(|| output.to_owned());
        self.validation_undecided = undecided;
        self.validated_by = by.map(str::to_owned);
        self.has_passed = ok;
    }

    /// Why the latest validation has not passed, in one line; `None` if it has, or if there was none.
    #[must_use]
    pub fn refutation(&self) -> Option<String> {
        let output = self.last_validation_error()?;
        Some(reason(self.validated_by.as_deref(), self.validation_undecided, output))
    }

    /// What shows that its work is good when it ends so; `None` where nothing is said of it.
    #[must_use]
    pub fn evidence(&self, end: Ended, detail: Option<&str>) -> Option<Evidence> {
        let by = self.validated_by.as_deref();
        let error = self.last_validation_error();
        match (end, error) {
            (Ended::Done, _) if self.has_passed => Some(Evidence::proven(by)),
            (Ended::Done, _) => Some(Evidence::unchecked()),
            (_, Some(output)) if self.unproven || end == Ended::Unproven => {
                Some(Evidence::against(by, self.validation_undecided, output))
            }
            (Ended::Unproven, _) => Some(Evidence::against(None, true, detail.unwrap_or("not proven"))),
            _ => (self.has_passed && !self.changed_since_validation).then(|| Evidence::passed(by)),
        }
    }

    /// Keeps a note of the user's for the next prompt: where an attempt was cut off, that is its own prompt, which is given again.
    pub fn note(&mut self, note: String) {
        if self.was_cut_off() { &mut self.given.notes } else { &mut self.notes }.push(note);
    }

    /// What a loop that starts afresh has from the last one: the notes that no finished attempt has had, and where work on
    /// the current one of several tasks began.
    #[must_use]
    pub fn left_over(&self) -> Self {
        let given = self.given.notes.iter().filter(|_| self.was_cut_off());
        let notes = given.chain(&self.notes).cloned().collect();
        let base = self.base.clone().filter(|_| self.about.is_some());
        Self { notes, about: self.about.clone().filter(|_| base.is_some()), base, ..Self::default() }
    }

    /// Whether the latest attempt has no result.
    fn was_cut_off(&self) -> bool {
        self.in_attempt || self.last == Last::Cut
    }

    /// A new iteration begins, with several tasks on this one; its prompt was `given` what was [upcoming](Self::upcoming).
    /// Notes that have come since are for the next one.
    pub fn begin(&mut self, given: Given, about: Option<&str>) {
        self.iteration = self.iteration.saturating_add(1);
        if self.about.as_deref() != about {
            // The result of the previous task says nothing about this one.
            self.about = about.map(str::to_owned);
            self.unproven = false;
        }
        self.retries = 0;
        self.has_passed = false;
        self.wait_was_blind_after_outage();
        self.validation_error = None;
        self.notes.drain(..given.notes.len().min(self.notes.len()));
        self.refused.clear();
        self.given = given;
    }

    /// Walls have refused something in this attempt; returns whether that is new.
    pub fn refused(&mut self, refused: &Refused) -> bool {
        let is_new = !self.refused.iter().any(|told| refused.is_told_by(told));
        if is_new {
            self.refused.push(refused.told());
        }
        is_new
    }

    /// A retry of the current iteration begins.
    pub fn retry(&mut self) {
        self.retries = self.retries.saturating_add(1);
        self.has_passed = false;
        self.wait_was_blind_after_outage();
    }

    /// Before another attempt there was a pause for a provider that is overloaded or not to be reached.
    fn wait_was_blind_after_outage(&mut self) {
        if matches!(self.last, Last::Failed(class) if class.is_outage()) {
            self.blind_waits = self.blind_waits.saturating_add(1);
        }
    }

    /// Books a wait from `began` to `ended`, which may have been cut short.
    pub fn waited(&mut self, began: DateTime<Utc>, ended: DateTime<Utc>) {
        let is_blind = match self.last {
            Last::Limited { reset } => named_reset(reset, began).is_none(),
            Last::Overloaded | Last::Unconnected => true,
            // For a limit that was met before, or by another loop.
            _ => false,
        };
        if is_blind {
            self.blind_waits = self.blind_waits.saturating_add(1);
        }
        // A wait of less than a second counts, too.
        let seconds = u64::try_from((ended - began).num_milliseconds()).unwrap_or_default().div_ceil(1000);
        self.waited_seconds = self.waited_seconds.saturating_add(seconds);
        self.waits_no_more();
    }

    /// Another agent goes on, which has its own pauses.
    pub fn agent_changed(&mut self) {
        self.waits_no_more();
        self.blind_waits = 0;
    }

    /// What was waited for is over.
    pub fn waits_no_more(&mut self) {
        if matches!(self.last, Last::Limited { .. } | Last::Overloaded | Last::Unconnected) {
            self.last = Last::Waited;
        }
    }

    /// Books the report of an agent that was asked beside an attempt and could not work.
    pub(super) fn met(&mut self, report: &Report) {
        self.spend(report.spent());
        let Some(failure) = &report.failure else { return };
        self.last_error = Some(failure.message.clone());
        self.last = match (report.status, failure.class) {
            (AttemptStatus::UsageLimit, _) => Last::Limited { reset: failure.reset_at },
            (_, Class::Overload) => Last::Overloaded,
            (_, Class::Network) => Last::Unconnected,
            (_, class) => Last::Failed(class),
        };
    }

    /// Books the report of an attempt, in a loop with this many retries for each iteration.
    pub fn book(&mut self, max_retries: u32, report: &Report, settled: &Settled) {
        self.in_attempt = false;
        self.durations.book(report.duration.as_secs_f64());
        self.spend(report.spent());
        // Git does not see all that an agent may have changed.
        self.changed_since_validation = settled.proof.as_ref().is_none_or(|proof| proof.ended_with_agent);
        match &settled.proof {
            Some(Validation { usage, ok, .. }) => {
                self.spend(Spent::reported(usage.cost_usd, usage.input_tokens, usage.output_tokens));
                self.unproven = !ok;
            }
            // No claim is open any more.
            None if report.sigils.claimed(TASK_FAILED).next().is_some() => self.unproven = false,
            // It could not be validated.
            None => self.unproven |= report.status == AttemptStatus::CompleteUnproven,
        }
        if let Some(failure) = &report.failure {
            self.last_error = Some(failure.message.clone());
        }
        match report.status {
            AttemptStatus::Success | AttemptStatus::CompleteUnproven => {
                self.succeeded = self.succeeded.saturating_add(1);
                self.consecutive_errors = 0;
                self.said_alone.clone_from(&settled.said_alone);
                match settled.changed {
                    Some(false) => self.idle_iterations = self.idle_iterations.saturating_add(1),
                    Some(true) | None => self.idle_iterations = 0,
                }
                self.last = Last::Settled(settled.signal);
            }
            // That is how the turn of an interactive agent ends.
            AttemptStatus::Still => {
                self.succeeded = self.succeeded.saturating_add(1);
                self.timeouts = self.timeouts.saturating_add(1);
                self.idle_iterations = 0;
                self.last = Last::Settled(settled.signal);
            }
            AttemptStatus::UsageLimit => {
                let reset = report.failure.as_ref().and_then(|failure| failure.reset_at);
                self.last = Last::Limited { reset };
                return;
            }
            AttemptStatus::AgentFailure | AttemptStatus::Timeout => {
                let class = report.failure.as_ref().map_or(Class::Other, |failure| failure.class);
                if report.is_waited_for() {
                    self.last = match class {
                        Class::Network => Last::Unconnected,
                        class if class.is_outage() => Last::Overloaded,
                        _ => Last::Waited,
                    };
                    return;
                }
                self.error_count = self.error_count.saturating_add(1);
                self.timeouts =
                    self.timeouts.saturating_add(u64::from(report.status == AttemptStatus::Timeout));
                if settled.changed == Some(true) {
                    self.idle_iterations = 0;
                }
                if !may_retry(max_retries, self.retries, class) {
                    self.consecutive_errors = self.consecutive_errors.saturating_add(1);
                    self.failed = self.failed.saturating_add(1);
                    self.said_alone.clear();
                    // It has not been fixed; the next iteration has to know.
                    if self.validation_error.is_none() {
                        self.validation_error = self.given.validation_error.take();
                        self.validation_undecided = self.given.undecided;
                    }
                }
                self.last = Last::Failed(class);
                if report.has_met_outage() {
                    return;
                }
            }
            AttemptStatus::Interrupted => self.last = Last::Cut,
        }
        self.blind_waits = 0;
        self.waited_seconds = 0;
    }

    /// The loop has ended with this outcome. If the reason is missing proof, the next start has to know it.
    pub fn ended(&mut self, ended: Ended, detail: Option<&str>) {
        if ended == Ended::Unproven && self.last_validation_error().is_none() {
            self.validation_error = detail.map(str::to_owned).or(self.validation_error.take());
            self.validation_undecided = false;
            self.validated_by = None;
        }
    }

    /// What this loop has used.
    #[must_use]
    pub fn used(&self) -> Used {
        Used { spent: self.spent, seconds: self.elapsed_seconds }
    }

    /// Books what an agent has cost.
    pub(super) fn spend(&mut self, spent: Spent) {
        self.spent = self.spent.and(spent);
    }

    /// Goes on from a state file: an attempt that was cut off is run again. A loop that had `ended` gets a new
    /// allowance, while its numbering goes on. It only waits for a usage limit whose reset is still ahead of `now`: any other
    /// limit, an overload, a missing login or credit may be over by now.
    #[must_use]
    pub fn resumed(mut self, ended: bool, now: DateTime<Utc>) -> Self {
        if ended {
            // Its counts are its own: the time and money of one loop do not go with the iterations of two.
            self = Self {
                iteration: self.iteration,
                allowance_from: self.iteration,
                last_error: self.last_error,
                last_commit: self.last_commit,
                validation_error: self.validation_error,
                validation_undecided: self.validation_undecided,
                validated_by: self.validated_by,
                notes: self.notes,
                gone: self.gone,
                given: self.given,
                about: self.about,
                base: self.base,
                in_attempt: self.in_attempt,
                ..Self::default()
            };
        } else if std::mem::take(&mut self.in_attempt) {
            self.last = Last::Cut;
        } else {
            self.last = match self.last {
                Last::Limited { reset } if named_reset(reset, now).is_none() => Last::Waited,
                Last::Overloaded
                | Last::Unconnected
                | Last::Failed(Class::Billing | Class::Auth | Class::Model) => Last::Waited,
                last => last,
            };
        }
        self.blind_waits = 0;
        self.waited_seconds = 0;
        self
    }
}

impl Durations {
    fn book(&mut self, seconds: f64) {
        self.sum += seconds;
        self.count = self.count.saturating_add(1);
        self.last.push_back(seconds);
        if self.last.len() > KEPT_DURATIONS {
            self.last.pop_front();
        }
    }

    /// The mean in seconds; `None` before the first attempt.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "no loop runs 2^52 times")]
        let count = self.count as f64;
        (self.count > 0).then(|| self.sum / count)
    }
}

/// Whether a failure of this class can be retried with the same prompt.
pub(super) fn may_retry(max_retries: u32, retries: u32, class: Class) -> bool {
    // A retry would fail again: the prompt is still the same, and login, credit, permissions and models are unchanged.
    !matches!(
        class,
        Class::Context | Class::Auth | Class::Permission | Class::Billing | Class::Model | Class::Refused
    ) && retries < max_retries
}

/// The reset time that an agent named, if it is still ahead, and no more than a century: what is further is no time in seconds.
#[must_use]
pub fn named_reset(reset: Option<i64>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let reset = reset.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    reset.filter(|reset| *reset > now && *reset - now < TimeDelta::days(36_525))
}
