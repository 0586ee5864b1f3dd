//! How long a wait lasts, by two clocks.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};

/// A wait until a moment of the wall clock, so that a machine that was suspended does not wait longer than necessary. It also
/// ends when it has lasted as long as intended, so that a clock that is set back does not prolong it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    until: DateTime<Utc>,
    length: Duration,
    began: Instant,
}

impl Wait {
    /// A wait that begins now, by the wall clock and the steady clock.
    pub(super) fn new(until: DateTime<Utc>, time: DateTime<Utc>, clock: Instant) -> Self {
        Self { until, length: (until - time).to_std().unwrap_or_default(), began: clock }
    }

    /// The rest of it; zero when it is over.
    pub(super) fn left(&self, time: DateTime<Utc>, clock: Instant) -> Duration {
        let by_time = (self.until - time).to_std().unwrap_or_default();
        let by_clock = self.length.saturating_sub(clock.saturating_duration_since(self.began));
        by_time.min(by_clock)
    }

    /// Its end by the wall clock; `None` when it is over.
    pub(super) fn end(&self, time: DateTime<Utc>, clock: Instant) -> Option<DateTime<Utc>> {
        let left = self.left(time, clock);
        // The two clocks differ by a moment; only a clock that was set gives another end.
        let was_set = time + left + TimeDelta::seconds(1) < self.until;
        let end = if was_set { time + left } else { self.until };
        (!left.is_zero()).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn both_clocks_agree() {
        let (time, clock) = (Utc::now(), Instant::now());
        let wait = Wait::new(time + MINUTE, time, clock);
        assert_eq!(wait.left(time, clock), MINUTE);
        let moment = Duration::from_micros(3);
        assert_eq!(wait.end(time, clock + moment), Some(time + MINUTE));
        assert_eq!(wait.end(time + MINUTE, clock + moment), None);
        assert_eq!(wait.left(time + MINUTE / 4, clock + MINUTE / 4), MINUTE * 3 / 4);
        assert_eq!(wait.left(time + MINUTE, clock + MINUTE), Duration::ZERO);
        assert_eq!(wait.left(time + MINUTE * 2, clock + MINUTE * 2), Duration::ZERO);
    }

    #[test]
    fn a_clock_that_steps_back_does_not_prolong_it() {
        let (time, clock) = (Utc::now(), Instant::now());
        let wait = Wait::new(time + MINUTE, time, clock);
        let stepped = time - TimeDelta::days(1);
        assert_eq!(wait.left(stepped + MINUTE / 2, clock + MINUTE / 2), MINUTE / 2);
        assert_eq!(wait.left(stepped + MINUTE, clock + MINUTE), Duration::ZERO);
        assert_eq!(wait.end(stepped + MINUTE / 2, clock + MINUTE / 2), Some(stepped + MINUTE));
    }

    #[test]
    fn it_ends_in_time_after_a_suspension_or_a_step_forward() {
        let (time, clock) = (Utc::now(), Instant::now());
        let wait = Wait::new(time + MINUTE, time, clock);
        assert_eq!(wait.left(time + MINUTE * 60, clock + Duration::from_secs(1)), Duration::ZERO);
        assert_eq!(wait.left(time + MINUTE / 2, clock), MINUTE / 2);
    }

    #[test]
    fn what_lies_behind_is_over() {
        let (time, clock) = (Utc::now(), Instant::now());
        assert_eq!(Wait::new(time - MINUTE, time, clock).left(time, clock), Duration::ZERO);
    }
}
