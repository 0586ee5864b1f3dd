//! One fact about a running loop: the engine makes it, secrets are taken out of it, records and views fold it, and the events
//! log writes and reads it.
//!
//! The order of the fields is the order of the keys in a line (`record/event_line.rs`): by name.
//!
//! A reader ignores unknown fields, reads an unknown event as [`Fact::Unknown`], and keeps an unknown word as
//! [`Word::Other`].

mod made;
mod parts;
mod proof;
mod words;

use std::borrow::Cow;

use chrono::{DateTime, FixedOffset};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::budget::Spent;
use super::refused::Refused;
use super::stop::Urgency;
use super::tally::Tally;
use crate::files::room::Shortage;
use crate::reply::show::Leave;
use crate::text::texts::{New, Texts};

pub use parts::{AttemptEnded, LineBranch, LineLimits, LineUsage, LoopEnded, TaskAtWork, TaskCounts};
pub use proof::{
    ProofChange, ProofFile, ProofMutant, ProofMutants, ProofProgram, ProofRecord, ProofRun, ProofTests,
    ProofVoice,
};
pub use words::{Asked, BranchResult, ChangeReason, WaitReason, Word};

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Fact<'a> {
    /// The loop begins; nothing has run yet.
    LoopStarted {
        /// Its other limits; left out in older lines.
        #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "parts::by_name")]
        limits: Option<Box<LineLimits>>,
        /// Null: no limit.
        max_iterations: Option<u64>,
        /// For each iteration.
        max_retries: u32,
        /// The agents' working directory.
        #[serde(borrow)]
        project: Cow<'a, str>,
        /// Cost and tokens used before, if the loop goes on; left out if there are none.
        #[serde(skip_serializing_if = "Option::is_none")]
        spent: Option<Spent>,
        /// All that was counted before; left out if that is nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tally: Option<Box<Tally>>,
    },
    /// An earlier process was cut off before it could keep all its counts; the rest was read from its events log.
    Recovered {
        /// Attempts that had ended.
        attempts: u64,
        /// In US dollars, as far as agents reported it; left out where none did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// The run that was cut off.
        #[serde(borrow)]
        from: Cow<'a, str>,
    },
    /// The loop's limit of iterations is another one from here on.
    LimitsChanged {
        /// Null: no limit.
        max_iterations: Option<u64>,
    },
    /// Another of the loop's agents goes on, from the next attempt on.
    AgentChanged {
        /// The agent before.
        #[serde(borrow)]
        from: Cow<'a, str>,
        /// Why.
        reason: Word<ChangeReason>,
        /// The agent that goes on.
        #[serde(borrow)]
        to: Cow<'a, str>,
        /// When the limit of the agent before ends; null: it is not known, or this is none.
        until: Option<DateTime<FixedOffset>>,
        /// Until when the agent that goes on has to be waited for itself; null: it can work.
        waits_until: Option<DateTime<FixedOffset>>,
    },
    /// One run of the agent on an iteration begins.
    AttemptStarted {
        /// The work that it is about, if there are several; left out otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<Cow<'a, str>>,
        /// The commit that HEAD names; null before the first one.
        head: Option<Cow<'a, str>>,
        /// The number of the iteration.
        iteration: u64,
        /// Notes of the user in its prompt; left out if there are none.
        #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
        notes: Cow<'a, [String]>,
        /// 0 for the first attempt of the iteration.
        retry: u32,
    },
    /// The agent of an attempt is started.
    AgentStarted {
        /// Its command line, as one would write it for a shell.
        #[serde(borrow)]
        command: Cow<'a, str>,
    },
    /// The agent of an attempt named its model or its session.
    AgentKnown {
        /// The model's name; null while it is unknown.
        model: Option<Cow<'a, str>>,
        /// The agent's name for the session; null while it is unknown.
        session_id: Option<Cow<'a, str>>,
    },
    /// What the assistant said.
    Text {
        /// A whole block of text.
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    /// A piece of what the assistant says.
    TextDelta {
        /// Goes on where the last piece ended.
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    /// A piece of what the agent thinks.
    Thought {
        /// Goes on where the last piece ended.
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    /// A tool call of the agent.
    Tool {
        /// Shortened.
        #[serde(borrow)]
        input: Cow<'a, str>,
        /// The tool's name.
        #[serde(borrow)]
        name: Cow<'a, str>,
    },
    /// An error that the agent reported.
    AgentError {
        /// In its words.
        #[serde(borrow)]
        message: Cow<'a, str>,
    },
    /// A remark of the agent, such as its own retry.
    AgentNotice {
        /// In its words.
        #[serde(borrow)]
        message: Cow<'a, str>,
    },
    /// The agent has asked for permission; no user can be asked.
    Permission {
        /// The answer to the agent.
        answer: Word<Leave>,
        /// The kind of tool: read, edit, execute, …
        #[serde(borrow)]
        kind: Cow<'a, str>,
        /// What the agent wants to do, shortened.
        #[serde(borrow)]
        what: Cow<'a, str>,
    },
    /// An attempt is over, and booked.
    #[serde(borrow)]
    AttemptEnded(Box<AttemptEnded<'a>>),
    /// Walls have refused something, to an agent or to what looks at its work, once or several times.
    Refused(Refused),
    /// The agent has finished its turn, and goes on when the work that it has announced is done.
    Background {
        /// How long the loop waits for it, in seconds.
        at_most_s: f64,
        /// The announced work, in words.
        #[serde(borrow)]
        tasks: Cow<'a, str>,
    },
    /// The next iteration is about a task of the graph, which is claimed.
    TaskStarted {
        /// The task.
        #[serde(borrow)]
        task: TaskAtWork<'a>,
        /// The counts of the loop's target.
        tasks: TaskCounts,
        /// Its last agent has claimed that it is done; this iteration only verifies it.
        verifies: bool,
    },
    /// The outcome of an iteration's task is booked.
    TaskEnded {
        /// done, landing (done, and waiting to land), failed, retried, blocked (given back) or interrupted.
        #[serde(borrow)]
        outcome: Cow<'a, str>,
        /// Why; may be empty.
        #[serde(borrow)]
        reason: Cow<'a, str>,
        /// The task.
        #[serde(borrow)]
        task: TaskAtWork<'a>,
        /// The counts of the loop's target.
        tasks: TaskCounts,
    },
    /// A finished task waits to land on the trunk.
    LandingQueued {
        /// Its last commit.
        #[serde(borrow)]
        commit: Cow<'a, str>,
        /// The ref that keeps its commits until the trunk has them.
        #[serde(borrow)]
        reference: Cow<'a, str>,
        /// The task.
        #[serde(borrow)]
        task: TaskAtWork<'a>,
        /// The branch that it lands on.
        #[serde(borrow)]
        trunk: Cow<'a, str>,
    },
    /// The gate begins: the command runs on a candidate for the trunk.
    GateStarted {
        /// The candidate.
        #[serde(borrow)]
        commit: Cow<'a, str>,
        /// The ids of the tasks that it would bring; none: it is the trunk as it is.
        tasks: Cow<'a, [String]>,
        /// The branch.
        #[serde(borrow)]
        trunk: Cow<'a, str>,
        /// How many finished tasks wait besides these.
        waiting: u64,
    },
    /// The gate is over.
    GateEnded {
        /// The candidate.
        #[serde(borrow)]
        commit: Cow<'a, str>,
        /// How long it took, in seconds.
        duration_s: f64,
        /// It passed.
        ok: bool,
        /// What the command printed, if it did not pass, cut to a readable length.
        #[serde(borrow)]
        output: Cow<'a, str>,
        /// The ids of the tasks that it would bring.
        tasks: Cow<'a, [String]>,
        /// The branch.
        #[serde(borrow)]
        trunk: Cow<'a, str>,
    },
    /// A task has landed: it is done.
    Landed {
        /// The commit that brought it.
        #[serde(borrow)]
        commit: Cow<'a, str>,
        /// The task.
        #[serde(borrow)]
        task: TaskAtWork<'a>,
        /// The counts of the run's target.
        tasks: TaskCounts,
        /// The branch.
        #[serde(borrow)]
        trunk: Cow<'a, str>,
    },
    /// A finished task could not land, and is given back to an agent, or has failed.
    Returned {
        /// It was returned too often, and has failed.
        failed: bool,
        /// Why.
        #[serde(borrow)]
        reason: Cow<'a, str>,
        /// The task.
        #[serde(borrow)]
        task: TaskAtWork<'a>,
        /// The counts of the run's target.
        tasks: TaskCounts,
        /// The branch.
        #[serde(borrow)]
        trunk: Cow<'a, str>,
    },
    /// A fresh agent verifies a task.
    Verifying {
        /// The task.
        #[serde(borrow)]
        task: TaskAtWork<'a>,
    },
    /// The verification is over.
    Verified {
        /// The task is done.
        ok: bool,
        /// The findings, if it has not passed.
        #[serde(borrow)]
        reason: Cow<'a, str>,
        /// The task.
        #[serde(borrow)]
        task: TaskAtWork<'a>,
    },
    /// The work is validated.
    Validating {
        /// What the loop has spent so far, with the attempt whose work it is; left out in older lines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<Spent>,
    },
    /// The validation is over.
    Validated {
        /// What has looked at the work, as in `npm test` or `a verifying agent`; left out in older lines, and where the
        /// output says all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Cow<'a, str>>,
        /// It succeeded.
        ok: bool,
        /// What it printed, cut to a readable length.
        #[serde(borrow)]
        output: Cow<'a, str>,
        /// It had no verdict, and its output says why.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        undecided: bool,
    },
    /// A claim was looked at in a clean checkout of its commit, or was not; `validated` follows.
    Proof(Box<ProofRecord>),
    /// The iteration is tried again.
    Retrying {
        /// The number of the iteration.
        iteration: u64,
        /// The highest number of retries.
        max_retries: u32,
        /// How long the loop pauses first, in seconds.
        pause_s: f64,
        /// The number of the retry that follows.
        retry: u32,
    },
    /// The iteration has failed, and the next one begins after a pause.
    BackingOff {
        /// The number of failed iterations in a row.
        failures: u64,
        /// The number of the iteration.
        iteration: u64,
        /// After how many in a row the loop ends; null: after none.
        max_failures: Option<u64>,
        /// How long the loop pauses first, in seconds.
        pause_s: f64,
    },
    /// The agent's screen asks for a person; the loop waits for one.
    NeedsAttention {
        /// The question on the screen.
        #[serde(borrow)]
        screen: Cow<'a, str>,
    },
    /// The agent goes on.
    AttentionOver,
    /// The loop waits for a usage limit to pass, for a provider that is overloaded, or for room on the disk.
    Waiting {
        /// Free space on the disk, in bytes; left out if the loop waits for something else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        free_bytes: Option<u64>,
        /// What the loop waits for.
        reason: Word<WaitReason>,
        /// The end of the wait; for space on the disk, the time of the next check.
        #[serde(serialize_with = "as_precise_as_it_is")]
        #[cfg_attr(test, schemars(with = "DateTime<FixedOffset>"))]
        until: DateTime<FixedOffset>,
        /// The space that must be free; left out if the loop waits for something else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wanted_bytes: Option<u64>,
        /// What the store or the remote has said, or the connection to it; left out if the loop waits for something else.
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        why: Option<Cow<'a, str>>,
    },
    /// The loop of a branch waits until fewer others are at work.
    Queued,
    /// The loop holds until it is resumed.
    Paused,
    /// The loop goes on after a wait or a pause.
    Resumed {
        /// How many waits in a row had no known end; left out, like the next field, unless the loop waited for a usage
        /// limit or a provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blind_waits: Option<u32>,
        /// How long all waits in a row have lasted, in seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waited_s: Option<u64>,
    },
    /// A request to the loop, by a signal or from another terminal.
    Asked {
        /// The text of a note.
        note: Option<Cow<'a, str>>,
        /// How urgent the stop is now.
        stopping: Word<Urgency>,
        /// The request.
        what: Word<Asked>,
    },
    /// A question to the person at the terminal; the loop waits for an answer.
    Question {
        /// The question.
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    /// The person's answer.
    Answered {
        /// The answer; null: there is none, or the person wants the loop to stop.
        text: Option<Cow<'a, str>>,
    },
    /// The work was published: a push, a pull request.
    Published {
        /// What was published, and where.
        #[serde(borrow)]
        message: Cow<'a, str>,
    },
    /// A command of the user's that follows an event has ended.
    HookEnded {
        /// Which hook it is: `on_loop_start`, `on_iteration` or `on_end`.
        #[serde(borrow)]
        hook: Cow<'a, str>,
        /// It succeeded.
        ok: bool,
        /// What it printed, cut to a readable length.
        #[serde(borrow)]
        output: Cow<'a, str>,
    },
    /// Something the user should know; the loop goes on.
    Notice {
        /// In one line.
        #[serde(borrow)]
        message: Cow<'a, str>,
    },
    /// The loop is over.
    LoopEnded(LoopEnded<'a>),
    /// All branches of a build are over; the last line of `ralph loop build --json`, and in no events log.
    BuildEnded {
        /// Those that it was to build, in the order of the plan.
        #[serde(borrow)]
        branches: Vec<LineBranch<'a>>,
        /// The build's.
        exit_code: u8,
    },
    /// An event of a later release. Only read, never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

impl Fact<'_> {
    /// The disk space that the loop waits for.
    #[must_use]
    pub fn shortage(&self) -> Option<Shortage> {
        let &Self::Waiting { free_bytes, wanted_bytes, .. } = self else { return None };
        free_bytes.zip(wanted_bytes).map(|(free, wanted)| Shortage { free, wanted })
    }

    /// Whether it is something that an agent says or does; of these, several may come together.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        matches!(
            self,
            Self::Text { .. }
                | Self::TextDelta { .. }
                | Self::Thought { .. }
                | Self::Tool { .. }
                | Self::AgentError { .. }
                | Self::AgentNotice { .. }
                | Self::Permission { .. }
        )
    }
}

/// The texts that may contain a secret: those of agents, commands and people. Ids, names, commits and paths are none.
impl Texts for Fact<'_> {
    fn replace_texts(&mut self, new: New<'_>) {
        match self {
            Self::LoopStarted { tally, .. } => tally.as_deref_mut().replace_texts(new),
            Self::AttemptStarted { notes, .. } => notes.replace_texts(new),
            Self::AgentKnown { model, session_id } => [model, session_id].replace_texts(new),
            Self::Tool { input: one, name: other } | Self::Permission { kind: one, what: other, .. } => {
                [one, other].replace_texts(new);
            }
            Self::AttemptEnded(ended) => ended.replace_texts(new),
            Self::Refused(refused) => refused.place.replace_texts(new),
            Self::Proof(proof) => proof.replace_texts(new),
            Self::TaskEnded { reason, task, .. }
            | Self::Verified { reason, task, .. }
            | Self::Returned { reason, task, .. } => {
                [reason, &mut task.title].replace_texts(new);
            }
            Self::Asked { note: text, .. } | Self::Answered { text } => text.replace_texts(new),
            Self::Waiting { why, .. } => why.replace_texts(new),
            Self::LoopEnded(LoopEnded { detail, proof, .. }) => {
                detail.replace_texts(new);
                proof.replace_texts(new);
            }
            Self::Validated { by, output, .. } => {
                by.replace_texts(new);
                output.replace_texts(new);
            }
            Self::AgentStarted { command: text }
            | Self::Text { text }
            | Self::TextDelta { text }
            | Self::Thought { text }
            | Self::AgentError { message: text }
            | Self::AgentNotice { message: text }
            | Self::Background { tasks: text, .. }
            | Self::TaskStarted { task: TaskAtWork { title: text, .. }, .. }
            | Self::Verifying { task: TaskAtWork { title: text, .. } }
            | Self::LandingQueued { task: TaskAtWork { title: text, .. }, .. }
            | Self::Landed { task: TaskAtWork { title: text, .. }, .. }
            | Self::GateEnded { output: text, .. }
            | Self::NeedsAttention { screen: text }
            | Self::Question { text }
            | Self::Published { message: text }
            | Self::HookEnded { output: text, .. }
            | Self::Notice { message: text } => text.replace_texts(new),
            Self::BuildEnded { branches, .. } => {
                for LineBranch { detail, notes, proof, .. } in branches {
                    detail.replace_texts(new);
                    proof.replace_texts(new);
                    notes.replace_texts(new);
                }
            }
            Self::Recovered { .. }
            | Self::LimitsChanged { .. }
            | Self::AgentChanged { .. }
            | Self::GateStarted { .. }
            | Self::Validating { .. }
            | Self::Retrying { .. }
            | Self::BackingOff { .. }
            | Self::AttentionOver
            | Self::Queued
            | Self::Paused
            | Self::Resumed { .. }
            | Self::Unknown => {}
        }
    }
}

fn as_precise_as_it_is<S: Serializer>(at: &DateTime<FixedOffset>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.to_rfc3339())
}
