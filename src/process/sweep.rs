//! Ends what a dead ralph left behind.
//!
//! Normally the supervisor does that. This is the fallback if both supervisor and ralph were killed, or the
//! supervisor alone: every process of a loop carries the loop's run [mark](crate::platform::mark), and only processes
//! with exactly that mark are touched; with the portable backend also what descends from them and what is in a group or
//! session that one of them leads. Names and pids are never trusted.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::platform::family::{Family, enough_looks, send};
use crate::platform::mark::Mark;

/// How long marked processes have between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// The time limit of a whole sweep.
const LIMIT: Duration = Duration::from_secs(5);
/// How often remaining processes are searched.
const TICK: Duration = Duration::from_millis(20);

/// Ends every process that carries the run's `mark`, TERM first, and returns how many there were.
#[must_use]
pub fn sweep(mark: &str) -> usize {
    sweep_carriers(&Mark::of_run(mark), GRACE)
}

/// Ends what the killed wrapper of a pane has left, by the pane's mark.
pub(super) fn sweep_pane(mark: &str) -> usize {
    sweep_carriers(&Mark::of_pane(mark), GRACE)
}

/// Ends one program of the run, by the pid of its supervisor, which has ended; `at_once` with KILL.
pub(super) fn sweep_program(mark: &str, supervisor: u32, at_once: bool) {
    sweep_carriers(&Mark::of_run(mark).below(supervisor), if at_once { Duration::ZERO } else { GRACE });
}

fn sweep_carriers(mark: &Mark, grace: Duration) -> usize {
    if mark.is_empty() {
        return 0;
    }
    let started = Instant::now();
    let mut carriers = Family::carriers(mark.clone());
    let found = carriers.look();
    if !grace.is_zero() {
        for stat in &found {
            send(stat.pid, Signal::TERM);
            // A stopped process handles TERM only once it is continued.
            send(stat.pid, Signal::CONT);
        }
    }
    let enough = enough_looks();
    let mut quiet = usize::from(found.is_empty());
    while quiet < enough && started.elapsed() < LIMIT {
        if quiet == 0 {
            if started.elapsed() >= grace {
                carriers.kill(|_| false);
            }
            std::thread::sleep(TICK);
        }
        quiet = if carriers.look().is_empty() { quiet + 1 } else { 0 };
    }
    if quiet >= enough {
        mark.remove_files();
    }
    found.len()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::platform::mark::{PANE_MARK, RUN_MARK};
    use crate::platform::stat::Stat;

    fn wait_for(mark: &Mark) {
        // A process that was just started has no environment for a moment.
        while !Stat::all().any(|stat| !stat.is_dead() && mark.is_carried_by(&stat)) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn only_the_marked_process_is_ended() {
        let mark = format!("sweep-test-{}", std::process::id());
        let mut ours = Command::new("sleep").arg("600").env(RUN_MARK, &mark).spawn().unwrap();
        let mut stranger =
            Command::new("sleep").arg("600").env(RUN_MARK, format!("{mark}0")).spawn().unwrap();
        wait_for(&Mark::of_run(&mark));
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
        let mut ours = [with_limit(Mark::of_run(&mark).number(7)), with_limit(Mark::of_run(&mark).number(8))];
        let mut stranger = with_limit(Mark::of_run(&format!("{mark}0")).number(7));
        for supervisor in [7, 8] {
            wait_for(&Mark::of_run(&mark).below(supervisor));
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
    fn a_pane_is_none_of_a_runs() {
        let mark = format!("pane-test-{}", std::process::id());
        // In a process of its own, as by a supervisor: other tests start processes in this one meanwhile.
        let start = |mark: Mark, name: &str, value: &str| {
            let script = format!("ulimit -Sx {} && exec sleep 600", mark.number(7));
            let mut command = Command::new("bash");
            command.args(["-c", &script]).env_remove(PANE_MARK).env(name, value).spawn().unwrap()
        };
        let (mut run, mut pane) =
            (start(Mark::of_run(&mark), RUN_MARK, &mark), start(Mark::of_pane(&mark), PANE_MARK, &mark));
        wait_for(&Mark::of_run(&mark));
        wait_for(&Mark::of_pane(&mark));
        assert_eq!(sweep(&mark), 1);
        assert!(run.wait().unwrap().code().is_none(), "ended by a signal");
        assert!(pane.try_wait().unwrap().is_none(), "the pane was ended");
        assert_eq!(sweep_pane(&mark), 1);
        assert!(pane.wait().unwrap().code().is_none(), "ended by a signal");
    }
}
