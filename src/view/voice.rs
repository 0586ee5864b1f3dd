//! How the text of one loop reaches the console: as it comes, or, if many loops share the console, in whole lines that
//! begin with the name of the loop's branch.

use std::sync::Arc;

use anstyle::Style;

use super::cells::pad;
use super::console::Console;
use super::fold::{Fold, folded};
use super::terminal;
use super::terminal::Target;
use crate::text::palette::{GOOD, NOTE, QUESTION, STRONG};
use crate::text::terminal::message;

/// The longest line, in bytes, that is held back until its end comes; a longer one is broken.
const LONGEST: usize = 8 * 1024;
/// The colours of names; neighbours differ.
const STYLES: [Style; 4] = [NOTE, STRONG, GOOD, QUESTION];

/// The output of one loop.
#[derive(Debug, Clone)]
pub(crate) struct Voice {
    console: Arc<Console>,
    /// `None`: the only loop.
    lines: Option<Lines>,
    /// Breaks rows of the terminal, for the only loop.
    fold: Fold,
}

/// Makes whole lines from text that comes in pieces.
#[derive(Debug, Clone)]
struct Lines {
    prefix: String,
    /// Its cells, with the blank after it.
    indent: usize,
    unfinished: String,
}

impl Voice {
    /// The voice of the only loop.
    #[must_use]
    pub(crate) fn alone(console: Arc<Console>) -> Self {
        Self { console, lines: None, fold: Fold::default() }
    }

    /// The voice of one of many branches: `place` chooses its colour, its name takes `width` cells.
    #[must_use]
    pub(crate) fn branch(console: Arc<Console>, place: usize, name: &str, width: usize) -> Self {
        let style = STYLES[place % STYLES.len()];
        let prefix = format!("{style}{} │{style:#}", pad(&message(name), width));
        let lines = Lines { prefix, indent: width + 3, unfinished: String::new() };
        Self { console, lines: Some(lines), fold: Fold::default() }
    }

    /// Text that must appear. Before the target changes, the line must have ended.
    pub(crate) fn say(&mut self, target: Target, text: String) {
        let text = self.broken(target, text);
        self.console.say(target, text);
    }

    /// Whole lines that must appear and are not about this branch alone: its name is not before them.
    pub(crate) fn say_for_all(&self, target: Target, lines: String) {
        self.console.say(target, lines);
    }

    /// Text that may be dropped when the reader is too slow.
    pub(crate) fn show(&mut self, target: Target, text: String) {
        let text = self.broken(target, text);
        self.console.show(target, text);
    }

    /// Whole lines if there are many loops, and rows that end between words on a terminal.
    fn broken(&mut self, target: Target, text: String) -> String {
        let width = terminal::width_of(target);
        match (&mut self.lines, width) {
            (Some(lines), width) => lines.take(&text, width),
            (None, Some(width)) => self.fold.take(&text, width, ""),
            (None, None) => text,
        }
    }
}

impl Lines {
    /// The lines that are complete now, for a terminal of this width or for none.
    fn take(&mut self, text: &str, width: Option<usize>) -> String {
        let mut whole = String::new();
        for piece in text.split_inclusive('\n') {
            let (mut rest, ends) = piece.strip_suffix('\n').map_or((piece, false), |line| (line, true));
            while self.unfinished.len() + rest.len() > LONGEST {
                let (fits, more) = rest.split_at(rest.floor_char_boundary(LONGEST - self.unfinished.len()));
                self.unfinished += fits;
                self.end(&mut whole, width);
                rest = more;
            }
            self.unfinished += rest;
            if ends {
                self.end(&mut whole, width);
            }
        }
        whole
    }

    fn end(&mut self, whole: &mut String, width: Option<usize>) {
        let mut line = std::mem::take(&mut self.unfinished);
        if let Some(width) = width {
            line = folded(&line, width.saturating_sub(self.indent), &format!("{} ", self.prefix));
        }
        *whole += &self.prefix;
        if !line.is_empty() {
            *whole += " ";
            *whole += &line;
        }
        // A colour must not go on into the line of another branch.
        if line.contains('\x1b') && !line.ends_with("\x1b[0m") {
            *whole += "\x1b[0m";
        }
        *whole += "\n";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Lines {
        Lines { prefix: "fix-a │".to_owned(), indent: 8, unfinished: String::new() }
    }

    #[test]
    fn a_line_waits_for_its_end() {
        let mut lines = lines();
        assert_eq!(lines.take("half a sen", None), "");
        assert_eq!(
            lines.take("tence\n\nnext\nand", None),
            "fix-a │ half a sentence\nfix-a │\nfix-a │ next\n"
        );
        assert_eq!(lines.take("\n", None), "fix-a │ and\n");
        assert_eq!(lines.take("", None), "");
    }

    #[test]
    fn a_line_without_an_end_is_broken() {
        let mut lines = lines();
        // Three bytes each, so that the limit lies within one.
        let long = "語".repeat(LONGEST);
        let mut shown = String::new();
        for piece in long.as_bytes().chunks(3 * 100) {
            shown += &lines.take(std::str::from_utf8(piece).unwrap(), None);
            assert!(lines.unfinished.len() <= LONGEST);
        }
        shown += &lines.take("\n", None);
        let pieces: Vec<&str> = shown.lines().map(|line| line.strip_prefix("fix-a │ ").unwrap()).collect();
        assert_eq!(pieces.len(), 4);
        assert!(pieces.iter().all(|piece| piece.len() <= LONGEST));
        assert_eq!(pieces.concat(), long);
        assert_eq!(lines.take(&("x".repeat(LONGEST) + "\n"), None).lines().count(), 1);
    }

    #[test]
    fn a_colour_ends_with_its_line() {
        assert_eq!(lines().take("\x1b[31mred\nplain\n", None), "fix-a │ \x1b[31mred\x1b[0m\nfix-a │ plain\n");
        assert_eq!(lines().take("\x1b[31mred\x1b[0m\n", None), "fix-a │ \x1b[31mred\x1b[0m\n");
    }

    #[test]
    fn a_row_that_goes_on_begins_like_the_first() {
        let text = "\x1b[31mone two three four five six\x1b[0m\n";
        let rows = "fix-a │ \x1b[31mone two three four\x1b[0m\nfix-a │ \x1b[31mfive six\x1b[0m\n";
        assert_eq!(lines().take(text, Some(28)), rows);
    }

    #[test]
    fn neighbours_have_their_own_colour_and_the_same_width() {
        let prefix = |place, name| {
            let voice = Voice::branch(Arc::new(Console::start().unwrap()), place, name, 5);
            voice.lines.map(|lines| lines.prefix).unwrap_or_default()
        };
        assert_eq!(prefix(0, "a"), "\x1b[35ma     │\x1b[0m");
        assert_eq!(prefix(1, "fix-a"), "\x1b[1mfix-a │\x1b[0m");
        assert_eq!(prefix(STYLES.len(), "a"), prefix(0, "a"));
    }
}
