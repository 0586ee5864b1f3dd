//! How far a run of many loops has come, or one over many tasks: a fold over the events of all of them, and its line.

use std::collections::BTreeMap;

use chrono::{DateTime, Local, Utc};
use unicode_width::UnicodeWidthStr as _;

use super::cells::cut;
use super::report::ends;
use crate::engine::event::Stamped;
use crate::engine::fact::{Fact, TaskCounts, WaitReason, Word};
use crate::engine::outcome::{Ended, Outcome};
use crate::text::count::money;
use crate::text::{duration, timestamp};

const GAP: &str = " · ";

/// What all loops have come to so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TotalLine {
    /// So many loops the run has, those included whose turn has not come.
    loops: usize,
    /// Those that have begun, by their place.
    begun: BTreeMap<usize, One>,
}

/// What one loop has come to.
#[derive(Debug, Clone, Default, PartialEq)]
struct One {
    /// What it had cost before this run, in US dollars.
    before: f64,
    cost: f64,
    end: Option<Ended>,
    wait: Option<Wait>,
    tasks: Option<TaskCounts>,
}

/// What a loop waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    Room,
    Provider(DateTime<Utc>),
    Limit(DateTime<Utc>),
}

impl TotalLine {
    /// Of a run of so many loops.
    pub(super) fn of(loops: usize) -> Self {
        Self { loops, begun: BTreeMap::new() }
    }

    /// Takes one fact of the loop at a place.
    pub(super) fn take(&mut self, place: usize, stamped: &Stamped<'_>) {
        let one = self.begun.entry(place).or_default();
        let cost = stamped.tally.cost_usd.unwrap_or_default();
        match stamped.fact {
            Fact::LoopStarted { .. } => one.before = cost,
            Fact::Waiting { reason, until, .. } => {
                one.wait = Some(match reason {
                    Word::Known(WaitReason::DiskSpace) => Wait::Room,
                    Word::Known(WaitReason::Overload) => Wait::Provider(until.to_utc()),
                    _ => Wait::Limit(until.to_utc()),
                });
            }
            Fact::TaskStarted { tasks, .. } | Fact::TaskEnded { tasks, .. } => one.tasks = Some(*tasks),
            Fact::Resumed { .. } | Fact::Paused => one.wait = None,
            Fact::AttemptStarted { .. } | Fact::AttemptEnded(_) | Fact::LoopEnded(_) => {
                one.cost = cost - one.before;
                one.wait = None;
                one.end = stamped.outcome().map(Outcome::ended).or(one.end);
            }
            _ => {}
        }
    }

    /// The loop at a place could not be started.
    pub(super) fn refused(&mut self, place: usize) {
        self.begun.entry(place).or_default().end = Some(Ended::Error);
    }

    /// Whether there is anything to add up: a single loop says all of it by itself.
    pub(super) fn is_of_many(&self) -> bool {
        self.loops > 1 || self.tasks().total > 1
    }

    /// `3 of 8 done · 1 failed · $12.40 · limit until 13:00, 12m`, in at most `width` cells.
    pub(super) fn text(&self, now: DateTime<Utc>, width: usize) -> String {
        let costs: f64 = self.begun.values().map(|one| one.cost).sum();
        let wait = self.begun.values().filter_map(|one| one.wait).max();
        let said = |with_left| {
            let parts = [Some(self.done()), money(Some(costs)), wait.map(|wait| wait.said(now, with_left))];
            parts.into_iter().flatten().collect::<Vec<_>>().join(GAP)
        };
        let whole = said(true);
        if whole.width() <= width { whole } else { cut(&said(false), width) }
    }

    /// `3 of 8 done · 1 failed`
    fn done(&self) -> String {
        let TaskCounts { done, failed, total } = self.tasks();
        let (done, total, others) = if total > 0 {
            let failed = (failed > 0).then(|| format!("{failed} {}", Ended::Failed.word()));
            (done, total, failed.unwrap_or_default())
        } else {
            let (done, others): (Vec<Ended>, _) =
                self.begun.values().filter_map(|one| one.end).partition(|end| *end == Ended::Done);
            let others = ends(others.into_iter().map(Ended::word)).join(GAP);
            (done.len() as u64, self.loops.max(self.begun.len()) as u64, others)
        };
        let done = format!("{done} of {total} done");
        if others.is_empty() { done } else { format!("{done}{GAP}{others}") }
    }

    /// Of a loop over a graph.
    fn tasks(&self) -> TaskCounts {
        self.begun.values().find_map(|one| one.tasks).unwrap_or_default()
    }
}

impl Wait {
    /// Until when it lasts, and how long that is still.
    fn said(self, now: DateTime<Utc>, with_left: bool) -> String {
        let (what, until) = match self {
            Self::Room => return "waiting for room on the disk".to_owned(),
            Self::Provider(until) => ("provider overloaded", until),
            Self::Limit(until) => ("limit", until),
        };
        let left = duration::rough((until - now).to_std().unwrap_or_default());
        let left = if with_left { format!(", {left}") } else { String::new() };
        format!("{what} until {}{left}", timestamp::nearby(&until, now.with_timezone(&Local)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use chrono::TimeDelta;

    use super::*;
    use crate::engine::event::LoopIdentity;
    use crate::engine::fact::TaskAtWork;
    use crate::engine::policy::Limits;
    use crate::engine::report::{AttemptStatus, Report};
    use crate::engine::tally::{Last, Tally};
    use crate::files::room::Shortage;

    fn cost(cost: f64) -> Tally {
        Tally { cost_usd: Some(cost), ..Tally::default() }
    }

    fn take(total: &mut TotalLine, place: usize, tally: &Tally, fact: &Fact<'_>) {
        let [run, name, mode, agent] = ["r", "n", "build", "claude"].map(str::to_owned);
        let identity = LoopIdentity { run, name, mode, agent };
        total.take(place, &Stamped::new(Local::now(), &identity, tally, fact));
    }

    fn begin(total: &mut TotalLine, place: usize, tally: &Tally) {
        take(total, place, tally, &Fact::loop_started(Path::new("/"), &Limits::EXAMPLE, tally));
        take(total, place, tally, &Fact::attempt_started(tally, None));
    }

    fn attempt_ended(total: &mut TotalLine, place: usize, tally: &Tally) {
        let report = &Report::given_up(AttemptStatus::Success, Duration::ZERO);
        take(total, place, tally, &Fact::attempt_ended(tally, report, None, None));
    }

    fn end(total: &mut TotalLine, place: usize, outcome: Outcome, tally: &Tally) {
        take(total, place, tally, &Fact::loop_ended(outcome, None, tally, Duration::from_secs(1), None));
    }

    /// Now, and what the line says then.
    fn said(total: &TotalLine) -> String {
        total.text(Utc::now(), 200)
    }

    #[test]
    fn it_counts_all_loops_and_what_they_cost_in_this_run() {
        let mut total = TotalLine::of(8);
        assert_eq!(said(&total), "0 of 8 done");
        begin(&mut total, 0, &cost(5.0));
        assert_eq!(said(&total), "0 of 8 done", "what it had cost before is not of this run");
        end(&mut total, 0, Outcome::Complete, &cost(12.0));
        begin(&mut total, 1, &Tally::default());
        end(&mut total, 1, Outcome::Breaker, &cost(0.4));
        assert_eq!(said(&total), "1 of 8 done · 1 failed · $7.40");
        begin(&mut total, 2, &Tally::default());
        end(&mut total, 2, Outcome::Complete, &Tally::default());
        for (place, outcome) in [(3, Outcome::Unproven), (4, Outcome::MaxIterations), (5, Outcome::Breaker)] {
            begin(&mut total, place, &Tally::default());
            end(&mut total, place, outcome, &Tally::default());
        }
        total.refused(6);
        assert_eq!(said(&total), "2 of 8 done · 2 failed · 1 unproven · 1 limit · 1 error · $7.40");
        assert!(total.is_of_many() && !TotalLine::of(1).is_of_many());
    }

    #[test]
    fn a_limit_is_told_until_nobody_waits_for_it() {
        let mut total = TotalLine::of(2);
        let (now, limited) = (Utc::now(), cost(1.0));
        let until = now + TimeDelta::minutes(12);
        for (place, until) in [(0, until - TimeDelta::seconds(1)), (1, until)] {
            begin(&mut total, place, &Tally::default());
            attempt_ended(&mut total, place, &limited);
            take(&mut total, place, &limited, &Fact::waiting(until, None, &limited));
        }
        let time = timestamp::nearby(&until, now.with_timezone(&Local));
        let whole = format!("0 of 2 done · $2.00 · limit until {time}, 12m");
        assert_eq!(total.text(now, 80), whole);
        assert_eq!(total.text(now, whole.width()), whole);
        assert_eq!(total.text(now, whole.width() - 1), whole.trim_end_matches(", 12m"));
        for width in 0..80 {
            assert!(total.text(now, width).width() <= width);
        }
        take(&mut total, 1, &limited, &Fact::resumed(&limited));
        assert!(said(&total).contains(" · limit until "), "the other one still waits");
        take(&mut total, 0, &limited, &Fact::attempt_started(&limited, None));
        assert_eq!(said(&total), "0 of 2 done · $2.00");
        let overloaded = Tally { last: Last::Overloaded, ..Tally::default() };
        take(&mut total, 0, &overloaded, &Fact::waiting(until, None, &overloaded));
        assert!(said(&total).contains("provider overloaded until "), "{}", said(&total));
        take(&mut total, 0, &overloaded, &Fact::resumed(&overloaded));
        let shortage = Some(Shortage { free: 1, wanted: 2 });
        take(&mut total, 0, &limited, &Fact::waiting(until, shortage, &limited));
        end(&mut total, 1, Outcome::LimitTooFar, &limited);
        assert_eq!(said(&total), "0 of 2 done · 1 limit · $2.00 · waiting for room on the disk");
    }

    #[test]
    fn tasks_stand_for_their_loop() {
        let mut total = TotalLine::of(1);
        let task = TaskAtWork { feature: None, id: "t-1".into(), model: None, title: "One".into() };
        let tasks = TaskCounts { done: 0, failed: 0, total: 8 };
        begin(&mut total, 0, &Tally::default());
        assert!(!total.is_of_many());
        let started = Fact::TaskStarted { task: task.clone(), tasks, verifies: false };
        take(&mut total, 0, &Tally::default(), &started);
        assert!(total.is_of_many());
        let tasks = TaskCounts { done: 3, failed: 1, ..tasks };
        let ended = Fact::TaskEnded { outcome: "failed".into(), reason: "".into(), task, tasks };
        take(&mut total, 0, &Tally::default(), &ended);
        attempt_ended(&mut total, 0, &cost(12.4));
        assert_eq!(said(&total), "3 of 8 done · 1 failed · $12.40");
    }
}
