//! The groups in which loops that have ended are told, and the order of loops in every view.

use std::cmp::Reverse;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::outcome::{Phase, Stand};

/// The word for a loop whose state cannot be read.
pub(crate) const UNKNOWN: &str = "unknown";

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

/// The rank of a loop in every view, by its state or end in one word, and by its group once it has ended: what wants a
/// person first, then what is at work, then what has ended.
pub(crate) fn rank(word: &str, group: Option<Group>) -> u8 {
    match (group, Stand::of(word)) {
        (Some(group), _) => 4 + group as u8,
        (None, Some(Stand::Live(Phase::NeedsAttention))) => 0,
        (None, None) if word == UNKNOWN => 0,
        (None, Some(Stand::Live(Phase::Paused))) => 1,
        (None, Some(Stand::Live(Phase::Waiting | Phase::Queued))) => 3,
        (None, _) => 2,
    }
}

/// The place of a loop in a list; the lowest comes first.
pub(crate) type Place<'a> = (u8, Reverse<&'a str>, &'a str);

/// The place of a loop in every view: of those of one rank, the ones of the newest run come first, by their names. `run` is the
/// id of the run that has the logs of all loops of one command.
pub(crate) fn place<'a>(word: &str, group: Option<Group>, run: &'a str, name: &'a str) -> Place<'a> {
    (rank(word, group), Reverse(run), name)
}
