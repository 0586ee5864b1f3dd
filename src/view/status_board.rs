//! The status lines of all loops: that of the only one, or one for each working branch, and below them the total and what Ctrl+C
//! does.

use std::collections::BTreeMap;
use std::time::Instant;

use chrono::Utc;

use super::cells::cut;
use super::status_line::StatusLine;
use super::total_line::TotalLine;
use crate::engine::stop::Urgency;
use crate::text::list::and_more;

/// How many rows of the terminal are left for the scrolling view.
const OTHER_ROWS: usize = 2;

/// The status lines by place.
#[derive(Debug, Clone, Default)]
pub(super) struct StatusBoard {
    /// Including lines that are not shown any more.
    lines: BTreeMap<usize, StatusLine>,
    /// The number of loops of the run, including those whose turn has not come.
    pub(super) loops: usize,
}

impl StatusBoard {
    /// Sets the line at a place. `false`: nothing visible changes.
    pub(super) fn set(&mut self, place: usize, status: StatusLine) -> bool {
        let before = self.lines.insert(place, status);
        let after = self.lines.get(&place);
        let was_shown = before.as_ref().is_some_and(|before| before.is_shown);
        (was_shown || !self.is_empty()) && before.as_ref() != after
    }

    fn shown(&self) -> impl Iterator<Item = &StatusLine> {
        self.lines.values().filter(|status| status.is_shown)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shown().next().is_none()
    }

    /// Whether these are branches, even if only one is left.
    pub(super) fn is_many(&self) -> bool {
        self.shown().any(StatusLine::is_branch)
    }

    fn total(&self) -> TotalLine<'_> {
        TotalLine { loops: self.loops, begun: self.lines.values().map(|status| &status.seen).collect() }
    }

    /// The lines at `now`, in at most `width` cells each, on a terminal with this many rows.
    pub(super) fn lines(&self, now: Instant, rows: usize, width: usize) -> Vec<String> {
        let room = rows.saturating_sub(OTHER_ROWS).max(1);
        // In the order in which they get a row if there are too few.
        let total = self.total();
        let total = total.is_of_many().then(|| total.text(Utc::now(), width));
        let hint = self.is_many().then(|| cut(self.hint(), width));
        // The line of the only loop also says what Ctrl+C does.
        let least = usize::from(!self.is_many());
        let below: Vec<String> = total.into_iter().chain(hint).take(room - least).collect();
        let room = room - below.len();
        let count = self.shown().count();
        // `… and 5 more` takes a row, too.
        let shown = if count <= room { count } else { room.saturating_sub(1) };
        let mut lines: Vec<String> = self.shown().take(shown).map(|status| status.text(now, width)).collect();
        if shown < count && room > 0 {
            lines.push(cut(&format!("…{}", and_more(count - shown)), width));
        }
        lines.extend(below);
        lines
    }

    /// The effect of the next Ctrl+C on loops that it still changes.
    fn hint(&self) -> &'static str {
        let urgency = self.shown().map(|status| status.seen.urgency).min().unwrap_or_default();
        match urgency {
            Urgency::None if self.shown().any(|status| status.seen.is_at_work()) => {
                "Ctrl+C: stop after the running attempts"
            }
            Urgency::None => "Ctrl+C: stop",
            Urgency::AfterAttempt => "Ctrl+C: end the agents now",
            Urgency::Now => "Ctrl+C: kill the agents",
            Urgency::AtOnce => "leaving",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::Local;

    use super::*;
    use crate::engine::budget::Spent;
    use crate::engine::event::{LoopIdentity, Stamped};
    use crate::engine::fact::{Fact, TaskAtWork, TaskCounts};
    use crate::engine::outcome::Ended;
    use crate::engine::stop::Ask;
    use crate::engine::tally::Tally;

    fn status(name: &str, started: Instant, urgency: Urgency, works: bool) -> StatusLine {
        let identity =
            LoopIdentity { run: "r".into(), name: name.into(), mode: "build".into(), agent: "claude".into() };
        let mut status = StatusLine::branch(name, 9, started);
        let mut tally = Tally {
            iteration: 3,
            spent: Spent { cost_usd: Some(0.42), ..Spent::default() },
            ..Tally::default()
        };
        tally.durations.count = 1;
        let mut take =
            |fact: &Fact<'_>| status.seen.take(&Stamped::new(Local::now(), &identity, &tally, fact));
        take(&Fact::attempt_started(&tally, None));
        if !works {
            take(&Fact::Paused);
        }
        take(&Fact::asked(&Ask::Interrupt, urgency));
        status
    }

    fn board(count: usize, now: Instant) -> StatusBoard {
        let mut board = StatusBoard::default();
        // In any order.
        for place in (0..count).rev() {
            let started = now.checked_sub(Duration::from_mins(place as u64)).unwrap();
            assert!(board.set(place, status(&format!("branch-{place}"), started, Urgency::None, true)));
        }
        board
    }

    fn hide(board: &mut StatusBoard, place: usize) -> bool {
        let mut hidden = board.lines[&place].clone();
        hidden.is_shown = false;
        board.set(place, hidden)
    }

    #[test]
    fn each_branch_has_a_line_by_its_place_and_its_own_clock() {
        let now = Instant::now();
        let mut board = board(2, now);
        board.set(2, status("b", now, Urgency::None, false));
        assert_eq!(
            board.lines(now, 24, 80),
            [
                "branch-0   iteration 3 · 0s · $0.42 · thinking",
                "branch-1   iteration 3 · 1m0s · $0.42 · thinking",
                "b          iteration 3 · 0s · $0.42 · paused, 'ralph resume' goes on",
                "Ctrl+C: stop after the running attempts",
            ]
        );
        assert!(hide(&mut board, 0) && !hide(&mut board, 0));
        hide(&mut board, 1);
        assert_eq!(board.lines(now, 24, 20), ["b          iteratio…", "Ctrl+C: stop"]);
        assert!(board.is_many());
        hide(&mut board, 2);
        assert!(board.is_empty() && !board.is_many());
    }

    #[test]
    fn two_rows_stay_free_and_the_rest_is_counted() {
        let now = Instant::now();
        let board = board(8, now);
        assert_eq!(board.lines(now, 11, 80).len(), 9);
        let lines = board.lines(now, 10, 80);
        assert_eq!(lines.len(), 8);
        assert!(lines[5].starts_with("branch-5 "), "{lines:?}");
        assert_eq!(lines[6..], ["… and 2 more", "Ctrl+C: stop after the running attempts"]);
        for rows in 0..30 {
            for width in [0, 1, 5, 40] {
                let lines = board.lines(now, rows, width);
                assert!(lines.len() <= rows.saturating_sub(2).max(1), "{rows}: {lines:?}");
                assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:?}");
            }
        }
        let hint = "Ctrl+C: stop after the running attempts";
        assert_eq!(board.lines(now, 4, 80), ["… and 8 more", hint]);
        assert_eq!(board.lines(now, 3, 80), [hint]);
    }

    #[test]
    fn what_all_have_come_to_stands_below_and_is_left_out_last() {
        let now = Instant::now();
        let mut board = board(3, now);
        board.loops = 8;
        let (total, hint) = ("0 of 8 done · $1.26", "Ctrl+C: stop after the running attempts");
        assert_eq!(board.lines(now, 24, 80)[3..], [total, hint]);
        assert_eq!(board.lines(now, 6, 80)[1..], ["… and 2 more", total, hint]);
        assert_eq!(board.lines(now, 5, 80), ["… and 3 more", total, hint]);
        assert_eq!(board.lines(now, 4, 80), [total, hint]);
        assert_eq!(board.lines(now, 3, 80), [total]);
        let mut refused = StatusLine::new(now);
        (refused.seen.end, refused.is_shown) = (Some(Ended::Error), false);
        assert!(board.set(7, refused));
        assert_eq!(board.lines(now, 3, 80), ["0 of 8 done · 1 error · $1.26"]);
    }

    #[test]
    fn a_loop_over_tasks_has_its_line_and_their_total() {
        let now = Instant::now();
        let mut board = StatusBoard::default();
        let mut status = StatusLine::new(now);
        let task = TaskAtWork { feature: None, id: "t-1".into(), model: None, title: "One".into() };
        let tasks = TaskCounts { done: 3, failed: 1, total: 8 };
        let fact = Fact::TaskStarted { task, tasks, verifies: false };
        let [run, name, mode, agent] = ["r", "n", "build", "claude"].map(str::to_owned);
        let (identity, tally) = (LoopIdentity { run, name, mode, agent }, Tally::default());
        status.seen.take(&Stamped::new(Local::now(), &identity, &tally, &fact));
        board.set(0, status);
        let lines =
            ["iteration 0 · 0s · One: thinking · Ctrl+C: stop after this attempt", "3 of 8 done · 1 failed"];
        assert_eq!(board.lines(now, 24, 80), lines);
        assert_eq!(board.lines(now, 3, 80), lines[..1]);
    }

    #[test]
    fn the_hint_is_for_those_that_ctrl_c_still_changes() {
        let now = Instant::now();
        let hint = |urgencies: &[Urgency]| {
            let mut board = StatusBoard::default();
            for (place, urgency) in urgencies.iter().enumerate() {
                board.set(place, status("b", now, *urgency, true));
            }
            board.lines(now, 24, 80).pop().unwrap()
        };
        assert_eq!(hint(&[Urgency::Now, Urgency::None]), "Ctrl+C: stop after the running attempts");
        assert_eq!(hint(&[Urgency::Now, Urgency::AfterAttempt]), "Ctrl+C: end the agents now");
        assert_eq!(hint(&[Urgency::Now, Urgency::AtOnce]), "Ctrl+C: kill the agents");
        assert_eq!(hint(&[Urgency::AtOnce]), "leaving");
    }
}
