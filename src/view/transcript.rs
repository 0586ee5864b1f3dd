//! What agents did, for a person: the lines of an events log as the live display shows them, without what is for programs
//! alone.

mod flow;

use std::fmt::Write as _;

pub(crate) use flow::{Flow, style_of};

use crate::engine::fact::{AttemptEnded, Fact, WaitReason, Word};
use crate::engine::report::AttemptStatus;
use crate::engine::validator::failure;
use crate::record::blocks;
use crate::record::event_line::EventLine;
use crate::reply::show::Leave;
use crate::text::{count, duration, timestamp};

/// What an entry is, and so how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An attempt begins.
    Begin,
    /// The assistant said this: a whole block.
    Text,
    /// The assistant said this, which goes on where the last piece ended.
    Piece,
    /// The agent thought this, which goes on like a piece.
    Thought,
    /// A tool was called: `mark` is its name, the text what tells most about its input.
    Tool,
    /// Something went well.
    Good,
    /// Something went wrong.
    Error,
    /// Something that is worth a look.
    Note,
    /// Something that may be passed over.
    Faint,
}

/// One thing of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// What its line begins with: a sign, or the name of a tool. Empty for what the agent said.
    pub(crate) mark: String,
    /// As agents wrote it: it may hold anything, also what could drive a terminal.
    pub(crate) text: String,
}

impl Entry {
    fn new(kind: Kind, mark: &str, text: impl Into<String>) -> Self {
        Self { kind, mark: mark.to_owned(), text: text.into() }
    }
}

/// The entries of one loop, in the order of its events.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// How many attempts have begun.
    attempts: u64,
    /// Those before the first line are not counted.
    is_within: bool,
    /// The error of the agent, or the failure of an attempt, that was told last: nothing tells it again.
    told: String,
}

impl Transcript {
    /// Of a log whose beginning is not read: attempts have no numbers.
    pub(crate) fn from_within() -> Self {
        Self { is_within: true, ..Self::default() }
    }

    /// The number of the attempt at hand; 0 before the first one.
    pub(crate) fn attempt(&self) -> u64 {
        self.attempts
    }

    /// What a line shows; `None`: nothing.
    pub(crate) fn entry(&mut self, line: &EventLine<'_>) -> Option<Entry> {
        let entry = match &line.fact {
            Fact::AttemptStarted { iteration, retry, .. } => {
                self.attempts += 1;
                self.told.clear();
                let retry = if *retry > 0 { format!(", retry {retry}") } else { String::new() };
                let number = if self.is_within || self.attempts == *iteration {
                    String::new()
                } else {
                    format!(", attempt {} of this run", self.attempts)
                };
                let at = timestamp::local(&line.at);
                Entry::new(Kind::Begin, "▶", format!("Iteration {iteration}{retry}{number} · {at}"))
            }
            Fact::Text { text } => Entry::new(Kind::Text, "", &**text),
            Fact::TextDelta { text } => Entry::new(Kind::Piece, "", &**text),
            Fact::Thought { text } => Entry::new(Kind::Thought, "", &**text),
            Fact::Tool { input, name } => Entry::new(Kind::Tool, name, &**input),
            Fact::AgentError { message } => {
                self.told = message.to_string();
                Entry::new(Kind::Error, "✗", &**message)
            }
            Fact::AgentNotice { message } => Entry::new(Kind::Note, "↻", &**message),
            Fact::Permission { answer, what, .. } => match answer {
                Word::Known(Leave::Allowed) => Entry::new(Kind::Faint, "✓", format!("allowed: {what}")),
                Word::Known(Leave::Refused) => {
                    Entry::new(Kind::Note, "✗", format!("refused, it may only look: {what}"))
                }
                Word::Known(Leave::Unanswered) | Word::Other(_) => {
                    Entry::new(Kind::Note, "✗", format!("not answered, no answer fits: {what}"))
                }
            },
            Fact::AttemptEnded(ended) => self.ended(ended),
            Fact::LoopEnded(ended) => {
                let word = match &ended.end {
                    Some(Word::Known(end)) => end.word(),
                    Some(Word::Other(word)) => word,
                    None => "ended",
                };
                let kind = if word == "done" { Kind::Good } else { Kind::Note };
                let why = ended.detail.as_deref().filter(|why| !why.is_empty() && !self.is_told(why));
                Entry::new(kind, "■", why.map_or_else(|| word.to_owned(), |why| format!("{word}: {why}")))
            }
            fact => return around(fact),
        };
        Some(entry)
    }

    /// Whether `message` says no more than what was told last: a failure quotes the agent's error.
    fn is_told(&self, message: &str) -> bool {
        !self.told.is_empty() && message.ends_with(&*self.told)
    }

    fn ended(&mut self, ended: &AttemptEnded<'_>) -> Entry {
        let (kind, mark, how) = attempt_ended(ended.status());
        let took = duration::elapsed_tenths(ended.duration());
        let mut text = format!("Iteration {} {how} {took}", ended.iteration);
        // Writing to a String cannot fail.
        if let Some(cost) = ended.usage.cost_usd.filter(|cost| *cost > 0.0) {
            let _ = write!(text, " · ${cost:.2}");
        }
        if let (Some(input), Some(output)) = (ended.usage.input_tokens, ended.usage.output_tokens)
            && (input, output) != (0, 0)
        {
            let _ = write!(text, " · {} tokens in, {} out", count::short(input), count::short(output));
        }
        if let Some(failure) = &ended.failure
            && !self.is_told(&failure.message)
        {
            let _ = write!(text, ": {}", failure.message);
            self.told.clone_from(&failure.message);
        }
        Entry::new(kind, mark, text)
    }
}

/// What became of an attempt: how its line looks, its sign, and the words before how long it took.
pub(super) fn attempt_ended(status: AttemptStatus) -> (Kind, &'static str, &'static str) {
    match status {
        AttemptStatus::Success | AttemptStatus::Still => (Kind::Good, "✓", "completed in"),
        AttemptStatus::CompleteUnproven => {
            (Kind::Note, "?", "says that all is done, which is not proven, after")
        }
        AttemptStatus::UsageLimit => (Kind::Note, "⏸", "met a usage limit after"),
        AttemptStatus::Interrupted => (Kind::Note, "■", "was interrupted after"),
        AttemptStatus::Timeout => (Kind::Error, "⏱", "timed out after"),
        AttemptStatus::AgentFailure => (Kind::Error, "✗", "failed after"),
    }
}

/// What happens around the attempts.
fn around(fact: &Fact<'_>) -> Option<Entry> {
    let entry = match fact {
        Fact::TaskStarted { task, verifies, .. } => {
            let what = if *verifies { "verifies " } else { "" };
            Entry::new(Kind::Faint, "▶", format!("{what}{} {}", task.id, task.title))
        }
        Fact::TaskEnded { outcome, reason, task, .. } => {
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            let (kind, mark) = match &**outcome {
                "done" => (Kind::Good, "✓"),
                "failed" => (Kind::Error, "✗"),
                _ => (Kind::Note, "↻"),
            };
            Entry::new(kind, mark, format!("{} {outcome}{why}", task.id))
        }
        Fact::Verified { ok: true, task, .. } => {
            Entry::new(Kind::Good, "✓", format!("{} is verified", task.id))
        }
        Fact::Verified { reason, task, .. } => {
            Entry::new(Kind::Error, "✗", format!("{} is not verified: {reason}", task.id))
        }
        Fact::Validated { ok: true, .. } => Entry::new(Kind::Good, "✓", "the validation succeeded"),
        Fact::Validated { output, undecided: true, .. } => Entry::new(Kind::Error, "✗", output.to_string()),
        Fact::Validated { output, .. } => {
            Entry::new(Kind::Error, "✗", format!("{}:\n{output}", failure(false, output)))
        }
        Fact::Retrying { retry, max_retries, pause_s, .. } => {
            let pause = duration::rough(duration::of_seconds(*pause_s));
            let soon = format!("retry {retry} of {max_retries} in {pause}");
            Entry::new(Kind::Note, "↻", soon)
        }
        Fact::NeedsAttention { screen } => Entry::new(Kind::Note, "?", format!("needs attention: {screen}")),
        Fact::Waiting { reason, until, .. } => {
            let why = match reason {
                Word::Known(WaitReason::UsageLimit) => "usage limit reached",
                Word::Known(WaitReason::Overload) => "provider overloaded",
                Word::Known(WaitReason::DiskSpace) => "the disk is nearly full",
                Word::Other(word) => word,
            };
            Entry::new(Kind::Note, "⏸", format!("{why}; waiting until {}", timestamp::local(until)))
        }
        Fact::Paused => Entry::new(Kind::Note, "⏸", "paused"),
        Fact::Resumed { .. } | Fact::AttentionOver => Entry::new(Kind::Note, "▶", "going on"),
        Fact::Background { tasks, .. } => Entry::new(
            Kind::Faint,
            "⏸",
            format!("the agent waits for what it has in the background: {tasks}"),
        ),
        Fact::Asked { note: Some(note), .. } => Entry::new(Kind::Note, "✎", format!("note: {note}")),
        Fact::Question { text } => Entry::new(Kind::Note, "?", &**text),
        Fact::Answered { text: Some(text) } => Entry::new(Kind::Note, "›", &**text),
        Fact::Published { message } => Entry::new(Kind::Faint, "↑", &**message),
        Fact::Notice { message } => Entry::new(Kind::Note, "!", &**message),
        Fact::Recovered { attempts, cost_usd, .. } => {
            Entry::new(Kind::Note, "!", blocks::recovered_line(*attempts, *cost_usd))
        }
        _ => return None,
    };
    Some(entry)
}

#[cfg(test)]
mod tests;
