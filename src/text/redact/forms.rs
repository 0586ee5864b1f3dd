//! The forms in which programs write a value: as it is, on one line, as a word of a shell, inside of a JSON string, inside of JSON
//! that is itself a string, and in an address.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::SHORTEST;
use crate::text::line::one_line;

/// How a writer of JSON escapes what need not be escaped.
#[expect(clippy::struct_excessive_bools, reason = "each one is a choice of its own")]
#[derive(Clone, Copy)]
struct Style {
    /// What is not ASCII is `\u00e9`.
    ascii: bool,
    /// So is all the rest.
    all: bool,
    /// That is `\u00E9`.
    upper: bool,
    /// More that is written that way.
    also: &'static str,
    /// `/` is `\/`.
    slash: bool,
}

const PLAIN: Style = Style { ascii: false, all: false, upper: false, also: "", slash: false };
const STYLES: [Style; 6] = [
    PLAIN,
    Style { ascii: true, ..PLAIN },
    Style { ascii: true, upper: true, ..PLAIN },
    Style { also: "<>&", ..PLAIN },
    Style { ascii: true, upper: true, also: "<>&'\"+`", ..PLAIN },
    Style { ascii: true, slash: true, ..PLAIN },
];
/// How shells write a `'` inside of a word in `'`: bash and zsh; dash and Python's `shlex`.
const SINGLE_QUOTES: [&str; 2] = ["'\\''", "'\"'\"'"];
/// What bash's `printf %q` leaves as it is besides letters and digits.
const UNQUOTED: &str = "%+-./:=@_";
/// What writers of addresses leave as it is besides letters and digits, and whether a blank is `+`.
const ADDRESSES: [(&str, bool); 6] = [
    // As RFC 3986 has it.
    ("-._~", false),
    // Python's `quote`.
    ("-._~/", false),
    // `encodeURIComponent` and `encodeURI` of JavaScript.
    ("-._~!*'()", false),
    ("-._~!*'();,/?:@&=+$#", false),
    // Forms, by Go and by JavaScript.
    ("-._~", true),
    ("-._*", true),
];
/// JSON that stands in a JSON string is escaped once more; so is JSON in that.
const DEEPEST: usize = 3;

/// All forms of a value, itself among them.
pub(super) fn of(value: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([value.to_owned()]);
    // What became one line has become so before it was written.
    all.extend(Some(one_line(value)).filter(|line| line.len() >= SHORTEST));
    for _ in 0..DEEPEST {
        // What one writer leaves as it is, the next one may escape.
        let escaped: Vec<String> =
            all.iter().flat_map(|form| STYLES.iter().map(|style| style.escape(form))).collect();
        all.extend(escaped);
    }
    for word in words(value) {
        let ascii = Style { ascii: true, ..PLAIN }.escape(&word);
        let plain = PLAIN.escape(&word);
        all.extend([PLAIN.escape(&plain), plain, ascii, word]);
    }
    // A writer that escapes every character does so in one string, or in a string within one.
    for upper in [false, true] {
        let numbers = Style { all: true, upper, ..PLAIN }.escape(value);
        all.extend([PLAIN.escape(&numbers), numbers]);
    }
    // As `\/` without any other escape.
    all.insert(value.replace('/', "\\/"));
    for (kept, plus) in ADDRESSES {
        all.extend([true, false].map(|upper| percent(value, kept, plus, upper)));
    }
    all
}

impl Style {
    fn escape(self, text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            match c {
                c if self.all || self.also.contains(c) || self.ascii && !c.is_ascii() => {
                    self.by_number(&mut out, c);
                }
                '"' | '\\' => out.extend(['\\', c]),
                '/' if self.slash => out.push_str("\\/"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\r' => out.push_str("\\r"),
                c if c < ' ' => self.by_number(&mut out, c),
                c => out.push(c),
            }
        }
        out
    }

    fn by_number(self, out: &mut String, c: char) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = if self.upper { write!(out, "\\u{unit:04X}") } else { write!(out, "\\u{unit:04x}") };
        }
    }
}

/// How shells write it as a word, less the quotes around it.
fn words(value: &str) -> Vec<String> {
    let mut words = SINGLE_QUOTES.map(|quote| value.replace('\'', quote)).to_vec();
    words.extend([ansi_quoted(value, false), ansi_quoted(value, true), with_backslashes(value)]);
    words
}

/// As bash writes it in `$'…'`; in a locale of ASCII, other bytes are octal.
fn ansi_quoted(text: &str, is_ascii: bool) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' | '\'' => out.extend(['\\', c]),
            '\t' => out.push_str("\\t"),
            c if !c.is_control() && (c.is_ascii() || !is_ascii) => out.push(c),
            c => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
        }
    }
    out
}

/// As bash's `printf %q` writes it.
fn with_backslashes(text: &str) -> String {
    let is_kept = |c: char| c.is_alphanumeric() || !c.is_ascii() || UNQUOTED.contains(c);
    text.chars().flat_map(|c| (!is_kept(c)).then_some('\\').into_iter().chain([c])).collect()
}

/// As it stands in the address of a page.
fn percent(text: &str, kept: &str, plus: bool, upper: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let c = char::from(byte);
        match c {
            c if c.is_ascii_alphanumeric() || c.is_ascii() && kept.contains(c) => out.push(c),
            ' ' if plus => out.push('+'),
            // Writing to a string cannot fail.
            _ => drop(if upper { write!(out, "%{byte:02X}") } else { write!(out, "%{byte:02x}") }),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_common_writers_are_known() {
        let forms = of("a\"b\\c/é<+");
        for form in [
            "a\"b\\c/é<+",
            // serde_json and jq.
            r#"a\"b\\c/é<+"#,
            // Python.
            r#"a\"b\\c/\u00e9<+"#,
            // Go.
            r#"a\"b\\c/é\u003c+"#,
            // .NET.
            r"a\u0022b\\c/\u00E9\u003C\u002B",
            // PHP.
            r#"a\"b\\c\/\u00e9<+"#,
            // JSON in JSON, and that in JSON.
            r#"a\\\"b\\\\c/é<+"#,
            r#"a\\\\\\\"b\\\\\\\\c/é<+"#,
            "a%22b%5Cc%2F%C3%A9%3C%2B",
            // Python's JSON, and Go's, around that of others.
            r#"a\\\"b\\\\c/\u00e9<+"#,
            r#"a\\\"b\\\\c/é\u003c+"#,
            // .NET and Python's `quote` in addresses.
            "a%22b%5cc%2f%c3%a9%3c%2b",
            "a%22b%5Cc/%C3%A9%3C%2B",
        ] {
            assert!(forms.contains(form), "{form}: {forms:?}");
        }
    }

    #[test]
    fn writers_of_addresses_keep_different_signs() {
        let forms = of("p@ss word/(1)!");
        for form in [
            "p%40ss%20word%2F(1)!",
            "p@ss%20word/(1)!",
            "p%40ss+word%2F%281%29%21",
            "p%40ss%20word/%281%29%21",
        ] {
            assert!(forms.contains(form), "{form}: {forms:?}");
        }
    }

    #[test]
    fn no_value_has_too_many_forms() {
        let forms = of("\"\\/é<>&'+`\t 🦀!(x)");
        assert!(forms.len() < 300, "{}", forms.len());
    }

    #[test]
    fn shells_write_what_they_would_read() {
        let forms = of("it's 4G\\q ö\tx");
        for form in [
            r"it'\''s 4G\q ö	x",
            r#"it'"'"'s 4G\q ö	x"#,
            r"it\'s 4G\\q \303\266\tx",
            r"it\'s 4G\\q ö\tx",
            r"it\'s\ 4G\\q\ ö\	x",
            // In a string of JSON.
            r"it'\\''s 4G\\q ö\tx",
        ] {
            assert!(forms.contains(form), "{form}: {forms:?}");
        }
    }

    #[test]
    fn a_line_of_single_blanks_is_a_form_as_well() {
        assert!(of("correct horse 9  battery").contains("correct horse 9 battery"));
    }

    #[test]
    fn what_needs_no_escape_has_one_form_and_its_numbers() {
        let forms = of("sk.x");
        let numbers = [r"\u0073\u006B\u002E\u0078", r"\u0073\u006b\u002e\u0078"];
        let expected = numbers.iter().flat_map(|form| [form.to_string(), form.replace('\\', r"\\")]);
        assert_eq!(forms, expected.chain(["sk.x".to_owned()]).collect());
        assert!(of("🦀").contains(r"\ud83e\udd80"));
    }
}
