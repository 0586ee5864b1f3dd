//! The total of a run of many loops, or over many tasks, in a line.

use chrono::{DateTime, Local, Utc};
use unicode_width::UnicodeWidthStr as _;

use super::cells::cut;
use super::report::ends;
use crate::engine::fact::{TaskCounts, WaitReason};
use crate::engine::outcome::Ended;
use crate::tell::seen::{Doing, Seen};
use crate::tell::words::{self, GAP};
use crate::text::count::money;
use crate::text::{duration, timestamp};

/// All loops of a run.
pub(super) struct TotalLine<'a> {
    /// The number of loops of the run, including those whose turn has not come.
    pub(super) loops: usize,
    /// The loops that have begun.
    pub(super) begun: Vec<&'a Seen>,
}

impl TotalLine<'_> {
    /// Whether there is a total; a single loop's line has it.
    pub(super) fn is_of_many(&self) -> bool {
        self.loops > 1 || self.tasks().total > 1
    }

    /// `3 of 8 done · 1 failed · $12.40 · limit until 13:00, 12m`, in at most `width` cells.
    pub(super) fn text(&self, now: DateTime<Utc>, width: usize) -> String {
        let cost = self.begun.iter().filter_map(|one| one.own_cost()).sum();
        let said =
            |with_left| words::figures([Some(self.done()), money(Some(cost)), self.wait(now, with_left)]);
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
                self.begun.iter().filter_map(|one| one.end).partition(|end| *end == Ended::Done);
            let others = ends(others.into_iter().map(Ended::word)).join(GAP);
            (done.len() as u64, self.loops.max(self.begun.len()) as u64, others)
        };
        let done = format!("{done} of {total} done");
        if others.is_empty() { done } else { format!("{done}{GAP}{others}") }
    }

    /// The tasks of a loop over a graph.
    fn tasks(&self) -> TaskCounts {
        self.begun.iter().find_map(|one| one.tasks).unwrap_or_default()
    }

    /// What the loops wait for, and until when: the latest of several waits, and a usage limit before all others.
    fn wait(&self, now: DateTime<Utc>, with_left: bool) -> Option<String> {
        let rank = |doing: &&Doing| match doing {
            Doing::Waiting { reason, until } => {
                Some((*reason == WaitReason::UsageLimit.into(), doing.has_end(), *until))
            }
            _ => None,
        };
        let waits = self.begun.iter().map(|one| &one.doing).filter(|doing| rank(doing).is_some());
        let last = waits.max_by_key(rank)?;
        let Doing::Waiting { until, .. } = last else { return None };
        let what = last.words();
        if !last.has_end() {
            return Some(what);
        }
        let left = duration::rough((until.to_utc() - now).to_std().unwrap_or_default());
        let left = if with_left { format!(", {left}") } else { String::new() };
        Some(format!("{what} until {}{left}", timestamp::nearby(until, now.with_timezone(&Local))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::time::Duration;

    use chrono::TimeDelta;

    use super::*;
    use crate::engine::budget::Spent;
    use crate::engine::event::{LoopIdentity, Stamped};
    use crate::engine::fact::{Fact, TaskAtWork};
    use crate::engine::outcome::Outcome;
    use crate::engine::policy::Limits;
    use crate::engine::report::{AttemptStatus, Report};
    use crate::engine::tally::{Last, Tally};
    use crate::files::room::Shortage;

    /// A run of this many loops, and those that have begun, by their places.
    #[derive(Default)]
    struct Run(usize, BTreeMap<usize, Seen>);

    impl Run {
        fn total(&self) -> TotalLine<'_> {
            TotalLine { loops: self.0, begun: self.1.values().collect() }
        }

        fn text(&self, now: DateTime<Utc>, width: usize) -> String {
            self.total().text(now, width)
        }
    }

    fn cost(cost: f64) -> Tally {
        Tally { spent: Spent { cost_usd: Some(cost), ..Spent::default() }, ..Tally::default() }
    }

    fn take(run: &mut Run, place: usize, tally: &Tally, fact: &Fact<'_>) {
        let [id, name, mode, agent] = ["r", "n", "build", "claude"].map(str::to_owned);
        let identity = LoopIdentity { run: id, name, mode, agent };
        run.1.entry(place).or_default().take(&Stamped::new(Local::now(), &identity, tally, fact));
    }

    fn begin(run: &mut Run, place: usize, tally: &Tally) {
        take(run, place, tally, &Fact::loop_started(Path::new("/"), &Limits::EXAMPLE, tally));
        take(run, place, tally, &Fact::attempt_started(tally, None));
    }

    fn attempt_ended(run: &mut Run, place: usize, tally: &Tally) {
        let report = &Report::given_up(AttemptStatus::Success, Duration::ZERO);
        take(run, place, tally, &Fact::attempt_ended(tally, report, None, None));
    }

    fn end(run: &mut Run, place: usize, outcome: Outcome, tally: &Tally) {
        take(run, place, tally, &Fact::loop_ended(outcome, None, tally, Duration::from_secs(1), None));
    }

    /// The time, and the line at it.
    fn said(run: &Run) -> String {
        run.text(Utc::now(), 200)
    }

    #[test]
    fn it_counts_all_loops_and_what_they_cost_in_this_run() {
        let mut run = Run(8, BTreeMap::default());
        assert_eq!(said(&run), "0 of 8 done");
        begin(&mut run, 0, &cost(5.0));
        assert_eq!(said(&run), "0 of 8 done", "what it had cost before is not of this run");
        end(&mut run, 0, Outcome::Complete, &cost(12.0));
        begin(&mut run, 1, &Tally::default());
        end(&mut run, 1, Outcome::Breaker, &cost(0.4));
        assert_eq!(said(&run), "1 of 8 done · 1 failed · $7.40");
        begin(&mut run, 2, &Tally::default());
        end(&mut run, 2, Outcome::Complete, &Tally::default());
        for (place, outcome) in [(3, Outcome::Unproven), (4, Outcome::MaxIterations), (5, Outcome::Breaker)] {
            begin(&mut run, place, &Tally::default());
            end(&mut run, place, outcome, &Tally::default());
        }
        run.1.entry(6).or_default().end = Some(Ended::Error);
        assert_eq!(said(&run), "2 of 8 done · 2 failed · 1 unproven · 1 limit · 1 error · $7.40");
        assert!(run.total().is_of_many() && !Run(1, BTreeMap::default()).total().is_of_many());
    }

    #[test]
    fn a_limit_is_told_until_nobody_waits_for_it() {
        let mut run = Run(2, BTreeMap::default());
        let (now, limited) = (Utc::now(), cost(1.0));
        let until = now + TimeDelta::minutes(12);
        for (place, until) in [(0, until - TimeDelta::seconds(1)), (1, until)] {
            begin(&mut run, place, &Tally::default());
            attempt_ended(&mut run, place, &limited);
            take(&mut run, place, &limited, &Fact::waiting(until, None, &limited));
        }
        let time = timestamp::nearby(&until, now.with_timezone(&Local));
        let whole = format!("0 of 2 done · $2.00 · usage limit until {time}, 12m");
        assert_eq!(run.text(now, 80), whole);
        assert_eq!(run.text(now, whole.width()), whole);
        assert_eq!(run.text(now, whole.width() - 1), whole.trim_end_matches(", 12m"));
        for width in 0..80 {
            assert!(run.text(now, width).width() <= width);
        }
        take(&mut run, 1, &limited, &Fact::resumed(&limited));
        assert!(said(&run).contains(" · usage limit until "), "the other one still waits");
        take(&mut run, 0, &limited, &Fact::attempt_started(&limited, None));
        assert_eq!(said(&run), "0 of 2 done · $2.00");
        let overloaded = Tally { last: Last::Overloaded, ..Tally::default() };
        take(&mut run, 0, &overloaded, &Fact::waiting(until, None, &overloaded));
        assert!(said(&run).contains("provider overloaded until "), "{}", said(&run));
        take(&mut run, 0, &overloaded, &Fact::resumed(&overloaded));
        let shortage = Some(Shortage { free: 1, wanted: 2 });
        take(&mut run, 0, &limited, &Fact::waiting(until, shortage, &limited));
        end(&mut run, 1, Outcome::LimitTooFar, &limited);
        assert_eq!(said(&run), "0 of 2 done · 1 limit · $2.00 · waiting for room on the disk");
    }

    #[test]
    fn tasks_stand_for_their_loop() {
        let mut run = Run(1, BTreeMap::default());
        let task = TaskAtWork { feature: None, id: "t-1".into(), model: None, title: "One".into() };
        let tasks = TaskCounts { done: 0, failed: 0, total: 8 };
        begin(&mut run, 0, &Tally::default());
        assert!(!run.total().is_of_many());
        let started = Fact::TaskStarted { task: task.clone(), tasks, verifies: false };
        take(&mut run, 0, &Tally::default(), &started);
        assert!(run.total().is_of_many());
        let tasks = TaskCounts { done: 3, failed: 1, ..tasks };
        let ended = Fact::TaskEnded { outcome: "failed".into(), reason: "".into(), task, tasks };
        take(&mut run, 0, &Tally::default(), &ended);
        attempt_ended(&mut run, 0, &cost(12.4));
        assert_eq!(said(&run), "3 of 8 done · 1 failed · $12.40");
    }
}
