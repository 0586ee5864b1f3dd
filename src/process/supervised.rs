//! Ralph's end of a supervised program: start it, move its bytes, end it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, IoSlice, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::ladder::Ladder;
use super::supervisor::{ORDER_KILL, ORDER_STOP, SupervisorNote, VERB};
use super::sweep::{RUN_MARK, SUPERVISOR_MARK, sweep_program};
use super::{OWN_EXECUTABLE, REPOSITORY_VARIABLES};

/// How many bytes one read of a program's output takes at most. More would save few system calls, but what is read
/// would be gone from the processor's cache before it is written and decoded.
const CHUNK: usize = 64 * 1024;
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

/// What to start.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// Program name (looked up on `PATH`) or path (relative to `cwd`).
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Variables set on top of our own environment, less those that point git at a repository: it works on the one
    /// it is started in.
    pub env: Vec<(OsString, OsString)>,
    /// The run mark of the loop, see [`super::sweep`].
    pub mark: String,
    /// How it is ended.
    pub ladder: Ladder,
}

/// A program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The operating system refused to run the program.
    #[error("cannot start '{program}': {source}")]
    Program {
        /// The program as configured.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// No supervisor could be started for it.
    #[error("cannot start the supervisor process for '{program}': {source}")]
    Supervisor {
        /// The program as configured.
        program: String,
        /// Why.
        source: std::io::Error,
    },
}

/// A running supervised program. Dropping it kills the program and everything below it.
#[derive(Debug)]
pub struct Supervised {
    supervisor: Child,
    control: UnixStream,
    mark: String,
    ladder: Ladder,
    program_pid: u32,
    /// KILL has been ordered.
    killed: bool,
    gone: bool,
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
pub struct Notes(BufReader<UnixStream>);

impl From<UnixStream> for Notes {
    /// The notes that come by this socket.
    fn from(socket: UnixStream) -> Self {
        Self(BufReader::new(socket))
    }
}

impl Iterator for Notes {
    type Item = SupervisorNote;

    /// Blocks for the next note; `None` when the supervisor is gone.
    fn next(&mut self) -> Option<SupervisorNote> {
        let mut line = String::new();
        self.0.read_line(&mut line).ok()?;
        SupervisorNote::parse(&line)
    }
}

impl Supervised {
    /// Starts `launch` under a supervisor of its own and returns when the program runs.
    ///
    /// # Errors
    /// When the program or its supervisor cannot be started; nothing is left running then.
    pub fn start(launch: &Launch) -> Result<(Self, Pipes), StartError> {
        for _ in 1..START_TRIES {
            match Self::try_start(launch) {
                Err(StartError::Supervisor { .. }) => {}
                result => return result,
            }
        }
        Self::try_start(launch)
    }

    fn try_start(launch: &Launch) -> Result<(Self, Pipes), StartError> {
        let program = || launch.program.to_string_lossy().into_owned();
        let no_supervisor = |source| StartError::Supervisor { program: program(), source };

        let (mut supervisor, control, mut pipes) = start_supervisor(launch).map_err(no_supervisor)?;
        let first = if speaks(&supervisor, &control) { pipes.notes.next() } else { None };
        match first {
            Some(SupervisorNote::Started(program_pid)) => {
                let (mark, ladder) = (launch.mark.clone(), launch.ladder);
                Ok((
                    Self { supervisor, control, mark, ladder, program_pid, killed: false, gone: false },
                    pipes,
                ))
            }
            other => {
                let _ = supervisor.kill();
                let _ = supervisor.wait();
                if let Some(SupervisorNote::Refused(errno)) = other {
                    let source = std::io::Error::from_raw_os_error(errno);
                    return Err(StartError::Program { program: program(), source });
                }
                // It may have started the program before it was killed.
                sweep_program(&launch.mark, supervisor.id());
                Err(no_supervisor(std::io::Error::other("it ended without a word")))
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
        self.supervisor.id()
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

    fn order(&mut self, order: u8) {
        // A supervisor that is gone needs no order, and `finish` finds out what became of the program.
        let _ = self.control.write_all(&[order]);
        // The program may have stopped it.
        let _ = kill_process(Pid::from_child(&self.supervisor), Signal::CONT);
    }

    /// To be called after [`SupervisorNote::Gone`] came or the notes ended: reaps the supervisor. One that ended
    /// without saying `Gone`, or does not end, is given up; then the marked processes are swept instead.
    pub fn finish(mut self, said_gone: bool) {
        self.gone = said_gone;
    }

    /// Waits for the supervisor to end, for a limited time: it may have been stopped.
    fn wait_for_supervisor(&mut self) {
        let deadline = Instant::now() + END_LIMIT;
        if let Ok(ended) = pidfd_open(Pid::from_child(&self.supervisor), PidfdFlags::empty()) {
            let poll_once = || {
                let left = deadline.saturating_duration_since(Instant::now());
                poll(&mut [PollFd::new(&ended, PollFlags::IN)], Timespec::try_from(left).ok().as_ref())
            };
            while poll_once() == Err(rustix::io::Errno::INTR) {}
        }
        if !matches!(self.supervisor.try_wait(), Ok(Some(_))) {
            let _ = self.supervisor.kill();
            let _ = self.supervisor.wait();
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if !self.gone {
            self.kill();
        }
        self.wait_for_supervisor();
        if !self.gone {
            sweep_program(&self.mark, self.supervisor.id());
        }
    }
}

/// Starts the supervisor and hands it the program's stdin.
fn start_supervisor(launch: &Launch) -> std::io::Result<(Child, UnixStream, Pipes)> {
    let (program_stdin, stdin) = std::io::pipe()?;
    let (stdout, program_stdout) = std::io::pipe()?;
    let (stderr, program_stderr) = std::io::pipe()?;
    let (control, supervisor_control) = UnixStream::pair()?;
    // The default capacity serves as well, only with more system calls.
    let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE_CAPACITY);

    let mut supervisor = Command::new(OWN_EXECUTABLE);
    for name in REPOSITORY_VARIABLES {
        supervisor.env_remove(name);
    }
    let mut supervisor = supervisor
        .arg0("ralph")
        .arg(VERB)
        .arg(&launch.mark)
        .args(launch.ladder.to_args())
        .arg(&launch.program)
        .args(&launch.args)
        .current_dir(&launch.cwd)
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        // Those of a loop around us, whose agent we are.
        .env_remove(RUN_MARK)
        .env_remove(SUPERVISOR_MARK)
        .stdin(OwnedFd::from(supervisor_control))
        .stdout(program_stdout)
        .stderr(program_stderr)
        // Not in reach of a Ctrl+C at the terminal, from the first moment on.
        .process_group(0)
        .spawn()?;
    if let Err(error) = send_descriptor(&control, &program_stdin) {
        let _ = supervisor.kill();
        let _ = supervisor.wait();
        return Err(error);
    }
    let notes = Notes::from(control.try_clone()?);
    Ok((supervisor, control, Pipes { stdin, stdout, stderr, notes }))
}

/// Waits for a supervisor's first words.
fn speaks(supervisor: &Child, control: &UnixStream) -> bool {
    let deadline = Instant::now() + START_LIMIT;
    let look = Timespec::try_from(START_LOOK).ok();
    while Instant::now() < deadline {
        match poll(&mut [PollFd::new(control, PollFlags::IN)], look.as_ref()) {
            Ok(0) => drop(kill_process(Pid::from_child(supervisor), Signal::CONT)),
            Err(rustix::io::Errno::INTR) => {}
            _ => return true,
        }
    }
    false
}

fn send_descriptor(control: &UnixStream, descriptor: &PipeReader) -> std::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(control, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

/// Reads `pipe` to its end and hands every chunk to `take`, until `take` answers `false` or the other end of
/// `stop` is closed. A stranger that holds the pipe open can therefore not hold us.
pub fn pump(mut pipe: PipeReader, stop: &UnixStream, mut take: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; CHUNK];
    loop {
        let mut descriptors = [PollFd::new(&pipe, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut descriptors, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        if descriptors[0].revents().is_empty() {
            return;
        }
        match pipe.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                if !take(&buffer[..count]) {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
