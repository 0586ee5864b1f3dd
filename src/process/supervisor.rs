//! The supervisor process: `ralph __supervise MARK INTERRUPT TERMINATE PROGRAM [ARG …]`.
//!
//! One small single-threaded process stands between ralph and each program it starts. It leads a session of its
//! own (a Ctrl+C at the terminal does not reach the program) and is a *subreaper*: whatever the program leaves
//! behind, in whatever session, becomes a child of the supervisor and is ended and reaped here. The program gets
//! the run's MARK in its environment; the supervisor itself does not carry it, so that no sweep ends it before it
//! has done its work.
//!
//! ```text
//! stdin    control socket: the program's stdin arrives on it as a passed descriptor, then one-byte orders
//!          from ralph; its end of file means that ralph is gone
//! stdout   handed on to the program, so that its bytes go straight to ralph
//! stderr   the same
//! ```
//! Orders and replies are the constants and [`SupervisorNote`] below. The [`Ladder`] is INT, TERM, KILL, with its waits
//! in milliseconds as INTERRUPT and TERMINATE; after it, or when the program has ended by itself, everything still
//! below the supervisor gets TERM and, after the same wait, KILL.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::ladder::Ladder;
use super::stat::Stat;
use super::sweep::{RUN_MARK, SUPERVISOR_MARK};
use super::tree;

/// The hidden verb that starts a supervisor.
pub const VERB: &str = "__supervise";

/// Order: climb the ladder, starting with INT.
pub(super) const ORDER_STOP: u8 = b's';
/// Order: KILL everything now.
pub(super) const ORDER_KILL: u8 = b'k';

/// How often the subtree is looked at for new processes while it is being ended.
const TICK: Duration = Duration::from_millis(20);

/// What the supervisor reports, one per line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupervisorNote {
    /// The program runs with this pid.
    Started(u32),
    /// The program could not be started: the operating system's error number.
    Refused(i32),
    /// The program ended with this exit code.
    Exited(i32),
    /// The program was ended by this signal.
    Signaled(i32),
    /// Nothing of the program is left, except this many processes that could not be killed.
    Gone(u32),
}

impl SupervisorNote {
    fn to_line(&self) -> String {
        match self {
            Self::Started(pid) => format!("started {pid}\n"),
            Self::Refused(errno) => format!("refused {errno}\n"),
            Self::Exited(code) => format!("exited {code}\n"),
            Self::Signaled(signal) => format!("signaled {signal}\n"),
            Self::Gone(left) => format!("gone {left}\n"),
        }
    }

    /// Reads one line back; `None` for anything that is not a note.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (word, number) = line.trim_end().split_once(' ')?;
        match word {
            "started" => number.parse().ok().map(Self::Started),
            "refused" => number.parse().ok().map(Self::Refused),
            "exited" => number.parse().ok().map(Self::Exited),
            "signaled" => number.parse().ok().map(Self::Signaled),
            "gone" => number.parse().ok().map(Self::Gone),
            _ => None,
        }
    }
}

/// Where the supervisor stands on the way from a running program to nothing left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Watch,
    Interrupted { until: Instant },
    Terminated { until: Instant },
    Killed { since: Instant },
    Sweep { since: Instant },
}

/// Entry point of the hidden verb. Returns the process exit code, which nobody reads: what matters travels as
/// [`SupervisorNote`]s.
#[must_use]
pub fn main(argv: &[OsString]) -> i32 {
    match Supervisor::start(argv) {
        Ok(mut supervisor) => supervisor.run(),
        Err(_) => 1,
    }
}

struct Supervisor {
    control: UnixStream,
    wake: UnixStream,
    asked_to_stop: Arc<AtomicBool>,
    ladder: Ladder,
    program: Pid,
    running: bool,
    stage: Stage,
    /// Ralph has closed its end; the socket would be readable for ever, so it is not waited on any more.
    ralph_is_gone: bool,
    /// No more asking: the sweep starts with KILL.
    at_once: bool,
    /// Who got TERM already.
    told: HashSet<u32>,
}

impl Supervisor {
    fn start(argv: &[OsString]) -> std::io::Result<Self> {
        let [mark, interrupt, terminate, program, arguments @ ..] = argv else {
            return Err(std::io::ErrorKind::InvalidInput.into());
        };
        let ladder = Ladder::from_args(interrupt, terminate)?;
        let control = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        let stdin = receive_descriptor(&control)?;
        control.set_nonblocking(true)?;

        // Installed before the program starts, so that its end cannot be missed. A signal meant for ralph that
        // reaches us (`pkill ralph`) ends the program in order instead of orphaning it.
        let (wake, writer) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let asked_to_stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&asked_to_stop))?;
            signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, writer)?;
        leave_terminal();
        // A Ctrl+C on the way out was for ralph.
        asked_to_stop.store(false, Ordering::Relaxed);
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;

        let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
        let mut supervisor = Self {
            control,
            wake,
            asked_to_stop,
            ladder,
            program: rustix::process::getpid(),
            running: true,
            stage: Stage::Watch,
            ralph_is_gone: false,
            at_once: false,
            told: HashSet::new(),
        };
        let spawned = Command::new(program)
            .args(arguments)
            .env(RUN_MARK, mark)
            .env(SUPERVISOR_MARK, std::process::id().to_string())
            .stdin(Stdio::from(stdin))
            .process_group(0)
            .spawn();
        // Once the program runs nothing may fail any more: we would leave it behind.
        match spawned {
            Ok(child) => supervisor.program = Pid::from_child(&child),
            Err(error) => {
                supervisor.report(&SupervisorNote::Refused(error.raw_os_error().unwrap_or_default()));
                return Err(error);
            }
        }
        // From here on only the program holds the pipes: ralph sees their end when the program's side is closed.
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
        supervisor.report(&SupervisorNote::Started(supervisor.program.as_raw_nonzero().get().unsigned_abs()));
        Ok(supervisor)
    }

    fn run(&mut self) -> i32 {
        loop {
            let children_left = self.reap();
            if !self.running && !children_left {
                self.report(&SupervisorNote::Gone(0));
                return 0;
            }
            self.obey();
            if let Some(left) = self.advance(Instant::now()) {
                self.report(&SupervisorNote::Gone(left));
                return 0;
            }
            self.wait();
        }
    }

    /// Collects every child that has ended; whether any is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.program => {
                    self.running = false;
                    let note = match status.terminating_signal() {
                        Some(signal) => SupervisorNote::Signaled(signal),
                        None => SupervisorNote::Exited(status.exit_status().unwrap_or_default()),
                    };
                    self.report(&note);
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Takes orders from ralph. A closed socket is the order to stop: ralph is gone.
    fn obey(&mut self) {
        let mut orders = [0; 16];
        let order = match self.control.read(&mut orders) {
            Ok(0) => {
                self.ralph_is_gone = true;
                Some(ORDER_STOP)
            }
            Ok(count) if orders[..count].contains(&ORDER_KILL) => Some(ORDER_KILL),
            Ok(_) => Some(ORDER_STOP),
            Err(_) => self.asked_to_stop.load(Ordering::Relaxed).then_some(ORDER_STOP),
        };
        match order {
            Some(ORDER_KILL) if !self.at_once => {
                self.at_once = true;
                kill_all();
                self.stage = Stage::Killed { since: Instant::now() };
            }
            Some(ORDER_STOP) if self.stage == Stage::Watch => {
                self.signal_program(Signal::INT);
                self.stage = Stage::Interrupted { until: Instant::now() + self.ladder.interrupt };
            }
            _ => {}
        }
    }

    /// Moves on to the next stage where it is time to. `Some(n)`: given up with n processes left.
    fn advance(&mut self, now: Instant) -> Option<u32> {
        match self.stage {
            Stage::Sweep { since } => return self.sweep(now.duration_since(since)),
            _ if !self.running => {
                self.stage = Stage::Sweep { since: now };
                return self.sweep(Duration::ZERO);
            }
            Stage::Interrupted { until } if now >= until => {
                self.signal_program(Signal::TERM);
                self.stage = Stage::Terminated { until: now + self.ladder.terminate };
            }
            Stage::Terminated { until } if now >= until => {
                self.signal_program(Signal::KILL);
                self.stage = Stage::Killed { since: now };
            }
            Stage::Killed { since } if now.duration_since(since) >= Ladder::AFTER_KILL => {
                return Some(count(&tree::descendants(std::process::id())));
            }
            _ => {}
        }
        None
    }

    /// Ends what the program left behind: TERM to each process once, KILL to all after the same wait.
    fn sweep(&mut self, spent: Duration) -> Option<u32> {
        if self.at_once || spent >= self.ladder.terminate {
            kill_all();
        } else {
            for stat in tree::descendants(std::process::id()) {
                if self.told.insert(stat.pid) {
                    send(stat.pid, Signal::TERM);
                    // A stopped process sees TERM only once it goes on.
                    send(stat.pid, Signal::CONT);
                }
            }
        }
        (spent >= self.ladder.terminate + Ladder::AFTER_KILL)
            .then(|| count(&tree::descendants(std::process::id())))
    }

    /// To the program's process group: a wrapper script and what it runs in the foreground are one program.
    fn signal_program(&self, signal: Signal) {
        if self.running && kill_process_group(self.program, signal).is_err() {
            // It has moved to another group.
            let _ = kill_process(self.program, signal);
        }
    }

    /// Sleeps until a child ends, an order comes, or the stage has a deadline.
    fn wait(&mut self) {
        let timeout = match self.stage {
            Stage::Watch => None,
            Stage::Interrupted { until } | Stage::Terminated { until } => {
                Some(until.saturating_duration_since(Instant::now()))
            }
            Stage::Killed { .. } | Stage::Sweep { .. } => Some(TICK),
        };
        let timeout = timeout.and_then(|duration| Timespec::try_from(duration).ok());
        let mut descriptors = vec![PollFd::new(&self.wake, PollFlags::IN)];
        if !self.ralph_is_gone {
            descriptors.push(PollFd::new(&self.control, PollFlags::IN));
        }
        // An interrupted or failed poll only means that the loop looks around once more.
        let _ = poll(&mut descriptors, timeout.as_ref());
        drop(descriptors);
        let _ = self.wake.read(&mut [0; 64]);
    }

    /// Nobody may be listening any more; the work goes on regardless.
    fn report(&mut self, note: &SupervisorNote) {
        let _ = self.control.write_all(note.to_line().as_bytes());
    }
}

/// Gives us a session of our own. Ralph starts us in a process group of our own, because a Ctrl+C would end us
/// while we are not yet ready for it; but the leader of a group cannot lead a session, so we join ralph's group
/// for a moment.
fn leave_terminal() {
    let ralphs = rustix::process::getppid().and_then(|ralph| rustix::process::getpgid(Some(ralph)).ok());
    // Where this fails (ralph has just died), we are at least in a group of our own.
    let _ = rustix::process::setpgid(None, ralphs);
    let _ = rustix::process::setsid();
}

/// KILL to everything below us, each process as soon as it is found: one that forks and ends all the time would be
/// gone, and another in its place, after a look at all of them.
fn kill_all() {
    tree::visit(std::process::id(), |stat| send(stat.pid, Signal::KILL));
}

fn count(processes: &[Stat]) -> u32 {
    u32::try_from(processes.len()).unwrap_or(u32::MAX)
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// The first message on the control socket carries the descriptor that becomes the program's stdin.
fn receive_descriptor(control: &UnixStream) -> std::io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(control, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    ancillary
        .drain()
        .find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        })
        .ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_survive_the_line() {
        use SupervisorNote::{Exited, Gone, Refused, Signaled, Started};
        for note in [Started(7), Refused(2), Exited(3), Signaled(9), Gone(0)] {
            assert_eq!(SupervisorNote::parse(&note.to_line()), Some(note));
        }
        assert_eq!(SupervisorNote::parse("nonsense"), None);
    }
}
