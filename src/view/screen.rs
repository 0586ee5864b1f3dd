//! The part of displays that all loops of this process share: the console, and the requested form.

use std::sync::Arc;
use std::time::Instant;

use super::console::Console;
use super::fold::{columns_folded, folded};
use super::person_lines::{PersonLines, TaskCounter};
use super::plain::{Frame, SharedWaits};
use super::status_line::StatusLine;
use super::terminal::Target;
use super::voice::Voice;
use super::{View, terminal};
use crate::text::terminal::message;

/// The shared part of the displays of loops; a clone uses the same console.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    pub(super) console: Arc<Console>,
    pub(super) json: bool,
    pub(super) quiet: bool,
    pub(super) verbose: bool,
    pub(super) waits: SharedWaits,
}

impl Screen {
    /// Starts the thread that writes. JSON wins over `quiet`.
    ///
    /// # Errors
    /// When the system cannot start it.
    pub(crate) fn start(json: bool, quiet: bool) -> std::io::Result<Self> {
        let console = Arc::new(Console::start()?);
        Ok(Self { console, json, quiet, verbose: false, waits: SharedWaits::default() })
    }

    /// With `verbose`, which shows in a pipe what is otherwise left out there.
    #[must_use]
    pub(crate) fn verbose(self, verbose: bool) -> Self {
        Self { verbose, ..self }
    }

    /// The view of the only loop.
    #[must_use]
    pub(crate) fn view(&self, frame: Frame) -> View {
        let status = self.shows_status().then(|| StatusLine::new(Instant::now()));
        View::new(self, Voice::alone(Arc::clone(&self.console)), frame, 0, status)
    }

    /// The view of one of many branches, or of other loops that these words start. `place`, from 0, orders their status lines; `width` is that of the longest name, in
    /// cells; `tasks` counts those of the branch.
    #[must_use]
    pub(crate) fn branch(
        &self,
        (verb, place): (&'static str, usize),
        name: &str,
        width: usize,
        tasks: TaskCounter,
    ) -> View {
        let status = self.shows_status().then(|| StatusLine::branch(name, width, Instant::now()));
        let voice = Voice::branch(Arc::clone(&self.console), place, name, width);
        let frame = if terminal::is_for_person() {
            Frame::Person(PersonLines::of_branch(verb, width, tasks))
        } else {
            Frame::Branch { verbose: self.verbose }
        };
        View::new(self, voice, frame, place, status)
    }

    /// Sets the number of all loops, including those whose turn has not come.
    pub(crate) fn expect(&self, loops: usize) {
        self.console.expect(loops);
    }

    /// The width of the terminal of standard output, in cells; `None`: it is no terminal.
    pub(crate) fn width() -> Option<usize> {
        terminal::is_for_person().then(|| terminal::size().1)
    }

    fn shows_status(&self) -> bool {
        !self.json && !self.quiet && terminal::can_show_status()
    }

    /// A warning on stderr: one line, without its newline.
    pub(crate) fn warn(&self, text: &str) {
        let text = format!("warning: {}\n", message(text));
        let text = match terminal::width_of(Target::Stderr) {
            Some(width) => folded(&text, width, ""),
            None => text,
        };
        self.console.say(Target::Stderr, text);
    }

    /// Text for stdout that must appear, with its newlines; left out with `--json`.
    pub(crate) fn say(&self, text: &str) {
        if !self.json {
            let text = match terminal::width_of(Target::Stdout) {
                Some(width) => columns_folded(text, width),
                None => text.to_owned(),
            };
            self.console.say(Target::Stdout, text);
        }
    }

    /// A line for stdout that must appear, with its newline; only with `--json`.
    pub(crate) fn say_json(&self, line: &str) {
        if self.json {
            self.console.say(Target::Stdout, line.to_owned());
        }
    }

    /// Rings the terminal's bell.
    pub(crate) fn ring(&self) {
        self.console.ring();
    }

    /// Waits until a slow reader has read enough, so that nothing is dropped; `false` if `hurry` becomes true first.
    pub(crate) fn catch_up(&self, hurry: impl FnMut() -> bool) -> bool {
        self.console.catch_up(hurry)
    }

    /// Why standard output failed, except for a reader that is gone.
    pub(crate) fn unwritten(&self) -> Option<std::io::Error> {
        self.console.unwritten()
    }

    /// Waits until all is shown; when `hurry` becomes true, only a moment longer.
    pub(crate) fn finish(&self, hurry: impl FnMut() -> bool) {
        self.console.finish(hurry);
    }
}
