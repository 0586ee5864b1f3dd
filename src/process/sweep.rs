//! Ends what a dead ralph left behind.
//!
//! Normally the supervisor does that by itself. This is the net below it, for the case that supervisor and ralph
//! were both killed: every process of a loop carries the loop's run mark in its environment, and only a process
//! that carries exactly that mark is ever touched. Names and pids are never trusted.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The environment variable that carries the run mark.
pub const RUN_MARK: &str = "RALPH_RUN";
/// The environment variable that carries the pid of the supervisor: with the run mark it names one program of a
/// run and what that started.
pub const SUPERVISOR_MARK: &str = "RALPH_SUPERVISOR";

/// How long marked processes get between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long the sweep as a whole may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How often is looked for what is left.
const TICK: Duration = Duration::from_millis(20);

/// Ends every process that carries `mark`, TERM first, and returns how many there were.
#[must_use]
pub fn sweep(mark: &str) -> usize {
    if mark.is_empty() { 0 } else { sweep_carriers(&[format!("{RUN_MARK}={mark}")]) }
}

/// The same for one program of the run, by the pid of its supervisor.
pub(super) fn sweep_program(mark: &str, supervisor: u32) {
    if !mark.is_empty() {
        sweep_carriers(&[format!("{RUN_MARK}={mark}"), format!("{SUPERVISOR_MARK}={supervisor}")]);
    }
}

fn sweep_carriers(marks: &[String]) -> usize {
    let started = Instant::now();
    let found = carriers(marks);
    signal(&found, Signal::TERM);
    // A stopped process sees TERM only once it goes on.
    signal(&found, Signal::CONT);
    let count = found.len();
    let mut left = found;
    while !left.is_empty() && started.elapsed() < LIMIT {
        std::thread::sleep(TICK);
        left = carriers(marks);
        if started.elapsed() > GRACE {
            signal(&left, Signal::KILL);
        }
    }
    count
}

/// The living processes whose environment holds all of `marks`, ourselves excluded.
fn carriers(marks: &[String]) -> Vec<u32> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
    folder
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != std::process::id())
        .filter(|pid| {
            // A zombie's environment reads as empty, so the dead are never counted.
            let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
            let carries =
                |mark: &String| environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes());
            marks.iter().all(carries)
        })
        .collect()
}

fn signal(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| i32::try_from(*pid).ok()).filter_map(Pid::from_raw) {
        // The process may have ended in the meantime, which is what we want.
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_the_marked_process_is_ended() {
        let mark = format!("sweep-test-{}", std::process::id());
        let mut ours = Command::new("sleep").arg("600").env(RUN_MARK, &mark).spawn().unwrap();
        let mut stranger =
            Command::new("sleep").arg("600").env(RUN_MARK, format!("{mark}0")).spawn().unwrap();
        // A process that was just started has no environment for a moment.
        while carriers(&[format!("{RUN_MARK}={mark}")]).is_empty() {
            std::thread::yield_now();
        }
        // A child of ours stays a zombie until it is waited for; a zombie is not counted as living.
        assert_eq!(sweep(&mark), 1);
        assert!(ours.wait().unwrap().code().is_none(), "ended by a signal");
        assert!(stranger.try_wait().unwrap().is_none(), "a stranger was ended");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        assert_eq!(sweep(""), 0);
    }
}
