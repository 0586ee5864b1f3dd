//! The guard of a supervisor, where the kernel sends no signal when a parent dies: `ralph __supervise --guard`.
//!
//! A program can stop its supervisor, which then does not see that ralph has died. The guard is a child of the
//! supervisor that waits for that and continues it. Its stdin is a pipe from ralph, its stdout one from the
//! supervisor; neither carries a byte.

use std::io::{self, PipeWriter};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getppid, kill_process, waitpid};

use super::{GUARD, VERB};
use crate::platform::calls::own_executable;
use crate::platform::mark::{PANE_MARK, RUN_MARK, SUPERVISOR_MARK};

/// The guard of this supervisor, which ends with it.
pub(super) struct Guard {
    /// Its pid, which no other process gets before it is reaped.
    pid: Pid,
    /// Closed when we die.
    life: Option<PipeWriter>,
}

impl Guard {
    /// Starts it; our stdout is the pipe from ralph.
    pub(super) fn start() -> io::Result<Self> {
        let (end, life) = io::pipe()?;
        let mut command = Command::new(own_executable());
        for mark in [RUN_MARK, SUPERVISOR_MARK, PANE_MARK] {
            command.env_remove(mark);
        }
        let lifeline = io::stdout().as_fd().try_clone_to_owned()?;
        let child = command.args([VERB, GUARD]).stdin(lifeline).stdout(end).stderr(Stdio::null()).spawn()?;
        Ok(Self { pid: Pid::from_child(&child), life: Some(life) })
    }

    /// Its pid.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Forgets it after its pid was reaped.
    pub(super) fn forget(mut self) {
        self.life = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // What was reaped has no pid any more.
        if self.life.take().is_some() {
            // It ends by itself, unless it is stopped.
            let _ = kill_process(self.pid, Signal::CONT);
            while matches!(waitpid(Some(self.pid), WaitOptions::empty()), Err(Errno::INTR)) {}
        }
    }
}

/// Waits until ralph or the supervisor has died, and continues the supervisor if that lives.
pub(super) fn main() -> i32 {
    let supervisor = getppid();
    let (ralph, parent) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    let mut ends = [PollFd::new(&ralph, PollFlags::IN), PollFd::new(&parent, PollFlags::IN)];
    while poll(&mut ends, None) == Err(Errno::INTR) {}
    // As long as it is our parent, no other process has its pid.
    if let Some(supervisor) = supervisor.filter(|_| getppid() == supervisor) {
        let _ = kill_process(supervisor, Signal::CONT);
    }
    0
}
