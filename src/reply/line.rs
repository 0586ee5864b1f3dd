//! Helpers for one line of bytes or text.

use std::borrow::Cow;

use serde::Deserializer as _;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor};

/// JSON nested deeper than this is refused: the parsers and `Drop` of what they build recurse. It is a little less
/// than what `serde_json` accepts, which reads the filters' outputs.
const MAX_DEPTH: usize = 120;

/// Reads the value of the top-level `type` of a JSON object and validates the rest of the line.
///
/// `None` if the line is not a JSON object; a missing or non-string `type` counts as empty. Invalid UTF-8 and lone
/// surrogates elsewhere in the line do not matter. The last of several `type`s counts, as in jq.
pub(super) fn head(line: &[u8]) -> Option<Cow<'_, str>> {
    let mut json = serde_json::Deserializer::from_slice(line);
    let kind = json.deserialize_map(HeadVisitor).ok()?;
    json.end().ok()?;
    Some(kind)
}

struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut kind = Cow::Borrowed("");
        while let Some(is_type) = map.next_key_seed(IsType)? {
            if is_type {
                kind = map.next_value_seed(Kind)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(kind)
    }
}

/// Whether a key is `type`; read as bytes, because a key may be invalid UTF-8.
struct IsType;

impl<'de> DeserializeSeed<'de> for IsType {
    type Value = bool;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for IsType {
    type Value = bool;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_bytes<E>(self, key: &[u8]) -> Result<bool, E> {
        Ok(key == b"type")
    }
}

/// The value of `type`: a string, anything else as an empty one.
struct Kind;

impl<'de> DeserializeSeed<'de> for Kind {
    type Value = Cow<'de, str>;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Kind {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Cow::Borrowed(""))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Cow::Borrowed(""))
    }
}

/// Whether brackets outside of strings nest deeper than [`MAX_DEPTH`].
pub(super) fn too_deep(line: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut bytes = line.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => _ = bytes.next(),
            _ => {}
        }
    }
}

/// The line with each `\uD8xx`/`\uDCxx` escape without a partner replaced by U+FFFD.
pub(crate) fn without_lone_surrogates(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let take = match (escaped_unit(rest), rest.get(6..).and_then(escaped_unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                out.extend_from_slice(b"\\ufffd");
                rest = &rest[6..];
                continue;
            }
            _ => rest.len().min(2),
        };
        out.extend_from_slice(&rest[..take]);
        rest = &rest[take..];
    }
    out.extend_from_slice(rest);
    out
}

/// The UTF-16 unit of a `\uXXXX` escape at the start of `bytes`.
fn escaped_unit(bytes: &[u8]) -> Option<u16> {
    let hex = bytes.strip_prefix(b"\\u")?.get(..4)?;
    if !hex.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_type_wherever_it_stands() {
        let kind = |line: &[u8]| head(line).map(Cow::into_owned);
        assert_eq!(kind(br#"{"type":"a","x":{"type":"b"}}"#), Some("a".into()));
        assert_eq!(kind(br#" {"x":{"type":"b"},"type":"a"} "#), Some("a".into()));
        assert_eq!(kind(br#"{"typ\u0065":"\u0061"}"#), Some("a".into()));
        assert_eq!(kind(br#"{"type":"a","type":"b"}"#), Some("b".into()));
        for other in ["5", "-1", "0.5", "null", "true", "[1]", r#"{"type":"a"}"#] {
            assert_eq!(kind(format!("{{\"type\":{other}}}").as_bytes()), Some(String::new()));
        }
        assert_eq!(kind(b"{}"), Some(String::new()));
    }

    #[test]
    fn tolerates_bad_text_outside_of_the_type() {
        for line in [
            b"{\"x\":\"\xff\",\"type\":\"a\"}".as_slice(),
            b"{\"\xff\":1,\"type\":\"a\"}",
            br#"{"x":"\ud83d","type":"a"}"#,
            br#"{"\ud83d":1,"type":"a"}"#,
        ] {
            assert_eq!(head(line), Some("a".into()), "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn refuses_what_is_no_object() {
        for line in ["", "5", "[{}]", "null", "{", "{} {}", r#"{"a":1"#, "text", "\"{}\"", r#"{"a":b}"#] {
            assert_eq!(head(line.as_bytes()), None, "{line}");
        }
        let deep = [br#"{"x":"#.as_slice(), &vec![b'['; 1 << 20]].concat();
        assert_eq!(head(&deep), None);
    }

    #[test]
    fn repairs_lone_surrogates_only() {
        let repair = |line: &str| String::from_utf8(without_lone_surrogates(line.as_bytes())).unwrap();
        assert_eq!(repair(r"\ud83d\ude00 \\ud83d \n"), r"\ud83d\ude00 \\ud83d \n");
        assert_eq!(repair(r"\ud83d \ude00\ud83d\ud83d\ude00"), r"\ufffd \ufffd\ufffd\ud83d\ude00");
        assert_eq!(repair(r"\u00e9\uD83"), r"\u00e9\uD83");
        assert_eq!(repair(r"a\"), r"a\");
    }
}
