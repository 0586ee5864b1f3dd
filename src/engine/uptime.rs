//! The clock by which leases are counted.

use std::time::Duration;

use rustix::time::clock_gettime;

use crate::platform::calls::SINCE_BOOT;

/// A moment of a clock that runs on while the machine sleeps, and that no one can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uptime(Duration);

impl Uptime {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        let now = clock_gettime(SINCE_BOOT);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        let nanos = u32::try_from(now.tv_nsec).unwrap_or_default();
        Self(Duration::new(seconds, nanos))
    }

    /// How long ago it was.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        self.until(Self::now())
    }

    /// How long after it `later` is.
    #[must_use]
    pub fn until(self, later: Self) -> Duration {
        later.0.saturating_sub(self.0)
    }

    /// The moment this much earlier.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }

    /// The moment this long after the machine was started.
    #[cfg(test)]
    #[must_use]
    pub fn at(span: Duration) -> Self {
        Self(span)
    }
}
