//! Ends what a dead ralph left behind.
//!
//! Normally the supervisor does that by itself. This is the net below it, for the case that supervisor and ralph
//! were both killed, or the supervisor alone: every process of a loop carries the loop's run mark, and only a process
//! that carries exactly that mark is ever touched. Names and pids are never trusted.
//!
//! The mark is in the environment, which a process can drop (`env -i`), and in a limit, which it inherits all the same.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use super::stat::Stat;

/// The environment variable that carries the run mark.
pub const RUN_MARK: &str = "RALPH_RUN";
/// The environment variable that carries the pid of the supervisor: with the run mark it names one program of a
/// run and what that started.
pub const SUPERVISOR_MARK: &str = "RALPH_SUPERVISOR";

/// The limit that carries the mark as its soft value: how many file locks a process may hold. No kernel since Linux 2.4
/// has heeded it, so that any value does; children inherit it, and nobody has a reason to change it. Source: `getrlimit(2)`.
const LIMIT_MARK: Resource = Resource::Locks;
/// How that limit is called in `/proc/PID/limits`.
const LIMIT_NAME: &str = "Max file locks";
/// How many bits of the limit are the supervisor's pid, the low ones: pids are below 2^22. Source: `proc_sys_kernel(5)`.
const PID_BITS: u32 = 22;

/// How long marked processes get between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long the sweep as a whole may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How often is looked for what is left.
const TICK: Duration = Duration::from_millis(20);

/// What is looked for: a whole run, or one program of it by the pid of its supervisor.
#[derive(Debug, Clone, Copy)]
struct Mark<'a> {
    run: &'a str,
    supervisor: Option<u32>,
}

/// Ends every process that carries `mark`, TERM first, and returns how many there were.
#[must_use]
pub fn sweep(mark: &str) -> usize {
    Mark { run: mark, supervisor: None }.sweep(GRACE)
}

/// The same for one program of the run, by the pid of its supervisor, which has ended; `at_once` with KILL. What is in the
/// session that the supervisor led counts as well, also without a mark: no other session can have its pid for an id.
pub(super) fn sweep_program(mark: &str, supervisor: u32, at_once: bool) {
    let grace = if at_once { Duration::ZERO } else { GRACE };
    Mark { run: mark, supervisor: Some(supervisor) }.sweep(grace);
}

impl Mark<'_> {
    fn sweep(self, grace: Duration) -> usize {
        if self.run.is_empty() && self.supervisor.is_none() {
            return 0;
        }
        let started = Instant::now();
        let found = self.carriers();
        if !grace.is_zero() {
            signal(&found, Signal::TERM);
            // A stopped process sees TERM only once it goes on.
            signal(&found, Signal::CONT);
        }
        let count = found.len();
        let mut left = found;
        while !left.is_empty() && started.elapsed() < LIMIT {
            if started.elapsed() >= grace {
                signal(&left, Signal::KILL);
            }
            std::thread::sleep(TICK);
            left = self.carriers();
        }
        count
    }

    /// The living processes that carry it, ourselves excluded.
    fn carriers(self) -> Vec<u32> {
        let processes = Stat::all().filter(|stat| !stat.is_dead() && stat.pid != std::process::id());
        processes.filter(|stat| self.is_carried_by(stat)).map(|stat| stat.pid).collect()
    }

    fn is_carried_by(self, stat: &Stat) -> bool {
        let is_marked = || self.is_in_environment(stat.pid) || self.is_in_limit(stat.pid);
        Some(stat.session) == self.supervisor || !self.run.is_empty() && is_marked()
    }

    fn is_in_environment(self, pid: u32) -> bool {
        let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
        let carries =
            |mark: String| environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes());
        carries(format!("{RUN_MARK}={}", self.run))
            && self.supervisor.is_none_or(|supervisor| carries(format!("{SUPERVISOR_MARK}={supervisor}")))
    }

    fn is_in_limit(self, pid: u32) -> bool {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
        let soft = limits.lines().find_map(|line| line.strip_prefix(LIMIT_NAME)?.split_whitespace().next());
        let Some(value) = soft.and_then(|soft| soft.parse::<u64>().ok()) else { return false };
        match self.supervisor {
            Some(supervisor) => value == limit_value(self.run, supervisor),
            None => value >> PID_BITS == limit_value(self.run, 0) >> PID_BITS,
        }
    }
}

/// Has `start` start one program of a run from here, a supervisor without other threads, and marks what it starts. The
/// variables are for the caller to set.
pub(super) fn with_limit_mark<T>(run: &str, start: impl FnOnce() -> T) -> T {
    let limit = getrlimit(LIMIT_MARK);
    if !run.is_empty() {
        // Where the hard limit is lower the variables have to do.
        let _ =
            setrlimit(LIMIT_MARK, Rlimit { current: Some(limit_value(run, std::process::id())), ..limit });
    }
    let result = start();
    let _ = setrlimit(LIMIT_MARK, limit);
    result
}

/// Takes the limit mark of a run around us from the calling process: a supervisor has work to do when that one is swept.
pub(super) fn drop_limit_mark() {
    let limit = getrlimit(LIMIT_MARK);
    let _ = setrlimit(LIMIT_MARK, Rlimit { current: limit.maximum, ..limit });
}

/// The value of the limit that marks one program of a run: 41 bits of a hash (FNV-1a) of the run's mark, and the pid.
fn limit_value(run: &str, supervisor: u32) -> u64 {
    let fold = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = run.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
    (hash >> (PID_BITS + 1) << PID_BITS) | u64::from(supervisor)
}

fn signal(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| i32::try_from(*pid).ok()).filter_map(Pid::from_raw) {
        // The process may have ended in the meantime, which is what we want.
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn wait_for(mark: Mark<'_>) {
        // A process that was just started has no environment for a moment.
        while mark.carriers().is_empty() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn only_the_marked_process_is_ended() {
        let mark = format!("sweep-test-{}", std::process::id());
        let mut ours = Command::new("sleep").arg("600").env(RUN_MARK, &mark).spawn().unwrap();
        let mut stranger =
            Command::new("sleep").arg("600").env(RUN_MARK, format!("{mark}0")).spawn().unwrap();
        wait_for(Mark { run: &mark, supervisor: None });
        // A child of ours stays a zombie until it is waited for; a zombie is not counted as living.
        assert_eq!(sweep(&mark), 1);
        assert!(ours.wait().unwrap().code().is_none(), "ended by a signal");
        assert!(stranger.try_wait().unwrap().is_none(), "a stranger was ended");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        assert_eq!(sweep(""), 0);
    }

    #[test]
    fn a_mark_in_the_limit_is_as_good() {
        let mark = format!("limit-test-{}", std::process::id());
        let with_limit = |value: u64| {
            let script = format!("ulimit -Sx {value} && exec env -i sleep 600");
            Command::new("bash").args(["-c", &script]).spawn().unwrap()
        };
        let mut ours = [with_limit(limit_value(&mark, 7)), with_limit(limit_value(&mark, 8))];
        let mut stranger = with_limit(limit_value(&format!("{mark}0"), 7));
        for supervisor in [7, 8] {
            wait_for(Mark { run: &mark, supervisor: Some(supervisor) });
        }
        sweep_program(&mark, 7, true);
        assert!(ours[0].wait().unwrap().code().is_none(), "ended by a signal");
        assert_eq!(sweep(&mark), 1);
        assert!(ours[1].wait().unwrap().code().is_none(), "ended by a signal");
        assert!(stranger.try_wait().unwrap().is_none(), "a stranger was ended");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn a_limit_mark_is_a_limit_for_every_run_and_pid() {
        for run in ["a", "20261121-120000-7", "x".repeat(500).as_str()] {
            let value = limit_value(run, (1 << PID_BITS) - 1);
            assert!(value < 1 << 63 && value >> PID_BITS == limit_value(run, 0) >> PID_BITS, "{run}");
        }
        assert_ne!(limit_value("a", 1), limit_value("b", 1));
    }
}
