//! What is drawn: lines that stay, and below them a few that are drawn anew with every change.

use anyhow::Context as _;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, Write as _};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// A terminal in raw mode. It is given back as it was when this is dropped.
pub(super) struct Canvas {
    before: Termios,
    alternate: bool,
    /// How many of its lines are drawn anew.
    live: usize,
    /// The latest of them, and the terminal's width then.
    drawn: (Vec<String>, usize),
}

impl Canvas {
    /// Takes the terminal on stdin and stdout.
    pub(super) fn open(alternate: bool) -> anyhow::Result<Self> {
        let before = tcgetattr(io::stdin()).context("my input is no terminal")?;
        let mut raw = before.clone();
        raw.make_raw();
        // The terminal's own line ends are kept.
        raw.output_modes = before.output_modes;
        raw.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).context("cannot set the terminal")?;
        let canvas = Self { before, alternate, live: 0, drawn: (Vec::new(), 0) };
        put(if alternate { "\x1b[?1049h\x1b[H\x1b[?2004h" } else { "\x1b[?2004h" })?;
        Ok(canvas)
    }

    fn width() -> usize {
        tcgetwinsize(io::stdout()).map_or(80, |size| usize::from(size.ws_col)).max(20)
    }

    /// Draws the lines at the bottom, unless they are there.
    pub(super) fn draw(&mut self, lines: &[String]) -> anyhow::Result<()> {
        let width = Self::width();
        if self.drawn.0 == lines && self.drawn.1 == width && self.live > 0 {
            return Ok(());
        }
        let text = self.cleared();
        let rows: Vec<String> = lines.iter().flat_map(|line| wrapped(line, width)).collect();
        self.live = rows.len();
        self.drawn = (lines.to_vec(), width);
        put(&(text + &rows.join("\n")))
    }

    /// Adds lines that stay, above those at the bottom, which are to be drawn next.
    pub(super) fn say(&mut self, text: &str) -> anyhow::Result<()> {
        let width = Self::width();
        let rows: String = text.lines().flat_map(|line| wrapped(line, width)).map(|row| row + "\n").collect();
        let cleared = self.cleared();
        self.live = 0;
        put(&(cleared + &rows))
    }

    /// Clears all of it.
    pub(super) fn clear(&mut self) -> anyhow::Result<()> {
        self.live = 0;
        put("\x1b[2J\x1b[H")
    }

    /// A rule as wide as the terminal.
    pub(super) fn rule() -> String {
        "─".repeat(Self::width())
    }

    /// What clears the lines at the bottom.
    fn cleared(&self) -> String {
        match self.live {
            0 => String::new(),
            1 => "\r\x1b[J".to_owned(),
            rows => format!("\r\x1b[{}A\x1b[J", rows - 1),
        }
    }
}

impl Drop for Canvas {
    fn drop(&mut self) {
        // Nothing is left to be done about a terminal that is gone.
        let _ = put(if self.alternate { "\x1b[?2004l\x1b[?1049l" } else { "\x1b[?2004l\r\n" });
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

fn put(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to the terminal")
}

/// A line in pieces that fit; further ones keep its margin.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    /// A narrower terminal has no room for margins.
    const MARGIN: usize = 8;
    let margin = " ".repeat(line.len() - line.trim_start().len()).chars().take(MARGIN).collect::<String>();
    let mut rows = vec![String::new()];
    for char in
        line.chars().map(|char| if char == '\t' { ' ' } else { char }).filter(|char| !char.is_control())
    {
        let full = rows.last().is_some_and(|row| row.width() + char.width().unwrap_or(0) > width);
        if full {
            rows.push(margin.clone());
        }
        rows.last_mut().into_iter().for_each(|row| row.push(char));
    }
    rows
}
