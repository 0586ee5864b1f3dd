//! A quick look whether any of many values can stand in some bytes at all: for a fragment of each, in strides of the vector
//! registers. Nearly always none is there, and the bytes need no second look.

use aho_corasick::packed::{MatchKind, Searcher};

/// A longer fragment would find no less, in bytes.
const LONGEST: usize = 8;
/// A shorter one is found everywhere.
const SHORTEST: usize = 3;
/// So many are looked for at once.
const AT_ONCE: usize = 64;

/// Looks for a fragment of each value.
pub(super) struct Fragments(Vec<Searcher>);

impl Fragments {
    /// Those of these values. `None` if a value has none, or this processor cannot look for them: every value may stand
    /// everywhere then.
    pub(super) fn of(values: &[String]) -> Option<Self> {
        let mut all = values.iter().map(|value| fragment(value)).collect::<Option<Vec<_>>>()?;
        all.sort_unstable();
        all.dedup();
        let searcher = |fragments: &[&str]| {
            let mut builder =
                aho_corasick::packed::Config::new().match_kind(MatchKind::LeftmostFirst).builder();
            builder.extend(fragments).build()
        };
        all.chunks(AT_ONCE).map(searcher).collect::<Option<_>>().map(Self)
    }

    /// Whether one of the values may stand in these bytes. `false` is certain.
    pub(super) fn may_be_in(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|searcher| searcher.find(bytes).is_some())
    }
}

/// What every form of a value has in it: letters and digits, which nobody escapes. The end of the longest run of them is the
/// least likely to stand elsewhere, since many secrets begin alike.
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
            let fragment = fragment(value);
            assert_eq!(fragment.unwrap_or_default(), expected);
            for form in forms::of(value) {
                assert!(fragment.is_none_or(|fragment| form.contains(fragment)), "{value}: {form}");
            }
        }
    }

    #[test]
    fn any_of_many_is_seen() {
        let values: Vec<String> =
            (0..200).map(|number| format!("secret-{:016x}", number * 0x9e37_79b9_u64)).collect();
        let fragments = Fragments::of(&values).expect("any x86-64 or aarch64 can look for them");
        let text = "nothing of it stands in this one. ".repeat(10);
        assert!(!fragments.may_be_in(text.as_bytes()));
        for value in &values {
            assert!(fragments.may_be_in(format!("{text}{value}{text}").as_bytes()), "{value}");
        }
        assert!(Fragments::of(&["äëïöüäëïöü".to_owned()]).is_none());
    }
}
