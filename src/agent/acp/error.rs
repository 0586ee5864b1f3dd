//! Errors of both sides.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::presets::fault::{Reported, Understood};
use crate::reply::usage::Class;
use crate::text::line::one_line_within;

/// The longest message of ours, in characters.
const LONGEST: usize = 1000;

/// Why a request of the agent's is not granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Refusal {
    code: i32,
    message: String,
}

impl Refusal {
    fn new(code: i32, message: &str) -> Self {
        // It may repeat what the agent has said, which may be long.
        Self { code, message: one_line_within(message, LONGEST) }
    }

    /// There is no such method, or not now.
    pub(super) fn method(method: &str) -> Self {
        Self::new(-32601, &format!("method not found: {method}"))
    }

    /// What it needs is not there, or is something else.
    pub(super) fn params(why: &str) -> Self {
        Self::new(-32602, &format!("invalid params: {why}"))
    }

    /// It cannot be read.
    pub(super) fn unread(why: &str) -> Self {
        Self::new(-32700, &format!("the message {why}"))
    }

    /// There is no such file. Most agents take these words for a file that is new; gemini takes none for that.
    pub(super) fn not_found(path: &str) -> Self {
        Self::new(-32002, &format!("ENOENT: no such file or directory, open '{path}'"))
    }

    /// It is not allowed, or does not work.
    pub(super) fn because(why: impl AsRef<str>) -> Self {
        Self::new(-32603, why.as_ref())
    }
}

/// An error of the agent's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) class: Class,
}

impl Fault {
    /// Reads the `error` of a response.
    pub(super) fn read(error: &RawValue) -> Self {
        // Not all are of the shape that is written down.
        let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |value: &Value| value.as_i64().or_else(|| value.as_str()?.trim().parse().ok());
        let code = error.get("code").and_then(number).unwrap_or_default();
        let message = text(Some(&error).filter(|error| error.is_string()).or(error.get("message")));
        let data = error.get("data").cloned().unwrap_or_default();
        let kind = data.get("errorKind").and_then(Value::as_str).unwrap_or_default();
        let details = text(data.get("details").or(data.get("message")).or(Some(&data)));
        let message = message.trim();
        let message = match (message.strip_prefix("Internal error: ").unwrap_or(message), details.trim()) {
            ("", "") => format!("error {code}"),
            (said, "") => said.to_owned(),
            ("" | "Internal error", details) => details.to_owned(),
            (said, details) if said.contains(details) => said.to_owned(),
            (said, details) => format!("{said}: {details}"),
        };
        // Some take the code from their provider; gemini says 500 also where there is none.
        let status = Some(code).filter(|code| (400..600).contains(code) && *code != 500);
        let Understood { class, message } = Reported { status, name: kind, message: &message }.understood();
        let class = if code == LOGIN { Class::Auth } else { class };
        Self { code, message, class }
    }

    /// Of an error that an agent tells beside its answers, with the status of its provider where it tells that.
    pub(super) fn told(status: Option<i64>, message: &str) -> Self {
        let Understood { class, message } = Reported { status, name: "", message }.understood();
        Self { code: 0, message, class }
    }
}

/// The code of an agent that wants a login first.
pub(super) const LOGIN: i64 = -32000;
