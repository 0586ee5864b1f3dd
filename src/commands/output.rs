//! The one place where verbs write to stdout and stderr; a running loop has its console. Text for a terminal is cleaned of
//! escape sequences, and a message is one line everywhere. A closed pipe is no error.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use anstream::adapter::strip_bytes;
use anstream::{AutoStream, ColorChoice};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::tcgetwinsize;

use crate::job::Refused;
use crate::text::line::joined;
use crate::text::terminal::{Cleaner, clean, message};
use crate::text::wrap::wrapped;
use crate::view::fold::columns_folded;

/// How much of a file is read at once, in bytes.
const CHUNK: usize = 64 * 1024;

/// The width of stdout in cells; `None` if it is no terminal, where lines are not broken.
pub(super) fn width() -> Option<usize> {
    cells(&io::stdout())
}

/// The width of any stream in cells.
fn cells(stream: &(impl AsFd + io::IsTerminal)) -> Option<usize> {
    /// The width of terminals that do not report theirs.
    const USUAL: u16 = 80;
    if !stream.is_terminal() {
        return None;
    }
    let told = tcgetwinsize(stream).map_or(0, |size| size.ws_col);
    Some(usize::from(if told == 0 { USUAL } else { told }))
}

/// Prints to stdout in one piece. A closed pipe (`| head`) is no error.
pub(super) fn print(render: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> anyhow::Result<u8> {
    let mut text = Vec::new();
    render(&mut text)?;
    // Cleaned as a whole: a cleaning stream would write each line by itself.
    if AutoStream::choice(&io::stdout()) == ColorChoice::Never {
        text = strip_bytes(&text).into_vec();
    }
    written(write(&mut io::stdout(), &text))
}

/// Prints text for people: a line that is too long for the terminal goes on below its last column.
pub(super) fn print_for_people(render: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> anyhow::Result<u8> {
    print(|out| {
        render(out)?;
        if let Some(width) = width() {
            *out = columns_folded(&String::from_utf8_lossy(out), width).into_bytes();
        }
        Ok(())
    })
}

/// Prints what another process of ours has printed.
pub(super) fn pass(stdout: &str, stderr: &str) -> anyhow::Result<()> {
    io::stderr().write_all(stderr.as_bytes())?;
    written(write(&mut io::stdout(), stdout.as_bytes())).map(drop)
}

/// Prints to stdout, with every byte as it is if stdout is no terminal, including colours.
pub(super) fn print_as_it_is(text: &str) -> anyhow::Result<u8> {
    written(write(&mut io::stdout(), text.as_bytes()))
}

fn write(stdout: &mut impl Write, text: &[u8]) -> io::Result<()> {
    if io::stdout().is_terminal() {
        stdout.write_all(clean(&String::from_utf8_lossy(text)).as_bytes())?;
    } else {
        stdout.write_all(text)?;
    }
    stdout.flush()
}

/// Rings the bell of the terminal that messages go to; returns whether there is one.
pub(super) fn ring() -> io::Result<bool> {
    let mut stderr = io::stderr();
    if !stderr.is_terminal() {
        return Ok(false);
    }
    stderr.write_all(b"\x07").map(|()| true)
}

/// Asks the person at the terminal, and returns the answer; `None`: there is no terminal.
pub(super) fn ask(question: &str) -> io::Result<Option<String>> {
    if !io::stdin().is_terminal() {
        return Ok(None);
    }
    let mut stderr = io::stderr();
    write!(stderr, "{} ", message(question))?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(Some(answer.trim().to_owned()))
}

fn written(result: io::Result<()>) -> anyhow::Result<u8> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(not_written(error)),
        _ => Ok(0),
    }
}

/// The error of a verb whose output could not be written.
pub(super) fn not_written(error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("cannot write to stdout")
}

/// Prints many lines, one after the other; with colours only on a terminal.
pub(super) struct Stream {
    stdout: io::BufWriter<anstream::AutoStream<io::Stdout>>,
    is_terminal: bool,
    result: io::Result<()>,
}

impl Stream {
    pub(super) fn new() -> Self {
        let stdout = io::BufWriter::with_capacity(CHUNK, anstream::stdout());
        Self { stdout, is_terminal: io::stdout().is_terminal(), result: Ok(()) }
    }

    /// Prints a line for people, as [`print_for_people`] does.
    pub(super) fn line_for_people(&mut self, text: &str) -> bool {
        match width() {
            Some(width) => self.line(&columns_folded(text, width)),
            None => self.line(text),
        }
    }

    /// Returns whether stdout is still open.
    pub(super) fn line(&mut self, text: &str) -> bool {
        if self.result.is_ok() {
            self.result = if self.is_terminal {
                writeln!(self.stdout, "{}", clean(text))
            } else {
                writeln!(self.stdout, "{text}")
            };
        }
        self.result.is_ok()
    }

    /// Prints a piece of text that is safe for a terminal. Returns whether stdout is still open.
    pub(super) fn piece(&mut self, text: &str) -> bool {
        if self.result.is_ok() {
            self.result = self.stdout.write_all(text.as_bytes());
        }
        self.result.is_ok()
    }

    /// Flushes the output. Returns whether stdout is still open.
    pub(super) fn show(&mut self) -> bool {
        if self.result.is_ok() {
            self.result = self.stdout.flush();
        }
        self.result.is_ok()
    }

    pub(super) fn end(mut self) -> anyhow::Result<u8> {
        written(self.result.and_then(|()| self.stdout.flush()))
    }
}

/// A JSON array with an item on each line. It begins with the first item, so that an error before that prints nothing.
pub(super) struct Array<'a> {
    stream: &'a mut Stream,
    /// The text before the first item, until that comes.
    head: Option<String>,
    /// The last item, which waits for a comma or the end.
    last: Option<String>,
}

impl<'a> Array<'a> {
    pub(super) fn new(stream: &'a mut Stream) -> Self {
        Self::behind("", stream)
    }

    /// An array inside a larger value, after this text.
    pub(super) fn behind(before: &str, stream: &'a mut Stream) -> Self {
        Self { stream, head: Some(format!("{before}[")), last: None }
    }

    /// Returns whether stdout is still open.
    pub(super) fn item(&mut self, item: &serde_json::Value) -> bool {
        self.begin();
        match self.last.replace(item.to_string()) {
            Some(last) => self.stream.line(&(last + ",")),
            None => true,
        }
    }

    fn begin(&mut self) {
        if let Some(head) = self.head.take() {
            self.stream.line(&head);
        }
    }

    /// Returns the stream.
    pub(super) fn end(mut self) -> &'a mut Stream {
        self.begin();
        if let Some(last) = self.last {
            self.stream.line(&last);
        }
        self.stream.line("]");
        self.stream
    }
}

/// Copies files to stdout: every byte as it is, unless stdout is a terminal.
pub(super) struct Copy {
    stdout: io::StdoutLock<'static>,
    cleaner: Option<Cleaner>,
}

impl Copy {
    pub(super) fn new() -> Self {
        let stdout = io::stdout().lock();
        let cleaner = stdout.is_terminal().then(Cleaner::default);
        Self { stdout, cleaner }
    }

    /// Copies the rest of a file; `false` if stdout is closed.
    ///
    /// # Errors
    /// The outer one when stdout cannot be written, the inner one when the file cannot be read.
    pub(super) fn rest_of(&mut self, file: &mut File) -> anyhow::Result<io::Result<bool>> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let written = match file.read(&mut chunk) {
                Ok(0) => return Ok(Ok(true)),
                Ok(length) => self.put(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Ok(Err(error)),
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Ok(false)),
                written => written.map_err(not_written)?,
            }
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.cleaner {
            Some(cleaner) => self.stdout.write_all(cleaner.take(bytes).as_bytes())?,
            None => self.stdout.write_all(bytes)?,
        }
        self.stdout.flush()
    }
}

/// A message of a verb, for the terminal or for `ralph watch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// An answer.
    Answer(String),
    /// A remark.
    Remark(String),
    /// A problem.
    Warning(String),
}

impl Said {
    /// Prints it to stdout or stderr.
    pub(super) fn print(&self) {
        match self {
            Self::Answer(text) => say(text),
            Self::Remark(text) => remark(text),
            Self::Warning(text) => warn(text),
        }
    }
}

/// A line for the user.
pub(super) fn say(text: &str) {
    let _ = writeln!(anstream::stdout(), "{}", broken(text, &io::stdout()));
}

/// Waits for this time, or until stdout is closed.
pub(super) fn nobody_reads(wait: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(wait).map_err(io::Error::other)?;
    let out = io::stdout();
    let mut fds = [PollFd::new(&out, PollFlags::empty())];
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL))
}

/// A remark for the user, on stderr.
pub(super) fn remark(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", broken(text, &io::stderr()));
}

/// A line, broken between words for the terminal that it goes to.
fn broken(text: &str, stream: &(impl AsFd + io::IsTerminal)) -> String {
    let text = message(text);
    match cells(stream) {
        Some(width) => wrapped(&text, width, usize::MAX).join("\n"),
        None => text,
    }
}

/// A warning.
pub(super) fn warn(text: &str) {
    remark(&format!("warning: {text}"));
}

/// Prints an error as one line, and returns its exit code: 1 unless it has its own.
#[must_use]
pub fn report_error(error: &anyhow::Error) -> ExitCode {
    let code = error.downcast_ref::<Refused>().map_or(1, |refused| refused.code);
    remark(&format!("error: {}", joined(&format!("{error:#}"), " ")));
    ExitCode::from(code)
}
