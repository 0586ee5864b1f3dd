//! Process groups and their terminal: which group is in the foreground, and whether a shell can continue us.
//!
//! Our own group or session may have no number: if its leader is outside of our pid namespace (a container, `unshare
//! --pid`), or if the first process of the machine has never begun one. The kernel says 0 then, which no [`Pid`] can
//! hold, so it is read from `/proc`, where 0 is a number.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::process::{Pid, getppid};
use rustix::termios::tcgetpgrp;

use crate::platform::stat::Stat;

/// Whether our own group is in the foreground of the terminal behind `file`; `None` if it is not a terminal, or not
/// that of our session.
pub fn is_in_front(file: impl AsFd) -> Option<bool> {
    let front = match tcgetpgrp(file) {
        Ok(front) => number(front),
        // A group without a number here.
        Err(Errno::OPNOTSUPP) => 0,
        Err(_) => return None,
    };
    Some(Stat::read(std::process::id())?.group == front)
}

/// Whether a shell has started us as a job, and would continue us after a stop.
#[must_use]
pub fn can_be_continued() -> bool {
    let parent = getppid().and_then(|parent| Stat::read(number(parent)));
    let ours = Stat::read(std::process::id());
    matches!((parent, ours), (Some(parent), Some(ours)) if is_job_of(&ours, &parent))
}

/// A job is in the session of its shell, and in its own group.
fn is_job_of(ours: &Stat, parent: &Stat) -> bool {
    ours.session == parent.session && ours.group != parent.group
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(group: u32, session: u32) -> Stat {
        let (own_ticks, reaped_ticks, start_ticks) = (0, 0, 0);
        Stat { pid: 42, ppid: 7, group, session, state: b'S', own_ticks, reaped_ticks, start_ticks }
    }

    #[test]
    fn a_job_has_a_group_of_its_own_in_the_session_of_its_shell() {
        for (ours, parent, is_job) in [
            ((42, 7), (7, 7), true),
            // A terminal that was opened for us.
            ((42, 42), (7, 7), false),
            // A script has no jobs.
            ((7, 7), (7, 7), false),
            // The shell of a container, in the session of the process that has started it.
            ((42, 0), (0, 0), true),
            ((0, 0), (0, 0), false),
            ((42, 42), (0, 0), false),
        ] {
            assert_eq!(
                is_job_of(&stat(ours.0, ours.1), &stat(parent.0, parent.1)),
                is_job,
                "{ours:?} {parent:?}"
            );
        }
    }

    #[test]
    fn a_file_that_is_no_terminal_has_no_foreground() {
        assert_eq!(is_in_front(std::fs::File::open("/dev/null").unwrap()), None);
    }
}
