//! The clock that files get their times from.

use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::time::clock_gettime;

use crate::platform::calls::OF_FILES;

/// Now, by the clock that files get their times from: it lags by up to a tick of the kernel.
#[must_use]
pub fn of_files() -> SystemTime {
    let now = clock_gettime(OF_FILES);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(now.tv_nsec).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos)
}

/// Waits until a file that is written now gets a time after this moment, also after a tick that came late; a clock that is set back
/// meanwhile is not waited for.
pub fn let_files_be_later_than(moment: SystemTime) {
    let patience = Instant::now() + Duration::from_millis(100);
    while of_files() <= moment && Instant::now() < patience {
        thread::sleep(Duration::from_micros(500));
    }
}

/// Waits for a moment that is later than the times of all files that have been written, and no later than those of files to come.
#[must_use]
pub fn after_all_files() -> SystemTime {
    let_files_be_later_than(SystemTime::now());
    of_files()
}
