//! What walls refuse, as data.

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

/// Something that walls have refused, to an agent or to what looks at its work.
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
        let (words, setting) = self.words();
        let times = if self.times > 1 { format!(", {} times", self.times) } else { String::new() };
        format!("{words}{times} ({setting} would allow it)")
    }

    /// Whether these words tell it, however often it was.
    #[must_use]
    pub fn is_told_by(&self, told: &str) -> bool {
        told.strip_prefix(&*self.words().0).is_some_and(|rest| rest.starts_with([',', ' ']))
    }

    /// It in words, and the setting that would allow it.
    fn words(&self) -> (String, &'static str) {
        let (refused, setting) = match self.what {
            Denied::Write => ("is not writable here", "sandbox.write"),
            Denied::Read => ("cannot be read here", "sandbox.show"),
            Denied::Connect => ("cannot be connected to from here", "sandbox.hosts"),
            Denied::Other => ("is refused here", "sandbox"),
        };
        let seems = if self.seems { "seems refused: " } else { "" };
        (format!("{seems}{} {refused}", self.place), setting)
    }
}
