//! Transcripts: the lines of an events log as the live display shows them, without what is for programs alone.

mod flow;

pub(crate) use flow::Flow;

use std::fmt::Write as _;

use crate::engine::fact::{AttemptEnded, Fact};
use crate::engine::validation::failure;
use crate::record::event_line::EventLine;
use crate::tell::words::{self, Entry, GAP};
use crate::text::timestamp;

/// The entries of one loop, in the order of its events.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// How many attempts have begun.
    attempts: u64,
    /// Without attempts before the first line.
    is_within: bool,
    /// The last shown error of the agent, or failure of an attempt, which is not repeated.
    told: String,
}

impl Transcript {
    /// Whether the beginning of the log was not read, so that attempts have no numbers.
    pub(crate) fn from_within() -> Self {
        Self { is_within: true, ..Self::default() }
    }

    /// The number of the current attempt; 0 before the first one.
    pub(crate) fn attempt(&self) -> u64 {
        self.attempts
    }

    /// The entry of a line; `None`: the line shows nothing.
    pub(crate) fn entry(&mut self, line: &EventLine<'_>) -> Option<Entry> {
        let mut entry = match &line.fact {
            Fact::AttemptStarted { iteration, retry, .. } => {
                self.attempts += 1;
                self.told.clear();
                let mut begins = words::attempt_begins(*iteration, None, *retry);
                if !self.is_within && self.attempts != *iteration {
                    // Writing to a String cannot fail.
                    let _ = write!(begins.text, ", attempt {} of this run", self.attempts);
                }
                let _ = write!(begins.text, "{GAP}{}", timestamp::local(&line.at));
                begins
            }
            // Later lines have them as well, and the output of a hook is in the session log.
            Fact::Answered { text: None } | Fact::HookEnded { .. } => return None,
            Fact::LoopEnded(ended) => {
                let detail = ended.detail.as_deref().filter(|detail| !self.is_told(detail));
                words::loop_ended(ended, ended.outcome(), detail)
            }
            fact => words::entry(fact, &line.at)?,
        };
        match &line.fact {
            Fact::AgentError { message } => self.told = message.to_string(),
            Fact::AttemptEnded(ended) => self.ended(ended, &mut entry),
            Fact::Validated { by, ok: false, output, undecided } => {
                // All of its output stands below.
                entry.text = failure(by.as_deref(), *undecided, output);
                let below = entry.below(output);
                let colon = if *undecided || below.is_empty() { "" } else { ":" };
                entry.text = format!("{}{colon}\n{below}", entry.text);
            }
            _ => {}
        }
        Some(entry)
    }

    /// Whether `message` repeats what was shown last: a failure quotes the agent's error.
    fn is_told(&self, message: &str) -> bool {
        !self.told.is_empty() && message.ends_with(&*self.told)
    }

    /// Adds the reason of the failure.
    fn ended(&mut self, ended: &AttemptEnded<'_>, entry: &mut Entry) {
        let why = ended.why();
        if !why.is_empty() && !self.is_told(why) {
            entry.text = format!("{}: {why}", entry.text);
            why.clone_into(&mut self.told);
        }
    }
}

#[cfg(test)]
mod tests;
