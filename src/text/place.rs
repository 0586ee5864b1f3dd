//! A place in code, with the lines around it: how a note of the user names what it is about.

use std::fmt::Write as _;

use serde::Serialize;

use super::line::escaped;

/// How many lines of code are shown on each side.
const AROUND: usize = 3;
/// How many characters of a line of code are shown.
const WIDTH: usize = 200;

/// A file, or a line of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Its path below the work tree.
    pub file: String,
    /// The number of the line, from 1; `None` for the whole file.
    pub line: Option<u64>,
    /// Whether the line is one that was removed: its number is that of the file before the change.
    pub is_removed: bool,
    /// The lines around it, with itself.
    pub code: Vec<CodeLine>,
}

/// A line of code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeLine {
    /// Its number, from 1; of a removed line that in the file before the change.
    pub number: u64,
    /// `+`, `-` or a blank, as in a diff.
    pub sign: char,
    /// Its text, cut where it is very long.
    pub text: String,
    /// Whether the note is about this line.
    pub is_meant: bool,
}

impl CodeLine {
    /// A line of a file or a diff.
    #[must_use]
    pub fn new(number: u64, sign: char, text: &str, is_meant: bool) -> Self {
        let visible = text.chars().filter(|char| !char.is_control() || *char == '\t');
        let mut text: String = visible.clone().take(WIDTH).collect();
        if visible.count() > WIDTH {
            text.push('…');
        }
        Self { number, sign, text, is_meant }
    }
}

/// The first and the last index, of `count` lines, around the one with this index.
#[must_use]
pub fn around(index: usize, count: usize) -> (usize, usize) {
    (index.saturating_sub(AROUND), (index + AROUND).min(count.saturating_sub(1)))
}

impl Place {
    /// Names the place: `src/a.rs, line 12`.
    #[must_use]
    pub fn name(&self) -> String {
        let file = escaped(&self.file);
        match self.line {
            None => file,
            Some(line) if self.is_removed => {
                format!("{file}, line {line} before the change, which was removed")
            }
            Some(line) => format!("{file}, line {line}"),
        }
    }

    /// A note about this place, with the code below it as an indented block.
    #[must_use]
    pub fn note(&self, text: &str) -> String {
        let mut note = format!("{}: {}", self.name(), text.trim());
        let width = self.code.iter().map(|line| line.number).max().unwrap_or_default().to_string().len();
        for (index, line) in self.code.iter().enumerate() {
            let gap = if index == 0 { "\n\n" } else { "\n" };
            let mark = if line.is_meant { '→' } else { ' ' };
            let CodeLine { number, sign, text, .. } = line;
            let shown = format!("    {mark} {number:>width$} {sign} {text}");
            // Writing to a String cannot fail.
            let _ = write!(note, "{gap}{}", shown.trim_end());
        }
        note
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_its_place_and_shows_the_code() {
        let code = vec![
            CodeLine::new(9, ' ', "fn a() {", false),
            CodeLine::new(10, '+', "\tb();\u{1b}", true),
            CodeLine::new(11, ' ', "", false),
        ];
        let place = Place { file: "src/a\nb.rs".into(), line: Some(10), is_removed: false, code };
        let expected =
            "src/a\\nb.rs, line 10: why?\nreally\n\n       9   fn a() {\n    → 10 + \tb();\n      11";
        assert_eq!(place.note(" why?\nreally\n"), expected);
        let whole = Place { file: "x".into(), line: None, is_removed: false, code: Vec::new() };
        assert_eq!(whole.note("no"), "x: no");
        let gone = Place { line: Some(3), is_removed: true, ..whole };
        assert_eq!(gone.name(), "x, line 3 before the change, which was removed");
    }

    #[test]
    fn a_long_line_is_cut() {
        let line = CodeLine::new(1, ' ', &"é".repeat(WIDTH + 1), true);
        assert_eq!(line.text, format!("{}…", "é".repeat(WIDTH)));
        assert_eq!((around(0, 1), around(5, 7), around(4, 100)), ((0, 0), (2, 6), (1, 7)));
    }
}
