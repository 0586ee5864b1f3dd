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
/// JSON that stands in a JSON string is escaped once more; so is JSON in that.
const DEEPEST: usize = 3;

/// All forms of a value, itself among them.
pub(super) fn of(value: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([value.to_owned()]);
    for depth in 0..DEEPEST {
        let escaped: Vec<String> = all
            .iter()
            .flat_map(|form| {
                // Deeper, the usual way will do: what makes the others differ is escaped by then.
                let styles = if depth == 0 { &STYLES[..] } else { &STYLES[..1] };
                styles.iter().map(|style| style.escape(form))
            })
            .collect();
        all.extend(escaped);
    }
    // As `\/` without any other escape.
    all.insert(value.replace('/', "\\/"));
    all.insert(percent(value));
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
fn percent(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
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
        ] {
            assert!(forms.contains(form), "{form}: {forms:?}");
        }
    }

    #[test]
    fn what_needs_no_escape_has_one_form() {
        assert_eq!(of("sk-ant-api03-AbC_0.x~").len(), 1);
        assert!(of("🦀").contains(r"\ud83e\udd80"));
    }
}
