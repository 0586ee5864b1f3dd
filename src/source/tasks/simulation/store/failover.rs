//! Failovers: a replica takes over that has not got the last bookings.

use super::{LeadRow, Millis, Row, Store};

/// The most that a failover loses.
pub(in super::super) const TAIL: Millis = 3000;

/// What a failover takes back.
pub(super) enum Undo {
    /// A task was this row.
    Row(usize, Row),
    /// The lead was this.
    Lead(LeadRow),
    /// The question with this nonce was not answered.
    Answer(u64),
}

impl Store {
    /// Time goes on to this moment; what was written long enough before it cannot be lost any more.
    pub(in super::super) fn goes_on(&mut self, now: Millis) {
        self.now = now;
        while self.tail.front().is_some_and(|(at, _)| at + TAIL < now) {
            self.tail.pop_front();
        }
    }

    /// A replica becomes the server. What was written in the last time is lost, and its clock differs by so much.
    pub(in super::super) fn fail_over(&mut self, lost: Millis, step: i64) {
        self.unbooked += self.take_back(self.now.saturating_sub(lost));
        self.step += step;
        if step > 0 {
            self.stepped = Some(self.now);
        }
        self.rebuild();
    }

    /// Takes back what was written since then; returns how many bookings that were.
    fn take_back(&mut self, since: Millis) -> u64 {
        let mut count = 0;
        while self.tail.back().is_some_and(|(at, _)| *at >= since) {
            match self.tail.pop_back() {
                Some((_, Undo::Row(task, row))) => {
                    self.rows[task] = row;
                    self.undone[task] = Some(self.now);
                    count += 1;
                }
                Some((_, Undo::Lead(lead))) => self.lead = lead,
                Some((_, Undo::Answer(nonce))) => drop(self.answers.remove(&nonce)),
                None => {}
            }
        }
        count
    }

    /// Whether the server's clock went forward at this moment or later.
    pub(in super::super) fn has_stepped_since(&self, then: Millis) -> bool {
        self.stepped.is_some_and(|at| at >= then)
    }

    /// Whether a failover took back something about a task at this moment or later.
    pub(in super::super) fn is_undone_since(&self, task: usize, then: Millis) -> bool {
        self.undone[task].is_some_and(|at| at >= then)
    }
}
