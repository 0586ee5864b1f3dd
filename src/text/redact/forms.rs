//! The forms in which programs write a value: as it is, inside of a JSON string, inside of JSON that is itself a string, and in
//! an address.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// How a writer of JSON escapes what need not be escaped.
#[derive(Clone, Copy)]
struct Style {
    /// What is not ASCII is `\u00e9`.
    ascii: bool,
    /// That is `\u00E9`.
    upper: bool,
    /// More that is written that way.
    also: &'static str,
    /// `/` is `\/`.
    slash: bool,
}

const PLAIN: Style = Style { ascii: false, upper: false, also: "", slash: false };
const STYLES: [Style; 6] = [
    PLAIN,
    Style { ascii: true, ..PLAIN },
    Style { ascii: true, upper: true, ..PLAIN },
    Style { also: "<>&", ..PLAIN },
    Style { ascii: true, upper: true, also: "<>&'\"+`", slash: false },
    Style { ascii: true, slash: true, ..PLAIN },
];
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
    for _ in 0..DEEPEST {
        // What one writer leaves as it is, the next one may escape.
        let escaped: Vec<String> =
            all.iter().flat_map(|form| STYLES.iter().map(|style| style.escape(form))).collect();
        all.extend(escaped);
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
                c if self.also.contains(c) || self.ascii && !c.is_ascii() => self.by_number(&mut out, c),
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
    fn what_needs_no_escape_has_one_form() {
        assert_eq!(of("sk-ant-api03-AbC_0.x").len(), 1);
        assert!(of("🦀").contains(r"\ud83e\udd80"));
    }
}
