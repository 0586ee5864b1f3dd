//! What a person or a program sees of a running loop: a pure render of its events, and the one thread that
//! writes to the terminal.

pub mod console;
pub mod json;
pub mod plain;
pub mod run_lines;
pub mod status;
mod status_area;
pub mod status_line;
mod terminal;

use std::sync::Arc;
use std::time::Instant;

use crate::agent::Message;
use crate::engine::event::{Event, Stamped};
use crate::engine::inbox::{Inbox, Wake};
use crate::engine::stop::Ask;
use console::{Console, Target};
use plain::{Frame, Plain};
use status_line::StatusLine;

/// What one loop shows, in the form that was asked for.
#[derive(Debug)]
pub struct View {
    console: Arc<Console>,
    form: Form,
    /// Shown below the scrolling view, on a terminal.
    status: Option<StatusLine>,
}

#[derive(Debug)]
enum Form {
    Json,
    Plain(Plain),
}

impl View {
    /// Starts the view. JSON wins over everything else.
    #[must_use]
    pub fn start(json: bool, quiet: bool, frame: Frame) -> Self {
        let console = Arc::new(Console::start());
        let form =
            if json { Form::Json } else { Form::Plain(Plain::new(Arc::clone(&console), quiet, frame)) };
        let shows_status = !json && !quiet && terminal::can_show_status();
        let status = shows_status.then(|| StatusLine::new(Instant::now()));
        Self { console, form, status }
    }

    /// Shows one event.
    pub fn take(&mut self, stamped: &Stamped<'_>) {
        if let Some(status) = &mut self.status {
            status.take(stamped);
            let goes_on = !matches!(stamped.event, Event::LoopEnded { .. });
            self.console.status(goes_on.then(|| status.clone()));
        }
        match &mut self.form {
            Form::Json => json::take(&self.console, stamped),
            Form::Plain(plain) => plain.take(stamped),
        }
    }

    /// Something the user should know before the loop starts.
    pub fn warn(&self, text: &str) {
        self.console.say(Target::Stderr, format!("warning: {text}\n"));
    }

    /// Waits until all is shown; another Ctrl+C gives up on a reader that does not read.
    pub fn finish(&self, inbox: &Inbox<Message>) {
        self.console.finish(|| {
            matches!(inbox.wait(Some(Instant::now())), Wake::Asked(Ask::Interrupt | Ask::Terminate))
        });
    }
}
