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

/// How long a server is waited for, and whether it is now.
#[derive(Debug)]
pub struct Patience {
    longest: Duration,
    /// Until when it is waited for, and why.
    wait: Mutex<Option<(DateTime<Utc>, String)>>,
    /// Nothing is waited for any more once one of these is set.
    ended_by: Vec<Arc<AtomicBool>>,
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
        Self { longest, wait: Mutex::default(), ended_by: ended_by.into_iter().collect() }
    }

    /// Until when a server is waited for that is away now, and what was wrong when it was asked first; `None`: it is not.
    #[must_use]
    pub fn waits(&self) -> Option<(DateTime<Utc>, String)> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<(DateTime<Utc>, String)>> {
        self.wait.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, longer each time, for what is asked since this moment, and `why` it has to be; returns whether it may be asked again.
    pub fn wait(&self, since: Instant, tries: &mut u32, why: &str, cancelled: &AtomicBool) -> bool {
        let left = self.longest.saturating_sub(since.elapsed());
        if left.is_zero() {
            return false;
        }
        let until = Utc::now() + left;
        self.lock().get_or_insert_with(|| (until, why.to_owned()));
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

    /// It is waited for no more.
    pub fn ends(&self) {
        self.lock().take();
    }
}
