//! One message of either side, which is one line.

use std::borrow::Cow;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::error::Refusal;
use crate::reply::line::without_lone_surrogates;

/// One message, of either side.
#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) id: Option<&'a RawValue>,
    pub(super) method: Option<String>,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// An id that is null is one all the same.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A line as parsers take it: what is no text in it, and no half of a character, has a substitute.
pub(super) fn repaired(line: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line);
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return text;
    }
    Cow::Owned(String::from_utf8_lossy(&without_lone_surrogates(text.as_bytes())).into_owned())
}

/// What can be told of a message that cannot be read, or is too long for that: what its beginning says.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) id: Option<Box<RawValue>>,
    /// It names a method: it is a request, or a notification.
    pub(super) has_method: bool,
    /// It has a result or an error.
    pub(super) is_answer: bool,
}

impl Head {
    /// Of a line, or of its beginning.
    pub(super) fn of(line: &[u8]) -> Self {
        let mut head = Self::default();
        // It ends with an error in any case: where the line is cut off or broken.
        let _ = serde_json::Deserializer::from_slice(line).deserialize_map(&mut head);
        head
    }
}

impl<'de> Visitor<'de> for &mut Head {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "id" => self.id = Some(map.next_value()?),
                "method" => {
                    self.has_method = true;
                    map.next_value::<IgnoredAny>()?;
                }
                key => {
                    self.is_answer |= matches!(key, "result" | "error");
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// A value as it is said.
pub(super) fn raw(value: &impl Serialize) -> Box<RawValue> {
    // Values of JSON: that cannot fail, and null is the answer of those who have none.
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A line that asks for something.
pub(super) fn request(id: u64, method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Request<'a, T> {
        jsonrpc: &'static str,
        id: u64,
        method: &'a str,
        params: &'a T,
    }
    line(&Request { jsonrpc: "2.0", id, method, params })
}

/// A line that answers a request.
pub(super) fn response(id: &RawValue, answer: Result<Box<RawValue>, Refusal>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Response<'a> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Refusal>,
    }
    let (result, error) = match answer {
        Ok(result) => (Some(result), None),
        Err(refusal) => (None, Some(refusal)),
    };
    line(&Response { jsonrpc: "2.0", id, result, error })
}

fn line(message: &impl Serialize) -> Vec<u8> {
    // These are texts, numbers and what was JSON before.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// A value of this kind; `None`: there is none, or another one.
pub(super) fn read<'a, T: Deserialize<'a>>(json: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(json?.get()).ok()
}
