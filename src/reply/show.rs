//! Items for the live display.
//!
//! # The display filter's contract
//!
//! A preset's display filter emits, for every event, any number of objects: `{"text": TEXT}`, `{"delta": TEXT}`,
//! `{"thought": TEXT}`, `{"tool": NAME, "input": ANYTHING}`, `{"error": TEXT}` or `{"notice": TEXT}`. A user's
//! display filter prints lines, which are shown unchanged.

use anstream::adapter::strip_str;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::line::one_line_within;

/// Longest tool name and input, in characters.
const MAX_INPUT: usize = 120;

/// Longest error or notice, in characters.
const MAX_MESSAGE: usize = 500;

/// The most informative parts of a tool's input, the best first.
const TELLING: [&str; 10] = [
    "command",
    "commands",
    "file_path",
    "filePath",
    "path",
    "pattern",
    "query",
    "url",
    "description",
    "prompt",
];

/// One item for the live display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Show {
    /// A whole block of text.
    Text(String),
    /// A piece of text that continues the last one, without a newline.
    Delta(String),
    /// A piece of its thoughts, which continues like a delta.
    Thought(String),
    /// A tool call.
    Tool {
        /// The tool's name.
        name: String,
        /// The most informative part of its input, on one line of at most 120 characters.
        input: String,
    },
    /// An error reported by the agent, on one line.
    Error(String),
    /// Another notable line: a retry, a warning.
    Notice(String),
    /// The agent has asked for permission.
    Permission {
        /// The answer.
        leave: Leave,
        /// The kind of tool, as the protocol calls it.
        kind: String,
        /// What it wants to do, on one line of at most 120 characters.
        what: String,
    },
}

/// The answer to an agent that has asked for permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Leave {
    /// It is permitted.
    Allowed,
    /// It is refused, because the agent must not change anything.
    Refused,
    /// Not answered, because the agent offers no fitting answer.
    Unanswered,
}

impl Show {
    /// A call of the tool `name`.
    pub(crate) fn tool(name: &str, input: Option<&Value>) -> Self {
        Self::Tool { name: one_line_within(name, MAX_INPUT), input: input.map(brief).unwrap_or_default() }
    }

    /// A message of the agent besides the assistant's text.
    pub(crate) fn notice(words: &str) -> Self {
        Self::Notice(one_line(words))
    }

    /// The answer to an agent's request for permission; `what` may have any form.
    pub(crate) fn permission(leave: Leave, kind: String, what: &str) -> Self {
        Self::Permission { leave, kind, what: one_line_within(what, MAX_INPUT) }
    }

    /// Reads one output of a preset's display filter. `None` if it is none of the objects above.
    pub(super) fn from_json(json: &str) -> Option<Self> {
        let Ok(Value::Object(map)) = serde_json::from_str(json) else { return None };
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        if let Some(name) = text("tool") {
            return Some(Self::tool(name, map.get("input")));
        }
        text("text")
            .map(|text| Self::Text(text.to_owned()))
            .or_else(|| text("delta").map(|text| Self::Delta(text.to_owned())))
            .or_else(|| text("thought").map(|text| Self::Thought(text.to_owned())))
            .or_else(|| text("error").map(|text| Self::Error(one_line(text))))
            .or_else(|| text("notice").map(Self::notice))
    }
}

/// An error or a notice, without colours.
fn one_line(text: &str) -> String {
    one_line_within(&strip_str(text).collect::<String>(), MAX_MESSAGE)
}

/// The command that a shell runs in a call such as `/bin/bash -lc 'cargo test'`; other calls stay unchanged.
fn command(input: &str) -> String {
    let is_shell = |program: &str| ["/bash", "/sh", "/zsh"].iter().any(|shell| program.ends_with(shell));
    let call = input.split_once(" -lc ").filter(|(program, _)| is_shell(program));
    let words = call.and_then(|(_, script)| shlex::split(script));
    match words.as_deref() {
        Some([script]) => script.clone(),
        _ => input.to_owned(),
    }
}

/// A tool's input on one line: the most informative part, or all of it.
fn brief(input: &Value) -> String {
    let telling = |map: &serde_json::Map<String, Value>| {
        TELLING.iter().find_map(|key| map.get(*key).filter(|part| !part.is_null())).cloned()
    };
    match input.as_object().and_then(telling).as_ref().unwrap_or(input) {
        Value::Null => String::new(),
        Value::Object(map) if map.is_empty() => String::new(),
        Value::String(text) => one_line_within(&command(text), MAX_INPUT),
        Value::Array(parts) if parts.iter().all(Value::is_string) => {
            let parts: Vec<_> = parts.iter().filter_map(Value::as_str).collect();
            one_line_within(&parts.join("; "), MAX_INPUT)
        }
        other => one_line_within(&other.to_string(), MAX_INPUT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_contract_and_nothing_else() {
        let show = Show::from_json;
        assert_eq!(show(r#"{"text":"a\nb"}"#), Some(Show::Text("a\nb".into())));
        assert_eq!(show(r#"{"delta":"a "}"#), Some(Show::Delta("a ".into())));
        assert_eq!(show(r#"{"thought":"a\nb"}"#), Some(Show::Thought("a\nb".into())));
        assert_eq!(show(r#"{"error":"a\nb"}"#), Some(Show::Error("a b".into())));
        assert_eq!(show(r#"{"notice":"a"}"#), Some(Show::Notice("a".into())));
        assert_eq!(show(r#"{"error":"\u001b[31ma\u001b[0m"}"#), Some(Show::Error("a".into())));
        for other in ["null", "[]", "{}", r#"{"text":5}"#, r#"{"other":"a"}"#, "noise"] {
            assert_eq!(show(other), None, "{other}");
        }
    }

    #[test]
    fn a_tools_input_is_brief() {
        for (input, expected) in [
            (r#"{"description":"d","command":"echo\nhi"}"#, "echo hi"),
            (r#"{"commands":["a","b"]}"#, "a; b"),
            (r#""/bin/bash -lc 'echo hi'""#, "echo hi"),
            (r#""/bin/bash -lc \"cargo test -- 'a b' \\\"$X\\\"\"""#, "cargo test -- 'a b' \"$X\""),
            (r#""/usr/bin/zsh -lc ls""#, "ls"),
            (r#""/bin/bash -lc 'unclosed""#, "/bin/bash -lc 'unclosed"),
            (r#""/bin/bash -lc a b""#, "/bin/bash -lc a b"),
            (r#""grep -lc 'x y'""#, "grep -lc 'x y'"),
            (r#"{"command":null,"path":"p"}"#, "p"),
            (r#"{"todos":[1]}"#, r#"{"todos":[1]}"#),
            (r#""text""#, "text"),
            ("{}", ""),
            ("null", ""),
            ("7", "7"),
        ] {
            let show = Show::from_json(&format!(r#"{{"tool":"t","input":{input}}}"#));
            assert_eq!(show, Some(Show::Tool { name: "t".into(), input: expected.into() }));
        }
        assert_eq!(
            Show::from_json(r#"{"tool":"t"}"#),
            Some(Show::Tool { name: "t".into(), input: String::new() })
        );
    }
}
