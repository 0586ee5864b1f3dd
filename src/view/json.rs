//! `--json`: events as JSON lines on stdout, and nothing else there.

use super::console::{Console, Target};
use crate::engine::event::{Event, Stamped};
use crate::record::event_json::to_json;

/// Prints one event.
pub fn take(console: &Console, stamped: &Stamped<'_>) {
    let Some(json) = to_json(stamped) else { return };
    let line = format!("{json}\n");
    match stamped.event {
        Event::Shown(_) => console.show(Target::Stdout, line),
        _ => console.say(Target::Stdout, line),
    }
}
