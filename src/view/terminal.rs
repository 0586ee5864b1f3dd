//! Standard output and standard error, and the status line on them where they are a terminal.

use std::io::{IsTerminal as _, Write};
use std::time::Instant;

use anstream::adapter::strip_str;
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use rustix::termios::{tcgetpgrp, tcgetwinsize};

use super::console::Target;
use super::status_area::StatusArea;
use super::status_line::StatusLine;

/// Where the width of the terminal is not known.
const USUAL_WIDTH: usize = 80;

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

    /// Whether the status line is there at this moment.
    pub(super) fn has_status(&self) -> bool {
        self.area.as_ref().is_some_and(StatusArea::is_drawn)
    }

    /// Writes text in the place of the status line, which is gone then.
    pub(super) fn write(&mut self, target: Target, text: &str) {
        self.erase();
        match target {
            Target::Stdout => self.stdout.write(text),
            Target::Stderr => self.stderr.write(text),
        }
        if let Some(area) = &mut self.area
            && (target == Target::Stderr || self.shared)
        {
            area.wrote(text, width());
        }
    }

    /// Draws the status line anew, or takes it away.
    pub(super) fn show_status(&mut self, status: Option<&StatusLine>) {
        // A loop in the background leaves the terminal to whatever is in front.
        let Some(status) = status.filter(|_| is_in_front()) else { return self.erase() };
        let Some(area) = &mut self.area else { return };
        let width = width();
        // The last column stays free: a full row would make the terminal wrap.
        let text = status.text(Instant::now(), width.saturating_sub(1));
        let line = if self.stderr.plain { text } else { format!("\x1b[2m{text}\x1b[0m") };
        match area.draw(&line, width) {
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

/// Where that cannot be told, nobody else is in front.
fn is_in_front() -> bool {
    tcgetpgrp(std::io::stderr()).map_or(true, |front| front == rustix::process::getpgrp())
}

/// Asked for every time: terminals are resized.
fn width() -> usize {
    let width = tcgetwinsize(std::io::stderr()).map(|size| usize::from(size.ws_col)).unwrap_or_default();
    if width == 0 { USUAL_WIDTH } else { width }
}

/// One of our two streams.
struct Stream<W> {
    /// `None`: its reader is gone (`| head`, a closed terminal), and stays gone.
    writer: Option<W>,
    /// Its reader is no terminal that shows colours, or `NO_COLOR` is set.
    plain: bool,
}

impl<W: Write + RawStream> Stream<W> {
    fn new(writer: W) -> Self {
        let plain = AutoStream::choice(&writer) == ColorChoice::Never;
        Self { writer: Some(writer), plain }
    }

    fn write(&mut self, text: &str) {
        let Some(writer) = &mut self.writer else { return };
        let written = if self.plain {
            writer.write_all(strip_str(text).to_string().as_bytes())
        } else {
            writer.write_all(text.as_bytes())
        };
        if written.and_then(|()| writer.flush()).is_err() {
            self.writer = None;
        }
    }
}
