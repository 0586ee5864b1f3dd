//! The kill ladder: how a program is asked to exit, and how long it has each time.

use std::ffi::OsStr;
use std::time::Duration;

/// The waits between INT, TERM and KILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ladder {
    /// The time after INT.
    pub interrupt: Duration,
    /// The time after TERM, and the same again for what the program leaves behind.
    pub terminate: Duration,
}

impl Default for Ladder {
    fn default() -> Self {
        Self { interrupt: Duration::from_secs(3), terminate: Duration::from_secs(2) }
    }
}

impl Ladder {
    /// It is killed at once: for what only asks, and has nothing to finish.
    pub const AT_ONCE: Self = Self { interrupt: Duration::ZERO, terminate: Duration::ZERO };

    /// How long after the first KILL the supervisor gives up on processes that cannot be killed (in uninterruptible
    /// sleep) and reports them.
    pub(super) const AFTER_KILL: Duration = Duration::from_secs(4);

    /// A supervisor that was silent for this long is given up: the whole ladder, the same for leftovers, and a second
    /// for the supervisor itself.
    #[must_use]
    pub fn limit(self) -> Duration {
        self.interrupt + 2 * self.terminate + Self::AFTER_KILL + Duration::from_secs(1)
    }

    /// As words for the supervisor: milliseconds.
    pub(super) fn to_words(self) -> [String; 2] {
        [self.interrupt, self.terminate].map(|wait| wait.as_millis().to_string())
    }

    /// Reads the words back.
    pub(super) fn from_words(words: [&OsStr; 2]) -> Option<Self> {
        let wait = |word: &OsStr| Some(Duration::from_millis(word.to_str()?.parse().ok()?));
        let [interrupt, terminate] = words.map(wait);
        Some(Self { interrupt: interrupt?, terminate: terminate? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_survives_the_way() {
        for (interrupt, terminate) in [(3000, 2000), (1, 0), (3_153_600_000_000, 12)] {
            let [interrupt, terminate] = [interrupt, terminate].map(Duration::from_millis);
            let ladder = Ladder { interrupt, terminate };
            let [first, second] = ladder.to_words();
            assert_eq!(Ladder::from_words([first.as_ref(), second.as_ref()]), Some(ladder));
        }
        assert_eq!(Ladder::from_words(["3s".as_ref(), "2".as_ref()]), None);
    }
}
