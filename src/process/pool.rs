//! Our supervisor processes: the idle ones, and how to start one.

use std::io::{self, PipeWriter};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::supervisor::VERB;
use super::{REPOSITORY_VARIABLES, WITHHELD};
use crate::platform::backend::is_portable;
use crate::platform::calls::own_executable;
use crate::platform::handle::ProcessHandle;
use crate::platform::mark::{RUN_MARK, SUPERVISOR_MARK};
use crate::platform::stat::Stat;

/// The arguments that make our executable a supervisor.
#[cfg(not(test))]
const ARGS: [&str; 1] = [VERB];
/// In unit tests, which have no verbs, a test acts as the supervisor.
#[cfg(test)]
const ARGS: [&str; 4] = ["--exact", "--nocapture", "process::pool::tests::supervise", VERB];
/// How long an idle supervisor may take to exit.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);

/// Idle supervisors. Never more than the programs that have run at the same time.
static IDLE: Mutex<Vec<Supervisor>> = Mutex::new(Vec::new());

/// A supervisor process and our end of its control socket.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub(super) handle: ProcessHandle,
    pub(super) control: UnixStream,
    /// Our child, to be reaped.
    child: Child,
    /// Its [guard](super::supervisor) sees by the other end whether we live.
    _lifeline: Option<PipeWriter>,
}

impl Supervisor {
    /// An idle one, or a new one.
    pub(super) fn idle_or_new() -> io::Result<Self> {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(Self::new, |idle| {
            // Another process may have stopped it.
            idle.handle.send(Signal::CONT);
            Ok(idle)
        })
    }

    /// Starts one.
    pub(super) fn new() -> io::Result<Self> {
        if std::env::args_os().nth(1).is_some_and(|verb| verb == VERB) {
            // It would start itself recursively.
            return Err(io::Error::other("this executable does not know how to supervise"));
        }
        let (control, theirs) = UnixStream::pair()?;
        let mut command = Command::new(own_executable());
        for name in REPOSITORY_VARIABLES.iter().chain(WITHHELD.get().copied().unwrap_or_default()) {
            command.env_remove(name);
        }
        command
            .arg0("ralph")
            .args(ARGS)
            // Folders may be removed; `/` stays.
            .current_dir("/")
            // The marks of a loop around us, whose agent we are.
            .env_remove(RUN_MARK)
            .env_remove(SUPERVISOR_MARK)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut lifeline = None;
        if is_portable() {
            let (end, ours) = io::pipe()?;
            command.stdout(end);
            lifeline = Some(ours);
        }
        // If our group is outside of our pid namespace, a supervisor could not join it for a moment.
        if Stat::read(std::process::id()).is_none_or(|ours| ours.group != 0) {
            // Out of reach of a Ctrl+C at the terminal from the start.
            command.process_group(0);
        }
        let mut child = command.spawn()?;
        match ProcessHandle::of_child(&child) {
            Ok(handle) => Ok(Self { handle, control, child, _lifeline: lifeline }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Makes it idle until its next program.
    pub(super) fn rest(self) {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// Ends it, and reaps it by `deadline` at the latest: it may be stopped.
    pub(super) fn leave_by(&mut self, deadline: Instant) {
        let _ = self.control.shutdown(Shutdown::Write);
        if !self.handle.ends_by(deadline).unwrap_or(false) {
            self.handle.send(Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Ends the idle supervisors. Call it before ralph exits, so that they do not outlive it even for a moment; they
/// would notice by themselves.
pub fn end_idle() {
    let mut idle = std::mem::take(&mut *IDLE.lock().unwrap_or_else(PoisonError::into_inner));
    for supervisor in &idle {
        // All of them first, so that they exit in parallel.
        let _ = supervisor.control.shutdown(Shutdown::Write);
        supervisor.handle.send(Signal::CONT);
    }
    let deadline = Instant::now() + LEAVE_LIMIT;
    for supervisor in &mut idle {
        supervisor.leave_by(deadline);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    /// The supervisor for programs that unit tests start; as a test it does nothing.
    #[test]
    fn supervise() {
        if std::env::args_os().any(|word| word == OsStr::new(VERB)) {
            std::process::exit(crate::process::supervisor::main(&[]));
        }
    }
}
