//! One line of `--json` and of the events log: written and read by the same types.
//!
//! The order of the keys is the order of the fields here: what every line has, by name, then `event`, then what
//! belongs to this event, by name. Nothing is sorted while a line is written, so a new field goes to its place in the
//! alphabet.
//!
//! A reader passes over fields that it does not know, reads an event that it does not know as [`Fact::Unknown`], and
//! keeps a word that it does not know as [`Word::Other`].

mod words;

use std::borrow::Cow;

use chrono::{DateTime, FixedOffset, Local, SecondsFormat};
#[cfg(test)]
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::engine::event::{LoopIdentity, TaskCounts};
use crate::engine::outcome::{Ended, Outcome, Status};
use crate::engine::report::{AttemptStatus, Signal};
use crate::engine::tally::Tally;
use crate::reply::show::Leave;
use crate::reply::usage::Class;
use crate::reply::verdict::Kind;

pub use words::{Asked, BranchResult, Stopping, WaitReason, Word};

/// The version of the format, in every line as `v`. It grows when a field changes its meaning or goes away; new
/// fields, events and words may come without.
pub const VERSION: u32 = 1;

/// One line of `--json` and of logs/session-*.events.jsonl. Later releases may add fields, events and words without a
/// new version; a reader passes over what it does not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(title = "Events of a ralph loop, version 1", extend("$id" = "ralph-events-1")))]
pub struct EventLine<'a> {
    /// The agent's name.
    #[serde(borrow)]
    pub agent: Cow<'a, str>,
    /// Local time with its offset.
    #[serde(serialize_with = "milliseconds")]
    #[cfg_attr(test, schemars(with = "DateTime<FixedOffset>"))]
    pub at: DateTime<FixedOffset>,
    /// The loop's name.
    #[serde(borrow, rename = "loop")]
    pub name: Cow<'a, str>,
    /// plan, build, prompt, run, tasks or feature.
    #[serde(borrow)]
    pub mode: Cow<'a, str>,
    /// Unique id of the run.
    #[serde(borrow)]
    pub run: Cow<'a, str>,
    /// The format's version.
    #[serde(deserialize_with = "known_version")]
    #[cfg_attr(test, schemars(extend("const" = VERSION)))]
    pub v: u32,
    /// What happened.
    #[serde(borrow, flatten)]
    pub fact: Fact<'a>,
}

impl<'a> EventLine<'a> {
    /// A fact about a loop.
    #[must_use]
    pub fn new(at: DateTime<Local>, identity: &'a LoopIdentity, fact: Fact<'a>) -> Self {
        Self {
            agent: (&identity.agent).into(),
            at: at.fixed_offset(),
            name: (&identity.name).into(),
            mode: (&identity.mode).into(),
            run: (&identity.run).into(),
            v: VERSION,
            fact,
        }
    }

    /// Reads a line, with or without its newline.
    ///
    /// # Errors
    /// When it is no JSON, lacks something that every version writes, or is of another version of the format.
    pub fn read(line: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }

    /// Writes the line, with its newline.
    ///
    /// # Errors
    /// When the fact is [`Fact::Unknown`].
    pub fn write(&self) -> serde_json::Result<String> {
        let mut line = serde_json::to_string(self)?;
        line.push('\n');
        Ok(line)
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Fact<'a> {
    /// The loop begins; nothing has run yet.
    LoopStarted {
        /// What ends it besides; left out in older lines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
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
        task: LineTask<'a>,
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
        task: LineTask<'a>,
        /// Of the loop's target.
        tasks: TaskCounts,
    },
    /// A fresh agent looks whether a task is done.
    Verifying {
        /// Which.
        #[serde(borrow)]
        task: LineTask<'a>,
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
        task: LineTask<'a>,
    },
    /// The work is validated.
    Validating,
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
        stopping: Word<Stopping>,
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

/// What ends a loop, besides the number of its iterations and retries. What is left out is off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
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
    /// In US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Of the loop as a whole, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_duration_s: Option<f64>,
    /// The longest wait in a row for a usage limit or a provider, in seconds.
    pub max_limit_wait_s: f64,
    /// Read and written ones together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The pause before a first retry, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_pause_s: Option<f64>,
    /// An iteration that failed for good ends the loop.
    pub stop_on_error: bool,
}

/// A task of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LineTask<'a> {
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
    pub balance: Option<LineBalance>,
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
    #[serde(borrow)]
    pub failure: Option<LineFailure<'a>>,
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

/// The account's balance, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LineBalance {
    /// What is left.
    pub left: f64,
    /// What the attempt used up; null when one of the two balances is not known.
    pub spent: Option<f64>,
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LineFailure<'a> {
    /// What kind of error the agent reported.
    pub class: Word<Class>,
    /// In which way it failed.
    pub kind: Word<Kind>,
    /// One line for the person who must act on it.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// When a usage limit ends, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<i64>,
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
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub fault: Option<LineFault<'a>>,
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

/// The agent's own last error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LineFault<'a> {
    /// Its kind.
    pub class: Word<Class>,
    /// In the agent's words; may have several lines, may be empty.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// When a usage limit ends, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<i64>,
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
    pub work: Option<LineWork<'a>>,
}

/// What was committed while a loop ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct LineWork<'a> {
    /// How many were made.
    pub commits: u64,
    /// Lines that went.
    pub deletions: u64,
    /// Files that differ.
    pub files: u64,
    /// The commit that HEAD named before; null: there was none.
    pub from: Option<Cow<'a, str>>,
    /// Lines that came.
    pub insertions: u64,
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

fn milliseconds<S: Serializer>(at: &DateTime<FixedOffset>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.to_rfc3339_opts(SecondsFormat::Millis, false))
}

fn as_precise_as_it_is<S: Serializer>(at: &DateTime<FixedOffset>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.to_rfc3339())
}

fn known_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        other => Err(D::Error::custom(format!("version {other} of the format, only {VERSION} is known"))),
    }
}

#[cfg(test)]
mod tests;
