//! The key with which this user's ralph seals what it writes into graphs: writing a database makes no seal.
//!
//! That is no wall: a program of the same user can read the [key], and one that cannot may still put a whole older database back,
//! or take all seals off one, between two runs.

use std::path::Path;

use crate::files::FileError;
use crate::files::key::{self, LENGTH};
use crate::text::digest::{hmac_sha256, sha256};

/// How many hexadecimal digits name a key, and how many sign a thing.
const NAME: usize = 8;
const SIGNATURE: usize = 32;

/// A key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    name: String,
    bytes: [u8; LENGTH],
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Key {
    /// The key in the file at `path`, which is made at the first use.
    ///
    /// # Errors
    /// When it can neither be read nor made.
    pub fn at(path: &Path) -> Result<Self, FileError> {
        key::at(path).map(Self::of)
    }

    pub(super) fn of(bytes: [u8; LENGTH]) -> Self {
        Self { name: sha256(&[b"key ", &bytes as &[u8]].concat())[..NAME].to_owned(), bytes }
    }

    /// The seal of a thing with a word for what it is, and another one for how it stands.
    #[must_use]
    pub(super) fn seal(&self, what: &[u8], how: &[u8]) -> String {
        let sign = |bytes: &[u8]| hmac_sha256(&self.bytes, bytes)[..SIGNATURE].to_owned();
        format!("{}:{}:{}", self.name, sign(what), sign(how))
    }

    /// A number for a thing, of 40 bits: millions of them can be added up.
    #[must_use]
    pub(super) fn number(&self, what: &[u8]) -> i64 {
        i64::from_str_radix(&hmac_sha256(&self.bytes, what)[..10], 16).unwrap_or_default()
    }

    /// Whether a text looks like a seal of another key.
    #[must_use]
    pub(super) fn is_of_another(&self, seal: &str) -> bool {
        let parts: Vec<&str> = seal.split(':').collect();
        let is_hex = |text: &str, length| {
            text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        matches!(parts[..], [name, what, how]
            if is_hex(name, NAME) && name != self.name && is_hex(what, SIGNATURE) && is_hex(how, SIGNATURE))
    }
}

/// Whether two seals are of the same key and sign the same thing, whatever they say of how it stands.
#[must_use]
pub(super) fn is_same_thing(one: &str, other: &str) -> bool {
    let what = |seal: &str| seal.rsplit_once(':').map(|(what, _)| what.to_owned());
    what(one).is_some() && what(one) == what(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_names_its_key_and_says_what_differs() {
        let [key, other] = [[1; LENGTH], [2; LENGTH]].map(Key::of);
        let seal = key.seal(b"words", b"open");
        assert_eq!(seal, key.seal(b"words", b"open"));
        assert!(!format!("{key:?}").contains("bytes"));
        assert!(is_same_thing(&seal, &key.seal(b"words", b"done")));
        assert!(!is_same_thing(&seal, &key.seal(b"other words", b"open")));
        assert!(!is_same_thing(&seal, &other.seal(b"words", b"open")));
        assert!(other.is_of_another(&seal) && !key.is_of_another(&seal));
        for not in ["", "::", "done", &seal.to_uppercase(), &seal[1..]] {
            assert!(!other.is_of_another(not), "{not}");
        }
    }
}
