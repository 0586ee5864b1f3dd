//! How a program is asked to leave, and how long it has each time.

use std::ffi::{OsStr, OsString};
use std::io;
use std::time::Duration;

/// The waits between INT, TERM and KILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ladder {
    /// How long a program has after INT.
    pub interrupt: Duration,
    /// How long it has after TERM; what it leaves behind has as long.
    pub terminate: Duration,
}

impl Default for Ladder {
    fn default() -> Self {
        Self { interrupt: Duration::from_secs(3), terminate: Duration::from_secs(2) }
    }
}

impl Ladder {
    /// How long after the first KILL the supervisor gives up on what cannot be killed (a process in uninterruptible
    /// sleep) and says so.
    pub(super) const AFTER_KILL: Duration = Duration::from_secs(4);

    /// When nothing was heard of the supervisor for this long, it is given up itself: the whole ladder, the same
    /// for what is left behind, and a second for the supervisor.
    #[must_use]
    pub fn limit(self) -> Duration {
        self.interrupt + 2 * self.terminate + Self::AFTER_KILL + Duration::from_secs(1)
    }

    /// As arguments of the supervisor: milliseconds.
    pub(super) fn to_args(self) -> [OsString; 2] {
        [self.interrupt, self.terminate].map(|wait| wait.as_millis().to_string().into())
    }

    /// Reads the arguments back.
    pub(super) fn from_args(interrupt: &OsStr, terminate: &OsStr) -> io::Result<Self> {
        let wait = |text: &OsStr| {
            let millis = text.to_str().and_then(|text| text.parse().ok());
            millis.map(Duration::from_millis).ok_or(io::ErrorKind::InvalidInput)
        };
        Ok(Self { interrupt: wait(interrupt)?, terminate: wait(terminate)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_survives_the_command_line() {
        for (interrupt, terminate) in [(3000, 2000), (1, 0), (3_153_600_000_000, 12)] {
            let [interrupt, terminate] = [interrupt, terminate].map(Duration::from_millis);
            let ladder = Ladder { interrupt, terminate };
            let [first, second] = ladder.to_args();
            assert_eq!(Ladder::from_args(&first, &second).unwrap(), ladder);
        }
        assert!(Ladder::from_args("3s".as_ref(), "2".as_ref()).is_err());
    }
}
