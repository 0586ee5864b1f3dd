//! Ends what a dead ralph left behind.
//!
//! Normally the supervisor does that. This is the fallback if both supervisor and ralph were killed, or the
//! supervisor alone: every process of a loop carries the loop's run mark, and only processes with exactly that mark
//! are touched. Names and pids are never trusted.
//!
//! The mark is in the environment, which a process can drop (`env -i`), and in a resource limit, which it inherits
//! all the same.

use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use super::stat::Stat;

/// The environment variable that carries the run mark.
pub const RUN_MARK: &str = "RALPH_RUN";
/// The environment variable that carries the pid of the supervisor: with the run mark it identifies one program of a
/// run and its descendants.
pub const SUPERVISOR_MARK: &str = "RALPH_SUPERVISOR";
/// The environment variable that carries the mark of a pane. Its program outlives the run that started it and does
/// not belong to the run: no sweep of a run touches it.
pub const PANE_MARK: &str = "RALPH_PANE";

/// The limit whose soft value carries the mark: how many file locks a process may hold. No kernel since Linux 2.4
/// enforces it, so any value is possible; children inherit it, and programs have no reason to change it. Source:
/// `getrlimit(2)`.
const LIMIT_MARK: Resource = Resource::Locks;
/// The name of that limit in `/proc/PID/limits`.
const LIMIT_NAME: &str = "Max file locks";
/// The low bits of the limit with the supervisor's pid: pids are below 2^22. Source: `proc_sys_kernel(5)`.
const PID_BITS: u32 = 22;

/// How long marked processes have between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// The time limit of a whole sweep.
const LIMIT: Duration = Duration::from_secs(5);
/// How often remaining processes are searched.
const TICK: Duration = Duration::from_millis(20);

/// A mark to search for: of a whole run, of one program of it by the pid of its supervisor, or of the program of a
/// pane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark<'a> {
    /// The variable that carries it.
    name: &'static str,
    /// Its value. An empty one marks nothing.
    value: &'a str,
    supervisor: Option<u32>,
}

/// Ends every process that carries the run's `mark`, TERM first, and returns how many there were.
#[must_use]
pub fn sweep(mark: &str) -> usize {
    Mark::of_run(mark).sweep(GRACE)
}

/// Ends what the killed wrapper of a pane has left, by the pane's mark.
pub(super) fn sweep_pane(mark: &str) -> usize {
    Mark::of_pane(mark).sweep(GRACE)
}

/// Ends one program of the run, by the pid of its supervisor, which has ended; `at_once` with KILL. Processes in the
/// session that the supervisor led count as well, even without a mark: no other session can have its pid as its id.
pub(super) fn sweep_program(mark: &str, supervisor: u32, at_once: bool) {
    let grace = if at_once { Duration::ZERO } else { GRACE };
    Mark { supervisor: Some(supervisor), ..Mark::of_run(mark) }.sweep(grace);
}

/// The mark of the calling process, as far as it is known: its run cannot be derived from it, only compared.
#[derive(Debug)]
pub struct Carried {
    /// From the environment.
    run: Option<String>,
    /// From the limit.
    limit: Option<u64>,
}

impl Carried {
    /// The mark of this process; `None` if it has none.
    #[must_use]
    pub fn by_us() -> Option<Self> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        // The run mark alone proves nothing; with the supervisor's, it marks a program of the run.
        let run = variable(RUN_MARK).filter(|_| variable(SUPERVISOR_MARK).is_some());
        // Limits that users set have no hash in them.
        let limit = getrlimit(LIMIT_MARK).current.filter(|value| value >> PID_BITS != 0);
        (run.is_some() || limit.is_some()).then_some(Self { run, limit })
    }

    /// Whether it is the mark of this run.
    #[must_use]
    pub fn is_of_run(&self, run: &str) -> bool {
        let hash = |value: u64| value >> PID_BITS;
        self.run.as_deref() == Some(run)
            || self.limit.is_some_and(|limit| hash(limit) == hash(Mark::of_run(run).limit_value(0)))
    }
}

impl<'a> Mark<'a> {
    /// The mark of a whole run.
    pub(super) fn of_run(mark: &'a str) -> Self {
        Self { name: RUN_MARK, value: mark, supervisor: None }
    }

    /// The mark of a pane.
    pub(super) fn of_pane(mark: &'a str) -> Self {
        Self { name: PANE_MARK, value: mark, supervisor: None }
    }

    /// Starts one program and marks it; the caller is a supervisor without other threads.
    pub(super) fn spawn(self, command: &mut Command) -> io::Result<Child> {
        if self.value.is_empty() {
            return command.spawn();
        }
        command.env(self.name, self.value);
        if self.name == RUN_MARK {
            command.env(SUPERVISOR_MARK, std::process::id().to_string());
        }
        let limit = getrlimit(LIMIT_MARK);
        // If the hard limit is lower, the variables have to be enough.
        let _ =
            setrlimit(LIMIT_MARK, Rlimit { current: Some(self.limit_value(std::process::id())), ..limit });
        let child = command.spawn();
        let _ = setrlimit(LIMIT_MARK, limit);
        child
    }

    /// The value of the limit that marks one program: 41 bits of a hash (FNV-1a) of the mark, and the supervisor's
    /// pid.
    fn limit_value(self, supervisor: u32) -> u64 {
        let fold = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let bytes = self.name.bytes().chain([b'=']).chain(self.value.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325, fold);
        (hash >> (PID_BITS + 1) << PID_BITS) | u64::from(supervisor)
    }
}

impl Mark<'_> {
    fn sweep(self, grace: Duration) -> usize {
        if self.value.is_empty() && self.supervisor.is_none() {
            return 0;
        }
        let started = Instant::now();
        let found = self.carriers();
        if !grace.is_zero() {
            signal(&found, Signal::TERM);
            // A stopped process handles TERM only once it is continued.
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

    /// The living processes that carry it, except ourselves.
    fn carriers(self) -> Vec<u32> {
        let processes = Stat::all().filter(|stat| !stat.is_dead() && stat.pid != std::process::id());
        processes.filter(|stat| self.is_carried_by(stat)).map(|stat| stat.pid).collect()
    }

    fn is_carried_by(self, stat: &Stat) -> bool {
        let is_marked = || self.is_in_environment(stat.pid) || self.is_in_limit(stat.pid);
        Some(stat.session) == self.supervisor || !self.value.is_empty() && is_marked()
    }

    fn is_in_environment(self, pid: u32) -> bool {
        let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
        let carries =
            |mark: String| environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes());
        carries(format!("{}={}", self.name, self.value))
            && self.supervisor.is_none_or(|supervisor| carries(format!("{SUPERVISOR_MARK}={supervisor}")))
    }

    fn is_in_limit(self, pid: u32) -> bool {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
        let soft = limits.lines().find_map(|line| line.strip_prefix(LIMIT_NAME)?.split_whitespace().next());
        let Some(value) = soft.and_then(|soft| soft.parse::<u64>().ok()) else { return false };
        match self.supervisor {
            Some(supervisor) => value == self.limit_value(supervisor),
            None => value >> PID_BITS == self.limit_value(0) >> PID_BITS,
        }
    }
}

/// Removes the limit mark of a run around us from the calling process: a supervisor has to survive the sweep of that
/// run.
pub(super) fn drop_limit_mark() {
    let limit = getrlimit(LIMIT_MARK);
    let _ = setrlimit(LIMIT_MARK, Rlimit { current: limit.maximum, ..limit });
}

/// Runs `start`, which starts a process that outlives every run (a tmux server), without the limit mark of a run
/// around us.
pub fn without_limit_mark<T>(start: impl FnOnce() -> T) -> T {
    /// Two calls at the same time would not restore the limit.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let limit = getrlimit(LIMIT_MARK);
    drop_limit_mark();
    let result = start();
    let _ = setrlimit(LIMIT_MARK, limit);
    result
}

fn signal(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| i32::try_from(*pid).ok()).filter_map(Pid::from_raw) {
        // The process may have ended meanwhile, which is fine.
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
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
        wait_for(Mark::of_run(&mark));
        // A child of ours stays a zombie until it is reaped, and a zombie does not count as living.
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
        let mut ours =
            [with_limit(Mark::of_run(&mark).limit_value(7)), with_limit(Mark::of_run(&mark).limit_value(8))];
        let mut stranger = with_limit(Mark::of_run(&format!("{mark}0")).limit_value(7));
        for supervisor in [7, 8] {
            wait_for(Mark { supervisor: Some(supervisor), ..Mark::of_run(&mark) });
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
            for mark in [Mark::of_run(run), Mark::of_pane(run)] {
                let value = mark.limit_value((1 << PID_BITS) - 1);
                assert!(value < 1 << 63 && value >> PID_BITS == mark.limit_value(0) >> PID_BITS, "{run}");
            }
            assert_ne!(Mark::of_run(run).limit_value(0), Mark::of_pane(run).limit_value(0));
        }
        assert_ne!(Mark::of_run("a").limit_value(1), Mark::of_run("b").limit_value(1));
    }

    #[test]
    fn a_pane_is_none_of_a_runs() {
        let mark = format!("pane-test-{}", std::process::id());
        // In a process of its own, as by a supervisor: other tests start processes in this one meanwhile.
        let start = |mark: Mark<'_>| {
            let script = format!("ulimit -Sx {} && exec sleep 600", mark.limit_value(7));
            let mut command = Command::new("bash");
            command.args(["-c", &script]).env_remove(PANE_MARK).env(mark.name, mark.value).spawn().unwrap()
        };
        let (mut run, mut pane) = (start(Mark::of_run(&mark)), start(Mark::of_pane(&mark)));
        wait_for(Mark::of_run(&mark));
        wait_for(Mark::of_pane(&mark));
        assert_eq!(sweep(&mark), 1);
        assert!(run.wait().unwrap().code().is_none(), "ended by a signal");
        assert!(pane.try_wait().unwrap().is_none(), "the pane was ended");
        assert_eq!(sweep_pane(&mark), 1);
        assert!(pane.wait().unwrap().code().is_none(), "ended by a signal");
    }
}
