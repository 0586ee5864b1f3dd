//! The groups in which loops that have ended are told: what waits to be merged, what needs a person, what can go on.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is to be done about a loop that has ended, in the order in which people want to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Its work is proven, and waits to be merged or looked at.
    ToMerge,
    /// It does not go on without a person: a login, a choice, work that is refuted or unchecked.
    NeedsYou,
    /// It goes on by one command.
    CanGoOn,
    /// Nothing is left to do.
    Over,
}

impl Group {
    /// The words above its loops.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::ToMerge => "To merge (proven)",
            Self::NeedsYou => "Needs you",
            Self::CanGoOn => "Can go on",
            Self::Over => "Over",
        }
    }
}
