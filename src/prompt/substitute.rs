//! Variables in prompts: `${NAME}` and `$NAME`, only for known names.

use regex::{Captures, Regex};
use std::borrow::Cow;
use std::sync::LazyLock;

static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    // A constant that every test of this file compiles: it cannot fail at run time.
    Regex::new(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))").expect("constant pattern")
});

/// `template` with every `${NAME}` and `$NAME` replaced by its value from `lookup`.
///
/// Works like `envsubst` with an explicit list of names. A bare name is as long as possible: `$SPECS_DIRX` means
/// `SPECS_DIRX`. One pass: values are never expanded again. A name without a value, `$1`, `$$`, `$(…)`, `${NAME:-x}`
/// and an unclosed `${` stay unchanged, so that code samples survive and no environment variable leaks into a prompt.
pub fn substitute<'v>(template: &str, lookup: &dyn Fn(&str) -> Option<Cow<'v, str>>) -> String {
    let value = |reference: &Captures| {
        let name = reference.get(1).or_else(|| reference.get(2)).map_or("", |name| name.as_str());
        lookup(name).map_or_else(|| reference[0].to_owned(), Cow::into_owned)
    };
    REFERENCE.replace_all(template, value).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known(name: &str) -> Option<Cow<'static, str>> {
        match name {
            "A" => Some("1".into()),
            "SPECS_DIR" => Some("specs".into()),
            "EMPTY" => Some("".into()),
            "TRICKY" => Some("$A ${A} $0 $$ ${TRICKY}".into()),
            _ => None,
        }
    }

    #[test]
    fn known_names_are_replaced() {
        let cases = [
            ("${SPECS_DIR}/x.md", "specs/x.md"),
            ("$SPECS_DIR/x.md", "specs/x.md"),
            ("$SPECS_DIR$A${A}", "specs11"),
            ("[${EMPTY}]", "[]"),
            ("$SPECS_DIR\u{e9}", "specs\u{e9}"),
            ("$$A", "$1"),
            ("${X${A}", "${X1"),
            ("${A", "${A"),
            ("$(echo $A)", "$(echo 1)"),
        ];
        for (template, expected) in cases {
            assert_eq!(substitute(template, &known), expected, "{template}");
        }
    }

    #[test]
    fn everything_else_stays() {
        for text in [
            "$SPECS_DIRX",
            "$HOME ${HOME}",
            "$1 $@ $? $$",
            "$(A)",
            "${A:-y} ${#A} ${A }",
            "${",
            "$",
            "${}",
            "a\\$",
        ] {
            assert_eq!(substitute(text, &known), text);
        }
    }

    #[test]
    fn values_are_never_expanded_again() {
        assert_eq!(substitute("${TRICKY}A", &known), "$A ${A} $0 $$ ${TRICKY}A");
    }

    /// A reference implementation of the rules, character by character.
    fn reference(mut rest: &str) -> String {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut out = String::new();
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            let inner = after.strip_prefix('{').unwrap_or(after);
            let name = &inner[..inner.find(|c| !is_name(c)).unwrap_or(inner.len())];
            let braced = inner.len() < after.len();
            let closed = !braced || inner[name.len()..].starts_with('}');
            match known(name) {
                Some(value) if c == '$' && closed => {
                    out.push_str(&value);
                    rest = &inner[name.len() + usize::from(braced)..];
                }
                _ => {
                    out.push(c);
                    rest = after;
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn without_known_names_nothing_changes(template in r"(\$|\{|\}|[A-C_1: ]|\PC){0,60}") {
            prop_assert_eq!(substitute(&template, &|_| None), template);
        }

        #[test]
        fn equals_the_reference(parts in prop::collection::vec(
            prop::sample::select(vec!["$", "{", "}", "A", "SPECS_DIR", "TRICKY", "EMPTY", "_", "1", ":-", " ", "é", "(", "\n"]), 0..40)
        ) {
            let template = parts.concat();
            prop_assert_eq!(substitute(&template, &known), reference(&template));
        }

        #[test]
        fn a_value_arrives_as_it_is(value in r"(\$|\{|\}|[A-C]|\PC){0,30}") {
            let found = substitute("<${A}|$A>", &|name| (name == "A").then(|| value.clone().into()));
            prop_assert_eq!(found, format!("<{value}|{value}>"));
        }
    }
}
