//! How long a server that is away is waited for, and what others may know of that (rule 7).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use crate::text::jitter;

/// The first pause before a server that is away is asked again, and the longest.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// How often it is looked whether the wait is cancelled.
const LOOK: Duration = Duration::from_millis(200);

/// How long a server is waited for, and whether it is now. What asks it shares one: an outage is waited for once.
#[derive(Debug)]
pub struct Patience {
    longest: Duration,
    outage: Mutex<Option<Outage>>,
    /// Nothing is waited for any more once one of these is set.
    ended_by: Vec<Arc<AtomicBool>>,
}

/// A server is away.
#[derive(Debug)]
struct Outage {
    /// When that was seen first.
    began: Instant,
    /// Until when it is waited for.
    until: DateTime<Utc>,
    /// What was wrong then.
    why: String,
    /// Whether something waits now.
    is_waited_for: bool,
}

impl Patience {
    /// At most this long.
    #[must_use]
    pub fn of(longest: Duration) -> Self {
        Self::until_set(longest, [])
    }

    /// At most this long, and until one of these is set.
    #[must_use]
    pub fn until_set(longest: Duration, ended_by: impl IntoIterator<Item = Arc<AtomicBool>>) -> Self {
        Self { longest, outage: Mutex::default(), ended_by: ended_by.into_iter().collect() }
    }

    /// Until when a server is waited for that is away now, and what was wrong when that was seen first; `None`: it is not.
    #[must_use]
    pub fn waits(&self) -> Option<(DateTime<Utc>, String)> {
        let outage = self.lock();
        outage.as_ref().filter(|outage| outage.is_waited_for).map(|outage| (outage.until, outage.why.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, longer each time, and `why` it has to be; returns whether it may be asked again.
    pub fn wait(&self, tries: &mut u32, why: &str, cancelled: &AtomicBool) -> bool {
        let left = {
            let mut outage = self.lock();
            let known = outage.get_or_insert_with(|| Outage {
                began: Instant::now(),
                until: Utc::now() + self.longest,
                why: why.to_owned(),
                is_waited_for: false,
            });
            let left = self.longest.saturating_sub(known.began.elapsed());
            known.is_waited_for = !left.is_zero();
            left
        };
        if left.is_zero() {
            return false;
        }
        let pause = LONGEST.min(FIRST * (1 << (*tries).min(6)));
        *tries += 1;
        let until = Instant::now() + left.min(jitter::around(pause));
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        while !is_set(cancelled) && !self.ended_by.iter().any(|flag| is_set(flag)) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(LOOK));
        }
        false
    }

    /// It is there again.
    pub fn ends(&self) {
        self.lock().take();
    }

    /// What has asked gives up; what asks next does not begin to wait anew.
    pub fn gives_up(&self) {
        if let Some(outage) = &mut *self.lock() {
            outage.is_waited_for = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_waited_for_once() {
        let patience = Patience::of(Duration::from_millis(300));
        let (mut tries, never) = (0, AtomicBool::new(false));
        let began = Instant::now();
        while patience.wait(&mut tries, "gone", &never) {
            assert_eq!(patience.waits().map(|(_, why)| why).as_deref(), Some("gone"));
        }
        assert!(began.elapsed() >= Duration::from_millis(300));
        patience.gives_up();
        assert_eq!(patience.waits(), None);
        assert!(!patience.wait(&mut 0, "still gone", &never), "the same outage");
        patience.ends();
        assert!(patience.wait(&mut 0, "another one", &never));
    }
}
