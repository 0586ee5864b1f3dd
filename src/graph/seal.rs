//! The user's key that seals what ralph writes into graphs. Write access to the database is not enough to make a
//! seal.
//!
//! This is no strong protection: a program of the same user can read the [key], and one that cannot can still restore
//! a whole older database, or remove all seals, between two runs.

use std::path::Path;

use crate::files::FileError;
use crate::files::key::{self, LENGTH};
use crate::text::digest::HmacKey;

/// The length in bytes of a key's name and of a signature.
const NAME: usize = 4;
const SIGNATURE: usize = 16;
/// The length of the part of a seal before the signature of the state: the key's name and the signature of the
/// contents.
const WHAT: usize = NAME + SIGNATURE;
const SEAL: usize = WHAT + SIGNATURE;

/// A key for seals.
#[derive(Clone)]
pub struct Key {
    name: [u8; NAME],
    hmac: HmacKey,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Key {
    /// The key in the file at `path`, which is created at first use.
    ///
    /// # Errors
    /// If it can be neither read nor created.
    pub fn at(path: &Path) -> Result<Self, FileError> {
        key::at(path).map(Self::of)
    }

    pub(super) fn of(bytes: [u8; LENGTH]) -> Self {
        let hmac = HmacKey::of(&bytes);
        Self { name: first(&hmac, b"name"), hmac }
    }

    /// Seals contents and their state.
    #[must_use]
    pub(super) fn seal(&self, what: &[u8], state: &[u8]) -> [u8; SEAL] {
        let mut seal = [0; SEAL];
        seal[..NAME].copy_from_slice(&self.name);
        seal[NAME..WHAT].copy_from_slice(&first::<SIGNATURE>(&self.hmac, what));
        seal[WHAT..].copy_from_slice(&first::<SIGNATURE>(&self.hmac, state));
        seal
    }

    /// A 40-bit number for the given bytes; a sum of millions does not overflow.
    #[must_use]
    pub(super) fn number(&self, what: &[u8]) -> i64 {
        let mut number = [0; 8];
        number[3..].copy_from_slice(&first::<5>(&self.hmac, what));
        i64::from_be_bytes(number)
    }

    /// Whether these bytes look like a seal of another key.
    #[must_use]
    pub(super) fn is_of_another(&self, seal: &[u8]) -> bool {
        seal.len() == SEAL && !seal.starts_with(&self.name)
    }
}

/// The first bytes of a signature.
fn first<const LENGTH: usize>(hmac: &HmacKey, bytes: &[u8]) -> [u8; LENGTH] {
    let mut first = [0; LENGTH];
    first.copy_from_slice(&hmac.sign(bytes).as_ref()[..LENGTH]);
    first
}

/// Whether two seals have the same key and contents, in any state.
#[must_use]
pub(super) fn is_same_thing(one: &[u8], other: &[u8]) -> bool {
    one.len() == SEAL && other.len() == SEAL && one[..WHAT] == other[..WHAT]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_names_its_key_and_says_what_differs() {
        let [key, other] = [[1; LENGTH], [2; LENGTH]].map(Key::of);
        let seal = key.seal(b"words", b"open");
        assert_eq!(seal, key.seal(b"words", b"open"));
        assert!(!format!("{key:?}").contains("hmac"));
        assert!(is_same_thing(&seal, &key.seal(b"words", b"done")));
        assert!(!is_same_thing(&seal, &key.seal(b"other words", b"open")));
        assert!(!is_same_thing(&seal, &other.seal(b"words", b"open")));
        assert!(other.is_of_another(&seal) && !key.is_of_another(&seal));
        for not in [&b""[..], b"done", &seal[1..], &[&seal[..], b"x"].concat()] {
            assert!(!other.is_of_another(not) && !is_same_thing(not, not), "{not:?}");
        }
    }
}
