//! Single lines made from foreign text.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use super::hidden::revealed;

/// `text` on one line: white space and control characters become single blanks.
#[must_use]
pub(crate) fn one_line(text: &str) -> String {
    one_line_within(text, usize::MAX)
}

/// [`one_line`] cut to at most `max` characters; a cut shows as `…`.
#[must_use]
pub(crate) fn one_line_within(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        for c in (length > 0).then_some(' ').into_iter().chain(word.chars()) {
            if length == max {
                out.pop();
                out.push('…');
                return out;
            }
            out.push(c);
            length += 1;
        }
    }
    out
}

/// The lines of `text` joined by `between`. Blanks at their ends are removed, blanks inside stay.
#[must_use]
pub(crate) fn joined(text: &str, between: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(between)
}

/// The first non-blank line, trimmed.
#[must_use]
pub(crate) fn first(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty())
}

/// The last non-blank lines, at most `count`, trimmed.
#[must_use]
pub(crate) fn last_lines(text: &str, count: usize) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].to_vec()
}

/// `text` with control and invisible characters as escapes, so that it stays on one line and can be read exactly.
#[must_use]
pub(crate) fn escaped(text: &str) -> String {
    let shown = |c: char| match c {
        '\t' | '\r' | '\n' => c.escape_default().to_string(),
        c if c.is_control() => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    revealed(text).chars().map(shown).collect()
}

/// A word quoted for a shell. Invalid UTF-8 is shown, not preserved.
#[must_use]
pub(crate) fn shell_word(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().as_bytes();
    // Only a NUL cannot be quoted, and no argument or path has one.
    let quoted = shlex::bytes::try_quote(word).unwrap_or(Cow::Borrowed(word));
    String::from_utf8_lossy(&quoted).into_owned()
}

/// The words of a command line, quoted for a shell.
#[must_use]
pub(crate) fn shell_words<'a>(words: impl IntoIterator<Item = &'a OsString>) -> String {
    words.into_iter().map(shell_word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_control_characters_become_single_blanks() {
        assert_eq!(one_line(" a\n\tb\u{1b} c "), "a b c");
        assert_eq!(one_line("\r\n"), "");
    }

    #[test]
    fn a_cut_is_visible_and_between_characters() {
        assert_eq!(one_line_within(" a\n\tb\u{1b} c ", 10), "a b c");
        assert_eq!(one_line_within("ééééé", 5), "ééééé");
        assert_eq!(one_line_within("éééééé", 5), "éééé…");
        assert_eq!(one_line_within("aaaa bbb", 5), "aaaa…");
    }

    #[test]
    fn joined_lines_keep_their_own_blanks() {
        assert_eq!(joined("a  b\n\n  c\r\n", " "), "a  b c");
        assert_eq!(joined("a\nb", "; "), "a; b");
        assert_eq!(joined(" \n", "; "), "");
    }

    #[test]
    fn the_first_line_has_something_in_it() {
        assert_eq!(first("\n \n  a b \nc"), Some("a b"));
        assert_eq!(first(" \n"), None);
    }

    #[test]
    fn the_last_lines_have_something_in_them() {
        assert_eq!(last_lines("a\n b \n\nc\n \n", 2), [" b", "c"]);
        assert_eq!(last_lines("a", 2), ["a"]);
        assert!(last_lines("\n", 2).is_empty());
    }

    #[test]
    fn escapes_stand_for_what_cannot_be_seen() {
        assert_eq!(escaped("a\tb\né\u{1b} \\"), "a\\tb\\né\\u{1b} \\");
        assert_eq!(escaped("x\u{200b}y"), "x\\u{200b}y");
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        let words = ["a", "", "b c", "--d", "it's"].map(OsString::from);
        assert_eq!(shell_words(&words), r#"a '' 'b c' --d "it's""#);
    }
}
