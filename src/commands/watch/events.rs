//! The one place where `ralph watch` waits: for keys, signals, answers, and the next check.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::{flag, low_level};

use super::typing::Typing;
use crate::platform::calls::ignored_signals;
use crate::view::watch::keys::Key;

/// In place of a signal: the terminal is gone.
pub(super) const GONE: i32 = 0;
/// The signals that end it.
const ENDING: [i32; 4] = [SIGTERM, SIGHUP, SIGINT, SIGQUIT];
/// How long an escape must be alone to be a key.
const ESCAPE: Duration = Duration::from_millis(50);

/// The sources of events.
#[derive(Debug)]
pub(super) struct Events {
    came: UnixStream,
    waker: UnixStream,
    signals: Vec<(i32, Arc<AtomicBool>)>,
    is_ended: Arc<AtomicBool>,
    typing: Typing,
}

/// An event.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "any of them may come at once")]
pub(super) struct Heard {
    pub(super) keys: Vec<Key>,
    /// The signal that ends it, or [`GONE`].
    pub(super) end: Option<i32>,
    pub(super) is_resized: bool,
    pub(super) is_suspended: bool,
    pub(super) is_continued: bool,
    /// An answer or a signal has come.
    pub(super) is_woken: bool,
}

impl Events {
    /// Handles signals from here on. One that was ignored when we were started stays ignored.
    pub(super) fn listen() -> io::Result<Self> {
        let (came, waker) = UnixStream::pair()?;
        came.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let ignored = ignored_signals();
        let is_wanted = |signal: &i32| ignored & (1 << (signal - 1)) == 0;
        let is_ended = Arc::<AtomicBool>::default();
        let mut signals = Vec::new();
        for signal in [SIGWINCH, SIGTSTP, SIGCONT].into_iter().chain(ENDING).filter(is_wanted) {
            let came = Arc::<AtomicBool>::default();
            flag::register(signal, Arc::clone(&came))?;
            if ENDING.contains(&signal) {
                flag::register(signal, Arc::clone(&is_ended))?;
            }
            low_level::pipe::register(signal, waker.try_clone()?)?;
            signals.push((signal, came));
        }
        Ok(Self { came, waker, signals, is_ended, typing: Typing::default() })
    }

    /// Ends a wait, from any thread.
    pub(super) fn waker(&self) -> Waker {
        Waker(self.waker.try_clone().ok())
    }

    /// Set when a signal has come that ends it.
    pub(super) fn is_ended(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_ended)
    }

    /// Waits for an event, at most this long.
    pub(super) fn wait(&mut self, at_most: Duration) -> io::Result<Heard> {
        let mut heard = Heard::default();
        let at_most = if self.typing.is_open() { ESCAPE.min(at_most) } else { at_most };
        let (has_keys, has_signals) = ready(&self.came, true, at_most)?;
        if has_signals {
            self.drain();
            heard.is_woken = true;
        }
        for (signal, came) in &self.signals {
            if came.swap(false, Ordering::Relaxed) {
                match *signal {
                    SIGWINCH => heard.is_resized = true,
                    SIGTSTP => heard.is_suspended = true,
                    SIGCONT => heard.is_continued = true,
                    signal => heard.end = Some(signal),
                }
            }
        }
        if has_keys {
            self.read(&mut heard)?;
        } else if !has_signals {
            heard.keys.extend(self.typing.settle());
        }
        Ok(heard)
    }

    /// Waits for a signal that ends us, or a wake-up, and not for keys, which are for another program.
    pub(super) fn wait_outside(&mut self, at_most: Duration) -> io::Result<bool> {
        let (_, has_signals) = ready(&self.came, false, at_most)?;
        if has_signals {
            self.drain();
        }
        // Ctrl+C was meant for the other program.
        let is_end = |signal: i32| matches!(signal, SIGTERM | SIGHUP);
        let ends = self.signals.iter().filter(|(signal, _)| is_end(*signal));
        Ok(ends.into_iter().any(|(_, came)| came.load(Ordering::Relaxed)))
    }

    /// Waits for a line at the keys, or for a signal that ends something.
    pub(super) fn await_line(&mut self) -> io::Result<()> {
        const LONG: Duration = Duration::from_mins(1);
        loop {
            let (has_keys, has_signals) = ready(&self.came, true, LONG)?;
            if has_signals {
                self.drain();
            }
            let mut ends = self.signals.iter().filter(|(signal, _)| ENDING.contains(signal));
            if ends.any(|(_, came)| came.load(Ordering::Relaxed)) {
                return Ok(());
            }
            if !has_keys {
                continue;
            }
            let mut bytes = [0; 1024];
            match rustix::io::read(stdin(), &mut bytes) {
                Ok(0) => return Ok(()),
                Ok(length) if bytes[..length].contains(&b'\n') => return Ok(()),
                Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Signals for another program do not end us.
    pub(super) fn forget_interrupts(&mut self) {
        for (signal, came) in &self.signals {
            if !matches!(*signal, SIGTERM | SIGHUP) {
                came.store(false, Ordering::Relaxed);
            }
        }
        let ends = self.signals.iter().any(|(_, came)| came.load(Ordering::Relaxed));
        self.is_ended.store(ends, Ordering::Relaxed);
    }

    fn drain(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.came.read(&mut bytes), Ok(1..)) {}
    }

    fn read(&mut self, heard: &mut Heard) -> io::Result<()> {
        let mut bytes = [0; 4096];
        match rustix::io::read(stdin(), &mut bytes) {
            Ok(0) | Err(Errno::IO) => heard.end = Some(GONE),
            Ok(length) => heard.keys.extend(self.typing.take(&bytes[..length])),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// Whether there are keys, and whether there is another event, after at most this long.
fn ready(came: &UnixStream, wants_keys: bool, at_most: Duration) -> io::Result<(bool, bool)> {
    let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
    let stdin = stdin();
    let mut fds = [PollFd::new(came, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
    let fds = if wants_keys { &mut fds[..] } else { &mut fds[..1] };
    match poll(fds, Some(&timeout)) {
        Ok(_) => {}
        // The signal has left its byte.
        Err(Errno::INTR) => return Ok((false, true)),
        Err(error) => return Err(error.into()),
    }
    let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
    Ok((fds.get(1).is_some_and(is_ready), is_ready(&fds[0])))
}

/// Ends a wait.
#[derive(Debug)]
pub(super) struct Waker(Option<UnixStream>);

impl Waker {
    pub(super) fn wake(&self) {
        // A full pipe wakes as well.
        let _ = self.0.as_ref().map(|mut waker| waker.write(b"w"));
    }

    pub(super) fn another(&self) -> Self {
        Self(self.0.as_ref().and_then(|waker| waker.try_clone().ok()))
    }
}

/// Standard output for ratatui. A terminal that takes nothing more (a stuck connection) does not keep a signal from ending us.
#[derive(Debug)]
pub(super) struct Tty {
    is_ended: Arc<AtomicBool>,
}

impl Tty {
    pub(super) fn new(is_ended: Arc<AtomicBool>) -> Self {
        Self { is_ended }
    }
}

/// How much is written at once, in bytes: it fits if there is any room.
const CHUNK: usize = 1024;

impl io::Write for Tty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stdout = rustix::stdio::stdout();
        let timeout = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        loop {
            let mut fds = [PollFd::new(&stdout, PollFlags::OUT)];
            let is_ready = matches!(poll(&mut fds, Some(&timeout)), Ok(1..));
            if is_ready {
                match rustix::io::write(stdout, &bytes[..bytes.len().min(CHUNK)]) {
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    written => return Ok(written?),
                }
            }
            if !is_ready && self.is_ended.load(Ordering::Relaxed) {
                return Err(ErrorKind::BrokenPipe.into());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
