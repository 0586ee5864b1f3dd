//! Runs a command to its end and keeps its output, within limits of time and memory.

use std::collections::VecDeque;
use std::io::{self, PipeReader, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::launch::Launch;
use super::note::SupervisorNote;
use super::pump::pump;
use super::supervised::{StartError, Supervised};
use super::walls::{Inside, Overheard, TurnedAway};
use crate::text::head_and_tail::around_gap;
use crate::threads;

/// How often a running command is checked for cancellation.
const LOOK: Duration = Duration::from_millis(50);
/// How often a silent supervisor gets SIGCONT, in case another process has stopped it.
const GO_ON: Duration = Duration::from_secs(1);

/// The result of a captured command.
#[derive(Debug)]
pub struct Captured {
    /// Its stdout.
    pub stdout: Kept,
    /// Its stderr.
    pub stderr: Kept,
    /// How it ended.
    pub end: Ended,
    /// What walls around it have turned away.
    pub turned_away: TurnedAway,
}

/// How a captured command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// Unknown: its supervisor was killed. What was left of it was ended.
    OutOfSight,
    /// It exceeded the time limit.
    TimedOut,
    /// It was cancelled.
    Cancelled,
}

/// The beginning and the end of a stream of bytes.
#[derive(Debug, Default)]
pub struct Kept {
    room: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: usize,
}

impl Kept {
    /// Keeps up to `room` bytes, half of them from the beginning.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self { room, ..Self::default() }
    }

    /// Adds bytes at the end.
    pub fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min((self.room / 2).saturating_sub(self.head.len())));
        self.head.extend_from_slice(head);
        // Only this much of one piece can matter.
        let last = &rest[rest.len().saturating_sub(self.room / 2)..];
        self.dropped += rest.len() - last.len();
        self.tail.extend(last);
        let surplus = self.tail.len().saturating_sub(self.room / 2);
        self.tail.drain(..surplus);
        self.dropped += surplus;
    }

    /// Appends another part of the stream on a new line. Both have the same limit.
    pub fn append(&mut self, next: &Self) {
        let last = self.tail.back().or(self.head.last());
        if last.is_some_and(|byte| *byte != b'\n') && !next.head.is_empty() {
            self.push(b"\n");
        }
        self.push(&next.head);
        self.dropped += next.dropped;
        let (first, second) = next.tail.as_slices();
        self.push(first);
        self.push(second);
    }

    /// All bytes; `None` if they did not fit.
    #[must_use]
    pub fn whole(&self) -> Option<Vec<u8>> {
        let (first, second) = self.tail.as_slices();
        (self.dropped == 0).then(|| [self.head.as_slice(), first, second].concat())
    }

    /// The kept bytes as text; a line says how much is left out in the middle.
    #[must_use]
    pub fn text(&self) -> String {
        let (first, second) = self.tail.as_slices();
        let tail = [first, second].concat();
        if self.dropped == 0 {
            return String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        around_gap(&head, self.dropped, &tail)
    }
}

/// Runs `launch` with this input for at most `limit`, or until `cancelled`; keeps up to `room` bytes of each output.
/// Its whole process tree has ended when this returns.
///
/// # Errors
/// If it cannot be started, or no threads can be started to read it.
pub fn capture(
    launch: &Launch,
    input: Vec<u8>,
    limit: Duration,
    room: usize,
    cancelled: &AtomicBool,
) -> Result<Captured, StartError> {
    let deadline = Instant::now() + limit;
    let (mut program, pipes) = Supervised::start(launch)?;
    let mut stdin = pipes.stdin;
    let (send, notes) = mpsc::channel();
    let listener = pipes.notes;
    let no_thread = |source| StartError::thread(launch, source);
    threads::start(move || listener.for_each(|note| drop(send.send(note)))).map_err(no_thread)?;
    if input.is_empty() {
        drop(stdin);
    } else {
        // It may end without reading everything.
        threads::start(move || drop(stdin.write_all(&input))).map_err(no_thread)?;
    }
    // Without the socket pair, a stranger that holds the pipe open could block us; it is better to have no output
    // then.
    let (hold, stop) = UnixStream::pair().map_or((None, None), |(hold, stop)| (Some(hold), Some(stop)));
    let overheard = || program.inside().map(Inside::overhear);
    let stdout = keep(pipes.stdout, stop.as_ref(), room, overheard()).map_err(no_thread)?;
    let stderr = keep(pipes.stderr, stop.as_ref(), room, overheard()).map_err(no_thread)?;

    let (mut end, mut told_to_go_on) = (None, Instant::now());
    let left = loop {
        match notes.recv_timeout(LOOK) {
            // A death by our own signal is not the reason why it ended.
            Ok(SupervisorNote::Exited(code)) => drop(end.get_or_insert(Ended::Exited(code))),
            Ok(SupervisorNote::Signaled(signal)) => drop(end.get_or_insert(Ended::Signaled(signal))),
            Ok(SupervisorNote::Gone(left)) => break Some(left),
            Ok(SupervisorNote::Spared) => break Some(1),
            Err(RecvTimeoutError::Disconnected) => break None,
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
        }
        if told_to_go_on.elapsed() >= GO_ON {
            told_to_go_on = Instant::now();
            program.go_on();
        }
        let forced = if cancelled.load(Ordering::Relaxed) {
            Ended::Cancelled
        } else if Instant::now() >= deadline {
            Ended::TimedOut
        } else {
            continue;
        };
        if end.is_none() {
            end = Some(forced);
            program.kill();
        }
    };
    let turned_away = program.inside().map(Inside::turned_away).unwrap_or_default();
    program.finish(left);
    drop(hold);
    let join = |thread: JoinHandle<(Kept, Option<Overheard>)>| thread.join().unwrap_or_default();
    let ((stdout, from_stdout), (stderr, from_stderr)) = (join(stdout), join(stderr));
    let turned_away = from_stdout.into_iter().chain(from_stderr).fold(turned_away, TurnedAway::and);
    Ok(Captured { stdout, stderr, end: end.unwrap_or(Ended::OutOfSight), turned_away })
}

/// Reads one pipe in its own thread.
fn keep(
    pipe: PipeReader,
    stop: Option<&UnixStream>,
    room: usize,
    mut overheard: Option<Overheard>,
) -> io::Result<JoinHandle<(Kept, Option<Overheard>)>> {
    let stop = stop.and_then(|stop| stop.try_clone().ok());
    threads::start(move || {
        let mut kept = Kept::new(room);
        if let Some(stop) = stop {
            pump(pipe, &stop, |bytes| {
                kept.push(bytes);
                if let Some(overheard) = &mut overheard {
                    overheard.take(bytes);
                }
                true
            });
        }
        (kept, overheard)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_head_and_tail() {
        let mut kept = Kept::new(10);
        assert_eq!(kept.text(), "");
        for piece in ["abc", "def", "ghi"] {
            kept.push(piece.as_bytes());
        }
        assert_eq!(kept.text(), "abcdefghi");
        kept.push(b"jklmnopqrstuvwxyz");
        assert_eq!(kept.text(), "abcde\n[… 16 bytes left out …]\nvwxyz");
    }

    #[test]
    fn two_streams_are_cut_as_one() {
        let of = |text: &str| {
            let mut kept = Kept::new(10);
            kept.push(text.as_bytes());
            kept
        };
        let both = |first: &str, second: &str| {
            let mut kept = of(first);
            kept.append(&of(second));
            kept.text()
        };
        assert_eq!(both("ab", "cd"), "ab\ncd");
        assert_eq!(both("", "cd"), "cd");
        assert_eq!(both("abcdefghijklmn", ""), "abcde\n[… 4 bytes left out …]\njklmn");
        assert_eq!(both("abcdefghijklmn\n", "uvwxyz"), "abcde\n[… 11 bytes left out …]\nvwxyz");
        assert_eq!(both("a\n", "bcdefghijklmnop"), "a\nbcd\n[… 7 bytes left out …]\nlmnop");
    }
}
