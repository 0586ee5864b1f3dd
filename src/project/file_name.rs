//! Encodes names of loops and branches as file names.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The longest name in bytes: a file system allows 255, and a suffix may follow.
const LONGEST: usize = 180;
/// What is encoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// Percent-encodes everything but `[A-Za-z0-9._-]`, and a leading dot: never `.`, `..` or a hidden file. A name too
/// long for a file system ends in `~` and a hash.
pub(crate) fn encoded(name: &str) -> String {
    let (dot, rest) = name.strip_prefix('.').map_or(("", name), |rest| ("%2E", rest));
    let mut encoded = format!("{dot}{}", utf8_percent_encode(rest, ENCODED));
    if encoded.len() > LONGEST {
        encoded.truncate(LONGEST);
        let _ = write!(encoded, "~{:08x}", fnv1a(name.as_bytes()));
    }
    encoded
}

/// Decodes a name; `None` if it is not an encoded one, or was too long.
pub(crate) fn decoded(file: &str) -> Option<String> {
    let name = percent_decode_str(file).decode_utf8().ok()?;
    (encoded(&name) == file).then(|| name.into_owned())
}

/// The 32-bit FNV-1a hash: the standard library's hashes may change between releases.
pub(crate) fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_none_is_too_long() {
        assert_eq!(encoded("feature/x.y_z-1"), "feature%2Fx.y_z-1");
        for name in ["", ".", "..", "a b", "100%", "\u{fc}", ".hidden", "a\nb", "x~y", "feature/x"] {
            assert_eq!(decoded(&encoded(name)).as_deref(), Some(name));
        }
        let long = ["x".repeat(250), "\u{fc}".repeat(125), "x".repeat(249)].map(|name| encoded(&name));
        assert!(long.iter().all(|name| name.len() < 200 && decoded(name).is_none()), "{long:?}");
        assert!(long[0] != long[2]);
        for file in ["%", "%2", "%zz", "%ff", "a b", "%2f"] {
            assert_eq!(decoded(file), None, "{file}");
        }
    }

    #[test]
    fn hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0x811c_9dc5);
        assert_eq!(fnv1a(b"a"), 0xe40c_292c);
        assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968);
    }
}
