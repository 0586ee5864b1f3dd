//! The person at our own terminal.

use std::io::{self, IsTerminal as _, PipeReader};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};

use crate::engine::inbox::Port;
use crate::engine::person::{Answer, Listening, Person};
use crate::process::pump::pump;
use crate::threads;

/// A longer answer is none, in bytes.
const LONGEST: usize = 64 * 1024;

/// Whoever sits at the terminal that we were started on.
pub(crate) struct AtTerminal;

impl AtTerminal {
    /// `None` where nobody could read a question and answer it.
    pub(crate) fn find() -> Option<Box<dyn Person>> {
        let can_be_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
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
        if tcgetpgrp(&stdin)? != rustix::process::getpgrp() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // What was typed before there was a question is no answer to it.
        tcflush(&stdin, QueueSelector::IFlush)?;
        let keyboard: OwnedFd = stdin.as_fd().try_clone_to_owned()?;
        let (ours, stop) = UnixStream::pair()?;
        threads::start(move || {
            let mut line = Vec::new();
            pump(PipeReader::from(keyboard), &stop, |bytes| {
                line.extend_from_slice(bytes);
                !line.contains(&b'\n') && line.len() <= LONGEST
            });
            port.post(line.len(), answer(&line));
        })?;
        Ok(Box::new(Reading(ours)))
    }
}

/// What was typed, up to the end of its line.
fn answer(typed: &[u8]) -> Answer {
    if typed.is_empty() {
        return Answer::Gone;
    }
    let line = typed.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Answer::Line(String::from_utf8_lossy(line).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_one_line() {
        assert_eq!(answer(b""), Answer::Gone);
        assert_eq!(answer(b"\n"), Answer::Line(String::new()));
        assert_eq!(answer(b" use the cache \nmore"), Answer::Line("use the cache".into()));
        assert_eq!(answer("größer".as_bytes()), Answer::Line("größer".into()));
    }
}
