//! Waits for a descriptor with a deadline.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until `descriptor` is ready for `flags`, or broken, which the next read or write reports. `false` if
/// `deadline` came first.
pub fn is_ready_by(descriptor: impl AsFd, flags: PollFlags, deadline: Instant) -> io::Result<bool> {
    is_any_ready_by(&mut [PollFd::new(&descriptor, flags)], deadline)
}

/// Waits for several descriptors: whether one of them is ready.
pub fn is_any_ready_by(descriptors: &mut [PollFd<'_>], deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // A time too long for the kernel means for ever.
        let timeout = Timespec::try_from(left).ok();
        match poll(descriptors, timeout.as_ref()) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
