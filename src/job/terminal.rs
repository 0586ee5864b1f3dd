//! The person at our own terminal.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};

use crate::engine::inbox::Port;
use crate::engine::person::{Answer, Listening, Person};
use crate::process::group;
use crate::threads;

/// The longest answer, in bytes.
const LONGEST: usize = 1 << 20;
/// How long the next line of pasted text may take.
const PAUSE: Duration = Duration::from_millis(100);

/// The person at the terminal that we were started on.
pub(crate) struct AtTerminal;

impl AtTerminal {
    /// `None` if no person could read a question and answer it.
    pub(crate) fn find() -> Option<Box<dyn Person>> {
        let is_in_front = || group::is_in_front(io::stdin()) == Some(true);
        let can_be_asked = io::stdin().is_terminal() && io::stderr().is_terminal() && is_in_front();
        can_be_asked.then(|| Box::new(Self) as Box<dyn Person>)
    }
}

/// Ends the reading thread when it is dropped.
struct Reading(#[expect(dead_code, reason = "closed when it is dropped")] UnixStream);

impl Listening for Reading {}

impl Person for AtTerminal {
    fn listen(&mut self, port: Port<Answer>) -> io::Result<Box<dyn Listening>> {
        let stdin = io::stdin();
        // A process in the background is stopped when it reads from its terminal.
        if group::is_in_front(&stdin) != Some(true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // Keys that were typed before the question are no answer to it.
        tcflush(&stdin, QueueSelector::IFlush)?;
        let keyboard: OwnedFd = stdin.as_fd().try_clone_to_owned()?;
        let (ours, stop) = UnixStream::pair()?;
        threads::start(move || {
            let typed = typed(File::from(keyboard), &stop);
            port.post(typed.len(), answer(&typed));
        })?;
        Ok(Box::new(Reading(ours)))
    }
}

/// Reads a line, and what follows it at once: several pasted lines are one answer. Nothing if the terminal is gone, or the other
/// end of `stop` is closed.
fn typed(mut keyboard: File, stop: &UnixStream) -> Vec<u8> {
    let mut typed = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let pause = typed.ends_with(b"\n").then(|| Timespec::try_from(PAUSE).unwrap_or_default());
        let mut ready = [PollFd::new(&keyboard, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut ready, pause.as_ref()) {
            Err(Errno::INTR) => continue,
            // Nothing more came.
            Ok(0) => return typed,
            Err(_) => return Vec::new(),
            Ok(_) if ready[0].revents().is_empty() => return Vec::new(),
            Ok(_) => {}
        }
        match keyboard.read(&mut buffer) {
            Ok(count @ 1..) if typed.len() < LONGEST => typed.extend_from_slice(&buffer[..count]),
            // The rest of a longer answer is read and dropped, so that no shell takes it for commands.
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return typed,
        }
    }
}

/// The typed text, without control characters.
fn answer(typed: &[u8]) -> Answer {
    if typed.is_empty() {
        return Answer::Gone;
    }
    let text = String::from_utf8_lossy(typed);
    let plain = anstream::adapter::strip_str(&text).to_string();
    let plain: String = plain.chars().filter(|&c| !c.is_control() || c == '\n' || c == '\t').collect();
    Answer::Line(plain.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_what_a_person_means() {
        assert_eq!(answer(b""), Answer::Gone);
        assert_eq!(answer(b"\n"), Answer::Line(String::new()));
        assert_eq!(
            answer(b" use the cache\x1b[D \nand more\n"),
            Answer::Line("use the cache \nand more".into())
        );
        assert_eq!(answer("größer".as_bytes()), Answer::Line("größer".into()));
    }
}
