//! `--detach`: the loop goes on in a process of its own that has no terminal.
//!
//! That process writes into pipes of the one that has started it, until its loop has begun, which its first records say: what
//! refuses it is shown there, and is that process's end. Ctrl+C reaches both until then. From then on its lines go into the folder
//! of its run, and it has a session of its own.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::Context as _;
use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdout};

use crate::engine::context::Sink;
use crate::engine::event::Stamped;
use crate::engine::fact::Fact;
use crate::engine::outcome::{End, Outcome};
use crate::files::{FileError, own};
use crate::platform::calls::own_executable;
use crate::tell::words::in_background;

/// The flag of the user.
pub(crate) const DETACH: &str = "--detach";
/// What stands in its place on the command line of the process that runs the loop.
pub(crate) const DETACHED: &str = "--detached";
/// The file of its lines, in the folder of its run.
const LINES: &str = "output.log";
/// The last byte that the process writes into the pipes: its loop has begun, and it goes on without them.
const GOES_ON: u8 = 0;

/// Starts this command line in the background and shows its output until its loop has begun. Returns 0 then, or its exit code if it
/// has ended before.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn start(argv: impl Iterator<Item = OsString>) -> anyhow::Result<u8> {
    let mut argv = argv.collect::<Vec<_>>().into_iter();
    let program = argv.next().unwrap_or_default();
    let mut is_ours = true;
    let words = argv.map(|word| {
        is_ours &= word != "--";
        if is_ours && word == DETACH { DETACHED.into() } else { word }
    });
    let mut command = Command::new(own_executable());
    std::os::unix::process::CommandExt::arg0(&mut command, program);
    // A pipe may have what the verb reads; a terminal is not there for it any more.
    let stdin = if io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() };
    command.args(words).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start the loop in the background")?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let goes_on = thread::scope(|scope| {
        let errors = scope.spawn(|| pass_on(stderr, io::stderr()));
        pass_on(stdout, io::stdout()) | errors.join().unwrap_or_default()
    });
    if goes_on {
        return Ok(0);
    }
    let status = child.wait().context("cannot read the exit code of the loop in the background")?;
    let code = status.code().context("the loop was killed before it began: start it again")?;
    Ok(u8::try_from(code).unwrap_or(1))
}

/// Copies a pipe as it comes, as far as it can be shown. Returns whether it ends with [`GOES_ON`].
fn pass_on(from: Option<impl Read>, mut to: impl Write) -> bool {
    let Some(mut from) = from else { return false };
    let (mut buffer, mut goes_on) = ([0; 4096], false);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let text = buffer[..count].strip_suffix(&[GOES_ON]);
        goes_on = text.is_some();
        let _ = to.write_all(text.unwrap_or(&buffer[..count])).and_then(|()| to.flush());
    }
    goes_on
}

/// A listener that [leaves the terminal](leave_terminal) when the records say that the loop has begun.
pub(crate) fn when_begun<'a>(folder: PathBuf, name: String, json: bool) -> Sink<'a> {
    Box::new(move |stamped: &Stamped<'_>| match stamped.fact {
        Fact::LoopStarted { .. } => leave_terminal(&folder, Some(&name), json),
        _ => Ok(()),
    })
}

/// Says how this loop is found, by its name unless there are many, and writes into `folder`, that of its run, from here on. What
/// happens to the terminal does not reach this process any more.
///
/// # Errors
/// If the file of its lines cannot be written, or if the process that has started it was stopped: its user does not want the loop.
pub(crate) fn leave_terminal(folder: &Path, name: Option<&str>, json: bool) -> Result<(), End> {
    let path = folder.join(LINES);
    let file =
        own::open(&path, OpenOptions::new().create(true).append(true)).map_err(FileError::at(&path))?;
    let told = in_background(name, &path);
    let mut pipe: Box<dyn Write> = if json { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
    let is_told = pipe.write_all(&[told.as_bytes(), &[GOES_ON]].concat()).and_then(|()| pipe.flush());
    // It fails where this process leads a session already.
    let _ = setsid();
    let at_path = |error: rustix::io::Errno| FileError::at(&path)(error.into());
    dup2_stdout(&file).map_err(at_path)?;
    dup2_stderr(&file).map_err(at_path)?;
    is_told.map_err(|_| {
        let why = "the process that started it in the background was stopped before it had begun";
        End::because(Outcome::Interrupted, why)
    })
}
