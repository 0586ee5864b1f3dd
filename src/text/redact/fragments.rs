//! A fast check whether any of many values can be in some bytes at all: it searches a fragment of each with vector
//! instructions. Usually there is none, and no further search is needed.

use std::collections::BTreeSet;

use aho_corasick::packed::{MatchKind, Searcher};

/// Longer fragments would find as much, in bytes.
const LONGEST: usize = 8;
/// Shorter fragments are found everywhere.
const SHORTEST: usize = 3;
/// How many are searched at once.
const AT_ONCE: usize = 64;

/// Searches a fragment of each value.
pub(super) struct Fragments(Vec<Searcher>);

impl Fragments {
    /// The fragments of these values, each with its forms. `None` if one has none, or if this processor lacks the
    /// instructions: then every value may be anywhere.
    pub(super) fn of<'a>(values: impl Iterator<Item = (&'a str, &'a BTreeSet<String>)>) -> Option<Self> {
        let mut all = Vec::new();
        for (value, forms) in values {
            let own = fragment(value)?;
            all.push(own);
            for form in forms.iter().filter(|form| !form.contains(own)) {
                all.push(fragment(form)?);
            }
        }
        all.sort_unstable();
        all.dedup();
        let searcher = |fragments: &[&str]| {
            let mut builder =
                aho_corasick::packed::Config::new().match_kind(MatchKind::LeftmostFirst).builder();
            builder.extend(fragments).build()
        };
        all.chunks(AT_ONCE).map(searcher).collect::<Option<_>>().map(Self)
    }

    /// Whether one of the values may be in these bytes. `false` is certain.
    pub(super) fn may_be_in(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|searcher| searcher.find(bytes).is_some())
    }
}

/// The part of a value that nearly every form of it contains: letters and digits, which are seldom escaped. It is the end of
/// the longest run of them, which is the least common part, as many secrets begin alike.
fn fragment(value: &str) -> Option<&str> {
    let run = value.split(|c: char| !c.is_ascii_alphanumeric()).max_by_key(|run| run.len())?;
    (run.len() >= SHORTEST).then(|| &run[run.len().saturating_sub(LONGEST)..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::redact::forms;

    #[test]
    fn every_form_of_a_value_has_its_fragment() {
        for (value, expected) in [
            ("sk-ant-api03-AbCd0123456789", "23456789"),
            ("p\"w\\/é<&>'+`\u{7}\tx123", "x123"),
            ("correct horse battery", "battery"),
            ("ébcé/äëïöü", ""),
        ] {
            assert_eq!(fragment(value).unwrap_or_default(), expected);
            let forms = forms::of(value);
            let fragments = Fragments::of(std::iter::once((value, &forms)));
            assert_eq!(fragments.is_none(), expected.is_empty());
            for form in &forms {
                let may_be_in =
                    fragments.as_ref().is_none_or(|fragments| fragments.may_be_in(form.as_bytes()));
                assert!(may_be_in, "{value}: {form}");
            }
        }
    }

    #[test]
    fn any_of_many_is_seen() {
        let values: Vec<String> =
            (0..200).map(|number| format!("secret-{:016x}", number * 0x9e37_79b9_u64)).collect();
        let none = BTreeSet::new();
        let fragments = Fragments::of(values.iter().map(|value| (value.as_str(), &none)));
        let fragments = fragments.expect("any x86-64 or aarch64 can look for them");
        let text = "nothing of it stands in this one. ".repeat(10);
        assert!(!fragments.may_be_in(text.as_bytes()));
        for value in &values {
            assert!(fragments.may_be_in(format!("{text}{value}{text}").as_bytes()), "{value}");
        }
        assert!(Fragments::of(std::iter::once(("äëïöüäëïöü", &none))).is_none());
    }
}
