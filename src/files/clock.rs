//! The clock that files get their times from.

use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// Now, by the clock that files get their times from: it lags by up to a tick of the kernel.
#[must_use]
pub fn of_files() -> SystemTime {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(now.tv_nsec).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos)
}
