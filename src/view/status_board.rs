//! The status lines of all loops: the only one's, or one for each branch and what Ctrl+C does below them.

use std::collections::BTreeMap;
use std::time::Instant;

use super::cells::cut;
use super::status_line::StatusLine;
use crate::engine::stop::Urgency;

/// So many rows of the terminal are for what scrolls by.
const OTHER_ROWS: usize = 2;

/// The status lines by place.
#[derive(Debug, Clone, Default)]
pub(super) struct Board(BTreeMap<usize, StatusLine>);

impl Board {
    /// Sets the line at a place, or takes it away. `false`: that changes nothing.
    pub(super) fn set(&mut self, place: usize, status: Option<StatusLine>) -> bool {
        if self.0.get(&place) == status.as_ref() {
            return false;
        }
        match status {
            Some(status) => self.0.insert(place, status),
            None => self.0.remove(&place),
        };
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lines as they read at the moment `now`, in at most `width` cells each, on a terminal of so many rows.
    pub(super) fn lines(&self, now: Instant, rows: usize, width: usize) -> Vec<String> {
        if !self.0.values().all(StatusLine::is_branch) {
            return self.0.values().map(|status| status.text(now, width)).collect();
        }
        let room = rows.saturating_sub(OTHER_ROWS).max(1);
        let count = self.0.len();
        // What Ctrl+C does takes a row, and so does `… and 5 more`.
        let shown = if count < room { count } else { room.saturating_sub(2) };
        let mut lines: Vec<String> =
            self.0.values().take(shown).map(|status| status.text(now, width)).collect();
        if shown < count {
            lines.push(cut(&format!("… and {} more", count - shown), width));
        }
        lines.push(cut(self.hint(), width));
        lines.truncate(room);
        lines
    }

    /// What the next Ctrl+C does to those that it still changes.
    fn hint(&self) -> &'static str {
        let urgency = self.0.values().map(StatusLine::urgency).min().unwrap_or_default();
        match urgency {
            Urgency::None if self.0.values().any(StatusLine::is_at_work) => {
                "Ctrl+C: stop after the running attempts"
            }
            Urgency::None => "Ctrl+C: stop",
            Urgency::AfterAttempt => "Ctrl+C: end the agents now",
            Urgency::Now => "Ctrl+C: kill the agents",
            Urgency::AtOnce => "leaving",
        }
    }
}
