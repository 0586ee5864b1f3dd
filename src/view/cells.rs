//! Text in the cells of a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::text::line::one_line;
use crate::text::terminal::message;

/// With less room than this besides the indent, in cells, there is none.
const MIN_ROOM: usize = 16;

/// `text` in at most `width` cells; `…` stands for what is left out.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |char: &char| {
        let cells = char.width().unwrap_or_default();
        room.checked_sub(cells).inspect(|left| room = *left).is_some()
    };
    let head: String = text.chars().take_while(fits).collect();
    if width == 0 { String::new() } else { head + "…" }
}

/// `text` in lines of at most `width` cells, broken between words where that is possible; `indent` blanks stand before each line
/// but the first.
pub(super) fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    // Where there is no room for words, the terminal may break them.
    let indent = if width < 2 * indent.max(1) + MIN_ROOM { 0 } else { indent };
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_inclusive(' ') {
        let fits = line.width() + word.trim_end().width() <= width;
        if !fits && !line.trim().is_empty() {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)).trim_end().to_owned());
        }
        line += word;
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// `text` with blanks behind it, up to `width` cells.
pub(super) fn pad(text: &str, width: usize) -> String {
    text.to_owned() + &" ".repeat(width.saturating_sub(text.width()))
}

/// `text` on one line, single blanks in it, and nothing that could drive the terminal, not even a colour.
pub(super) fn plain(text: &str) -> String {
    one_line(&message(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_measured_in_cells() {
        assert_eq!(["日本語", "ab", ""].map(|text| cut(text, 5)), ["日本…", "ab", ""].map(str::to_owned));
        assert_eq!([0, 1, 4].map(|width| cut("日本語", width)), ["", "…", "日…"].map(str::to_owned));
        assert_eq!(
            ["日本", "abcdef", ""].map(|text| pad(text, 5)),
            ["日本 ", "abcdef", "     "].map(str::to_owned)
        );
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("✗ one two three", 24, 2), ["✗ one two three"]);
        assert_eq!(wrap("✗ one two three four five six", 20, 2), ["✗ one two three four", "  five six"]);
        assert_eq!(wrap("  ran         a b", 80, 14), ["  ran         a b"]);
        let long = "x".repeat(30);
        assert_eq!(wrap(&format!("a {long} b"), 20, 2), ["a", &format!("  {long}"), "  b"]);
        assert_eq!(wrap("日本 日本", 6, 14), ["日本", "日本"]);
        assert_eq!(wrap("", 6, 2), [""]);
    }

    #[test]
    fn nothing_breaks_the_line() {
        assert_eq!(plain("a\x1b[31m b\n\t--c\x07  d\x1b]0;e\x07"), "a b --c d");
    }
}
