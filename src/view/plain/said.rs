//! What the agent of an attempt says and does, as the scrolling view shows it.

use std::fmt::Write as _;

use super::Plain;
use crate::engine::fact::{Fact, Word};
use crate::reply::show::Leave;
use crate::text::palette::{ERROR, FAINT, NOTE, STRONG};
use crate::text::terminal::clean;
use crate::view::cells;
use crate::view::console::Target;

/// So much of an error, in characters, a failure's message quotes at least.
const QUOTED: usize = 200;

impl Plain {
    /// The failure of an attempt, in one line with the error of the agent's that it quotes; none for an empty `message`.
    pub(super) fn failed(&mut self, message: &str) {
        self.held_errors(message);
        if !message.is_empty() {
            self.line(ERROR, "✗", message);
            message.clone_into(&mut self.told);
        }
    }

    fn held_notice(&mut self) {
        if let Some(notice) = self.notice.take() {
            self.line(NOTE, "↻", &notice);
        }
    }

    /// Errors of the agent that `message` does not quote.
    pub(super) fn held_errors(&mut self, message: &str) {
        self.held_notice();
        for error in std::mem::take(&mut self.held) {
            let begin: String = error.chars().take(QUOTED).collect();
            // What can be done about it may follow it there.
            if !message.contains(begin.trim_end().trim_end_matches('.')) {
                self.line(ERROR, "✗", &error);
            }
        }
    }

    /// Shows one thing that the agent has said or done. What came together is written together.
    pub(super) fn shown(&mut self, fact: &Fact<'_>, goes_on: bool) {
        if !matches!(fact, Fact::AgentError { .. }) {
            self.held_notice();
            if !self.held.is_empty() {
                // The agent went on after them.
                self.failed("");
            }
        }
        self.show(fact);
        if !goes_on {
            self.voice.show(Target::Stderr, std::mem::take(&mut self.pending));
        }
    }

    /// Shows one thing; what may be left out goes to the end of what is pending.
    fn show(&mut self, fact: &Fact<'_>) {
        match fact {
            Fact::TextDelta { text } => {
                if std::mem::take(&mut self.mid_thought) {
                    self.pending.push('\n');
                }
                self.mid_line = !text.ends_with('\n');
                self.pending += &clean(text);
            }
            Fact::Thought { text } => {
                if std::mem::take(&mut self.mid_line) {
                    self.pending.push('\n');
                }
                self.mid_thought = !text.ends_with('\n');
                self.pending += &cells::faint_lines(&clean(text));
            }
            Fact::Text { text } => {
                let newline = self.missing_newline();
                self.pending += newline;
                self.pending += &clean(text);
                if !text.ends_with('\n') {
                    self.pending.push('\n');
                }
            }
            Fact::Tool { input, name } => {
                let newline = self.missing_newline();
                self.pending += newline;
                let (name, input) = (clean(name), clean(input));
                let _ = writeln!(self.pending, "{STRONG}▸ {name}{STRONG:#} {FAINT}{input}{FAINT:#}");
            }
            Fact::AgentError { message } => self.held.push(message.to_string()),
            Fact::AgentNotice { message } if self.is_branch_for_person() => {
                self.notice = Some(message.to_string());
            }
            Fact::AgentNotice { message } => self.line(NOTE, "↻", message),
            Fact::Permission { answer: Word::Known(leave), what, .. } => {
                let (style, mark, said) = match leave {
                    Leave::Allowed => (FAINT, "✓", "allowed"),
                    Leave::Refused => (NOTE, "✗", "refused, it may only look"),
                    Leave::Unanswered => (NOTE, "✗", "not answered, no answer fits"),
                };
                self.line(style, mark, &format!("{said}: {what}"));
            }
            _ => {}
        }
    }
}
