//! Makes paragraphs from the lines of an events log: text of agents in pieces is joined.

use super::model::Model;
use super::scroll::Paragraph;
use crate::record::event_line::EventLine;
use crate::tell::words::{Entry, Kind};
use crate::text::palette::FAINT;
use crate::view::transcript::Transcript;

/// The state from one line to the next.
#[derive(Debug)]
pub(crate) struct Telling {
    transcript: Transcript,
    /// The kind of the last paragraph, if it may go on.
    open: Option<Kind>,
}

impl Default for Telling {
    fn default() -> Self {
        // Only the end of a long log is read.
        Self { transcript: Transcript::from_within(), open: None }
    }
}

impl Telling {
    /// Adds the paragraphs of a line. A foreign line, or one of another version, shows nothing.
    pub(crate) fn take(&mut self, line: &str, model: &mut Model) {
        let entry = EventLine::read(line).ok().and_then(|line| self.transcript.entry(&line));
        let Some(entry) = entry else { return };
        let goes_on = matches!(entry.kind, Kind::Piece | Kind::Thought);
        let before = if goes_on && self.open == Some(entry.kind) { model.take_last() } else { None };
        self.open = goes_on.then_some(entry.kind);
        model.add(match before {
            Some(before) => Paragraph { text: before.text + &entry.text, ..before },
            None => paragraph(entry),
        });
    }
}

fn paragraph(entry: Entry) -> Paragraph {
    match entry.kind {
        Kind::Tool => {
            Paragraph {
                style: FAINT, sign: "▸ ".to_owned(), text: format!("{} {}", entry.mark, entry.text)
            }
        }
        kind if entry.mark.is_empty() => {
            Paragraph { style: kind.style(), sign: String::new(), text: entry.text }
        }
        kind => Paragraph { style: kind.style(), sign: format!("{} ", entry.mark), text: entry.text },
    }
}
