//! What facts are made of. A `Line…` is what a line has of a type of the engine that has more.

use std::borrow::Cow;
use std::time::Duration;

#[cfg(test)]
use schemars::JsonSchema;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use super::{BranchResult, Word};
use crate::engine::budget::LineBudget;
use crate::engine::outcome::{Ended, Outcome, Status};
use crate::engine::report::{AttemptStatus, Balance, Signal};
use crate::engine::worktree::WorkDone;
use crate::reply::usage::{ContextUse, Fault};
use crate::reply::verdict::Failure;
use crate::text::duration;
use crate::text::texts::{New, Texts};

/// What ends a loop, besides the number of its iterations and retries. What is left out is off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(transform = sorted))]
pub struct LineLimits {
    /// Iterations in a row that fail for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<u64>,
    /// The outcome of a loop in which so many have failed.
    pub breaker_end: Word<Outcome>,
    /// The outcome of a loop that ends with an iteration that failed for good.
    pub failed_end: Word<Outcome>,
    /// The pause after an iteration that failed for good, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_pause_s: Option<f64>,
    /// Iterations in a row that change nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<u64>,
    /// At its limit of iterations, the loop has failed when its last one has.
    pub last_counts: bool,
    /// What the loop may use up besides iterations.
    #[serde(flatten)]
    pub budget: LineBudget,
    /// The longest wait in a row for a usage limit or a provider, in seconds.
    pub max_limit_wait_s: f64,
    /// The pause before a first retry, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_pause_s: Option<f64>,
    /// An iteration that failed for good ends the loop.
    pub stop_on_error: bool,
}

/// A task of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "LineTask"))]
pub struct TaskAtWork<'a> {
    /// The name of its feature.
    pub feature: Option<Cow<'a, str>>,
    /// Its id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Its model; null: the one that its agent takes by itself.
    pub model: Option<Cow<'a, str>>,
    /// One line.
    #[serde(borrow)]
    pub title: Cow<'a, str>,
}

/// An attempt is over, and booked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact by itself")]
pub struct AttemptEnded<'a> {
    /// The account's, where a usage command told it.
    pub balance: Option<Balance>,
    /// Whether HEAD, the work tree or the plan changed; null when that was not checked and HEAD is what it was.
    pub changed: Option<bool>,
    /// The assistant said COMPLETE.
    pub complete: bool,
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// How long the loop has run, in seconds, over all its processes; left out in older lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_s: Option<f64>,
    /// The program's, where it exited.
    pub exit_code: Option<i32>,
    /// Null when it succeeded.
    pub failure: Option<Failure>,
    /// The commit that HEAD names now; null before the first one.
    pub head: Option<Cow<'a, str>>,
    /// Which iteration.
    pub iteration: u64,
    /// What it means for the work; left out where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<Word<Signal>>,
    /// The assistant said REPLAN.
    pub replan: bool,
    /// 0 for the first attempt of the iteration.
    pub retry: u32,
    /// Markers that had a line for themselves, where nothing was changed.
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    pub said_alone: Cow<'a, [String]>,
    /// The number of the signal that ended the program.
    pub signal: Option<i32>,
    /// Lines that were no JSON object, or too long.
    pub skipped_lines: u64,
    /// By the loop so far, with what agents have cost that looked at its work; left out in older lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<LineSpent>,
    /// How it is booked.
    pub status: Word<AttemptStatus>,
    /// What was said to be done last is not proven.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproven: bool,
    /// The files may have changed since they were validated last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unvalidated: bool,
    /// What the agent reported.
    #[serde(borrow)]
    pub usage: LineUsage<'a>,
    /// It uses up nothing: the loop waits, and does the same again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waited_for: bool,
}

/// What a loop has spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LineSpent {
    /// In US dollars, as far as agents reported it; left out where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Cached ones included.
    pub input_tokens: u64,
    /// Reasoning included.
    pub output_tokens: u64,
}

/// What the agent reported; what it did not report is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LineUsage<'a> {
    /// Tokens that the latest turn read, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// How many tokens the model's context holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// In US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The agent's own last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// The model's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Cow<'a, str>>,
    /// Reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// What the agent calls the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
}

/// The loop is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LoopEnded<'a> {
    /// All that were made, also those that were cut off or waited for. Left out in older lines, as the next two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
    /// In US dollars, as far as agents reported it; left out where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What led there, where the reason alone does not say it.
    pub detail: Option<Cow<'a, str>>,
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// How it ended, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Word<Ended>>,
    /// The process's.
    pub exit_code: u8,
    /// Why it ended.
    #[serde(borrow)]
    pub exit_reason: Cow<'a, str>,
    /// Attempts; a usage limit or a provider that is waited for is no failure.
    pub failed: u64,
    /// Iterations that failed for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_iterations: Option<u64>,
    /// Cached ones included.
    pub input_tokens: u64,
    /// Begun. A loop that goes on after its end counts anew, as it does money and time, while its numbering goes on.
    pub iterations: u64,
    /// Reasoning included.
    pub output_tokens: u64,
    /// The loop's, from now on.
    pub status: Word<Status>,
    /// Attempts, and so iterations.
    pub succeeded: u64,
    /// What was committed meanwhile; left out where that is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkDone>,
}

/// What one branch of a build came to. What its loop would tell is null when that has not ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LineBranch<'a> {
    /// Its name.
    #[serde(borrow)]
    pub branch: Cow<'a, str>,
    /// Ahead of its base; null when that was not checked.
    pub commits: Option<u64>,
    /// In US dollars, as far as agents reported it.
    pub cost_usd: Option<f64>,
    /// What led there.
    pub detail: Option<Cow<'a, str>>,
    /// How long its loop took, in seconds.
    pub duration_s: Option<f64>,
    /// As in `loop_ended`.
    pub exit_code: Option<u8>,
    /// As in `loop_ended`.
    pub exit_reason: Option<Cow<'a, str>>,
    /// As in `loop_ended`; left out in older lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Word<Ended>>,
    /// As in `loop_ended`.
    pub failed: Option<u64>,
    /// As in `loop_ended`.
    pub iterations: Option<u64>,
    /// What was not done, and why.
    pub notes: Cow<'a, [String]>,
    /// Its address.
    pub pull_request: Option<Cow<'a, str>>,
    /// What became of it.
    pub result: Word<BranchResult>,
    /// The base branch that is not done yet.
    pub waiting_for: Option<Cow<'a, str>>,
}

/// How many tasks the loop's target has, those with parts left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskCounts {
    /// Done.
    pub done: u64,
    /// Given up.
    pub failed: u64,
    /// All.
    pub total: u64,
}

/// Writes the limits in the order of their names, the budget among the others.
#[expect(clippy::ref_option, reason = "serde calls it so")]
pub(super) fn by_name<S: Serializer>(
    limits: &Option<Box<LineLimits>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut limits = serde_json::to_value(limits).map_err(S::Error::custom)?;
    limits.sort_all_objects();
    limits.serialize(serializer)
}

/// The schema has the limits in the order in which they are written.
#[cfg(test)]
fn sorted(schema: &mut schemars::Schema) {
    schema.get_mut("properties").unwrap().as_object_mut().unwrap().sort_keys();
}

impl AttemptEnded<'_> {
    /// How it is booked. What a later release calls otherwise is no success.
    #[must_use]
    pub fn status(&self) -> AttemptStatus {
        self.status.known().copied().unwrap_or(AttemptStatus::AgentFailure)
    }

    /// How long it took.
    #[must_use]
    pub fn duration(&self) -> Duration {
        duration::of_seconds(self.duration_s)
    }

    /// Why it failed, in one line; empty when it succeeded.
    #[must_use]
    pub fn why(&self) -> &str {
        self.failure.as_ref().map_or("", |failure| &failure.message)
    }

    /// The program's exit code, or the number of the signal that ended it behind `signal`.
    #[must_use]
    pub fn exit(&self, signal: &str) -> String {
        match (self.exit_code, self.signal) {
            (Some(code), _) => code.to_string(),
            (None, Some(number)) => format!("{signal}{number}"),
            (None, None) => "unknown".to_owned(),
        }
    }

    /// What it cost in US dollars: as the agent said, else as its account shows.
    #[must_use]
    pub fn cost_usd(&self) -> Option<f64> {
        self.usage.cost_usd.or_else(|| self.balance.and_then(|balance| balance.spent))
    }
}

impl LineUsage<'_> {
    /// How full the model's context was.
    #[must_use]
    pub fn context(&self) -> Option<ContextUse> {
        Some(ContextUse { tokens: self.context_tokens?, window: self.context_window? })
    }
}

impl LoopEnded<'_> {
    /// How long the loop took.
    #[must_use]
    pub fn duration(&self) -> Duration {
        duration::of_seconds(self.duration_s)
    }

    /// How the loop ended; where several outcomes have the same words, one of them. `None`: in words of another version.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        Outcome::recorded(&self.exit_reason, Some(self.exit_code))
    }
}

impl Texts for AttemptEnded<'_> {
    fn replace_texts(&mut self, new: New<'_>) {
        let LineUsage { fault, model, session_id, .. } = &mut self.usage;
        [model, session_id].replace_texts(new);
        fault.as_mut().map(|fault| &mut fault.message).replace_texts(new);
        self.failure.as_mut().map(|failure| &mut failure.message).replace_texts(new);
        self.said_alone.replace_texts(new);
    }
}
