//! Lists and describes processes.

pub use super::calls::Stat;
use super::calls::{pids, stat};

/// The current time on the clock of process start times: clock ticks since the boot.
#[must_use]
pub fn ticks_now() -> u64 {
    let now = rustix::time::clock_gettime(super::calls::SINCE_BOOT);
    let per_second = rustix::param::clock_ticks_per_second();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
    u64::try_from(now.tv_sec).unwrap_or_default() * per_second + nanoseconds * per_second / 1_000_000_000
}

impl Stat {
    /// Reads one process; `None` if it has ended, or cannot be read.
    #[must_use]
    pub fn read(pid: u32) -> Option<Self> {
        stat(pid)
    }

    /// Every process on the machine, each read when the iterator reaches it.
    pub fn all() -> impl Iterator<Item = Self> {
        pids().filter_map(stat)
    }

    /// Whether the process has ended and was not reaped.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_among_all() {
        let pid = std::process::id();
        assert!(Stat::all().any(|stat| stat.pid == pid));
        let before = ticks_now();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let after = ticks_now();
        let started = Stat::read(child.id()).unwrap().start_ticks;
        assert!((before - 1..=after).contains(&started), "{started}: {before} to {after}");
        child.wait().unwrap();
    }
}
