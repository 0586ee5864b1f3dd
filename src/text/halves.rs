//! JSON whose texts were cut in the middle of a character: `"\ud83d"`, half of a pair, which no text can have.

use std::borrow::Cow;

/// What stands in the place of a half: the sign for a character that cannot be shown, as escaped in JSON.
const UNKNOWN: &str = "\\ufffd";
/// The length of `\uXXXX`.
const ESCAPE: usize = 6;

/// The JSON without halves of pairs.
#[must_use]
pub fn without_halves(json: &str) -> Cow<'_, str> {
    let (mut whole, mut rest) = (String::new(), json);
    let mut from = 0;
    while let Some(at) = rest[from..].find('\\').map(|at| from + at) {
        // Each escape is at least two bytes long: a second backslash begins none.
        match half(&rest[at..]) {
            None => from = at + 1 + rest[at + 1..].chars().next().map_or(0, char::len_utf8),
            Some(Half::First) if half(&rest[at + ESCAPE..]) == Some(Half::Second) => from = at + 2 * ESCAPE,
            Some(_) => {
                whole.extend([&rest[..at], UNKNOWN]);
                (rest, from) = (&rest[at + ESCAPE..], 0);
            }
        }
    }
    if whole.is_empty() { Cow::Borrowed(json) } else { Cow::Owned(whole + rest) }
}

#[derive(PartialEq, Eq)]
enum Half {
    First,
    Second,
}

/// Which half of a pair a text begins with, escaped.
fn half(text: &str) -> Option<Half> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::First),
        0xdc00..=0xdfff => Some(Half::Second),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn halves_become_signs_and_pairs_stay() {
        for (json, whole) in [
            (r#""a\ud83db""#, r#""a\ufffdb""#),
            (r#""\ude00\uD83D""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ude00 \ud83d\ud83d\ude00""#, r#""\ud83d\ude00 \ufffd\ud83d\ude00""#),
            (r#""\\ud83d \\\ud83d \u00e9 é\n""#, r#""\\ud83d \\\ufffd \u00e9 é\n""#),
            (r#""\ud8"#, r#""\ud8"#),
            (r#""é\"#, r#""é\"#),
        ] {
            assert_eq!(without_halves(json), whole);
        }
    }

    proptest! {
        #[test]
        fn texts_that_can_be_read_stay_as_they_are(text in ".{0,40}", junk in r#"(\\|u|d8|3d|dc00|"|é){0,24}"#) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(&without_halves(&json), &json);
            let _ = without_halves(&junk);
        }
    }
}
