//! Standard output and standard error, and the status lines on them where they are a terminal.

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

/// Rows and columns, where those of the terminal are not known.
const USUAL_SIZE: (usize, usize) = (24, 80);

/// Where text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Both streams, as the writing thread has them.
pub(super) struct Terminal {
    stdout: Stream<std::io::Stdout>,
    stderr: Stream<std::io::Stderr>,
    /// Standard output goes to a terminal, too: the same one.
    shared: bool,
    /// Not on what is no terminal.
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

    /// Whether the status lines are there at this moment.
    pub(super) fn has_status(&self) -> bool {
        self.area.as_ref().is_some_and(StatusArea::is_drawn)
    }

    /// Writes text in the place of the status lines, which are gone then. After an error nothing more is written to that stream.
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

    /// Rings the bell of the terminal that messages go to; without one nothing is heard.
    pub(super) fn ring(&mut self) {
        self.stderr.ring();
    }

    /// Draws the status lines anew, or takes them away.
    pub(super) fn show_status(&mut self, board: &StatusBoard) {
        // Loops in the background leave the terminal to whatever is in front.
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

    /// Past the stream that takes colours out where they are not wanted: it would take cursor movements out as well.
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

/// Whether a person reads standard output, as far as that can be told.
pub(super) fn is_for_person() -> bool {
    std::io::stdout().is_terminal()
}

/// How many cells a row has where text for this target goes to a terminal; `None` where it goes elsewhere.
pub(super) fn width_of(target: Target) -> Option<usize> {
    let is_terminal = match target {
        Target::Stdout => std::io::stdout().is_terminal(),
        Target::Stderr => std::io::stderr().is_terminal(),
    };
    is_terminal.then(|| size().1)
}

/// Where that cannot be told, nobody else is in front.
fn is_in_front() -> bool {
    group::is_in_front(std::io::stderr()).unwrap_or(true)
}

/// Rows and columns. Asked for every time: terminals are resized.
pub(super) fn size() -> (usize, usize) {
    let known = |cells: u16, usual| if cells == 0 { usual } else { usize::from(cells) };
    tcgetwinsize(std::io::stderr())
        .or_else(|_| tcgetwinsize(std::io::stdout()))
        .map_or(USUAL_SIZE, |size| (known(size.ws_row, USUAL_SIZE.0), known(size.ws_col, USUAL_SIZE.1)))
}

/// One of our two streams.
struct Stream<W> {
    /// `None`: its reader is gone (`| head`, a closed terminal), and stays gone.
    writer: Option<W>,
    /// Its reader is no terminal that shows colours, or `NO_COLOR` is set.
    plain: bool,
    /// Its reader is a terminal.
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
        // Whoever wrote it: nothing but colours gets through.
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
