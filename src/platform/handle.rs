//! A process that is held: a signal cannot reach another process that got its pid.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::backend::is_portable;
use super::calls::{hold, peer, send};
use super::identity::ProcessIdentity;
use super::ready::is_ready_by;
use super::stat::Stat;

/// How often the end of a process is looked for where the kernel does not tell it.
const LOOK: Duration = Duration::from_millis(5);

/// A process, which may have ended by now.
#[derive(Debug)]
pub struct ProcessHandle {
    pid: Pid,
    held: Held,
}

/// What a process is held by.
#[derive(Debug)]
enum Held {
    /// Its descriptor (pidfd).
    Descriptor(OwnedFd),
    /// The time of its start, which is compared before each signal. Our own children keep their pid until they are
    /// reaped; between the look at any other process and the signal there are some microseconds, in which its pid
    /// would have to be given to another one.
    Start(u64),
}

impl ProcessHandle {
    /// A child of ours that has not been reaped.
    pub fn of_child(child: &Child) -> io::Result<Self> {
        Self::open(Pid::from_child(child))
    }

    /// The process that has made this connection and still holds it.
    pub fn of_peer(socket: &UnixStream) -> io::Result<Self> {
        Self::open(peer(socket)?)
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
        let held = if is_portable() {
            Held::Start(Stat::read(number(pid)).ok_or(Errno::SRCH)?.start_ticks)
        } else {
            Held::Descriptor(hold(pid)?)
        };
        Ok(Self { pid, held })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        number(self.pid)
    }

    /// Sends it a signal; does nothing if it has ended.
    pub fn send(&self, signal: Signal) {
        match &self.held {
            Held::Descriptor(descriptor) => drop(send(descriptor, signal)),
            Held::Start(_) if self.has_ended() => {}
            Held::Start(_) => drop(kill_process(self.pid, signal)),
        }
    }

    /// Waits for its end until `deadline`, without reaping it. `false` if it still runs.
    pub fn ends_by(&self, deadline: Instant) -> io::Result<bool> {
        if let Held::Descriptor(descriptor) = &self.held {
            return is_ready_by(descriptor, PollFlags::IN, deadline);
        }
        while !self.has_ended() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(LOOK));
        }
        Ok(true)
    }

    /// Whether it has ended, as far as its parent or a look at it tells.
    fn has_ended(&self) -> bool {
        let looks = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match (waitid(WaitId::Pid(self.pid), looks), &self.held) {
            (Ok(ended), _) => ended.is_some(),
            // It is not a child of ours.
            (Err(_), Held::Start(start)) => {
                Stat::read(self.pid()).is_none_or(|now| now.is_dead() || now.start_ticks != *start)
            }
            (Err(_), Held::Descriptor(_)) => false,
        }
    }

    /// Its end as a descriptor to poll; `None` where there is none.
    #[must_use]
    pub fn end(&self) -> Option<PollFd<'_>> {
        match &self.held {
            Held::Descriptor(descriptor) => Some(PollFd::new(descriptor, PollFlags::IN)),
            Held::Start(_) => None,
        }
    }
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// What is held by its start is neither another process with its pid nor one that has ended.
    #[test]
    fn a_process_is_held_by_its_start() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let start = Stat::read(child.id()).unwrap().start_ticks;
        let held = |start| ProcessHandle { pid: Pid::from_child(&child), held: Held::Start(start) };
        let (right, init) = (held(start), ProcessHandle { pid: Pid::INIT, held: Held::Start(1 << 60) });
        assert!(!right.ends_by(Instant::now()).unwrap() && init.ends_by(Instant::now()).unwrap());
        right.send(Signal::KILL);
        assert!(right.ends_by(Instant::now() + Duration::from_mins(1)).unwrap());
        child.wait().unwrap();
        assert!(right.ends_by(Instant::now()).unwrap(), "it was reaped");
        right.send(Signal::KILL);
    }
}
