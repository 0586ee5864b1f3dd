//! Commands on a connection, and the callers that wait for their answers.

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

/// The answer to a caller: all lines, or the error of the first refused command.
type Reply = Result<Vec<String>, String>;

/// Our end of a connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) socket: UnixStream,
    /// The server, as options of tmux.
    server: String,
    queue: Mutex<Queue>,
}

/// The answer to the command that makes a connection.
pub(super) struct Made(Receiver<Reply>);

/// The waiting callers, in the order in which they asked.
#[derive(Debug)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Why no more answers will come.
    closed: Option<String>,
}

/// One line that was sent.
#[derive(Debug)]
struct Waiting {
    /// How many answers are still expected: one for each command, up to the first refused one.
    answers: usize,
    lines: Vec<String>,
    reply: Sender<Reply>,
}

impl Link {
    /// A new connection: its first answer is that of the command that makes it.
    pub(super) fn new(socket: UnixStream, server: String) -> io::Result<(Self, Made)> {
        socket.set_write_timeout(Some(WRITE_LIMIT))?;
        let (reply, made) = mpsc::channel();
        let queue =
            Queue { waiting: [Waiting { answers: 1, lines: Vec::new(), reply }].into(), closed: None };
        Ok((Self { socket, server, queue: Mutex::new(queue) }, Made(made)))
    }

    /// Waits until the connection is made: before that, tmux refuses commands for a client.
    pub(super) fn await_made(&self, made: &Made) -> Result<(), TmuxError> {
        self.receive("attach-session", &made.0).map(drop)
    }

    /// Sends commands and waits for their answers.
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
        // Held during the write: answers come in the order of the commands.
        let mut queue = self.queue();
        if let Some(why) = &queue.closed {
            return Err(TmuxError::Closed(why.clone()));
        }
        queue.waiting.push_back(Waiting { answers: commands.len(), lines: Vec::new(), reply });
        if let Err(error) = (&self.socket).write_all(&line) {
            // Half a line may have been sent.
            drop(queue);
            self.end(&error.to_string());
            return Err(TmuxError::Closed(error.to_string()));
        }
        Ok(())
    }

    /// Takes the answer to the next command.
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
            // The caller may have stopped waiting.
            let _ = waiting.reply.send(reply);
        }
    }

    /// Ends all waiting callers by closing their channels. Only the first reason counts.
    pub(super) fn end(&self, why: &str) {
        let mut queue = self.queue();
        queue.closed.get_or_insert_with(|| why.to_owned());
        queue.waiting.clear();
        drop(queue);
        self.close();
    }

    /// Closes both directions.
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
