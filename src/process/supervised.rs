//! Ralph's end of a supervised program: starts it, passes its bytes on, ends it.

use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::Signal;

use super::OUT_OF_SIGHT;
use super::ladder::Ladder;
use super::launch::{self, Launch};
use super::note::SupervisorNote;
use super::pool::Supervisor;
use super::supervisor::{ORDER_KILL, ORDER_STOP};
use super::sweep::sweep_program;
use super::walls::Inside;
use crate::platform::calls::widen;
use crate::platform::ready::is_ready_by;

/// The requested pipe capacity: fewer and larger reads of programs with much output.
const PIPE_CAPACITY: usize = 1024 * 1024;
/// How long the supervisor may take to report whether the program started.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How often a supervisor that has not reported gets SIGCONT: the program may have stopped it by then.
const START_LOOK: Duration = Duration::from_millis(100);
/// How many times starting a supervisor is tried: a Ctrl+C at the terminal can end one that has not left our process
/// group yet.
const START_TRIES: u32 = 3;
/// How long the supervisor may take to end leftovers if there is no time for a ladder.
const END_LIMIT: Duration = Duration::from_secs(6);

/// A program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The operating system refused to run the program.
    #[error("cannot start '{program}': {source}")]
    Program {
        /// The program as configured.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The threads that serve it cannot be started.
    #[error("cannot serve '{program}': {source}")]
    Thread {
        /// The program as configured.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// No supervisor could be started for it.
    #[error("cannot start the supervisor process for '{program}': {source}")]
    Supervisor {
        /// The program as configured.
        program: String,
        /// Why.
        source: io::Error,
    },
}

impl StartError {
    fn supervisor(launch: &Launch, source: io::Error) -> Self {
        Self::Supervisor { program: launch.program.to_string_lossy().into_owned(), source }
    }

    /// The system error.
    #[must_use]
    pub fn into_source(self) -> io::Error {
        match self {
            Self::Program { source, .. } | Self::Thread { source, .. } | Self::Supervisor { source, .. } => {
                source
            }
        }
    }

    /// The error if the threads that serve `launch` cannot be started.
    #[must_use]
    pub fn thread(launch: &Launch, source: io::Error) -> Self {
        Self::Thread { program: launch.program.to_string_lossy().into_owned(), source }
    }

    fn program(launch: &Launch, source: io::Error) -> Self {
        Self::Program { program: launch.program.to_string_lossy().into_owned(), source }
    }

    /// The system's error number does not say which path was not found.
    fn refused(launch: &Launch, errno: i32) -> Self {
        let source = io::Error::from_raw_os_error(errno);
        if launch.cwd.as_os_str().is_empty() || launch.cwd.is_dir() {
            return Self::program(launch, source);
        }
        let text = format!("its folder '{}': {source}", launch.cwd.display());
        Self::program(launch, io::Error::new(source.kind(), text))
    }
}

/// A running supervised program. Dropping it kills the program and everything below it.
#[derive(Debug)]
pub struct Supervised {
    /// `None` once it is finished.
    supervisor: Option<Supervisor>,
    supervisor_pid: u32,
    mark: String,
    ladder: Ladder,
    program_pid: u32,
    /// Something was ordered.
    ordered: bool,
    /// KILL was ordered.
    killed: bool,
    /// What it needs behind walls; removed when nothing is left of it.
    inside: Option<Inside>,
}

/// The three pipes of a program and the notes of its supervisor; each needs its own thread.
#[derive(Debug)]
pub struct Pipes {
    /// For the prompt.
    pub stdin: PipeWriter,
    /// The program's stdout.
    pub stdout: PipeReader,
    /// The program's stderr.
    pub stderr: PipeReader,
    /// The supervisor's notes.
    pub notes: Notes,
}

/// The supervisor's notes, as an iterator.
#[derive(Debug)]
pub struct Notes {
    reader: BufReader<UnixStream>,
    /// Whether the last one was received.
    over: bool,
}

impl From<UnixStream> for Notes {
    /// The notes from this socket.
    fn from(socket: UnixStream) -> Self {
        Self { reader: BufReader::new(socket), over: false }
    }
}

impl Notes {
    /// Whether the last one was received.
    pub(super) fn are_over(&self) -> bool {
        self.over
    }
}

impl Iterator for Notes {
    type Item = SupervisorNote;

    /// Blocks for the next note; `None` after the last one, [`SupervisorNote::Gone`], or if the supervisor has died.
    fn next(&mut self) -> Option<SupervisorNote> {
        if self.over {
            return None;
        }
        let mut line = String::new();
        self.reader.read_line(&mut line).ok()?;
        let note = SupervisorNote::parse(&line)?;
        self.over = note.is_last();
        Some(note)
    }
}

impl Supervised {
    /// Starts `launch` under a supervisor and returns when the program runs.
    ///
    /// # Errors
    /// If the program or its supervisor cannot be started; nothing is left running then.
    pub fn start(launch: &Launch) -> Result<(Self, Pipes), StartError> {
        let mut result = Self::try_start(launch, Supervisor::idle_or_new);
        for _ in 1..START_TRIES {
            if matches!(result, Err(StartError::Supervisor { .. })) {
                result = Self::try_start(launch, Supervisor::new);
            }
        }
        result
    }

    fn try_start(
        launch: &Launch,
        supervisor: fn() -> io::Result<Supervisor>,
    ) -> Result<(Self, Pipes), StartError> {
        let failed = |source| StartError::supervisor(launch, source);
        let enclosed = launch.enclosed().map_err(failed)?;
        let message = enclosed.as_ref().map_or(launch, |(enclosed, _)| enclosed).to_message();
        let message = message.map_err(|source| StartError::program(launch, source))?;
        let (their_stdin, stdin) = io::pipe().map_err(failed)?;
        let (stdout, their_stdout) = io::pipe().map_err(failed)?;
        let (stderr, their_stderr) = io::pipe().map_err(failed)?;
        widen(&stdout, PIPE_CAPACITY);
        let descriptors = [their_stdin.as_fd(), their_stdout.as_fd(), their_stderr.as_fd()];
        let inside = enclosed.map(|(_, inside)| inside);
        let (supervised, notes) =
            Self::begin(supervisor().map_err(failed)?, (launch, inside), &message, &descriptors)?;
        Ok((supervised, Pipes { stdin, stdout, stderr, notes }))
    }

    /// Starts the program through a supervisor, and waits for its report.
    fn begin(
        mut supervisor: Supervisor,
        (launch, inside): (&Launch, Option<Inside>),
        message: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(Self, Notes), StartError> {
        let first = || {
            launch::send(&supervisor.control, message, descriptors)?;
            let mut notes = Notes::from(supervisor.control.try_clone()?);
            let first = if speaks(&supervisor) { notes.next() } else { None };
            Ok((first, notes))
        };
        match first() {
            Ok((Some(SupervisorNote::Started(program_pid)), notes)) => {
                let supervised = Self {
                    supervisor_pid: supervisor.handle.pid(),
                    supervisor: Some(supervisor),
                    mark: launch.mark.clone(),
                    ladder: launch.ladder,
                    program_pid,
                    ordered: false,
                    killed: false,
                    inside,
                };
                Ok((supervised, notes))
            }
            Ok((Some(SupervisorNote::Refused(errno)), _)) => {
                supervisor.leave_by(Instant::now() + END_LIMIT);
                Err(StartError::refused(launch, errno))
            }
            result => {
                supervisor.leave_by(Instant::now());
                // It may have started the program before it was killed.
                sweep_program(&launch.mark, supervisor.handle.pid(), true);
                let source = result
                    .err()
                    .unwrap_or_else(|| io::Error::other(format!("{OUT_OF_SIGHT} before it had said a word")));
                Err(StartError::supervisor(launch, source))
            }
        }
    }

    /// The walls around it, if there are any.
    #[must_use]
    pub fn inside(&self) -> Option<&Inside> {
        self.inside.as_ref()
    }

    /// Process id of the program itself.
    #[must_use]
    pub fn program_pid(&self) -> u32 {
        self.program_pid
    }

    /// Process id of its supervisor; everything the program starts is below it.
    #[must_use]
    pub fn supervisor_pid(&self) -> u32 {
        self.supervisor_pid
    }

    /// How it is ended.
    #[must_use]
    pub fn ladder(&self) -> Ladder {
        self.ladder
    }

    /// Asks for the ladder: INT, TERM, KILL, then the same for leftovers. The notes report the end.
    pub fn stop(&mut self) {
        self.order(ORDER_STOP);
    }

    /// Asks for KILL at once, for the program and everything below it.
    pub fn kill(&mut self) {
        // Once is enough; a supervisor that does not read must not block us.
        if !std::mem::replace(&mut self.killed, true) {
            self.order(ORDER_KILL);
        }
    }

    /// Continues a stopped supervisor.
    pub fn go_on(&self) {
        if let Some(supervisor) = &self.supervisor {
            supervisor.handle.send(Signal::CONT);
        }
    }

    fn order(&mut self, order: u8) {
        if let Some(supervisor) = &mut self.supervisor {
            self.ordered = true;
            // A dead supervisor needs no order; `finish` handles the program.
            let _ = supervisor.control.write_all(&[order]);
            // The program may have stopped it.
            supervisor.handle.send(Signal::CONT);
        }
    }

    /// Ends everything without waiting for the supervisor's report.
    fn give_up(&mut self, at_once: bool) {
        self.kill();
        if let Some(mut supervisor) = self.supervisor.take() {
            supervisor.leave_by(Instant::now() + END_LIMIT);
            sweep_program(&self.mark, self.supervisor_pid, at_once);
        }
    }

    /// Call it with the number in [`SupervisorNote::Gone`] (1 for [`SupervisorNote::Spared`]), or with `None` if the
    /// notes ended without it, or do not end. The supervisor becomes idle, or is reaped; if it has not reported that
    /// nothing is left, it is given up, and the marked processes are swept instead.
    pub fn finish(mut self, left: Option<u32>) {
        if left.is_none() {
            self.give_up(self.killed);
        } else if let Some(mut supervisor) = self.supervisor.take() {
            // A late order would be read as the next launch.
            if left == Some(0) && !self.ordered {
                supervisor.rest();
            } else {
                supervisor.leave_by(Instant::now() + END_LIMIT);
            }
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.give_up(true);
    }
}

/// Waits for a supervisor's first report.
fn speaks(supervisor: &Supervisor) -> bool {
    let deadline = Instant::now() + START_LIMIT;
    while Instant::now() < deadline {
        match is_ready_by(&supervisor.control, PollFlags::IN, Instant::now() + START_LOOK) {
            Ok(false) => supervisor.handle.send(Signal::CONT),
            _ => return true,
        }
    }
    false
}
