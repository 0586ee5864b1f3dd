//! `--json`: facts as JSON lines on stdout, and nothing else there.

use super::console::Console;
use super::terminal::Target;
use crate::engine::event::Stamped;
use crate::record::event_line::line_of;

/// The view of `--json`.
#[derive(Debug, Default)]
pub(crate) struct JsonLines {
    /// Facts that came together are printed together.
    pending: String,
}

impl JsonLines {
    /// Prints one fact.
    pub(crate) fn take(&mut self, console: &Console, stamped: &Stamped<'_>) {
        self.pending += &line_of(stamped);
        if stamped.goes_on {
            return;
        }
        let lines = std::mem::take(&mut self.pending);
        if stamped.fact.is_shown() {
            console.show(Target::Stdout, lines);
        } else {
            console.say(Target::Stdout, lines);
        }
    }
}
