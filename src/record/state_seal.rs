//! The seal of a state file: a signature with the user's key over the rest of the file, in its first line. `resume`
//! reads in that file whether an agent may have changed settings, and an agent can write the file.
//!
//! File and seal are one write, so no crash leaves a state of ours without its seal. The state of a worker has no
//! seal, because its user may edit it; it is stored with the registry, outside of the project.

use crate::files::{FileError, key};
use crate::project::Project;
use crate::text::digest::{hmac_sha256, sha256};

/// The first line before and after the signature.
const BEGIN: &str = "seal = \"";
const END: &str = "\"\n";

/// The key that seals state files.
#[derive(Clone)]
pub(super) struct SealKey(String);

/// The seal of a state that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    signature: String,
    /// The SHA-256 of the rest of the file.
    content: String,
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey")
    }
}

impl SealKey {
    /// The key of this project's user; `None` without a home directory.
    ///
    /// # Errors
    /// If the user's key can be neither read nor created.
    pub(super) fn of(project: &Project) -> Result<Option<Self>, FileError> {
        let user = project.user_key().map(|path| key::at(&path)).transpose()?;
        // A derived key, so that no other signature can serve as the seal of a state.
        Ok(user.map(|user| Self(hmac_sha256(&user, b"states of loops"))))
    }

    /// The key to rewrite a state that was read at these paths with this seal; `None` if it was not sealed, because a
    /// new seal would approve what another program has written.
    pub(super) fn of_own(places: &Project, seal: Option<&Seal>) -> Option<Self> {
        is_sealed(places, seal).then(|| Self::of(places).ok().flatten()).flatten()
    }

    /// The file with this content and its seal.
    pub(super) fn seal(&self, content: &str) -> String {
        format!("{BEGIN}{}{END}{content}", self.signature(&sha256(content.as_bytes())))
    }

    fn signature(&self, content: &str) -> String {
        hmac_sha256(self.0.as_bytes(), content.as_bytes())
    }
}

impl Seal {
    /// The seal of the file with this text; `None` if it has none.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (signature, content) = text.strip_prefix(BEGIN)?.split_once(END)?;
        Some(Self { signature: signature.to_owned(), content: sha256(content.as_bytes()) })
    }

    fn is_by(&self, key: &SealKey) -> bool {
        key.signature(&self.content) == self.signature
    }
}

/// Whether a ralph of this user wrote the state that was read at these paths with this seal. Without a key every
/// state passes: the loop has reported that no key protects it.
#[must_use]
pub fn is_sealed(places: &Project, seal: Option<&Seal>) -> bool {
    places.is_of_worker()
        || match SealKey::of(places) {
            Ok(Some(key)) => seal.is_some_and(|seal| seal.is_by(&key)),
            Ok(None) => true,
            Err(_) => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_is_of_one_key_and_of_the_whole_content() {
        let [key, other] = ["one", "other"].map(|key| SealKey(key.to_owned()));
        let content = "version = 1\nlatest = \"a\"\n";
        let file = key.seal(content);
        assert!(file.ends_with(content) && !format!("{key:?}").contains("one"));
        let seal = Seal::of(&file).unwrap();
        assert!(seal.is_by(&key) && !seal.is_by(&other));
        assert!(!Seal::of(&file.replace("\"a\"", "\"b\"")).unwrap().is_by(&key));
        assert!(!Seal::of(&format!("{file}\n")).unwrap().is_by(&key));
        assert_eq!(Seal::of(content), None);
        assert_eq!(Seal::of(""), None);
    }
}
