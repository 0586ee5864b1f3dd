//! The terminal of `ralph watch`: taken over as a whole, and restored however it ends.

use std::io::{self, BufWriter, Write as _};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;

use chrono::Local;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::QueueableCommand as _;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::style::ResetColor;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::process::{Signal, kill_current_process_group};
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;

use super::events::{Events, Tty};
use super::marker::Marker;
use crate::view::terminal::believable;
use crate::view::watch::draw;
use crate::view::watch::model::Model;

/// The earlier mode of the terminal while it is taken over, and the thread that uses it, for a panic.
static TAKEN: Mutex<Option<(Termios, ThreadId)>> = Mutex::new(None);

/// The terminal.
pub(super) struct Screen {
    /// Never dropped: it would write to a terminal that may be gone, and panic.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Tty>>>>,
    colour: bool,
    marker: Marker,
}

impl Screen {
    /// Takes the terminal over. `marks` notes that, for the next command after a `kill -9`.
    pub(super) fn open(marks: Option<PathBuf>, events: &Events) -> io::Result<Self> {
        restore_in_panics();
        let tty = BufWriter::with_capacity(32 << 10, Tty::new(events.is_ended()));
        // It would use any size that the terminal reports.
        let options = TerminalOptions { viewport: Viewport::Fixed(Rect::default()) };
        let terminal = ManuallyDrop::new(Terminal::with_options(CrosstermBackend::new(tty), options)?);
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let mut screen = Self { terminal, colour, marker: Marker::of_terminal(marks) };
        screen.enter()?;
        Ok(screen)
    }

    /// Takes the terminal over, also if another program has changed it meanwhile.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        // The earlier mode is known if only another program was shown in between.
        let before = taken().as_ref().map(|(before, _)| before.clone());
        let before = before.map_or_else(|| tcgetattr(stdin()), Ok)?;
        let mut raw = before.clone();
        raw.make_raw();
        self.marker.set();
        *taken() = Some((before, std::thread::current().id()));
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        let out = self.terminal.backend_mut();
        out.queue(EnterAlternateScreen)?.queue(EnableBracketedPaste)?.queue(Hide)?;
        io::Write::flush(out)?;
        self.clear()
    }

    /// Restores the terminal.
    pub(super) fn leave(&mut self) {
        restore();
        self.marker.unset();
    }

    /// Draws everything again next time.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        // `Terminal::clear` would ask the terminal for its cursor position, and wait for an answer among the keys.
        let area = self.area()?;
        self.terminal.resize(area)
    }

    fn area(&self) -> io::Result<Rect> {
        let size = self.terminal.size()?;
        let (height, width) = believable(size.height, size.width);
        Ok(Rect { height, width, ..Rect::default() })
    }

    /// Draws what has changed.
    pub(super) fn draw(&mut self, model: &mut Model) -> io::Result<()> {
        let (area, colour) = (self.area()?, self.colour);
        if area != self.terminal.get_frame().area() {
            self.terminal.resize(area)?;
        }
        self.terminal.draw(|frame| draw(model, colour, Local::now(), frame)).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

fn taken() -> std::sync::MutexGuard<'static, Option<(Termios, ThreadId)>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the terminal if it is taken over. For one that takes nothing more, only the mode is restored.
fn restore() {
    let Some((before, _)) = taken().take() else { return };
    let mut bytes = Vec::new();
    let queued = bytes
        .queue(DisableBracketedPaste)
        .and_then(|out| out.queue(ResetColor))
        .and_then(|out| out.queue(Show))
        .and_then(|out| out.queue(LeaveAlternateScreen))
        .map(drop);
    // Writing to a vector cannot fail; a closed terminal needs nothing.
    if queued.is_ok() {
        let _ = Tty::new(std::sync::Arc::new(true.into())).write_all(&bytes);
    }
    let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
}

/// A panic is shown on the restored screen. A panic of another thread does not concern the screen.
fn restore_in_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let owner = taken().as_ref().map(|(_, thread)| *thread);
        match owner {
            Some(thread) if thread != std::thread::current().id() => {}
            Some(_) => {
                restore();
                before(info);
            }
            None => before(info),
        }
    }));
}

/// Stops the whole job, as a terminal does for Ctrl+Z. We get a signal as well.
pub(super) fn stop_group() {
    let _ = kill_current_process_group(Signal::TSTP);
}

/// Stops this process until it is continued.
pub(super) fn stop() {
    let _ = emulate_default_handler(SIGTSTP);
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::Command;

    use rexpect::process::PtyProcess;
    use rustix::termios::LocalModes;

    use super::*;

    /// The test below starts this one as a process of its own on a terminal; by itself it does nothing.
    #[test]
    fn panic_on_a_terminal() {
        if std::env::var_os("RALPH_TEST_PANIC").is_none() {
            return;
        }
        let events = Events::listen().unwrap();
        let _screen = Screen::open(None, &events).unwrap();
        let other = std::thread::spawn(|| panic!("of another thread"));
        assert!(other.join().is_err() && taken().is_some(), "the screen is still there");
        panic!("of the screen");
    }

    #[test]
    fn a_panic_is_told_on_the_terminal_as_it_was() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "--nocapture", "commands::watch::screen::tests::panic_on_a_terminal"]);
        command.env("RALPH_TEST_PANIC", "1").env("TERM", "xterm");
        let process = PtyProcess::new(command).unwrap();
        let mut tty = process.get_file_handle().unwrap();
        let mut seen = Vec::new();
        // The last writer is gone when reading fails.
        let _ = tty.read_to_end(&mut seen);
        let seen = String::from_utf8_lossy(&seen);
        let at = |text: &str| seen.find(text).unwrap_or_else(|| panic!("no {text:?} in {seen:?}"));
        assert!(at("\x1b[?1049h") < at("\x1b[?1049l") && at("\x1b[?25h") < at("of the screen"), "{seen:?}");
        assert!(at("\x1b[?1049l") < at("of the screen"), "{seen:?}");
        assert!(!seen.contains("of another thread"), "{seen:?}");
        assert!(tcgetattr(&tty).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ISIG));
    }
}
