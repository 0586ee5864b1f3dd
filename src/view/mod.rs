//! Displays of running loops, for people and programs: a pure render of their events, and the one thread that writes
//! to the terminal.

pub(crate) mod branch_table;
mod cells;
mod columns;
pub(crate) mod console;
pub(crate) mod fold;
pub(crate) mod json;
pub(crate) mod loop_list;
pub(crate) mod next_step;
pub(crate) mod person_lines;
pub(crate) mod plain;
pub(crate) mod proof;
pub(crate) mod report;
pub(crate) mod run_lines;
pub(crate) mod screen;
pub(crate) mod snapshot;
pub(crate) mod status;
mod status_area;
mod status_board;
pub(crate) mod status_line;
pub(crate) mod status_table;
pub(crate) mod terminal;
mod total_line;
pub(crate) mod transcript;
pub(crate) mod voice;
pub(crate) mod waits;
pub(crate) mod watch;
pub(crate) mod worker_lines;
pub(crate) mod worker_status;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::engine::event::Stamped;
use crate::engine::fact::Fact;
use crate::engine::inbox::{Inbox, Wake};
use crate::engine::outcome::Ended;
use crate::engine::stop::Ask;
use crate::tell::seen::Seen;
use crate::text::terminal::message;
use console::Console;
use json::JsonLines;
use plain::{Frame, Plain};
use screen::Screen;
use status_line::StatusLine;
use terminal::Target;
use voice::Voice;

/// The display of one loop, in the requested form. It can be used in a thread of its own.
#[derive(Debug)]
pub(crate) struct View {
    console: Arc<Console>,
    /// For messages that are no events.
    voice: Voice,
    form: Form,
    place: usize,
    /// The state of the loop.
    seen: Seen,
    /// The status line below the scrolling view, on a terminal.
    status: Option<StatusLine>,
    /// Whether the user types an answer in place of the status line.
    is_asking: bool,
}

#[derive(Debug)]
enum Form {
    Json(JsonLines),
    Plain(Box<Plain>),
}

impl View {
    /// Starts the view of the only loop. JSON wins over everything else.
    ///
    /// # Errors
    /// When the system cannot start the writing thread.
    pub(crate) fn start(json: bool, quiet: bool, frame: Frame) -> std::io::Result<Self> {
        Ok(Screen::start(json, quiet)?.view(frame))
    }

    fn new(screen: &Screen, voice: Voice, frame: Frame, place: usize, status: Option<StatusLine>) -> Self {
        let form = if screen.json {
            Form::Json(JsonLines::default())
        } else {
            Form::Plain(Box::new(Plain::new(voice.clone(), screen.quiet, frame, screen.waits.clone())))
        };
        Self {
            console: Arc::clone(&screen.console),
            voice,
            form,
            place,
            seen: Seen::default(),
            status,
            is_asking: false,
        }
    }

    /// Shows one fact.
    pub(crate) fn take(&mut self, stamped: &Stamped<'_>) {
        // Only the last fact of several that came together updates the line.
        if !stamped.goes_on {
            self.seen.take(stamped);
            self.show_status(stamped);
        }
        match &mut self.form {
            Form::Json(lines) => lines.take(&self.console, stamped),
            Form::Plain(plain) => plain.take(stamped, &self.seen),
        }
    }

    fn show_status(&mut self, stamped: &Stamped<'_>) {
        let Some(status) = &mut self.status else { return };
        if let Fact::LoopStarted { .. } = stamped.fact {
            // A branch may have waited for its turn.
            status.start(Instant::now());
        }
        match stamped.fact {
            Fact::Question { .. } => self.is_asking = true,
            Fact::Answered { .. } => self.is_asking = false,
            _ => {}
        }
        status.seen.clone_from(&self.seen);
        status.is_shown = !self.is_asking && self.seen.end.is_none();
        self.console.status(self.place, status.clone());
    }

    /// Sets the path of the session log, which has all output of the loop's agents.
    pub(crate) fn log_is(&mut self, log: &Path) {
        if let Form::Plain(plain) = &mut self.form {
            plain.log_is(log);
        }
    }

    /// Shows where the loop goes on.
    pub(crate) fn goes_on(&mut self, text: &str) {
        self.voice.say(Target::Stderr, format!("▶ {}\n", message(text)));
    }

    /// Shows a warning before the loop starts.
    pub(crate) fn warn(&mut self, text: &str) {
        self.voice.say(Target::Stderr, format!("warning: {}\n", message(text)));
    }

    /// Shows that the loop of this name could not be started.
    pub(crate) fn refused(&mut self, name: &str, why: &str) {
        if let Some(mut status) = self.status.take() {
            (status.seen.end, status.is_shown) = (Some(Ended::Error), false);
            self.console.status(self.place, status);
        }
        match &mut self.form {
            Form::Plain(plain) => plain.refused(name, why),
            Form::Json(_) => self.warn(why),
        }
    }

    /// Rings the terminal's bell.
    pub(crate) fn ring(&self) {
        self.console.ring();
    }

    /// Waits until all is shown; another Ctrl+C gives up an idle reader.
    pub(crate) fn finish(&self, inbox: &Inbox) {
        self.console.finish(|| {
            matches!(
                inbox.wait(Some(Instant::now())),
                Wake::Asked(Ask::Interrupt | Ask::Terminate | Ask::HangUp | Ask::GraceOver)
            )
        });
    }
}

#[cfg(test)]
mod tests;
