//! What loops that share an agent know of its usage limit, so that no one of them probes while another has been told to
//! wait.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};

use super::wait::Wait;

/// Until when an agent's usage limit is known to last. Clones know the same.
#[derive(Debug, Clone, Default)]
pub struct Window {
    closed: Arc<Mutex<Option<Wait>>>,
}

impl Window {
    /// An agent has said, or it is guessed, that the limit lasts until then.
    pub fn close(&self, until: DateTime<Utc>, time: DateTime<Utc>, clock: Instant) {
        let mut closed = self.lock();
        let known = closed.is_some_and(|wait| time + wait.left(time, clock) >= until);
        if !known && until > time {
            *closed = Some(Wait::new(until, time, clock));
        }
    }

    /// Somebody wants it tried again now.
    pub fn open(&self) {
        *self.lock() = None;
    }

    /// Until when nobody should try; `None` while nothing is known of a limit.
    #[must_use]
    pub fn until(&self, time: DateTime<Utc>, clock: Instant) -> Option<DateTime<Utc>> {
        let left = self.lock().map(|wait| wait.left(time, clock)).filter(|left| !left.is_zero())?;
        Some(time + left)
    }

    /// A panic of another thread cannot leave a moment half-written.
    fn lock(&self) -> MutexGuard<'_, Option<Wait>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_latest_end_counts_for_all_until_it_has_passed() {
        let (time, clock) = (Utc::now(), Instant::now());
        let minute = Duration::from_mins(1);
        let ours = Window::default();
        let theirs = ours.clone();
        assert_eq!(ours.until(time, clock), None);
        ours.close(time + 2 * minute, time, clock);
        theirs.close(time + minute, time, clock);
        theirs.close(time - minute, time, clock);
        assert_eq!(theirs.until(time, clock), Some(time + 2 * minute));
        assert_eq!(theirs.until(time + 2 * minute, clock + 2 * minute), None);
        theirs.close(time + 5 * minute, time, clock);
        assert_eq!(ours.until(time + minute, clock + minute), Some(time + 5 * minute));
        ours.open();
        assert_eq!(theirs.until(time, clock), None);
    }
}
