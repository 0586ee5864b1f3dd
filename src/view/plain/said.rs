//! What the agent of an attempt says and does, as the scrolling view shows it.

use std::fmt::Write as _;

use super::Plain;
use crate::reply::show::{Leave, Show};
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

    pub(super) fn shown(&mut self, shows: &[Show]) {
        // What came together is written together.
        let mut pending = String::new();
        for show in shows {
            if !matches!(show, Show::Error(_)) && self.notice.is_some() {
                self.voice.show(Target::Stderr, std::mem::take(&mut pending));
                self.held_notice();
            }
            if !self.held.is_empty() && !matches!(show, Show::Error(_)) {
                // The agent went on after them.
                self.voice.show(Target::Stderr, std::mem::take(&mut pending));
                self.failed("");
            }
            self.show(show, &mut pending);
        }
        self.voice.show(Target::Stderr, pending);
    }

    /// Shows one thing; what may be left out goes to the end of `pending`.
    fn show(&mut self, show: &Show, pending: &mut String) {
        match show {
            Show::Delta(text) => {
                if std::mem::take(&mut self.mid_thought) {
                    pending.push('\n');
                }
                self.mid_line = !text.ends_with('\n');
                *pending += &clean(text);
            }
            Show::Thought(text) => {
                if std::mem::take(&mut self.mid_line) {
                    pending.push('\n');
                }
                self.mid_thought = !text.ends_with('\n');
                *pending += &cells::faint_lines(&clean(text));
            }
            Show::Text(text) => {
                *pending += self.missing_newline();
                *pending += &clean(text);
                if !text.ends_with('\n') {
                    pending.push('\n');
                }
            }
            Show::Tool { name, input } => {
                *pending += self.missing_newline();
                let (name, input) = (clean(name), clean(input));
                let _ = writeln!(pending, "{STRONG}▸ {name}{STRONG:#} {FAINT}{input}{FAINT:#}");
            }
            Show::Error(said) => self.held.push(said.clone()),
            Show::Notice(said) if self.is_branch_for_person() => self.notice = Some(said.clone()),
            Show::Notice(said) => {
                self.voice.show(Target::Stderr, std::mem::take(pending));
                self.line(NOTE, "↻", said);
            }
            Show::Permission { leave, what, .. } => {
                self.voice.show(Target::Stderr, std::mem::take(pending));
                let (style, mark, said) = match leave {
                    Leave::Allowed => (FAINT, "✓", "allowed"),
                    Leave::Refused => (NOTE, "✗", "refused, it may only look"),
                    Leave::Unanswered => (NOTE, "✗", "not answered, no answer fits"),
                };
                self.line(style, mark, &format!("{said}: {what}"));
            }
        }
    }
}
