//! Errors of both sides.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::presets::fault::{Reported, Understood};
use crate::reply::usage::Class;
use crate::text::line::one_line_within;

/// The longest message of ours, in characters.
const LONGEST: usize = 1000;

/// Why a request of the agent is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Refusal {
    code: i32,
    message: String,
}

impl Refusal {
    fn new(code: i32, message: &str) -> Self {
        // It may repeat the agent's words, which may be long.
        Self { code, message: one_line_within(message, LONGEST) }
    }

    /// The method does not exist, or cannot be used now.
    pub(super) fn method(method: &str) -> Self {
        Self::new(-32601, &format!("method not found: {method}"))
    }

    /// The request needs something that does not exist, or has another kind.
    pub(super) fn params(why: &str) -> Self {
        Self::new(-32602, &format!("invalid params: {why}"))
    }

    /// The request cannot be read.
    pub(super) fn unread(why: &str) -> Self {
        Self::new(-32700, &format!("the message {why}"))
    }

    /// The file does not exist. Most agents understand these words as a new file; gemini understands none.
    pub(super) fn not_found(path: &str) -> Self {
        Self::new(-32002, &format!("ENOENT: no such file or directory, open '{path}'"))
    }

    /// The request is not allowed, or failed.
    pub(super) fn because(why: impl AsRef<str>) -> Self {
        Self::new(-32603, why.as_ref())
    }
}

/// What an agent says of itself as if it were the assistant.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Aside {
    /// What it does, such as that it tries again.
    Notice,
    /// Its turn has failed, if nothing follows.
    Error(Fault),
}

/// An error of the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) class: Class,
}

impl Fault {
    /// Reads the `error` of a response.
    pub(super) fn read(error: &RawValue) -> Self {
        // Not all errors have the specified shape.
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
        // Some agents use their provider's code; gemini has 500 also without one.
        let status = Some(code).filter(|code| (400..600).contains(code) && *code != 500);
        let Understood { class, message } = Reported { status, name: kind, message: &message }.understood();
        let class = if code == LOGIN { Class::Auth } else { class };
        Self { code, message, class }
    }

    /// An error that an agent reports beside its answers, with the status of its provider if it reports that.
    pub(super) fn told(status: Option<i64>, message: &str) -> Self {
        let Understood { class, message } = Reported { status, name: "", message }.understood();
        Self { code: 0, message, class }
    }
}

/// The code of an agent that requires a login first.
pub(super) const LOGIN: i64 = -32000;
