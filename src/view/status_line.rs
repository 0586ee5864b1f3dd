//! The status line of a loop, at a time and in a width.

use std::time::{Duration, Instant};

use chrono::{Local, Utc};
use unicode_width::UnicodeWidthStr as _;

use super::cells::{cut, pad};
use crate::engine::stop::Urgency;
use crate::tell::seen::{Doing, Seen};
use crate::tell::words::GAP;
use crate::text::count::money;
use crate::text::terminal::message;
use crate::text::{duration, timestamp};

/// The least cells for the loop's activity, before the text about Ctrl+C.
const LEAST_DOING: usize = 16;
/// The most cells for the title of a task.
const TITLE: usize = 32;

/// The line of one loop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StatusLine {
    /// The name of one of many branches, padded to their width.
    name: Option<String>,
    started: Instant,
    /// The state of the loop.
    pub(super) seen: Seen,
    /// Whether it is shown; a hidden one only counts.
    pub(super) is_shown: bool,
}

impl StatusLine {
    /// The line of a loop that starts now.
    #[must_use]
    pub(crate) fn new(started: Instant) -> Self {
        Self { name: None, started, seen: Seen::default(), is_shown: true }
    }

    /// The line of one of many branches, whose names take `width` cells.
    #[must_use]
    pub(crate) fn branch(name: &str, width: usize, started: Instant) -> Self {
        Self { name: Some(pad(&message(name), width)), ..Self::new(started) }
    }

    /// Books that the loop starts only now.
    pub(crate) fn start(&mut self, now: Instant) {
        self.started = now;
    }

    /// The line at `now`, in at most `width` cells of the terminal.
    #[must_use]
    pub(crate) fn text(&self, now: Instant, width: usize) -> String {
        let (facts, doing) = (self.facts(now), self.doing());
        if let Some(name) = &self.name {
            return cut(&format!("{name}  {facts}{GAP}{doing}"), width);
        }
        let hint = self.hint();
        let beside = facts.width() + hint.width() + 2 * GAP.width();
        let room = width.saturating_sub(beside);
        if room >= LEAST_DOING.min(doing.width()) {
            return format!("{facts}{GAP}{}{GAP}{hint}", cut(&doing, room));
        }
        cut(&format!("{facts}{GAP}{doing}"), width)
    }

    fn facts(&self, now: Instant) -> String {
        let Seen { iteration, task, .. } = &self.seen;
        let mut facts = vec![format!("iteration {iteration}{}", self.seen.of())];
        facts.push(duration::elapsed(now.saturating_duration_since(self.started)));
        let mean = self.seen.mean.filter(|_| self.name.is_none() && task.is_none());
        if let Some(mean) = mean.and_then(|mean| Duration::try_from_secs_f64(mean).ok()) {
            facts.push(format!("avg {}", duration::elapsed(mean)));
        }
        facts.extend(money(self.cost()));
        facts.extend(task.as_ref().and_then(|task| task.model.clone()));
        facts.join(GAP)
    }

    /// A branch shows its cost in this run, as the total does; the total shows that of a loop over tasks.
    fn cost(&self) -> Option<f64> {
        let is_in_total = self.seen.task.as_ref().is_some_and(|task| task.is_of_many);
        let cost = if self.is_branch() { self.seen.own_cost() } else { self.seen.cost_usd };
        cost.filter(|_| !is_in_total)
    }

    fn doing(&self) -> String {
        let doing = match &self.seen.doing {
            // The total says until when.
            Doing::Waiting { until, .. } if !self.is_branch() && self.seen.doing.has_end() => {
                let left = duration::elapsed((until.to_utc() - Utc::now()).to_std().unwrap_or_default());
                let until = timestamp::nearby(until, Local::now());
                format!("{}: {left} left, until {until}", self.seen.doing.words())
            }
            doing => doing.words(),
        };
        match &self.seen.task {
            Some(task) if self.seen.is_at_work() => format!("{}: {doing}", cut(&task.title, TITLE)),
            _ => doing,
        }
    }

    /// The effect of the next Ctrl+C.
    fn hint(&self) -> &'static str {
        match self.seen.urgency {
            Urgency::None if self.seen.is_at_work() => "Ctrl+C: stop after this attempt",
            Urgency::None => "Ctrl+C: stop",
            Urgency::AfterAttempt => "Ctrl+C: end the agent now",
            Urgency::Now => "Ctrl+C: kill the agent",
            Urgency::AtOnce => "leaving",
        }
    }

    /// Whether it is the line of one of many branches.
    pub(super) fn is_branch(&self) -> bool {
        self.name.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::engine::budget::Spent;
    use crate::engine::event::{LoopIdentity, Stamped};
    use crate::engine::fact::{Fact, TaskAtWork, TaskCounts};
    use crate::engine::policy::Limits;
    use crate::engine::stop::Ask;
    use crate::engine::tally::Tally;

    fn line(tally: &Tally, facts: &[Fact<'_>]) -> impl Fn(u64, usize) -> String + use<> {
        let identity =
            LoopIdentity { run: "r".into(), name: "n".into(), mode: "build".into(), agent: "claude".into() };
        let started = Instant::now();
        let mut line = StatusLine::new(started);
        for fact in facts {
            line.seen.take(&Stamped::new(Local::now(), &identity, tally, fact));
        }
        move |seconds, width| line.text(started + Duration::from_secs(seconds), width)
    }

    #[test]
    fn tells_where_the_loop_stands() {
        let (limits, none) = (Limits::EXAMPLE, Limits { max_iterations: None, ..Limits::EXAMPLE });
        let tally = Tally::default();
        let begun = |limits, tally| Fact::loop_started(Path::new("/"), limits, tally);
        assert_eq!(
            line(&tally, &[begun(&none, &tally)])(0, 100),
            "iteration 0 · 0s · starting · Ctrl+C: stop"
        );
        let resumed = Tally { iteration: 12, allowance_from: 10, ..Tally::default() };
        assert!(line(&resumed, &[begun(&limits, &resumed)])(0, 100).starts_with("iteration 12/20 · "));

        let mut tally = Tally {
            iteration: 1,
            spent: Spent { cost_usd: Some(0.4249), ..Spent::default() },
            ..Tally::default()
        };
        tally.durations.sum = 241.0;
        tally.durations.count = 1;
        let started = Fact::attempt_started(&tally, None);
        let mut facts = vec![begun(&limits, &tally), started];
        assert_eq!(
            line(&tally, &facts)(725, 100),
            "iteration 1/10 · 12m5s · avg 4m1s · $0.42 · thinking · Ctrl+C: stop after this attempt"
        );
        let input = "cargo\x1b[31m test\n\t--all\x07".into();
        facts.push(Fact::Tool { input, name: "Bash".into() });
        facts.push(Fact::asked(&Ask::Interrupt, Urgency::AfterAttempt));
        assert_eq!(
            line(&tally, &facts)(5, 100),
            "iteration 1/10 · 5s · avg 4m1s · $0.42 · Bash cargo test --all · Ctrl+C: end the agent now"
        );
    }

    #[test]
    fn a_task_is_told_with_its_model() {
        let tally = Tally {
            iteration: 8,
            spent: Spent { cost_usd: Some(1.5), ..Spent::default() },
            ..Tally::default()
        };
        let tasks = TaskCounts { done: 7, failed: 1, total: 20 };
        let task = || TaskAtWork {
            feature: None,
            id: "t-1a2b3c".into(),
            model: Some("opus".into()),
            title: "Parse dates of\nall kinds that people write".into(),
        };
        let begun = |tasks| {
            [Fact::TaskStarted { task: task(), tasks, verifies: false }, Fact::attempt_started(&tally, None)]
        };
        assert_eq!(
            line(&tally, &begun(tasks))(61, 200),
            "iteration 8 · 1m1s · opus · Parse dates of all kinds that p…: thinking · Ctrl+C: \
             stop after this attempt"
        );
        let mut facts = begun(tasks).to_vec();
        facts.push(Fact::Verifying { task: task() });
        let text = line(&tally, &facts)(61, 200);
        assert!(text.contains("verifying Parse dates"), "{text}");
        let text = line(&tally, &begun(TaskCounts { total: 1, ..tasks }))(61, 200);
        assert!(text.starts_with("iteration 8 · 1m1s · $1.50 · opus · "), "no total tells its cost: {text}");
    }

    #[test]
    fn what_the_agent_does_is_cut_first_and_then_the_hint() {
        let tally = Tally { iteration: 3, ..Tally::default() };
        let input = "日本語のとても長いコマンドライン ".repeat(3).into();
        let shown = Fact::Tool { input, name: "Bash".into() };
        let line = line(&tally, &[Fact::attempt_started(&tally, None), shown]);
        for width in 0..200 {
            assert!(line(0, width).width() <= width, "{width}: {}", line(0, width));
        }
        assert_eq!(line(0, 70), "iteration 3 · 0s · Bash 日本語のと… · Ctrl+C: stop after this attempt");
        assert_eq!(line(0, 50), "iteration 3 · 0s · Bash 日本語のとても長いコマン…");
        assert_eq!(line(0, 8), "iterati…");
    }

    #[test]
    fn a_wait_names_its_end() {
        let tally = Tally::default();
        let until = Utc::now() + chrono::TimeDelta::days(3);
        let text = line(&tally, &[Fact::waiting(until, None, &tally)])(0, 100);
        let day = until.with_timezone(&Local).format("%Y-%m-%d %H:%M");
        assert!(text.contains(&format!("left, until {day} · Ctrl+C: stop")), "{text}");
        let tally = Tally { last: crate::engine::tally::Last::Overloaded, ..tally };
        let text = line(&tally, &[Fact::waiting(until, None, &tally)])(0, 100);
        assert!(text.contains(&format!("left, until {day}")), "{text}");
    }
}
