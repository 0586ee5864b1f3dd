//! Hashes and signatures in hexadecimal digits, and random bytes for keys.

use std::fmt::Write as _;
use std::io;

use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac};

/// The SHA-256 of these bytes.
#[must_use]
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// The SHA-256 of all that can be read.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn sha256_of(mut from: impl io::Read) -> io::Result<String> {
    let mut context = digest::Context::new(&digest::SHA256);
    let mut room = vec![0; 64 * 1024];
    loop {
        match from.read(&mut room) {
            Ok(0) => return Ok(hex(context.finish().as_ref())),
            Ok(length) => context.update(&room[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The SHA-256 of words, each preceded by its length, so that adjacent words cannot be confused.
#[must_use]
pub(crate) fn sha256_of_words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for word in words {
        let _ = write!(text, "{}:{word}", word.len()); // writing to a String cannot fail
    }
    sha256(text.as_bytes())
}

/// The HMAC-SHA256 of these bytes.
#[must_use]
pub(crate) fn hmac_sha256(key: &[u8], bytes: &[u8]) -> String {
    hex(HmacKey::of(key).sign(bytes).as_ref())
}

/// A key of HMAC-SHA256 for many signatures: values derived from its bytes are computed once.
#[derive(Clone)]
pub(crate) struct HmacKey(hmac::Key);

impl HmacKey {
    pub(crate) fn of(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The 32 bytes of the signature.
    #[must_use]
    pub(crate) fn sign(&self, bytes: &[u8]) -> impl AsRef<[u8]> + use<> {
        hmac::sign(&self.0, bytes)
    }
}

/// Unpredictable bytes.
///
/// # Errors
/// If the system provides none.
pub(crate) fn random<const LENGTH: usize>() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random bytes"))?;
    Ok(bytes)
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a String cannot fail
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_the_published_ones() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        // RFC 4231, test case 2.
        assert_eq!(
            hmac_sha256(b"Jefe", b"what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
