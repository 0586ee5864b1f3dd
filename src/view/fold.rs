//! Breaks text for a terminal between words; a terminal itself would break within them.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The columns between two tabulator stops.
const TAB: usize = 8;
/// On narrower terminals, in cells, the terminal breaks the rows.
const LEAST_WIDTH: usize = 20;
/// The longest word that is held back, in cells.
const LONGEST_REST: usize = 20;
const RESET: &str = "\x1b[0m";

/// Breaks text that comes in pieces, cut anywhere. It has no control characters other than newline, tab and colours.
#[derive(Debug, Clone, Default)]
pub(super) struct Fold {
    /// Cells in use on the row.
    column: usize,
    /// Blanks after them, as long as nothing follows.
    blanks: usize,
    /// The beginning of the line, which each of its further rows repeats.
    indent: usize,
    /// The indentation of further rows instead, if the line has columns.
    hanging: Option<usize>,
    /// The word after the blanks, as long as it may go on.
    word: String,
    /// Its cells.
    cells: usize,
    /// The active colours.
    colours: String,
    /// Whether the word ends within a colour sequence.
    sequence: Option<String>,
}

impl Fold {
    /// The text that can be written now, on a terminal of this width in cells. A further row of a line begins with `head`, which
    /// is not counted.
    pub(super) fn take(&mut self, text: &str, width: usize, head: &str) -> String {
        let mut out = String::new();
        for char in text.chars() {
            if self.sequence(char) {
                continue;
            }
            match char {
                '\n' => {
                    self.end_word(&mut out, width, head);
                    out.push('\n');
                    (self.column, self.blanks, self.indent) = (0, 0, 0);
                }
                ' ' | '\t' => {
                    self.end_word(&mut out, width, head);
                    let at = self.column + self.blanks;
                    self.blanks += if char == '\t' { TAB - at % TAB } else { 1 };
                }
                '\x1b' => self.sequence = Some(char.to_string()),
                char => {
                    self.word.push(char);
                    self.cells += char.width().unwrap_or_default();
                }
            }
        }
        // A word is written at once if it fits however it goes on, or if it can never fit.
        let end = self.column + self.blanks + self.cells;
        if end + LONGEST_REST <= width || self.cells >= width {
            self.end_word(&mut out, width, head);
        }
        out
    }

    /// Whether the character is part of a colour, which has no cells.
    fn sequence(&mut self, char: char) -> bool {
        let Some(sequence) = &mut self.sequence else { return false };
        sequence.push(char);
        if char.is_ascii_alphabetic() {
            let sequence = std::mem::take(sequence);
            self.sequence = None;
            self.word.push_str(&sequence);
        }
        true
    }

    /// Writes the word, on the next row if it does not fit on this one.
    fn end_word(&mut self, out: &mut String, width: usize, head: &str) {
        if self.word.is_empty() {
            return;
        }
        let (word, cells) = (std::mem::take(&mut self.word), std::mem::take(&mut self.cells));
        let blanks = if cells == 0 { 0 } else { std::mem::take(&mut self.blanks) };
        let is_first = self.column == 0;
        if is_first {
            self.indent = self.hanging.unwrap_or(if blanks * 2 < width { blanks } else { 0 });
        }
        if !is_first && width >= LEAST_WIDTH && self.column + blanks + cells > width && blanks > 0 {
            let reset = if self.colours.is_empty() { "" } else { RESET };
            // Writing to a String cannot fail.
            let _ = write!(out, "{reset}\n{head}{:1$}{2}", "", self.indent, self.colours);
            self.column = self.indent;
        } else {
            out.push_str(&" ".repeat(blanks));
            self.column += blanks;
        }
        self.column += cells;
        // As the terminal does it.
        while self.column > width.max(1) {
            self.column -= width.max(1);
        }
        out.push_str(&word);
        self.remember_colours(&word);
    }

    fn remember_colours(&mut self, word: &str) {
        for found in word.match_indices('\x1b') {
            let rest = &word[found.0..];
            let end = rest.find(|char: char| char.is_ascii_alphabetic()).map_or(rest.len(), |at| at + 1);
            match &rest[..end] {
                RESET | "\x1b[m" => self.colours.clear(),
                colour => self.colours.push_str(colour),
            }
        }
    }

    /// Returns the text that is held back.
    pub(super) fn rest(&mut self, width: usize, head: &str) -> String {
        let mut out = String::new();
        self.end_word(&mut out, width, head);
        out
    }
}

/// A whole text, broken.
pub(super) fn folded(text: &str, width: usize, head: &str) -> String {
    let mut fold = Fold::default();
    let out = fold.take(text, width, head);
    out + &fold.rest(width, head)
}

/// Lines of columns; a line that is too long goes on below the last column, if there is room beside it.
pub(crate) fn columns_folded(text: &str, width: usize) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let cells = anstream::adapter::strip_str(line).to_string();
        if cells.trim_end().width() <= width {
            return line.to_owned();
        }
        let mut fold = Fold { hanging: last_column(&cells, width), ..Fold::default() };
        let out = fold.take(line, width, "");
        out + &fold.rest(width, "")
    });
    lines.collect()
}

/// Where the last column of a line begins: after two blanks or more. If one of its words does not fit there, the column
/// before it.
fn last_column(line: &str, width: usize) -> Option<usize> {
    let has_room = |at: usize, text: &str| {
        let widest =
            text.split_whitespace().map(unicode_width::UnicodeWidthStr::width).max().unwrap_or_default();
        at + widest.max(LEAST_WIDTH) <= width
    };
    let columns = line.match_indices("  ").map(|(at, _)| {
        let rest = &line[at..];
        at + rest.len() - rest.trim_start_matches(' ').len()
    });
    let columns = columns.map(|at| (line[..at].width(), &line[at..]));
    columns.filter(|(at, text)| has_room(*at, text)).map(|(at, _)| at).last()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_end_between_words() {
        let text = "one two three four five six\n  seven eight nine ten\n";
        assert_eq!(folded(text, 20, ""), "one two three four\nfive six\n  seven eight nine\n  ten\n");
        assert_eq!(folded(text, 80, ""), text);
        assert_eq!(folded("exactly twenty cells", 20, ""), "exactly twenty cells");
        assert_eq!(folded("exactly twenty cells \nx", 20, ""), "exactly twenty cells\nx");
        assert_eq!(folded("a b c", 3, ""), "a b c", "too narrow");
    }

    #[test]
    fn what_is_longer_than_a_row_is_the_terminals() {
        let address = format!("see https://{} there", "x".repeat(30));
        assert_eq!(folded(&address, 20, ""), format!("see\nhttps://{}\nthere", "x".repeat(30)));
    }

    #[test]
    fn colours_have_no_cells_and_do_not_run_into_the_head_of_a_row() {
        let text = "\x1b[2mone two three four five\x1b[0m six";
        let folded = folded(text, 20, "a | ");
        assert_eq!(folded, "\x1b[2mone two three four\x1b[0m\na | \x1b[2mfive\x1b[0m six");
    }

    #[test]
    fn a_long_line_of_columns_goes_on_below_the_last_one() {
        let text = "t-1  open   one two three four five six\nshort  x\n";
        let folded = "t-1  open   one two three four\n            five six\nshort  x\n";
        assert_eq!(columns_folded(text, 32), folded);
        assert_eq!(columns_folded(text, 22), "t-1  open   one two\nthree four five six\nshort  x\n");
        assert_eq!(columns_folded("  - one two three four", 20), "  - one two three\n  four");
        let text = "  3.  ralph plan    writes .ralph/plan.md and no more\n";
        assert_eq!(
            columns_folded(text, 40),
            "  3.  ralph plan    writes\n                    .ralph/plan.md and\n                    no more\n"
        );
        let text = "  3.  ralph plan    writes .ralph/implementation_plan.md\n";
        assert_eq!(
            columns_folded(text, 45),
            "  3.  ralph plan    writes\n      .ralph/implementation_plan.md\n"
        );
    }

    #[test]
    fn a_word_that_is_not_over_waits_for_its_end() {
        let mut fold = Fold::default();
        assert_eq!(fold.take("one tw", 20, ""), "one");
        assert_eq!(fold.take("o\n", 20, ""), " two\n");
        assert_eq!(fold.take("one tw", 80, ""), "one tw", "near the edge only");
        assert_eq!(fold.take("o\n", 80, ""), "o\n");
        assert_eq!(fold.take("end", 20, "") + &fold.rest(20, ""), "end");
    }

    proptest! {
        #[test]
        fn pieces_are_folded_like_the_whole(text in "([a-c語]{1,6}[ \n]{1,2}){0,30}", size in 1_usize..9) {
            let whole = folded(&text, 24, "");
            let mut fold = Fold::default();
            let chars: Vec<char> = text.chars().collect();
            let pieces = chars.chunks(size).map(|piece| piece.iter().collect::<String>());
            let out: String = pieces.map(|piece| fold.take(&piece, 24, "")).collect();
            prop_assert_eq!(out + &fold.rest(24, ""), whole.clone());
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(words(&whole), words(&text));
            prop_assert!(whole.lines().all(|line| line.width() <= 24));
        }
    }
}
