//! Standard output and standard error, with the status lines if they are a terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};
use std::time::Instant;

use anstream::adapter::strip_str;
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use rustix::termios::tcgetwinsize;

use super::status_area::StatusArea;
use super::status_board::StatusBoard;
use crate::process::group;
use crate::text::terminal::clean;

/// Rows and columns, if those of the terminal are unknown.
const USUAL_SIZE: (usize, usize) = (24, 80);
/// The most rows and columns of a terminal.
const LARGEST: (u16, u16) = (1000, 2000);

/// The target of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Both streams of the writing thread.
pub(super) struct Terminal {
    stdout: Stream<std::io::Stdout>,
    stderr: Stream<std::io::Stderr>,
    /// Whether standard output goes to that terminal, too.
    shared: bool,
    /// `None` without a terminal.
    area: Option<StatusArea>,
}

impl Terminal {
    pub(super) fn new() -> Self {
        Self {
            stdout: Stream::new(std::io::stdout()),
            stderr: Stream::new(std::io::stderr()),
            shared: std::io::stdout().is_terminal(),
            area: can_show_status().then(StatusArea::default),
        }
    }

    /// Whether the status lines are visible.
    pub(super) fn has_status(&self) -> bool {
        self.area.as_ref().is_some_and(StatusArea::is_drawn)
    }

    /// Writes text in place of the status lines, which are erased. After an error nothing more is written to that stream.
    pub(super) fn write(&mut self, target: Target, text: &str) -> io::Result<()> {
        self.erase();
        let written = match target {
            Target::Stdout => self.stdout.write(text),
            Target::Stderr => self.stderr.write(text),
        };
        if let Some(area) = &mut self.area
            && (target == Target::Stderr || self.shared)
        {
            area.wrote(text, size().1);
        }
        written
    }

    /// Rings the bell of the terminal that messages go to, if there is one.
    pub(super) fn ring(&mut self) {
        self.stderr.ring();
    }

    /// Draws or erases the status lines.
    pub(super) fn show_status(&mut self, board: &StatusBoard) {
        // Loops in the background leave the terminal to the foreground process.
        if board.is_empty() || !is_in_front() {
            return self.erase();
        }
        let Some(area) = &mut self.area else { return };
        let (rows, width) = size();
        // The last column stays free: a full row would make the terminal wrap.
        let mut lines = board.lines(Instant::now(), rows, width.saturating_sub(1));
        if !self.stderr.plain {
            for line in &mut lines {
                *line = format!("\x1b[2m{line}\x1b[0m");
            }
        }
        match area.draw(&lines, width) {
            Some(draw) => self.control(&draw),
            None => self.erase(),
        }
    }

    fn erase(&mut self) {
        if let Some(erase) = self.area.as_mut().and_then(StatusArea::erase) {
            self.control(erase);
        }
    }

    /// Written past the stream that removes unwanted colours, because it would also remove cursor movements.
    fn control(&mut self, sequence: &str) {
        let mut stderr = std::io::stderr();
        if stderr.write_all(sequence.as_bytes()).and_then(|()| stderr.flush()).is_err() {
            self.area = None;
        }
    }
}

/// Whether standard error is a terminal that understands cursor movements.
pub(super) fn can_show_status() -> bool {
    let term = std::env::var("TERM").unwrap_or_default();
    std::io::stderr().is_terminal() && !matches!(term.as_str(), "" | "dumb")
}

/// Whether standard output is a terminal that a person reads.
pub(super) fn is_for_person() -> bool {
    std::io::stdout().is_terminal()
}

/// The width of the terminal of this target, in cells; `None` if it is no terminal.
pub(super) fn width_of(target: Target) -> Option<usize> {
    let is_terminal = match target {
        Target::Stdout => std::io::stdout().is_terminal(),
        Target::Stderr => std::io::stderr().is_terminal(),
    };
    is_terminal.then(|| size().1)
}

/// If that is unknown, we count as the foreground process.
fn is_in_front() -> bool {
    group::is_in_front(std::io::stderr()).unwrap_or(true)
}

/// Rows and columns, read every time, because terminals are resized.
pub(super) fn size() -> (usize, usize) {
    let known = |cells: u16, usual| if cells == 0 { usual } else { usize::from(cells) };
    let told = tcgetwinsize(std::io::stderr()).or_else(|_| tcgetwinsize(std::io::stdout()));
    told.map_or(USUAL_SIZE, |size| {
        let (rows, columns) = believable(size.ws_row, size.ws_col);
        (known(rows, USUAL_SIZE.0), known(columns, USUAL_SIZE.1))
    })
}

/// The rows and columns of a terminal, at most those of a real screen, because each cell takes memory.
pub(crate) fn believable(rows: u16, columns: u16) -> (u16, u16) {
    (rows.min(LARGEST.0), columns.min(LARGEST.1))
}

/// One of our two streams.
struct Stream<W> {
    /// `None`: its reader is gone for good (`| head`, a closed terminal).
    writer: Option<W>,
    /// Whether colours are removed: its reader is no terminal with colours, or `NO_COLOR` is set.
    plain: bool,
    /// Whether its reader is a terminal.
    is_terminal: bool,
}

impl<W: Write + RawStream> Stream<W> {
    fn new(writer: W) -> Self {
        let plain = AutoStream::choice(&writer) == ColorChoice::Never;
        let is_terminal = writer.is_terminal();
        Self { writer: Some(writer), plain, is_terminal }
    }

    fn ring(&mut self) {
        let Some(writer) = self.writer.as_mut().filter(|_| self.is_terminal) else { return };
        if writer.write_all(b"\x07").and_then(|()| writer.flush()).is_err() {
            self.writer = None;
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        // From any source, only colours get through.
        let text = if self.is_terminal { Cow::Owned(clean(text)) } else { Cow::Borrowed(text) };
        let written = if self.plain {
            writer.write_all(strip_str(&text).to_string().as_bytes())
        } else {
            writer.write_all(text.as_bytes())
        };
        let written = written.and_then(|()| writer.flush());
        if written.is_err() {
            self.writer = None;
        }
        written
    }
}
