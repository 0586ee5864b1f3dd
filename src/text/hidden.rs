//! Invisible characters. With them, two names that look alike can differ, and a text can hold words that a program
//! reads and a user does not see.

use std::borrow::Cow;

/// `text` with an escape (`\u{200b}`) for each invisible character and for each character that changes the display
/// order. Control characters are left to the caller. Joiners and variation selectors stay where scripts and emoji
/// need them: after a character that is not ASCII.
#[must_use]
pub(crate) fn revealed(text: &str) -> Cow<'_, str> {
    let mut before = None;
    match first(text, &mut before) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(revealed_after(None, text).0),
    }
}

/// [`revealed`] for text that follows a character; also returns the last visible character.
#[must_use]
pub(crate) fn revealed_after(before: Option<char>, text: &str) -> (String, Option<char>) {
    let (mut before, mut rest, mut shown) = (before, text, String::with_capacity(text.len()));
    while let Some(at) = first(rest, &mut before) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let mut chars = rest.chars();
        shown.extend(chars.next().map(char::escape_unicode).into_iter().flatten());
        rest = chars.as_str();
        before = None;
    }
    (shown + rest, before)
}

/// The position of the first character to be revealed. `before` is the character before the text, then the one before
/// that position.
fn first(text: &str, before: &mut Option<char>) -> Option<usize> {
    for (at, char) in text.char_indices() {
        if is_invisible(char) && !is_needed(*before, char) {
            return Some(at);
        }
        *before = Some(char);
    }
    None
}

/// Whether a character is invisible: the default-ignorable and format characters of Unicode, and separators that end
/// no line in files.
fn is_invisible(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
        | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Whether this invisible character is needed after the visible one before it.
fn is_needed(before: Option<char>, char: char) -> bool {
    let is_of_script = |before: char| !before.is_ascii() && !is_joiner(before);
    match char {
        // `❤️`, and `1️⃣`, which is a digit with a frame.
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|before| {
            matches!(before, '0'..='9' | '#' | '*') || is_of_script(before) && !is_invisible(before)
        }),
        _ if is_joiner(char) => before.is_some_and(is_of_script),
        _ => false,
    }
}

fn is_joiner(char: char) -> bool {
    matches!(char, '\u{200c}' | '\u{200d}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_cannot_be_seen_is_an_escape() {
        for hidden in [
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{202e}',
            '\u{2066}',
            '\u{2028}',
            '\u{2060}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
        ] {
            let escape = hidden.escape_unicode();
            assert_eq!(revealed(&format!("a{hidden}b")), format!("a{escape}b"));
            assert_eq!(revealed(&format!("{hidden}{hidden}")), format!("{escape}{escape}"));
        }
        assert_eq!(revealed("é\u{200d}\u{200d}"), "é\u{200d}\\u{200d}");
    }

    #[test]
    fn text_of_people_stays_as_it_is() {
        for text in ["", "a\tb\n", "naïve 日本語 שלום", "👩‍👩‍👧 ❤️‍🔥 1️⃣ 🇩🇪 👍🏽", "می‌خواهم", "क्‍ष"]
        {
            assert!(matches!(revealed(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn pieces_are_revealed_like_the_whole(text in "[a1é\u{200b}\u{200d}\u{fe0f}\u{ad}]{0,12}", at in 0_usize..12) {
            let at = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
            let (head, before) = revealed_after(None, &text[..at]);
            let (tail, _) = revealed_after(before, &text[at..]);
            prop_assert_eq!(head + &tail, revealed(&text));
        }
    }
}
