//! A process held by a descriptor (pidfd): a signal cannot reach another process that got its pid.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::identity::ProcessIdentity;
use super::ready::is_ready_by;

/// A process, which may have ended by now.
#[derive(Debug)]
pub struct ProcessHandle {
    pid: Pid,
    descriptor: OwnedFd,
}

impl ProcessHandle {
    /// A child of ours that has not been reaped.
    pub fn of_child(child: &Child) -> io::Result<Self> {
        Self::open(Pid::from_child(child))
    }

    /// The process that has made this connection and still holds it.
    pub fn of_peer(socket: &UnixStream) -> io::Result<Self> {
        Self::open(rustix::net::sockopt::socket_peercred(socket)?.pid)
    }

    /// This process; `None` if it has ended, or cannot be seen from here.
    pub fn of(process: &ProcessIdentity) -> io::Result<Option<Self>> {
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
        let Some(pid) = pid.filter(|_| process.is_alive()) else { return Ok(None) };
        let handle = Self::open(pid)?;
        // Its pid may have been reused before we opened it.
        Ok(process.is_alive().then_some(handle))
    }

    /// The process that has this pid now; `None` when there is none.
    pub fn of_pid(pid: u32) -> io::Result<Option<Self>> {
        match i32::try_from(pid).ok().and_then(Pid::from_raw).map(Self::open) {
            Some(Err(error)) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(None),
            opened => opened.transpose(),
        }
    }

    fn open(pid: Pid) -> io::Result<Self> {
        Ok(Self { pid, descriptor: pidfd_open(pid, PidfdFlags::empty())? })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends it a signal; does nothing if it has ended.
    pub fn send(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.descriptor, signal);
    }

    /// Waits for its end until `deadline`, without reaping it. `false` if it still runs.
    pub fn ends_by(&self, deadline: Instant) -> io::Result<bool> {
        is_ready_by(&self.descriptor, PollFlags::IN, deadline)
    }

    /// Its end as a descriptor to poll.
    pub(super) fn end(&self) -> PollFd<'_> {
        PollFd::new(&self.descriptor, PollFlags::IN)
    }
}
