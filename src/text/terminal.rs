//! Makes foreign text safe for a terminal: text of repositories and agents must not control it, and has to be
//! visible.

use super::hidden::{revealed, revealed_after};

/// `text` without control characters except newline and tab, and without escape sequences except colours. Invisible
/// characters become escapes.
#[must_use]
pub(crate) fn clean(text: &str) -> String {
    revealed(&undriven(text)).into_owned()
}

fn undriven(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|char: char| char.is_control() && char != '\n' && char != '\t') {
        clean.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match colour(rest) {
            Some(length) => {
                clean.push_str(&rest[..length]);
                length
            }
            None => rest.chars().next().map_or(rest.len(), char::len_utf8),
        };
        rest = &rest[length..];
    }
    clean + rest
}

/// The length of the colour sequence (`ESC [ … m`) that `text` begins with.
fn colour(text: &str) -> Option<usize> {
    let body = text.strip_prefix("\x1b[")?;
    let length = body.find(|char: char| !char.is_ascii_digit() && char != ';')?;
    body[length..].starts_with('m').then_some(2 + length + 1)
}

/// `text` as a message of one line: without escape sequences, including colours, with a blank for each newline and
/// control character, and with an escape for each invisible character. Its own blanks stay.
#[must_use]
pub(crate) fn message(text: &str) -> String {
    // The usual case; a list has thousands of texts.
    if !text.contains(char::is_control) {
        return revealed(text).into_owned();
    }
    let blank = |char: char| if char.is_control() { ' ' } else { char };
    // A Windows line end is one.
    let text: String = anstream::adapter::strip_str(&text.replace("\r\n", "\n")).collect();
    let text: String = text.chars().map(blank).collect();
    revealed(&text).into_owned()
}

/// [`clean`] for bytes in pieces, cut anywhere; invalid UTF-8 is replaced.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    /// The unfinished end of the last piece: a part of a character or of a colour.
    held: Vec<u8>,
    /// The last visible character before it.
    before: Option<char>,
}

impl Cleaner {
    /// Longer sequences are not colours.
    const LONGEST: usize = 32;

    /// The text that is complete with these bytes.
    #[must_use]
    pub(crate) fn take(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let rest = self.held.split_off(self.whole());
        let whole = std::mem::replace(&mut self.held, rest);
        let (shown, before) = revealed_after(self.before, &undriven(&String::from_utf8_lossy(&whole)));
        self.before = before;
        shown
    }

    /// The end of the last complete character and colour.
    fn whole(&self) -> usize {
        let held = &self.held;
        let end = held.len();
        let near = end.saturating_sub(Self::LONGEST);
        if let Some(at) = held[near..].iter().rposition(|&byte| byte == b'\x1b') {
            let rest = &held[near + at + 1..];
            let is_open = |byte: &u8| matches!(byte, b'[' | b';' | b'0'..=b'9');
            if rest.iter().all(is_open) {
                return near + at;
            }
        }
        // A character has at most four bytes; its first byte says how many.
        let lead = held[end.saturating_sub(3)..].iter().rposition(|&byte| byte >= 0xc0);
        let Some(missing) = lead.map(|at| end.saturating_sub(3) + at) else { return end };
        let length = match held[missing] {
            0xf0.. => 4,
            0xe0.. => 3,
            _ => 2,
        };
        if end - missing < length { missing } else { end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_survive_of_what_could_drive_the_terminal() {
        assert_eq!(clean("a\tb\nc"), "a\tb\nc");
        assert_eq!(clean("\x1b[31mred\x1b[0m"), "\x1b[31mred\x1b[0m");
        assert_eq!(clean("\x1b[2J\x07gone\r\x1b]0;title\x07\u{9b}1m"), "[2Jgone]0;title1m");
        assert_eq!(clean("\x1b["), "[");
        assert_eq!(clean("a\u{202e}b\u{2066}\n\u{200b}c"), "a\\u{202e}b\\u{2066}\n\\u{200b}c");
        assert_eq!(message("a\u{202e}b\n\u{e0041}"), "a\\u{202e}b \\u{e0041}");
    }

    #[test]
    fn a_message_is_one_line_and_nothing_else() {
        assert_eq!(message("  a\n b\r\n\tc"), "  a  b  c");
        assert_eq!(
            message("\x1b[31mred\x1b[0m \x1b]52;c;cGF5bG9hZA==\x07\x1b]0;t\x1b\\end\u{9b}"),
            "red end "
        );
    }

    #[test]
    fn pieces_are_cleaned_like_the_whole() {
        let text = "é\x1b[31mred\x1b[0m\x1b]52;c;x\x07 日本 \u{1f980}\x1b[2J\r\n\u{9b}a\u{200b}👩‍👧";
        let bytes = [text.as_bytes(), b"\xff\xe6 end"].concat();
        let whole = clean(&String::from_utf8_lossy(&bytes));
        for size in 1..bytes.len() {
            let mut cleaner = Cleaner::default();
            let pieces: String = bytes.chunks(size).map(|piece| cleaner.take(piece)).collect();
            assert_eq!(pieces, whole, "{size}");
        }
    }

    #[test]
    fn what_never_ends_is_not_held() {
        let mut cleaner = Cleaner::default();
        let digits = format!("\x1b[{}", "1".repeat(1000));
        assert!(cleaner.take(digits.as_bytes()).len() > 900);
    }
}
