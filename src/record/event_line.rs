//! One line of `--json` and of the events log: a fact, its time and its loop. The same types read and write it.
//!
//! The order of the keys is the order of the fields here: the common fields by name, then `event`, then the event's
//! own fields by name. Writing sorts nothing, so a new field goes to its alphabetical place.

use std::borrow::Cow;
use std::path::Path;

use chrono::{DateTime, FixedOffset, Local, SecondsFormat};
#[cfg(test)]
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::engine::event::{LoopIdentity, Stamped};
use crate::engine::fact::Fact;

/// The version of the format, in every line as `v`. It grows when a field changes its meaning or is removed; new
/// fields, events and words do not change it.
pub const VERSION: u32 = 1;

/// The extension of the events log beside a session log.
pub(super) const EVENTS_LOG: &str = "events.jsonl";

/// Whether a file is an events log, by its name.
pub(super) fn is_events_log(path: &Path) -> bool {
    path.to_string_lossy().strip_suffix(EVENTS_LOG).is_some_and(|rest| rest.ends_with('.'))
}

/// One line of `--json` and of logs/session-*.events.jsonl. Later releases may add fields, events and words without a
/// new version; a reader ignores what it does not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(title = "Events of a ralph loop, version 1", extend("$id" = "ralph-events-1")))]
pub struct EventLine<'a, F = Fact<'a>> {
    /// The agent's name.
    #[serde(borrow)]
    pub agent: Cow<'a, str>,
    /// Local time with its offset.
    #[serde(serialize_with = "milliseconds")]
    #[cfg_attr(test, schemars(with = "DateTime<FixedOffset>"))]
    pub at: DateTime<FixedOffset>,
    /// The loop's name.
    #[serde(borrow, rename = "loop")]
    pub name: Cow<'a, str>,
    /// What it runs: plan, build, prompt, run, tasks, feature or spawn.
    #[serde(borrow)]
    pub mode: Cow<'a, str>,
    /// Unique id of the run.
    #[serde(borrow)]
    pub run: Cow<'a, str>,
    /// The format's version.
    #[serde(deserialize_with = "known_version")]
    #[cfg_attr(test, schemars(extend("const" = VERSION)))]
    pub v: u32,
    /// What happened.
    #[serde(flatten)]
    pub fact: F,
}

impl<'a> EventLine<'a> {
    /// Reads a line, with or without its newline.
    ///
    /// # Errors
    /// If it is not JSON, lacks a field that every version writes, or has another version of the format.
    pub fn read(line: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }
}

impl<F: Serialize> EventLine<'_, F> {
    /// Writes the line, with its newline.
    ///
    /// # Errors
    /// If the fact is [`Fact::Unknown`].
    pub fn write(&self) -> serde_json::Result<String> {
        let mut line = serde_json::to_string(self)?;
        line.push('\n');
        Ok(line)
    }
}

/// A fact as a line.
#[must_use]
pub fn line_of(stamped: &Stamped<'_>) -> String {
    to_line(stamped.at, stamped.identity, stamped.fact)
}

/// A fact about a loop as a line; empty for a fact that was read and not understood, which no loop makes.
#[must_use]
pub fn to_line(at: DateTime<Local>, identity: &LoopIdentity, fact: &Fact<'_>) -> String {
    let LoopIdentity { run, name, mode, agent } = identity;
    let [run, name, mode, agent] = [run, name, mode, agent].map(Cow::from);
    EventLine { agent, at: at.fixed_offset(), name, mode, run, v: VERSION, fact }.write().unwrap_or_default()
}

fn milliseconds<S: Serializer>(at: &DateTime<FixedOffset>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.to_rfc3339_opts(SecondsFormat::Millis, false))
}

fn known_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        other => Err(D::Error::custom(format!("version {other} of the format, only {VERSION} is known"))),
    }
}

#[cfg(test)]
mod tests;
