//! Commands on a connection, and who waits for their answers.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::tmux::error::{self, TmuxError};
use crate::tmux::server::LIMIT;
use crate::tmux::{Words, words};

/// How long tmux may take to read a line.
const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// What one that asked gets: all lines, or the error of the first command that was refused.
type Reply = Result<Vec<String>, String>;

/// Our end of a connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) socket: UnixStream,
    /// The server, as options of tmux.
    server: String,
    queue: Mutex<Queue>,
}

/// The answer of the command that makes a connection.
pub(super) struct Made(Receiver<Reply>);

/// Who waits, in the order in which they asked.
#[derive(Debug)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Why there are no more answers.
    closed: Option<String>,
}

/// One line that was sent.
#[derive(Debug)]
struct Waiting {
    /// How many answers are still to come: one for each command, up to the first that is refused.
    answers: usize,
    lines: Vec<String>,
    reply: Sender<Reply>,
}

impl Link {
    /// A connection that is just being made: what the command says that makes it is the first answer.
    pub(super) fn new(socket: UnixStream, server: String) -> io::Result<(Self, Made)> {
        socket.set_write_timeout(Some(WRITE_LIMIT))?;
        let (reply, made) = mpsc::channel();
        let queue =
            Queue { waiting: [Waiting { answers: 1, lines: Vec::new(), reply }].into(), closed: None };
        Ok((Self { socket, server, queue: Mutex::new(queue) }, Made(made)))
    }

    /// Waits until the connection is made: before, tmux refuses what is for a client.
    pub(super) fn await_made(&self, made: &Made) -> Result<(), TmuxError> {
        self.receive("attach-session", &made.0).map(drop)
    }

    /// Sends commands and waits for what they answer.
    pub(super) fn ask(&self, commands: &[Words]) -> Result<Vec<String>, TmuxError> {
        let (reply, answer) = mpsc::channel();
        self.send(commands, reply)?;
        self.receive(&commands.first().map(Words::name).unwrap_or_default(), &answer)
    }

    fn receive(&self, command: &str, answer: &Receiver<Reply>) -> Result<Vec<String>, TmuxError> {
        let command = command.to_owned();
        match answer.recv_timeout(LIMIT) {
            Ok(Ok(lines)) => Ok(lines),
            Ok(Err(said)) => Err(error::refused(command, &said, self.server.clone())),
            Err(RecvTimeoutError::Disconnected) => Err(self.why_closed()),
            Err(RecvTimeoutError::Timeout) => {
                Err(TmuxError::Silent { command, limit: LIMIT, server: self.server.clone() })
            }
        }
    }

    fn send(&self, commands: &[Words], reply: Sender<Reply>) -> Result<(), TmuxError> {
        let mut line = words::to_line(commands).as_bytes().to_vec();
        if line.contains(&b'\n') {
            return Err(TmuxError::Input("there is a line end in a command".to_owned()));
        }
        line.push(b'\n');
        // Held while it is written: the answers come in the order of the commands.
        let mut queue = self.queue();
        if let Some(why) = &queue.closed {
            return Err(TmuxError::Closed(why.clone()));
        }
        queue.waiting.push_back(Waiting { answers: commands.len(), lines: Vec::new(), reply });
        if let Err(error) = (&self.socket).write_all(&line) {
            // Half a line may have gone out.
            drop(queue);
            self.end(&error.to_string());
            return Err(TmuxError::Closed(error.to_string()));
        }
        Ok(())
    }

    /// The next command in turn was answered.
    pub(super) fn answered(&self, answer: Reply) {
        let mut queue = self.queue();
        let Some(first) = queue.waiting.front_mut() else { return };
        first.answers = first.answers.saturating_sub(1);
        let reply = match answer {
            Ok(lines) => {
                first.lines.extend(lines);
                if first.answers > 0 {
                    return;
                }
                Ok(std::mem::take(&mut first.lines))
            }
            Err(said) => Err(said),
        };
        if let Some(waiting) = queue.waiting.pop_front() {
            // It may have waited long enough.
            let _ = waiting.reply.send(reply);
        }
    }

    /// There are no more answers: who waits is told, by the end of its channel. Only the first reason counts.
    pub(super) fn end(&self, why: &str) {
        let mut queue = self.queue();
        queue.closed.get_or_insert_with(|| why.to_owned());
        queue.waiting.clear();
        drop(queue);
        self.close();
    }

    /// Closes it at both ends.
    pub(super) fn close(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    fn why_closed(&self) -> TmuxError {
        TmuxError::Closed(self.queue().closed.clone().unwrap_or_else(|| "no reason given".to_owned()))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
