//! Wraps text to a given width.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// `text` in at most `lines` lines of at most `width` cells (at least 1), broken between words if possible; `…`
/// stands for what is left out.
#[must_use]
pub(crate) fn wrapped(text: &str, width: usize, lines: usize) -> Vec<String> {
    let mut wrapped = Vec::new();
    let mut rest = text;
    while rest.width() > width && wrapped.len() + 1 < lines {
        let (line, behind) = rest.split_at(end_of_line(rest, width));
        wrapped.push(line.trim_end().to_owned());
        rest = behind.trim_start();
    }
    if rest.width() > width {
        wrapped.push(rest[..prefix(rest, width.saturating_sub(1))].to_owned() + "…");
    } else if !rest.is_empty() || wrapped.is_empty() {
        wrapped.push(rest.to_owned());
    }
    wrapped
}

/// The best position to break a line that begins with `text`.
fn end_of_line(text: &str, width: usize) -> usize {
    let fits = prefix(text, width);
    if text[fits..].starts_with(' ') {
        return fits;
    }
    let first = text.chars().next().map_or(0, char::len_utf8);
    // A character wider than the line gets a line of its own.
    text[..fits].rfind(' ').filter(|blank| *blank > 0).unwrap_or(fits).max(first)
}

/// How many bytes of `text` fit into this many cells.
fn prefix(text: &str, width: usize) -> usize {
    let mut cells = 0;
    let too_much = |(_, char): &(usize, char)| {
        cells += char.width().unwrap_or_default();
        cells > width
    };
    text.char_indices().find(too_much).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 7, 9), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 6, 9), ["one", "two", "three"]);
        assert_eq!(wrapped("one", 3, 9), ["one"]);
        assert_eq!(wrapped("", 3, 9), [""]);
        assert_eq!(wrapped("a longerword b", 5, 9), ["a", "longe", "rword", "b"]);
    }

    #[test]
    fn what_is_left_out_shows() {
        assert_eq!(wrapped("one two three", 7, 1), ["one tw…"]);
        assert_eq!(wrapped("one two three four", 7, 2), ["one two", "three …"]);
        assert_eq!(wrapped("日本語", 5, 1), ["日本…"]);
        assert_eq!(wrapped("日本語", 1, 9), ["日", "本", "語"]);
    }
}
