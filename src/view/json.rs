//! `--json`: events as JSON lines on stdout, and nothing else there.

use super::console::{Console, Target};
use crate::engine::event::{Event, Stamped};
use crate::record::event_json::to_lines;

/// Prints one event.
pub(crate) fn take(console: &Console, stamped: &Stamped<'_>) {
    let lines = to_lines(stamped);
    match stamped.event {
        Event::Shown(_) => console.show(Target::Stdout, lines),
        _ => console.say(Target::Stdout, lines),
    }
}
