//! Screens of interactive agents: which program it is, whether it can take a prompt, whether it has taken it, whether it says
//! the words that end the loop, what it stops at, whether it stands still.
//!
//! All of it is pure: screens come in as lines, from the top of what is visible to the bottom, without escape sequences and
//! without the blanks at their ends; moments come in as arguments. What we know about each program stands in [`crate::presets`], and in `known`, as data.
//! The screens behind it are those under `tests/screens/`.

pub mod arrival;
pub mod done;
pub mod halt;
mod known;
mod menu;
pub mod programs;
pub mod ready;
pub mod still;
pub(in crate::agent) mod text;

#[cfg(test)]
mod recorded;

use std::time::{Duration, Instant};

pub use crate::presets::screens::SETTLED;

/// An observation, and since when it is unchanged.
#[derive(Debug, Clone)]
pub(in crate::agent) struct Since<T> {
    what: T,
    since: Instant,
}

impl<T: PartialEq> Since<T> {
    /// How long the observation has been `what`.
    pub(in crate::agent) fn update(seen: &mut Option<Self>, what: T, now: Instant) -> Duration {
        match seen {
            Some(seen) if seen.what == what => now.saturating_duration_since(seen.since),
            _ => {
                *seen = Some(Self { what, since: now });
                Duration::ZERO
            }
        }
    }
}
