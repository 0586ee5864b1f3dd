//! Built-in templates: text with names in double braces.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    // A constant that every test of this file compiles: it cannot fail at run time.
    Regex::new(r"\{\{[ \t]*([a-z_]+(?:\.[a-z]+)?)[ \t]*\}\}").expect("constant pattern")
});

/// A template with its names replaced, in one pass: values are never expanded again. Names without a `value` stay.
pub(super) fn filled<'v>(template: &str, value: &dyn Fn(&str) -> Option<Cow<'v, str>>) -> String {
    let fill = |found: &Captures<'_>| value(&found[1]).map_or_else(|| found[0].to_owned(), Cow::into_owned);
    PLACEHOLDER.replace_all(template, fill).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_once_and_the_rest_stays() {
        let value = |name: &str| match name {
            "task.id" => Some(Cow::Borrowed("{{ralph}}")),
            "ralph" => Some(Cow::Borrowed("r")),
            _ => None,
        };
        let text = "{{task.id}} {{ ralph }} {{other}} {{ task.id}}{{}} {{Task.id}}";
        assert_eq!(filled(text, &value), "{{ralph}} r {{other}} {{ralph}}{{}} {{Task.id}}");
    }
}
