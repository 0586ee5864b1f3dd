//! Ralph's end of a supervised program: start it, move its bytes, end it.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, IoSlice, PipeReader, PipeWriter, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Signal;

use super::handle::ProcessHandle;
use super::ladder::Ladder;
use super::note::SupervisorNote;
use super::ready::is_ready_by;
use super::supervisor::{AT, ORDER_KILL, ORDER_STOP, VERB};
use super::sweep::{RUN_MARK, SUPERVISOR_MARK, sweep_program};
use super::{OWN_EXECUTABLE, REPOSITORY_VARIABLES};

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
    /// Words before the program, by which it is started in a sandbox; empty where there is none.
    pub wrapper: Vec<OsString>,
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

impl Launch {
    /// The words that are executed: the wrapper, the program and its arguments.
    pub fn command_line(&self) -> impl Iterator<Item = &OsString> {
        self.wrapper.iter().chain([&self.program]).chain(&self.args)
    }

    /// The arguments with which our executable supervises it.
    fn supervisor_args(&self, at: Option<&Path>) -> Vec<OsString> {
        let at = at.map(|socket| [AT.into(), socket.into()]);
        let words = at.into_iter().flatten().chain([OsString::from(&self.mark)]).chain(self.ladder.to_args());
        [OsString::from(VERB)].into_iter().chain(words).chain(self.command_line().cloned()).collect()
    }

    /// The arguments with which somebody else (tmux) has our executable supervise it on a terminal, to be
    /// [accepted](Supervised::accept) at `socket`: an absolute path, and no longer than the kernel's 107 bytes. Working
    /// directory and variables are for that one to set.
    #[must_use]
    pub fn args_at(&self, socket: &Path) -> Vec<OsString> {
        self.supervisor_args(Some(socket))
    }
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
}

/// A running supervised program. Dropping it kills the program and everything below it.
#[derive(Debug)]
pub struct Supervised {
    supervisor: Supervisor,
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
        let (supervisor, control, mut pipes) =
            start_supervisor(launch).map_err(|source| StartError::supervisor(launch, source))?;
        Ok((Self::when_started(supervisor, control, &mut pipes.notes, launch)?, pipes))
    }

    /// Takes on the supervisor that was started elsewhere, with [`Launch::args_at`], and connects to `listener`. Returns
    /// when the program runs. The socket has to be in a folder that is ours alone: whoever connects is taken for the
    /// supervisor.
    ///
    /// # Errors
    /// When the program cannot be started, or no supervisor comes for half a minute.
    pub fn accept(listener: &UnixListener, launch: &Launch) -> Result<(Self, Notes), StartError> {
        let connect = || {
            if !is_ready_by(listener, PollFlags::IN, Instant::now() + START_LIMIT)? {
                return Err(io::Error::other("it never came"));
            }
            let (control, _) = listener.accept()?;
            let supervisor = Supervisor { handle: ProcessHandle::of_peer(&control)?, child: None };
            let notes = Notes::from(control.try_clone()?);
            Ok((supervisor, control, notes))
        };
        let (supervisor, control, mut notes) =
            connect().map_err(|source| StartError::supervisor(launch, source))?;
        Ok((Self::when_started(supervisor, control, &mut notes, launch)?, notes))
    }

    /// Waits until the supervisor has started the program, or could not.
    fn when_started(
        mut supervisor: Supervisor,
        control: UnixStream,
        notes: &mut Notes,
        launch: &Launch,
    ) -> Result<Self, StartError> {
        let first = if speaks(&supervisor, &control) { notes.next() } else { None };
        match first {
            Some(SupervisorNote::Started(program_pid)) => {
                let (mark, ladder) = (launch.mark.clone(), launch.ladder);
                Ok(Self { supervisor, control, mark, ladder, program_pid, killed: false, gone: false })
            }
            Some(SupervisorNote::Refused(errno)) => {
                supervisor.end_by(Instant::now() + END_LIMIT);
                let program = launch.program.to_string_lossy().into_owned();
                Err(StartError::Program { program, source: io::Error::from_raw_os_error(errno) })
            }
            _ => {
                supervisor.end_by(Instant::now());
                // It may have started the program before it was killed.
                sweep_program(&launch.mark, supervisor.handle.pid());
                Err(StartError::supervisor(launch, io::Error::other("it ended without a word")))
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
        self.supervisor.handle.pid()
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
        self.supervisor.handle.send(Signal::CONT);
    }

    /// To be called after [`SupervisorNote::Gone`] came or the notes ended: reaps the supervisor. One that ended
    /// without saying `Gone`, or does not end, is given up; then the marked processes are swept instead.
    pub fn finish(mut self, said_gone: bool) {
        self.gone = said_gone;
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if !self.gone {
            self.kill();
        }
        self.supervisor.end_by(Instant::now() + END_LIMIT);
        if !self.gone {
            sweep_program(&self.mark, self.supervisor.handle.pid());
        }
    }
}

/// The process of a supervisor.
#[derive(Debug)]
struct Supervisor {
    handle: ProcessHandle,
    /// Our child, to be reaped; `None` where somebody else has started it.
    child: Option<Child>,
}

impl Supervisor {
    fn of_child(mut child: Child) -> io::Result<Self> {
        match ProcessHandle::of_child(&child) {
            Ok(handle) => Ok(Self { handle, child: Some(child) }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Reaps it when it has ended, by `deadline` at the latest: it may have been stopped.
    fn end_by(&mut self, deadline: Instant) {
        if !self.handle.ends_by(deadline).unwrap_or(false) {
            self.handle.send(Signal::KILL);
        }
        if let Some(child) = &mut self.child {
            let _ = child.wait();
        }
    }
}

/// Starts the supervisor and hands it the program's stdin.
fn start_supervisor(launch: &Launch) -> io::Result<(Supervisor, UnixStream, Pipes)> {
    let (program_stdin, stdin) = io::pipe()?;
    let (stdout, program_stdout) = io::pipe()?;
    let (stderr, program_stderr) = io::pipe()?;
    let (control, supervisor_control) = UnixStream::pair()?;
    // The default capacity serves as well, only with more system calls.
    let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE_CAPACITY);

    let mut command = Command::new(OWN_EXECUTABLE);
    for name in REPOSITORY_VARIABLES {
        command.env_remove(name);
    }
    let child = command
        .arg0("ralph")
        .args(launch.supervisor_args(None))
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
    let mut supervisor = Supervisor::of_child(child)?;
    if let Err(error) = send_descriptor(&control, &program_stdin) {
        supervisor.end_by(Instant::now());
        return Err(error);
    }
    let notes = Notes::from(control.try_clone()?);
    Ok((supervisor, control, Pipes { stdin, stdout, stderr, notes }))
}

/// Waits for a supervisor's first words.
fn speaks(supervisor: &Supervisor, control: &UnixStream) -> bool {
    let deadline = Instant::now() + START_LIMIT;
    while Instant::now() < deadline {
        match is_ready_by(control, PollFlags::IN, Instant::now() + START_LOOK) {
            Ok(false) => supervisor.handle.send(Signal::CONT),
            _ => return true,
        }
    }
    false
}

fn send_descriptor(control: &UnixStream, descriptor: &PipeReader) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(control, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapper_stands_before_the_program() {
        let words = |words: &[&str]| words.iter().map(Into::into).collect::<Vec<OsString>>();
        let mut launch = Launch { program: "cat".into(), args: words(&["-n", "file"]), ..Launch::default() };
        assert!(launch.command_line().eq(&words(&["cat", "-n", "file"])));
        launch.wrapper = words(&["box", "--"]);
        assert!(launch.command_line().eq(&words(&["box", "--", "cat", "-n", "file"])));
        let (plain, at) = (launch.supervisor_args(None), launch.args_at(Path::new("/socket")));
        assert_eq!(plain, words(&[VERB, "", "3000", "2000", "box", "--", "cat", "-n", "file"]));
        assert_eq!(at[1..3], words(&[AT, "/socket"]));
        assert_eq!((&at[..1], &at[3..]), (&plain[..1], &plain[1..]));
    }
}
