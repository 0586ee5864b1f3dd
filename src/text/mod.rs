//! Text for people: durations, names that were meant, pauses with a little chance. Knows nothing of ralph.

pub mod duration;
pub mod jitter;
pub mod nearest;
