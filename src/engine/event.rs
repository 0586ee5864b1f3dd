//! One fact about a running loop. Everything a person or a program sees or stores is a fold over these.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Local, Utc};
use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use super::policy::Limits;
use super::report::Report;
use super::stop::{Ask, Urgency};
use super::tally::Tally;
use super::worktree::WorkDone;
use crate::files::room::Shortage;
use crate::reply::show::Show;

/// Which of an agent's two pipes bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// What it says, usually JSON lines.
    Stdout,
    /// What it complains about.
    Stderr,
}

/// Who runs: constant for the life of a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopIdentity {
    /// Unique id of this run, also the run mark of its processes.
    pub run: String,
    /// The loop's name.
    pub name: String,
    /// `plan`, `build` or `prompt`.
    pub mode: String,
    /// The agent's name.
    pub agent: String,
}

/// A fact and when it became one.
#[derive(Debug, Clone, Copy)]
pub struct Stamped<'a> {
    /// Wall-clock time.
    pub at: DateTime<Local>,
    /// Which loop.
    pub identity: &'a LoopIdentity,
    /// The fact.
    pub event: Event<'a>,
}

/// The task of a graph that an iteration is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskAtWork<'a> {
    /// Its id.
    pub id: &'a str,
    /// One line.
    pub title: &'a str,
    /// The name of its feature.
    pub feature: Option<&'a str>,
    /// Its model; `None`: the one that its agent takes by itself.
    pub model: Option<&'a str>,
}

/// How many tasks the loop's target has, those with parts left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TaskCounts {
    /// Done.
    pub done: u64,
    /// Given up.
    pub failed: u64,
    /// All.
    pub total: u64,
}

/// What an earlier process of a loop did and was cut off before its state had it: read from its events log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recovered {
    /// The run that was cut off.
    pub from: String,
    /// Attempts that had ended.
    pub attempts: u64,
    /// What they have cost, in US dollars, as far as agents reported it.
    pub cost_usd: Option<f64>,
}

/// What happened.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The loop begins; nothing has run yet.
    LoopStarted {
        /// The working directory of its agents.
        project: &'a Path,
        /// What it may use up.
        limits: &'a Limits,
        /// Where it starts from.
        tally: &'a Tally,
    },
    /// The count has what an earlier process could not keep of it.
    Recovered(&'a Recovered),
    /// What the loop may use up is another from here on.
    LimitsChanged {
        /// What it may use up now.
        limits: &'a Limits,
        /// The count so far.
        tally: &'a Tally,
    },
    /// The loop waits until fewer others are at work.
    Queued,
    /// An attempt begins.
    AttemptStarted {
        /// The count so far, this iteration included.
        tally: &'a Tally,
        /// The commit that HEAD names.
        head: Option<&'a str>,
    },
    /// The agent of an attempt is started.
    AgentStarted {
        /// With these words, as one would write them for a shell.
        command: &'a str,
    },
    /// The agent said who it is; what it has not said yet is `None`.
    AgentKnown {
        /// The model's name.
        model: Option<&'a str>,
        /// What the agent calls the session.
        session: Option<&'a str>,
    },
    /// The agent wrote bytes. For records only; far too many to be shown.
    Output {
        /// Where to.
        stream: Stream,
        /// As they came, cut anywhere.
        bytes: &'a [u8],
    },
    /// The agent did these things, which a person may want to see; they came together.
    Shown(&'a [Show]),
    /// The agent has said its last word for now, and goes on when what it has announced is through.
    Background {
        /// What that is, in words.
        tasks: &'a str,
        /// How long it is waited for.
        at_most: Duration,
    },
    /// The next iteration is about a task of the graph, which is claimed.
    TaskStarted {
        /// Which.
        task: TaskAtWork<'a>,
        /// Its last agent has said that it is done; this one only looks whether it is.
        verifies: bool,
        /// Where the target stands.
        counts: TaskCounts,
    },
    /// The outcome of an iteration's task is booked.
    TaskEnded {
        /// Which.
        task: TaskAtWork<'a>,
        /// `done`, `failed`, `retried`, `blocked` (given back) or `interrupted`.
        became: &'static str,
        /// Why; may be empty.
        reason: &'a str,
        /// Where the target stands.
        counts: TaskCounts,
    },
    /// A fresh agent looks whether a task is done.
    Verifying {
        /// Which.
        task: TaskAtWork<'a>,
    },
    /// That agent is through.
    Verified {
        /// Which task.
        task: TaskAtWork<'a>,
        /// It found the task done.
        ok: bool,
        /// What it has found, where it has not passed.
        reason: &'a str,
    },
    /// The work is validated.
    Validating,
    /// The validation is through.
    Validated {
        /// It succeeded.
        ok: bool,
        /// It came to no verdict, and its output says why.
        undecided: bool,
        /// What it printed, cut to a readable length.
        output: &'a str,
    },
    /// An attempt is over, and booked.
    AttemptEnded {
        /// The count, this attempt included.
        tally: &'a Tally,
        /// What it left.
        report: &'a Report,
        /// The commit that HEAD names now.
        head: Option<&'a str>,
        /// Whether anything changed; `None` when nobody looked.
        changed: Option<bool>,
    },
    /// The iteration is tried again.
    Retrying {
        /// Which iteration.
        iteration: u64,
        /// The number of the retry that follows.
        retry: u32,
        /// How many there may be.
        max_retries: u32,
        /// How long the loop pauses before.
        pause: Duration,
    },
    /// The iteration has failed, and the next one begins after a pause.
    BackingOff {
        /// The count, the failed iteration included.
        tally: &'a Tally,
        /// After how many failures in a row the loop ends.
        breaker: Option<u64>,
        /// How long the loop pauses before.
        pause: Duration,
    },
    /// The agent's screen shows this and wants a person; the loop waits for one. `None`: it goes on.
    Attention(Option<&'a str>),
    /// The loop waits for a usage limit to pass, for a provider that is overloaded, or for room on the disk.
    Waiting {
        /// At most until then; for room, it is looked for then, and again and again.
        until: DateTime<Utc>,
        /// The room that is waited for; `None`: it is something else.
        shortage: Option<Shortage>,
        /// The count at the start of the wait.
        tally: &'a Tally,
    },
    /// The loop holds until it is resumed.
    Paused {
        /// The count so far.
        tally: &'a Tally,
    },
    /// The loop goes on after a wait or a pause.
    Resumed {
        /// The count so far.
        tally: &'a Tally,
    },
    /// Something was asked of the loop.
    Asked {
        /// What.
        ask: &'a Ask,
        /// How urgent stopping is by now.
        urgency: Urgency,
    },
    /// The person at the terminal is asked this; the loop waits for an answer.
    Question(&'a str),
    /// They have answered; `None`: they have nothing to say, or want the loop to stop.
    Answered(Option<&'a str>),
    /// The work has come to where it belongs: a push, a pull request.
    Published(&'a str),
    /// A command of the user's that follows an event has ended.
    HookEnded {
        /// Which hook it is.
        hook: &'a str,
        /// It succeeded.
        ok: bool,
        /// What it printed, cut to a readable length.
        output: &'a str,
    },
    /// Something the user should know; the loop goes on.
    Notice(&'a str),
    /// The loop is over.
    LoopEnded {
        /// Why.
        outcome: Outcome,
        /// What led there, in one line, where the outcome alone does not say it.
        detail: Option<&'a str>,
        /// The final count.
        tally: &'a Tally,
        /// How long it took.
        duration: Duration,
        /// What was committed since the first attempt of this process began; `None` where that is nothing.
        work: Option<&'a WorkDone>,
    },
}

impl<'a> Event<'a> {
    /// The count so far, where the event tells it.
    #[must_use]
    pub fn tally(&self) -> Option<&'a Tally> {
        match *self {
            Self::LoopStarted { tally, .. }
            | Self::LimitsChanged { tally, .. }
            | Self::AttemptStarted { tally, .. }
            | Self::AttemptEnded { tally, .. }
            | Self::BackingOff { tally, .. }
            | Self::Waiting { tally, .. }
            | Self::Paused { tally }
            | Self::Resumed { tally }
            | Self::LoopEnded { tally, .. } => Some(tally),
            _ => None,
        }
    }
}
