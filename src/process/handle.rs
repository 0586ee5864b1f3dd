//! One process, held by a descriptor (pidfd): what is sent to it cannot reach another one that got its pid.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::Instant;

use rustix::event::PollFlags;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::ready::is_ready_by;

/// A process that may have ended by now.
#[derive(Debug)]
pub struct ProcessHandle {
    pid: Pid,
    descriptor: OwnedFd,
}

impl ProcessHandle {
    /// A child of ours that has not been waited for.
    pub fn of_child(child: &Child) -> io::Result<Self> {
        Self::open(Pid::from_child(child))
    }

    /// The process that has made this connection and still holds it.
    pub fn of_peer(socket: &UnixStream) -> io::Result<Self> {
        Self::open(rustix::net::sockopt::socket_peercred(socket)?.pid)
    }

    fn open(pid: Pid) -> io::Result<Self> {
        Ok(Self { pid, descriptor: pidfd_open(pid, PidfdFlags::empty())? })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends it a signal; one that has ended does not mind.
    pub fn send(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.descriptor, signal);
    }

    /// Waits for its end until `deadline`, without reaping it. `false` when it lives on.
    pub fn ends_by(&self, deadline: Instant) -> io::Result<bool> {
        is_ready_by(&self.descriptor, PollFlags::IN, deadline)
    }
}
