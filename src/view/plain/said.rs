//! The agent's text and tool calls in the scrolling view.

use super::Plain;
use crate::engine::fact::Fact;
use crate::tell::words::{Entry, Kind};
use crate::view::terminal::Target;

/// How much of an error, in characters, a failure's message quotes at least.
const QUOTED: usize = 200;

impl Plain {
    /// The failure of an attempt, in one line with the agent's error that it quotes; none for an empty `message`.
    pub(super) fn failed(&mut self, message: &str) {
        self.held_errors(message);
        if !message.is_empty() {
            self.line(&Entry::new(Kind::Error, "✗", message));
            message.clone_into(&mut self.told);
        }
    }

    fn held_notice(&mut self) {
        if let Some(notice) = self.notice.take() {
            self.line(&notice);
        }
    }

    /// Errors of the agent that `message` does not quote.
    pub(super) fn held_errors(&mut self, message: &str) {
        self.held_notice();
        for error in std::mem::take(&mut self.held) {
            let begin: String = error.chars().take(QUOTED).collect();
            // A hint may follow it there.
            if !message.contains(begin.trim_end().trim_end_matches('.')) {
                self.line(&Entry::new(Kind::Error, "✗", error));
            }
        }
    }

    /// Shows something that the agent has said or done. Facts that came together are written together.
    pub(super) fn shown(&mut self, fact: &Fact<'_>, entry: Entry, goes_on: bool) {
        if entry.kind == Kind::Error {
            self.held.push(entry.text);
        } else {
            self.held_notice();
            if !self.held.is_empty() {
                // The agent has gone on after these errors.
                self.failed("");
            }
            match fact {
                Fact::AgentNotice { .. } if self.is_branch() => self.notice = Some(entry),
                Fact::AgentNotice { .. } | Fact::Permission { .. } => self.line(&entry),
                _ => self.pending += &self.flow.take(&entry),
            }
        }
        if !goes_on {
            self.voice.show(Target::Stderr, std::mem::take(&mut self.pending));
        }
    }
}
