//! Visits an agent before it gets any work: a session is opened and closed.

use std::io::{self, PipeReader, PipeWriter};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::introduction::Introduction;
use super::session::{Session, Stage, Wanted};
use super::{AcpCodec, Grounds};
use crate::agent::codec::{Answers, Codec, Turn};
use crate::process::launch::Launch;
use crate::process::note::SupervisorNote;
use crate::process::pump::pump;
use crate::process::supervised::{Pipes, StartError, Supervised};
use crate::reply::decode::Item;
use crate::reply::usage::Class;
use crate::text::duration;
use crate::threads;

/// How much of its stderr is kept, in bytes.
const COMPLAINT: usize = 4096;

/// How long to wait for the last stderr of an agent that has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why an agent could not be visited.
#[derive(Debug, thiserror::Error)]
pub enum VisitError {
    /// It cannot be started.
    #[error("{0}")]
    Start(#[from] StartError),
    /// It does not answer.
    #[error("no session within {}: '{step}' was not answered", duration::format(*limit))]
    Silent {
        /// The open request.
        step: &'static str,
        /// The time limit for all of its answers.
        limit: Duration,
    },
    /// It has ended, or closed its stdout.
    #[error("it ended before it answered '{step}'{}", .said.as_ref().map(|said| format!(": {said}")).unwrap_or_default())]
    Ended {
        /// The open request.
        step: &'static str,
        /// The last line of its stderr.
        said: Option<String>,
    },
    /// It has answered with an error.
    #[error("{message}")]
    Refused {
        /// Its message.
        message: String,
        /// The class of the error.
        class: Class,
    },
}

/// Starts the agent, has it introduce itself, and ends it. Nothing is left of it when this returns. `agent` becomes its name and
/// version, as soon as it has told them.
///
/// # Errors
/// When it cannot be started, or does not open a session within `limit`.
pub fn introduce(
    launch: &Launch,
    limit: Duration,
    agent: &mut Option<String>,
) -> Result<Introduction, VisitError> {
    let (mut supervised, pipes) = Supervised::start(launch)?;
    let Pipes { stdin, stdout, stderr, notes } = pipes;
    let listen = || Listening::start(stdout, stderr);
    let listening = listen().map_err(|source| StartError::thread(launch, source))?;
    let introduced = converse(launch, stdin, &listening, limit, agent);
    // It has nothing to do that could be lost.
    supervised.stop();
    let left = notes.last().map(|note| if let SupervisorNote::Gone(left) = note { left } else { 1 });
    supervised.finish(left);
    introduced
}

/// The output of a visited agent.
struct Listening {
    said: Receiver<Vec<u8>>,
    /// The end of its stderr.
    complaint: Arc<Mutex<Vec<u8>>>,
    /// Closed at the end of its stderr.
    quiet: Receiver<()>,
    /// Keeps the readers running.
    _open: UnixStream,
}

impl Listening {
    fn start(stdout: PipeReader, stderr: PipeReader) -> io::Result<Self> {
        let (open, stop) = UnixStream::pair()?;
        let (sender, said) = sync_channel(1);
        let also_stop = stop.try_clone()?;
        threads::start(move || pump(stdout, &stop, |bytes| sender.send(bytes.to_vec()).is_ok()))?;
        let (end, quiet) = sync_channel(1);
        let complaint = Arc::default();
        let tail: Arc<Mutex<Vec<u8>>> = Arc::clone(&complaint);
        threads::start(move || {
            pump(stderr, &also_stop, |bytes| {
                let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
                tail.extend_from_slice(bytes);
                let surplus = tail.len().saturating_sub(COMPLAINT);
                tail.drain(..surplus);
                true
            });
            drop(end);
        })?;
        Ok(Self { said, complaint, quiet, _open: open })
    }

    /// The last line of its stderr.
    fn last_complaint(&self) -> Option<String> {
        // Its stderr ends with it, unless a process that it left holds it.
        let _ = self.quiet.recv_timeout(LAST_WORDS);
        let tail = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail);
        text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
    }
}

fn converse(
    launch: &Launch,
    stdin: PipeWriter,
    listening: &Listening,
    limit: Duration,
    agent: &mut Option<String>,
) -> Result<Introduction, VisitError> {
    let deadline = Instant::now() + limit;
    let session = Session::visit(launch);
    let mut codec = AcpCodec { session, ..AcpCodec::new(Wanted::default(), &Grounds::default(), None) };
    let (answers, to_write) = Answers::new();
    let mut turn = Turn::new(answers);
    let (first, _) = codec.open("");
    turn.answer(first);
    // An agent that does not read holds that thread, until it is ended.
    threads::start(move || to_write.write_to(stdin)).map_err(|source| StartError::thread(launch, source))?;
    let mut told = None;
    while codec.session.stage() != Stage::Over {
        let step = codec.session.step();
        match listening.said.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            // An agent that never stops talking has no more time than another.
            Ok(_) if Instant::now() >= deadline => return Err(VisitError::Silent { step, limit }),
            Ok(bytes) => {
                codec.read(&bytes, &mut turn);
                agent.clone_from(&codec.session.introduction().agent);
                told = fault(&mut turn).or(told);
            }
            Err(RecvTimeoutError::Timeout) => return Err(VisitError::Silent { step, limit }),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(VisitError::Ended { step, said: listening.last_complaint() });
            }
        }
    }
    match told {
        Some((message, class)) => Err(VisitError::Refused { message, class }),
        None => Ok(codec.session.introduction().clone()),
    }
}

/// The error with which it has ended.
fn fault(turn: &mut Turn) -> Option<(String, Class)> {
    turn.take_items().0.into_iter().find_map(|item| match item {
        Item::Note(note) => Some((note.error?, note.class.unwrap_or_default())),
        _ => None,
    })
}
