//! The parts of facts. A `Line…` has what a line has of a larger type of the engine.

use std::borrow::Cow;
use std::time::Duration;

#[cfg(test)]
use schemars::JsonSchema;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use super::{BranchResult, Word};
use crate::engine::budget::{LineBudget, Spent};
use crate::engine::outcome::{Ended, Outcome, Status};
use crate::engine::report::{AttemptStatus, Balance, Signal};
use crate::engine::validation::Evidence;
use crate::engine::worktree::WorkDone;
use crate::reply::usage::{ContextUse, Fault};
use crate::reply::verdict::Failure;
use crate::text::duration;
use crate::text::texts::{New, Texts};

/// The limits of a loop, besides the numbers of its iterations and retries. What is left out is off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(transform = sorted))]
pub struct LineLimits {
    /// Iterations in a row that fail for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<u64>,
    /// The outcome of a loop in which that many have failed.
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
    /// The first pause for a provider that is overloaded or cannot be reached, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage_pause_s: Option<f64>,
    /// The pauses before retries, in seconds; the last one is doubled before each further one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_pauses_s: Option<Vec<f64>>,
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
    /// The account's balance, if there is a usage command.
    pub balance: Option<Balance>,
    /// Whether HEAD, the work tree or the plan changed; null if that was not checked and HEAD is the same.
    pub changed: Option<bool>,
    /// The assistant said COMPLETE.
    pub complete: bool,
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// How long the loop has run, in seconds, over all its processes; left out in older lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_s: Option<f64>,
    /// The program's exit code, if it exited.
    pub exit_code: Option<i32>,
    /// Why it failed; null if it succeeded.
    pub failure: Option<Failure>,
    /// The commit that HEAD names now; null before the first one.
    pub head: Option<Cow<'a, str>>,
    /// The number of the iteration.
    pub iteration: u64,
    /// Its meaning for the work; left out if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<Word<Signal>>,
    /// The assistant said REPLAN.
    pub replan: bool,
    /// 0 for the first attempt of the iteration.
    pub retry: u32,
    /// Markers that had a line for themselves, if nothing was changed.
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    pub said_alone: Cow<'a, [String]>,
    /// The number of the signal that ended the program.
    pub signal: Option<i32>,
    /// Lines that were no JSON object, or too long.
    pub skipped_lines: u64,
    /// What the loop has spent so far, with the agents that verified its work; left out in older lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// How it is booked.
    pub status: Word<AttemptStatus>,
    /// The latest claim is not proven.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproven: bool,
    /// The files may have changed since the last validation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unvalidated: bool,
    /// What the agent reported.
    #[serde(borrow)]
    pub usage: LineUsage<'a>,
    /// It uses up nothing: the loop waits, and repeats it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waited_for: bool,
}

/// The usage as the agent reported it; the rest is left out.
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
    /// All attempts, also those that were cut off or had to wait. Left out in older lines, as the next two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
    /// In US dollars, as far as agents reported it; left out if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Details beyond the reason.
    pub detail: Option<Cow<'a, str>>,
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// How it ended, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Word<Ended>>,
    /// The process's exit code.
    pub exit_code: u8,
    /// Why it ended.
    #[serde(borrow)]
    pub exit_reason: Cow<'a, str>,
    /// Failed attempts; one that met a usage limit or an overloaded provider is none.
    pub failed: u64,
    /// Iterations that failed for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_iterations: Option<u64>,
    /// Cached ones included.
    pub input_tokens: u64,
    /// Iterations begun. A loop that goes on after its end counts anew, also money and time, while its numbering goes on.
    pub iterations: u64,
    /// Reasoning included.
    pub output_tokens: u64,
    /// What shows that its work is good; left out in older lines, and where nothing is said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Evidence>,
    /// The loop's status from now on.
    pub status: Word<Status>,
    /// Successful attempts, one for each successful iteration.
    pub succeeded: u64,
    /// What was committed meanwhile; left out if that is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkDone>,
}

/// The result of one branch of a build. Fields of its loop are null if the loop has not ended.
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
    /// Details beyond the reason.
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
    /// Notes: what was not done, and why.
    pub notes: Cow<'a, [String]>,
    /// As in `loop_ended`; left out in older lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Evidence>,
    /// The address of the pull request.
    pub pull_request: Option<Cow<'a, str>>,
    /// The branch's outcome.
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
    /// How it is booked. An unknown word of a later release is no success.
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

    /// The program's exit code, or `signal` with the number of the signal that ended it.
    #[must_use]
    pub fn exit(&self, signal: &str) -> String {
        match (self.exit_code, self.signal) {
            (Some(code), _) => code.to_string(),
            (None, Some(number)) => format!("{signal}{number}"),
            (None, None) => "unknown".to_owned(),
        }
    }

    /// Its cost in US dollars: as the agent reported it, else by its account's balance.
    #[must_use]
    pub fn cost_usd(&self) -> Option<f64> {
        self.usage.cost_usd.or_else(|| self.balance.and_then(|balance| balance.spent))
    }

    /// What it has spent, without the agents that verified its work.
    #[must_use]
    pub fn own_spent(&self) -> Spent {
        Spent::reported(self.cost_usd(), self.usage.input_tokens, self.usage.output_tokens)
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

    /// The loop's outcome; if several have the same words, one of them. `None`: in words of another version.
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
