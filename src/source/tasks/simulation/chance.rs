//! Chance by a seed: the same seed gives the same history.

use std::cell::Cell;

/// A sequence of numbers that follows from a seed (`SplitMix64`).
pub(super) struct Chance(Cell<u64>);

impl Chance {
    /// The sequence of this seed.
    pub(super) fn of(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    /// The next number.
    pub(super) fn number(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` to `most`.
    pub(super) fn between(&self, least: u64, most: u64) -> u64 {
        least + self.number() % (most.saturating_sub(least) + 1)
    }

    /// A place in a list of this length, which is not empty.
    pub(super) fn place(&self, length: usize) -> usize {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        usize::try_from(self.number() % length).unwrap_or_default()
    }

    /// Yes, so many times out of a thousand.
    pub(super) fn hits(&self, of_thousand: u64) -> bool {
        of_thousand > 0 && self.number() % 1000 < of_thousand
    }
}
