//! Ralph's end of a supervised program: start it, move its bytes, end it.

use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::Signal;

use super::ladder::Ladder;
use super::launch::{self, Launch};
use super::note::SupervisorNote;
use super::pool::Supervisor;
use super::ready::is_ready_by;
use super::supervisor::{ORDER_KILL, ORDER_STOP};
use super::sweep::sweep_program;

/// Pipe capacity asked of the kernel: fewer and larger reads where a program writes a lot.
const PIPE_CAPACITY: usize = 1024 * 1024;
/// How long the supervisor may take to say whether the program started.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How often a supervisor that has not said so is told to go on: the program may have stopped it by then.
const START_LOOK: Duration = Duration::from_millis(100);
/// How often a supervisor is started: a Ctrl+C at the terminal can end one that has not left our process group yet.
const START_TRIES: u32 = 3;
/// How long the supervisor may take to end what is left when there is no time to ask it for a ladder.
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
    /// There is no room for the threads that serve it.
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

    /// What the system said.
    #[must_use]
    pub fn into_source(self) -> io::Error {
        match self {
            Self::Program { source, .. } | Self::Thread { source, .. } | Self::Supervisor { source, .. } => {
                source
            }
        }
    }

    /// There is no room for the threads that serve `launch`.
    #[must_use]
    pub fn thread(launch: &Launch, source: io::Error) -> Self {
        Self::Thread { program: launch.program.to_string_lossy().into_owned(), source }
    }

    fn program(launch: &Launch, source: io::Error) -> Self {
        Self::Program { program: launch.program.to_string_lossy().into_owned(), source }
    }

    /// The system's error number does not tell what it was that was not found.
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
    /// Something has been ordered.
    ordered: bool,
    /// KILL has been ordered.
    killed: bool,
}

/// The three pipes of a program and the notes of its supervisor, each to be served by a thread of its own.
#[derive(Debug)]
pub struct Pipes {
    /// Where the prompt goes.
    pub stdin: PipeWriter,
    /// What the program prints.
    pub stdout: PipeReader,
    /// What it complains about.
    pub stderr: PipeReader,
    /// What the supervisor says.
    pub notes: Notes,
}

/// The supervisor's notes as they come.
#[derive(Debug)]
pub struct Notes {
    reader: BufReader<UnixStream>,
    /// The last one has come.
    over: bool,
}

impl From<UnixStream> for Notes {
    /// The notes that come by this socket.
    fn from(socket: UnixStream) -> Self {
        Self { reader: BufReader::new(socket), over: false }
    }
}

impl Notes {
    /// Whether the last one has come.
    pub(super) fn are_over(&self) -> bool {
        self.over
    }
}

impl Iterator for Notes {
    type Item = SupervisorNote;

    /// Blocks for the next note; `None` after the last, [`SupervisorNote::Gone`], or when the supervisor is gone.
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
        let message = launch.to_message().map_err(|source| StartError::program(launch, source))?;
        let (their_stdin, stdin) = io::pipe().map_err(failed)?;
        let (stdout, their_stdout) = io::pipe().map_err(failed)?;
        let (stderr, their_stderr) = io::pipe().map_err(failed)?;
        // The default capacity serves as well, only with more system calls.
        let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE_CAPACITY);
        let descriptors = [their_stdin.as_fd(), their_stdout.as_fd(), their_stderr.as_fd()];
        let (supervised, notes) = Self::begin(supervisor().map_err(failed)?, launch, &message, &descriptors)?;
        Ok((supervised, Pipes { stdin, stdout, stderr, notes }))
    }

    /// Has a supervisor start the program, and waits until it has, or could not.
    fn begin(
        mut supervisor: Supervisor,
        launch: &Launch,
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
                let source = result.err().unwrap_or_else(|| {
                    io::Error::other("the process that supervises it was killed before it had said a word")
                });
                Err(StartError::supervisor(launch, source))
            }
        }
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

    /// Asks for the ladder: INT, TERM, KILL, then all that is left. The notes tell when it is done.
    pub fn stop(&mut self) {
        self.order(ORDER_STOP);
    }

    /// Asks for KILL at once, for the program and everything below it.
    pub fn kill(&mut self) {
        // Once is enough; a supervisor that does not listen must not block us.
        if !std::mem::replace(&mut self.killed, true) {
            self.order(ORDER_KILL);
        }
    }

    /// Continues a supervisor that somebody has stopped.
    pub fn go_on(&self) {
        if let Some(supervisor) = &self.supervisor {
            supervisor.handle.send(Signal::CONT);
        }
    }

    fn order(&mut self, order: u8) {
        if let Some(supervisor) = &mut self.supervisor {
            self.ordered = true;
            // A supervisor that is gone needs no order, and `finish` finds out what became of the program.
            let _ = supervisor.control.write_all(&[order]);
            // The program may have stopped it.
            supervisor.handle.send(Signal::CONT);
        }
    }

    /// Ends everything without the supervisor's word that it is gone.
    fn give_up(&mut self, at_once: bool) {
        self.kill();
        if let Some(mut supervisor) = self.supervisor.take() {
            supervisor.leave_by(Instant::now() + END_LIMIT);
            sweep_program(&self.mark, self.supervisor_pid, at_once);
        }
    }

    /// To be called with what [`SupervisorNote::Gone`] said (1 for [`SupervisorNote::Spared`]), or with `None` when the notes ended without it, or do not come
    /// to an end: the supervisor waits for its next program, or is reaped; if it has not said that nothing is left, it is
    /// given up, and the marked processes are swept instead.
    pub fn finish(mut self, left: Option<u32>) {
        if left.is_none() {
            self.give_up(self.killed);
        } else if let Some(mut supervisor) = self.supervisor.take() {
            // An order that came too late would be taken for the next launch.
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

/// Waits for a supervisor's first words.
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
