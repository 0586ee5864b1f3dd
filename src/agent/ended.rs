//! Judges an attempt: from evidence to report, for every kind of agent.

use std::collections::VecDeque;
use std::time::Duration;

use super::Timeouts;
use super::codec::Decoded;
use crate::engine::refused::Refused;
use crate::engine::report::{AttemptStatus, Report};
use crate::presets::Preset;
use crate::presets::fault::class_of_words;
use crate::reply::Reply;
use crate::reply::decode::Item;
use crate::reply::sigil::Sigils;
use crate::reply::usage::Class;
use crate::reply::verdict::{AgentEnd, Asides, Evidence, Failure, Kind, Readers, judge};
use crate::text::duration;

/// How much of stderr is kept for the failure message, and how much of a line of it, in bytes.
const STDERR_TAIL: usize = 8192;
const STDERR_LINE: usize = 4096;
/// What the user can do about an account without credit.
const OUT_OF_CREDIT: &str = "add credit, or let another agent work (--agent)";
/// What a person does about a model that is not there.
/// How much of the assistant's text is kept, in bytes.
const TEXT_TAIL: usize = 256 * 1024;

/// Why we end an agent that has not ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    AfterFinal,
    /// Its announced work took too long, or is a server.
    InBackground,
    TimedOut,
    Inactive,
    Interrupted,
    /// It repeats something that cannot succeed.
    Hopeless,
    /// The loop's time is over.
    LoopOver,
    /// The loop cannot go on: a record cannot be written, a claim cannot be renewed.
    Fault,
}

/// The agent of an attempt, as far as judging it needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judging<'a> {
    /// The agent's name in messages.
    pub(super) agent: &'a str,
    /// Where the filters come from.
    pub(super) readers: Readers,
    /// Whether the agent's runs end with a final event.
    pub(super) has_final: bool,
    /// The meaning of its exit codes and its stderr.
    pub(super) asides: Asides,
    /// Whether it exits by request after its last message, so that its exit code says nothing.
    pub(super) exits_when_told: bool,
    /// The preset of the agent, for what to do about a failure.
    pub(super) preset: &'a Preset,
}

/// What is said of an agent that we have ended while it waited for its connection.
pub(super) const UNCONNECTED: &str = " without a connection to its provider";

/// The evidence that an attempt has left so far.
#[derive(Default)]
pub(super) struct Traces {
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) ending: Option<Ending>,
    pub(super) timeouts: Timeouts,
    /// What was checked before the agent was ended for its silence.
    pub(super) evidence_of_death: String,
    pub(super) decoded: Decoded,
    /// What the walls around the agent have refused.
    pub(super) refused: Vec<Refused>,
    /// The request before the prompt that the agent never answered.
    pub(super) unanswered: Option<&'static str>,
    reply: Reply,
    text: String,
    stderr: VecDeque<u8>,
    /// The length of its last line so far, in bytes.
    stderr_line: usize,
}

impl Traces {
    /// The evidence of an agent with this limit for background work.
    pub(super) fn new(timeouts: Timeouts) -> Self {
        Self { timeouts, ..Self::default() }
    }

    /// Adds an item of the agent's stream.
    pub(super) fn item(&mut self, item: &Item) {
        self.reply.fold(item);
        if let Item::Text(text) = item {
            self.keep_text(text);
        }
    }

    /// Whether the agent has begun a tool call and not ended it.
    pub(super) fn has_tool_in_flight(&self) -> bool {
        !self.reply.usage.tools_in_flight.is_empty()
    }

    /// Whether the agent has begun a tool call whose end it may never report, or background work that it does not wait for.
    pub(super) fn has_open_end(&self) -> bool {
        !self.reply.usage.sessions_in_flight.is_empty() || !self.reply.usage.background.is_empty()
    }

    /// The work that the agent has announced after its final event, in words.
    pub(super) fn announced(&self) -> Option<String> {
        self.reply.usage.announced()
    }

    /// The number of its background tasks, if it has announced nothing else.
    pub(super) fn background_tasks(&self) -> Option<usize> {
        let usage = &self.reply.usage;
        (usage.wakes_in.is_none() && !usage.background.is_empty()).then_some(usage.background.len())
    }

    /// The model and the session, if the agent has named them.
    pub(super) fn known(&self) -> (Option<&str>, Option<&str>) {
        (self.reply.usage.model.as_deref(), self.reply.usage.session_id.as_deref())
    }

    fn keep_text(&mut self, piece: &str) {
        self.text.push_str(piece);
        // Cut rarely, so that cutting costs little per piece.
        if self.text.len() > 2 * TEXT_TAIL {
            let surplus = self.text.floor_char_boundary(self.text.len() - TEXT_TAIL);
            self.text.drain(..surplus);
        }
    }

    /// Keeps the end of the output of an agent whose text cannot be read.
    pub(super) fn keep_raw(&mut self, bytes: &[u8]) {
        self.keep_text(&String::from_utf8_lossy(bytes));
    }

    /// Keeps the last lines of stderr, and the beginning of a long one, which says what went wrong.
    pub(super) fn keep_stderr(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = piece.strip_suffix(b"\n").unwrap_or(piece);
            let room = STDERR_LINE.saturating_sub(self.stderr_line);
            self.stderr.extend(&line[..line.len().min(room)]);
            self.stderr_line = self.stderr_line.saturating_add(line.len());
            if line.len() < piece.len() {
                self.stderr.push_back(b'\n');
                self.stderr_line = 0;
            }
        }
        // The rest of a line without its beginning would look like a line.
        if let Some(surplus) = self.stderr.len().checked_sub(STDERR_TAIL).filter(|surplus| *surplus > 0) {
            let end = self.stderr.iter().skip(surplus - 1).position(|byte| *byte == b'\n');
            self.stderr.drain(..end.map_or(surplus, |end| surplus + end));
        }
    }

    /// Judges the attempt.
    pub(super) fn report(mut self, judging: Judging<'_>, duration: Duration) -> Report {
        let Judging { agent, readers, has_final, asides, exits_when_told, preset } = judging;
        let stderr = String::from_utf8_lossy(self.stderr.make_contiguous()).into_owned();
        let usage = &self.reply.usage;
        let evidence = Evidence {
            agent,
            end: self.end(exits_when_told),
            readers,
            has_final,
            final_seen: usage.final_seen,
            said: self.reply.said,
            counters: self.decoded.counters,
            fault: usage.fault.as_ref(),
            dead_filter: self.decoded.dead_filter.as_deref(),
            asides,
            stderr_tail: &stderr,
            class_of_words,
        };
        let failure = judge(&evidence).err().map(|failure| self.with_advice(failure, agent, preset));
        let status = failure.as_ref().map_or(AttemptStatus::Success, AttemptStatus::of);
        let sigils = match status {
            AttemptStatus::Success => self.reply.speech.sigils(),
            _ => Sigils::default(),
        };
        Report {
            is_taken_over: false,
            status,
            duration,
            exit_code: self.exit_code,
            signal: self.signal,
            exceeded: match failure.as_ref().map(|failure| failure.kind) {
                Some(Kind::TimedOut) => Some(self.timeouts.attempt),
                Some(Kind::Inactive) => Some(self.timeouts.inactivity),
                _ => None,
            },
            failure: failure.filter(|failure| failure.kind != Kind::Interrupted),
            sigils,
            text: self.text,
            matches_done: false,
            usage: self.reply.usage,
            balance: None,
            skipped_lines: self.decoded.counters.malformed + self.decoded.counters.oversized,
            refused: self.refused,
        }
    }

    /// A timeout's message names the limit, what was checked, and how to change it.
    fn with_advice(&self, mut failure: Failure, agent: &str, preset: &Preset) -> Failure {
        if failure.kind == Kind::TimedOut {
            let limit = duration::format(self.timeouts.attempt);
            let why = self.unfinished(&failure);
            failure.message = format!("{agent} ran longer than {limit}{why} and was ended (--timeout)");
        } else if failure.kind == Kind::Inactive {
            let limit = duration::format(self.timeouts.inactivity);
            let (evidence, why) = (&self.evidence_of_death, self.unfinished(&failure));
            failure.message = format!(
                "{agent} showed no sign of life for {limit}{why} and was ended: {evidence} (--inactivity-timeout)"
            );
        } else {
            return with_remedy(failure, preset);
        }
        failure
    }

    /// What an agent has waited for to the end: its connection, or the answer to a step.
    fn unfinished(&self, failure: &Failure) -> String {
        if failure.class == Class::Network {
            return UNCONNECTED.to_owned();
        }
        self.unanswered.map(|step| format!(" without an answer to '{step}'")).unwrap_or_default()
    }

    fn end(&self, exits_when_told: bool) -> AgentEnd {
        if exits_when_told && self.ending.is_none() && self.reply.usage.final_seen {
            return AgentEnd::EndedAfterFinal;
        }
        match (self.ending, self.exit_code, self.signal) {
            (Some(Ending::AfterFinal | Ending::InBackground), ..) => AgentEnd::EndedAfterFinal,
            (Some(Ending::TimedOut), ..) => AgentEnd::TimedOut,
            (Some(Ending::Inactive), ..) => AgentEnd::Inactive,
            (Some(Ending::Hopeless), ..) => AgentEnd::Hopeless,
            (Some(Ending::Interrupted | Ending::LoopOver | Ending::Fault), ..) => AgentEnd::Interrupted,
            (None, Some(code), _) => AgentEnd::Exited(code),
            (None, None, Some(signal)) => AgentEnd::Signaled(signal),
            (None, None, None) => AgentEnd::OutOfSight,
        }
    }
}

/// The messages of a refused login, of an empty account and of an unknown model say what to do about it. `preset`: that of
/// its agent.
pub(super) fn with_remedy(mut failure: Failure, preset: &Preset) -> Failure {
    let words = failure.message.trim_end_matches('.');
    match failure.class {
        Class::Auth if !preset.login.is_empty() => {
            failure.message = format!("{words}; to log in, {}", preset.login);
        }
        Class::Billing => failure.message = format!("{words}; {OUT_OF_CREDIT}"),
        Class::Model => failure.message = format!("{words}; name {} (--model)", preset.models_in_words()),
        _ => {}
    }
    failure
}
