//! Text in the cells of a terminal.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::text::line::one_line;
use crate::text::palette::FAINT;
use crate::text::terminal::message;

/// `text` in at most `width` cells; `…` replaces what is left out.
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

/// `text`, padded with blanks to `width` cells.
pub(super) fn pad(text: &str, width: usize) -> String {
    text.to_owned() + &" ".repeat(width.saturating_sub(text.width()))
}

/// `text` on one line with single blanks, without any escape sequence, not even a colour.
pub(super) fn plain(text: &str) -> String {
    one_line(&message(text))
}

/// Each line by itself, because a colour that goes beyond a line's end would colour the line of another branch.
pub(super) fn faint_lines(text: &str) -> String {
    let mut faint = String::new();
    for line in text.split_inclusive('\n') {
        let words = line.trim_end_matches('\n');
        // Writing to a String cannot fail.
        let _ = write!(faint, "{FAINT}{words}{FAINT:#}{}", &line[words.len()..]);
    }
    faint
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
    fn nothing_breaks_the_line() {
        assert_eq!(plain("a\x1b[31m b\n\t--c\x07  d\x1b]0;e\x07"), "a b --c d");
    }
}
