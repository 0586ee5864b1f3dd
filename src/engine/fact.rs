//! One fact about a running loop: the engine makes it, secrets are taken out of it, everything that a person or a program sees
//! or stores is a fold over it, and the events log writes and reads it.
//!
//! The order of the fields is the order of the keys in a line (`record/event_line.rs`): by name.
//!
//! A reader passes over fields that it does not know, reads an event that it does not know as [`Fact::Unknown`], and
//! keeps a word that it does not know as [`Word::Other`].

mod made;
mod parts;
mod words;

use std::borrow::Cow;

use chrono::{DateTime, FixedOffset};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::stop::Urgency;
use super::tally::Tally;
use crate::files::room::Shortage;
use crate::reply::show::Leave;
use crate::text::texts::{New, Texts};

pub use parts::{
    AttemptEnded, LineBranch, LineLimits, LineSpent, LineUsage, LoopEnded, TaskAtWork, TaskCounts,
};
pub use words::{Asked, BranchResult, WaitReason, Word};

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Fact<'a> {
    /// The loop begins; nothing has run yet.
    LoopStarted {
        /// What ends it besides; left out in older lines.
        #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "parts::by_name")]
        limits: Option<Box<LineLimits>>,
        /// Null: no limit.
        max_iterations: Option<u64>,
        /// For each iteration.
        max_retries: u32,
        /// The agents' working directory.
        #[serde(borrow)]
        project: Cow<'a, str>,
        /// Before, where the loop goes on; left out where that is nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        spent: Option<LineSpent>,
        /// All that was counted before; left out where that is nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tally: Option<Box<Tally>>,
    },
    /// An earlier process was cut off before it could keep all that it had counted; that was read from its events log.
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
    /// What the loop may use up is another from here on.
    LimitsChanged {
        /// Null: no limit.
        max_iterations: Option<u64>,
    },
    /// One run of the agent on an iteration begins.
    AttemptStarted {
        /// The work that it is about, where there is more than one; left out elsewhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<Cow<'a, str>>,
        /// The commit that HEAD names; null before the first one.
        head: Option<Cow<'a, str>>,
        /// Which iteration.
        iteration: u64,
        /// Notes of the user that are in its prompt; left out where there are none.
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
    /// The agent of an attempt said who it is.
    AgentKnown {
        /// The model's name; null while it has not said that.
        model: Option<Cow<'a, str>>,
        /// What it calls the session; null while it has not said that.
        session_id: Option<Cow<'a, str>>,
    },
    /// What the assistant said.
    Text {
        /// A whole block of it.
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
    /// The agent has asked for leave to do something; no user can be asked.
    Permission {
        /// What it was told.
        answer: Word<Leave>,
        /// The kind of tool that is to do it: read, edit, execute, …
        #[serde(borrow)]
        kind: Cow<'a, str>,
        /// What it wants to do, shortened.
        #[serde(borrow)]
        what: Cow<'a, str>,
    },
    /// An attempt is over, and booked.
    #[serde(borrow)]
    AttemptEnded(Box<AttemptEnded<'a>>),
    /// The agent has said its last word for now, and goes on when what it has announced is through.
    Background {
        /// How long it is waited for, in seconds.
        at_most_s: f64,
        /// What that is, in words.
        #[serde(borrow)]
        tasks: Cow<'a, str>,
    },
    /// The next iteration is about a task of the graph, which is claimed.
    TaskStarted {
        /// Which.
        #[serde(borrow)]
        task: TaskAtWork<'a>,
        /// Of the loop's target.
        tasks: TaskCounts,
        /// Its last agent has said that it is done; this one only looks whether it is.
        verifies: bool,
    },
    /// The outcome of an iteration's task is booked.
    TaskEnded {
        /// done, failed, retried, blocked (given back) or interrupted.
        #[serde(borrow)]
        outcome: Cow<'a, str>,
        /// Why; may be empty.
        #[serde(borrow)]
        reason: Cow<'a, str>,
        /// Which.
        #[serde(borrow)]
        task: TaskAtWork<'a>,
        /// Of the loop's target.
        tasks: TaskCounts,
    },
    /// A fresh agent looks whether a task is done.
    Verifying {
        /// Which.
        #[serde(borrow)]
        task: TaskAtWork<'a>,
    },
    /// That agent is through.
    Verified {
        /// It found the task done.
        ok: bool,
        /// What it has found, where it has not passed.
        #[serde(borrow)]
        reason: Cow<'a, str>,
        /// Which task.
        #[serde(borrow)]
        task: TaskAtWork<'a>,
    },
    /// The work is validated.
    Validating {
        /// By the loop so far, with the attempt whose work it is; left out in older lines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<LineSpent>,
    },
    /// The validation is through.
    Validated {
        /// It succeeded.
        ok: bool,
        /// What it printed, cut to a readable length.
        #[serde(borrow)]
        output: Cow<'a, str>,
        /// It came to no verdict, and its output says why.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        undecided: bool,
    },
    /// The iteration is tried again.
    Retrying {
        /// Which iteration.
        iteration: u64,
        /// How many retries there may be.
        max_retries: u32,
        /// How long the loop pauses before, in seconds.
        pause_s: f64,
        /// The number of the retry that follows.
        retry: u32,
    },
    /// The iteration has failed, and the next one begins after a pause.
    BackingOff {
        /// How many have failed in a row.
        failures: u64,
        /// Which iteration.
        iteration: u64,
        /// After how many in a row the loop ends; null: it does not.
        max_failures: Option<u64>,
        /// How long the loop pauses before, in seconds.
        pause_s: f64,
    },
    /// The agent's screen wants a person; the loop waits for one.
    NeedsAttention {
        /// What stands there.
        #[serde(borrow)]
        screen: Cow<'a, str>,
    },
    /// It goes on.
    AttentionOver,
    /// The loop waits for a usage limit to pass, for a provider that is overloaded, or for room on the disk.
    Waiting {
        /// What is free on the disk, in bytes; left out where something else is waited for, as the wanted ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        free_bytes: Option<u64>,
        /// What for.
        reason: Word<WaitReason>,
        /// At most until then; for room on the disk, it is looked for then, and again and again.
        #[serde(serialize_with = "as_precise_as_it_is")]
        #[cfg_attr(test, schemars(with = "DateTime<FixedOffset>"))]
        until: DateTime<FixedOffset>,
        /// What has to be free.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wanted_bytes: Option<u64>,
    },
    /// The loop of a branch waits until fewer others are at work.
    Queued,
    /// The loop holds until it is resumed.
    Paused,
    /// The loop goes on after a wait or a pause.
    Resumed {
        /// How many waits in a row had no known end; left out, as the next one, unless what was waited for is a usage
        /// limit or a provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blind_waits: Option<u32>,
        /// How long all waits in a row have lasted, in seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waited_s: Option<u64>,
    },
    /// Something was asked of the loop, by a signal or from another terminal.
    Asked {
        /// The text of a note.
        note: Option<Cow<'a, str>>,
        /// How urgent stopping is by now.
        stopping: Word<Urgency>,
        /// What was asked.
        what: Word<Asked>,
    },
    /// The person at the terminal is asked something; the loop waits for an answer.
    Question {
        /// What.
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    /// They have answered.
    Answered {
        /// What; null: they have nothing to say, or want the loop to stop.
        text: Option<Cow<'a, str>>,
    },
    /// The work has come to where it belongs: a push, a pull request.
    Published {
        /// What, and where.
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
        /// In the order of the plan.
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
    /// What the disk lacks that is waited for.
    #[must_use]
    pub fn shortage(&self) -> Option<Shortage> {
        let &Self::Waiting { free_bytes, wanted_bytes, .. } = self else { return None };
        free_bytes.zip(wanted_bytes).map(|(free, wanted)| Shortage { free, wanted })
    }

    /// Whether it is one of the many things that an agent says and does, of which several may come together.
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

/// The texts in which a secret may stand: what agents, commands and people say. What the program goes by is none: ids, names,
/// commits, paths.
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
            Self::TaskEnded { reason, task, .. } | Self::Verified { reason, task, .. } => {
                [reason, &mut task.title].replace_texts(new);
            }
            Self::Asked { note: text, .. }
            | Self::Answered { text }
            | Self::LoopEnded(LoopEnded { detail: text, .. }) => text.replace_texts(new),
            Self::AgentStarted { command: text }
            | Self::Text { text }
            | Self::TextDelta { text }
            | Self::Thought { text }
            | Self::AgentError { message: text }
            | Self::AgentNotice { message: text }
            | Self::Background { tasks: text, .. }
            | Self::TaskStarted { task: TaskAtWork { title: text, .. }, .. }
            | Self::Verifying { task: TaskAtWork { title: text, .. } }
            | Self::Validated { output: text, .. }
            | Self::NeedsAttention { screen: text }
            | Self::Question { text }
            | Self::Published { message: text }
            | Self::HookEnded { output: text, .. }
            | Self::Notice { message: text } => text.replace_texts(new),
            Self::BuildEnded { branches, .. } => {
                for LineBranch { detail, notes, .. } in branches {
                    detail.replace_texts(new);
                    notes.replace_texts(new);
                }
            }
            Self::Recovered { .. }
            | Self::LimitsChanged { .. }
            | Self::Validating { .. }
            | Self::Retrying { .. }
            | Self::BackingOff { .. }
            | Self::AttentionOver
            | Self::Waiting { .. }
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
