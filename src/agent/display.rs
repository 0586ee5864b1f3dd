//! The user's own rendering of an agent's stream for the live display.
//!
//! It is cosmetic: a thread of its own feeds it, and one that fails, hangs or floods is dropped with one notice
//! while the agent's stream goes on.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::message::Message;
use crate::engine::inbox::Port;
use crate::process::launch::Launch;
use crate::process::note::SupervisorNote;
use crate::process::pump::pump;
use crate::process::supervised::{Pipes, Supervised};
use crate::reply::child;
use crate::reply::decode::Elsewhere;
use crate::reply::lines::{Lines, StreamLine};
use crate::reply::show::Show;
use crate::threads;

/// How many bytes of the agent's output may wait for a display before it counts as hanging.
const QUEUE: usize = 8 * 1024 * 1024;
/// A display that prints this much, in bytes, beyond twice its input is flooding.
const FLOOD: usize = 16 * 1024 * 1024;

/// How long a display that has closed its output may take to exit; one that goes on writes elsewhere.
const LAST_WORD: Duration = Duration::from_millis(500);

/// How the agent's stream is rendered.
#[derive(Debug, Clone)]
pub enum DisplayRoute {
    /// The preset's display filter, as part of decoding.
    Preset,
    /// Not at all: the stream is shown as it comes.
    Raw,
    /// The assistant's text, and nothing else.
    Text,
    /// A user's jq program, in a child of ours.
    Program {
        /// The program.
        program: String,
        /// Whether its outputs follow each other without newlines.
        join: bool,
    },
    /// A user's command for `sh -c`; its output is shown.
    Shell(Launch),
}

/// The destination of an attempt's stdout for display.
#[derive(Debug)]
pub(super) enum Feed {
    /// None: decoding renders it, or the user's display was dropped.
    Nothing,
    /// The display, unchanged.
    Raw(Characters),
    /// A thread that serves the user's display.
    Thread(Queue),
}

/// Makes text from bytes that are cut anywhere: the start of a character is held back until its rest comes.
#[derive(Debug, Default)]
pub(super) struct Characters(Vec<u8>);

impl Characters {
    fn push(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        // A character has at most four bytes.
        let is_cut = |at: &usize| {
            let rest = str::from_utf8(&self.0[*at..]);
            rest.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        };
        let whole = (self.0.len().saturating_sub(3)..self.0.len()).find(is_cut).unwrap_or(self.0.len());
        let rest = self.0.split_off(whole);
        let text = String::from_utf8_lossy(&self.0).into_owned();
        self.0 = rest;
        text
    }
}

/// The input of the user's display.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    chunks: Sender<Arc<[u8]>>,
    waiting: Arc<AtomicUsize>,
}

impl DisplayRoute {
    /// Starts the display of one attempt. A thread that serves a user's display posts [`Message::DisplayEnded`] at its end,
    /// and ends its display when the other end of `stop` (a shell command) or `wanted` (a jq program) is closed.
    pub(super) fn start(
        &self,
        stop: &UnixStream,
        wanted: &UnixStream,
        port: &Port<Message>,
    ) -> std::io::Result<Feed> {
        let (chunks, received) = channel();
        let queue = Queue { chunks, waiting: Arc::default() };
        let display = Display { received, waiting: Arc::clone(&queue.waiting), port: port.clone() };
        match self {
            Self::Preset | Self::Text => return Ok(Feed::Nothing),
            Self::Raw => return Ok(Feed::Raw(Characters::default())),
            Self::Program { program, join } => {
                let (filter, join) = (child::spawn(program, wanted), *join);
                threads::start(move || display.serve_program(filter, join))?;
            }
            Self::Shell(launch) => {
                let (launch, stop) = (launch.clone(), stop.try_clone()?);
                threads::start(move || display.serve_shell(&launch, &stop))?;
            }
        }
        Ok(Feed::Thread(queue))
    }

    /// Whether a thread will post [`Message::DisplayEnded`].
    pub(super) fn has_thread(&self) -> bool {
        matches!(self, Self::Program { .. } | Self::Shell(_))
    }
}

impl Feed {
    /// Passes on output of the agent. Never waits.
    pub(super) fn take(&mut self, bytes: &Arc<[u8]>, port: &Port<Message>) {
        match self {
            Self::Nothing => {}
            Self::Raw(characters) => {
                let text = characters.push(bytes);
                port.post(text.len(), Message::Display(Show::Delta(text)));
            }
            Self::Thread(queue) => {
                if queue.waiting.fetch_add(bytes.len(), Ordering::Relaxed) > QUEUE {
                    port.post(0, Message::DisplayLost("it does not read what it is given".to_owned()));
                    *self = Self::Nothing;
                } else if queue.chunks.send(Arc::clone(bytes)).is_err() {
                    // It has ended, and has posted that.
                    *self = Self::Nothing;
                }
            }
        }
    }
}

/// The serving side of one attempt's display.
struct Display {
    received: Receiver<Arc<[u8]>>,
    waiting: Arc<AtomicUsize>,
    port: Port<Message>,
}

impl Display {
    /// Runs a jq program over every line.
    fn serve_program(self, mut filter: Elsewhere, join: bool) {
        let (mut lines, mut is_shown) = (Lines::default(), true);
        for chunk in &self.received {
            self.waiting.fetch_sub(chunk.len(), Ordering::Relaxed);
            lines.take(&chunk, |line| is_shown = is_shown && self.show_line(&mut filter, line, join));
            if !is_shown {
                return;
            }
        }
        lines.finish(|line| {
            self.show_line(&mut filter, line, join);
        });
        self.port.post(0, Message::DisplayEnded);
    }

    /// `false` if the display is lost.
    fn show_line(&self, filter: &mut Elsewhere, line: StreamLine<'_>, join: bool) -> bool {
        // Only whole JSON objects concern the filter; the rest is counted elsewhere.
        let StreamLine::Whole(line @ [b'{', ..]) = line else { return true };
        match filter(line) {
            Ok(outputs) => outputs.into_iter().all(|text| {
                let weight = text.len();
                let show = if join { Show::Delta(text) } else { Show::Text(text) };
                self.port.post(weight, Message::Display(show))
            }),
            Err(reason) => {
                self.port.post(0, Message::DisplayLost(reason));
                false
            }
        }
    }

    /// Runs a shell command over the raw stream.
    fn serve_shell(self, launch: &Launch, stop: &UnixStream) {
        let (program, pipes) = match Supervised::start(launch) {
            Ok(started) => started,
            Err(error) => {
                self.port.post(0, Message::DisplayLost(error.to_string()));
                return;
            }
        };
        let Pipes { mut stdin, stdout, stderr, notes } = pipes;
        let Self { received, waiting, ref port } = self;
        let given = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&given);
        let feeds = threads::start(move || {
            for chunk in &received {
                waiting.fetch_sub(chunk.len(), Ordering::Relaxed);
                counted.fetch_add(chunk.len(), Ordering::Relaxed);
                // A command that has read enough (`head`) may exit early.
                if stdin.write_all(&chunk).is_err() {
                    return;
                }
            }
        });
        if let Ok(stop) = stop.try_clone() {
            // Its stderr is not used, but a full pipe would block the command. Without this thread the display may hang, which is
            // noticed.
            let _ = threads::start(move || pump(stderr, &stop, |_| true));
        }
        let (ended, end) = channel();
        let listens = threads::start(move || {
            for note in notes {
                // The attempt may be over.
                let _ = how_it_died(&note).map(|how| ended.send(how));
            }
        });
        if let Err(error) = feeds.and(listens) {
            drop(program);
            self.port.post(0, Message::DisplayLost(error.to_string()));
            return;
        }

        let mut printed = 0;
        let mut floods = false;
        let mut characters = Characters::default();
        pump(stdout, stop, |bytes| {
            printed += bytes.len();
            floods = printed > FLOOD + 2 * given.load(Ordering::Relaxed);
            let text = characters.push(bytes);
            !floods && port.post(text.len(), Message::Display(Show::Delta(text)))
        });
        let lost = if floods {
            Some("it prints far more than it is given".to_owned())
        } else if is_closed(stop) {
            None
        } else {
            end.recv_timeout(LAST_WORD).ok().flatten()
        };
        // Dropping it ends the rest of it; the attempt is not over before that.
        drop(program);
        port.post(0, lost.map_or(Message::DisplayEnded, Message::DisplayLost));
    }
}

/// How a display ended that we did not end: inner `None` if it just exited.
#[expect(clippy::option_option, reason = "a note may also be about something else")]
fn how_it_died(note: &SupervisorNote) -> Option<Option<String>> {
    match note {
        SupervisorNote::Exited(0) => Some(None),
        SupervisorNote::Exited(code) => Some(Some(format!("it exited with code {code}"))),
        SupervisorNote::Signaled(signal) => Some(Some(format!("signal {signal} killed it"))),
        _ => None,
    }
}

/// Whether the other end is closed.
fn is_closed(stop: &UnixStream) -> bool {
    let mut descriptors = [PollFd::new(stop, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut descriptors, Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_in_two_pieces_is_one() {
        let text = "aé✓🦀z";
        for size in 1..=text.len() {
            let mut characters = Characters::default();
            let joined: String = text.as_bytes().chunks(size).map(|piece| characters.push(piece)).collect();
            assert_eq!(joined, text, "{size}");
        }
        let mut characters = Characters::default();
        assert_eq!(characters.push(b"a\xffb\xc3"), "a\u{fffd}b");
        assert_eq!(characters.push(b"c"), "\u{fffd}c", "what was no character after all");
    }
}
