//! Random variation of pauses, so that loops that failed together do not retry together.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// `pause`, or up to a quarter more or less.
pub(crate) fn around(pause: Duration) -> Duration {
    // The standard library seeds every RandomState from the system's randomness, which is good enough for pauses.
    let chance = RandomState::new().hash_one(0) % 501;
    let permille = 750 + u32::try_from(chance).unwrap_or(250);
    pause * permille / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_within_a_quarter() {
        for _ in 0..100 {
            let pause = around(Duration::from_secs(100));
            assert!((75..=125).contains(&pause.as_secs()), "{pause:?}");
        }
        assert_eq!(around(Duration::ZERO), Duration::ZERO);
    }
}
