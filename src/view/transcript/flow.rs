//! A transcript as text with colours, each entry on lines of its own, with pieces joined.

use std::fmt::Write as _;

use crate::tell::words::{Entry, Kind};
use crate::text::palette::{FAINT, STRONG};
use crate::text::terminal::{clean, message};
use crate::view::cells::faint_lines;

/// The state of the text of a transcript.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Whether the agent's text so far does not end in a newline.
    mid_line: bool,
    /// Whether its thoughts so far do not end in a newline.
    mid_thought: bool,
}

impl Flow {
    /// The text of the next entry.
    pub(crate) fn take(&mut self, entry: &Entry) -> String {
        let mut text = String::new();
        match entry.kind {
            Kind::Piece => {
                text += if std::mem::take(&mut self.mid_thought) { "\n" } else { "" };
                text += &clean(&entry.text);
                self.mid_line = !entry.text.ends_with('\n');
            }
            Kind::Thought => {
                text += if std::mem::take(&mut self.mid_line) { "\n" } else { "" };
                text += &faint_lines(&clean(&entry.text));
                self.mid_thought = !entry.text.ends_with('\n');
            }
            Kind::Text => {
                text += self.end();
                text += &clean(&entry.text);
                text += if entry.text.ends_with('\n') { "" } else { "\n" };
            }
            Kind::Tool => {
                text += self.end();
                let (name, input) = (message(&entry.mark), message(&entry.text));
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{STRONG}▸ {name}{STRONG:#} {FAINT}{input}{FAINT:#}");
            }
            kind => {
                text += self.end();
                let style = kind.style();
                let mut lines = entry.text.lines();
                let first = message(lines.next().unwrap_or_default());
                let _ = writeln!(text, "{style}{} {first}{style:#}", entry.mark);
                for line in lines {
                    let _ = writeln!(text, "    {}", message(line));
                }
            }
        }
        text
    }

    /// The text that is needed before a new line can begin.
    pub(crate) fn end(&mut self) -> &'static str {
        let is_within = std::mem::take(&mut self.mid_line) | std::mem::take(&mut self.mid_thought);
        if is_within { "\n" } else { "" }
    }
}
