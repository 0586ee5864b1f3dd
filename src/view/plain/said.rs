//! What the agent of an attempt says and does, as the scrolling view shows it.

use super::Plain;
use crate::engine::fact::Fact;
use crate::tell::words::{Entry, Kind};
use crate::view::terminal::Target;

/// So much of an error, in characters, a failure's message quotes at least.
const QUOTED: usize = 200;

impl Plain {
    /// The failure of an attempt, in one line with the error of the agent's that it quotes; none for an empty `message`.
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
            // What can be done about it may follow it there.
            if !message.contains(begin.trim_end().trim_end_matches('.')) {
                self.line(&Entry::new(Kind::Error, "✗", error));
            }
        }
    }

    /// Shows one thing that the agent has said or done. What came together is written together.
    pub(super) fn shown(&mut self, fact: &Fact<'_>, entry: Entry, goes_on: bool) {
        if entry.kind == Kind::Error {
            self.held.push(entry.text);
        } else {
            self.held_notice();
            if !self.held.is_empty() {
                // The agent went on after them.
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
