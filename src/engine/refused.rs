//! What the walls around an agent refuse, as data.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What walls refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Denied {
    /// To write a file, or to make one.
    Write,
    /// To read a file, or a folder.
    Read,
    /// To connect to a host.
    Connect,
    /// Something that only a later release knows.
    #[serde(other)]
    Other,
}

/// Something that the walls around an agent have refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Refused {
    /// The path, or the host with its port.
    pub place: String,
    /// It was read from what a tool has printed, and so may have had another reason.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seems: bool,
    /// How often.
    pub times: u64,
    /// What was refused.
    pub what: Denied,
}

impl Refused {
    /// It in words, with the setting that would allow it.
    #[must_use]
    pub fn told(&self) -> String {
        let Self { place, seems, times, what } = self;
        let (refused, setting) = match what {
            Denied::Write => ("is not writable here", "sandbox.write"),
            Denied::Read => ("cannot be read here", "sandbox.show"),
            Denied::Connect => ("cannot be connected to from here", "sandbox.hosts"),
            Denied::Other => ("is refused here", "sandbox"),
        };
        let seems = if *seems { "seems refused: " } else { "" };
        let times = if *times > 1 { format!(", {times} times") } else { String::new() };
        format!("{seems}{place} {refused}{times} ({setting} would allow it)")
    }
}
