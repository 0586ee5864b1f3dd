//! The lines around iterations on a terminal: one at the start and the end of each, and the closing of the loop.

use std::fmt;
use std::path::{Path, PathBuf};

use super::next_step::{Ending, advice};
use super::report::{next::ending, text};
use crate::engine::fact::{AttemptEnded, TaskCounts};
use crate::engine::outcome::Outcome;
use crate::engine::tally::Tally;
use crate::record::report::LoopReport;
use crate::tell::seen::Seen;
use crate::tell::words::{self, Entry};
use crate::text::line::one_line;

/// The cells before a line of a branch besides its name: a blank, a bar and a blank.
const PREFIX: usize = 3;

/// The lines of one loop.
#[derive(Debug)]
pub(crate) struct PersonLines {
    /// The words of the command line that start such a loop.
    verb: &'static str,
    /// The cells before each line of one of many branches.
    prefix: Option<usize>,
    log: Option<PathBuf>,
    /// The branch's task counter.
    tasks: Option<TaskCounter>,
}

/// Counts the tasks of a branch.
pub(crate) struct TaskCounter(pub(crate) Box<dyn Fn() -> Option<TaskCounts> + Send>);

impl fmt::Debug for TaskCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskCounter")
    }
}

/// How a loop has ended.
pub(crate) struct Closing<'a> {
    pub(crate) report: &'a LoopReport,
    pub(crate) outcome: Outcome,
    /// Details beyond the outcome.
    pub(crate) detail: Option<&'a str>,
    pub(crate) tally: &'a Tally,
    /// Its budget.
    pub(crate) seen: &'a Seen,
}

impl PersonLines {
    /// The lines of a loop that these words start.
    pub(crate) fn new(verb: &'static str) -> Self {
        Self { verb, prefix: None, log: None, tasks: None }
    }

    /// The lines of one of many branches, whose names take this many cells.
    pub(crate) fn of_branch(verb: &'static str, name: usize, tasks: TaskCounter) -> Self {
        Self { prefix: Some(name + PREFIX), tasks: Some(tasks), ..Self::new(verb) }
    }

    /// Whether it is one branch out of many.
    pub(crate) fn is_of_branch(&self) -> bool {
        self.prefix.is_some()
    }

    /// Sets the path of the session log.
    pub(crate) fn log_is(&mut self, log: &Path) {
        self.log = Some(log.to_owned());
    }

    /// The width of a line on a terminal of this width.
    pub(crate) fn width(&self, width: usize) -> usize {
        width.saturating_sub(self.prefix.unwrap_or_default())
    }

    /// `✓ Iteration 3 completed in 1m5s · $0.12 · 12.3k tokens in, 1.2k out`, and the failure.
    /// `told`: the failure that was told last, which is not told again.
    pub(crate) fn end(ended: &AttemptEnded<'_>, seen: &Seen, told: &str) -> Entry {
        let mut entry = words::attempt_ended(ended, seen.refuted.as_deref(), seen.task.is_some());
        match ended.why() {
            "" => {}
            why if why == told => entry.text += ": the same again",
            why => entry.text = format!("{}: {why}", entry.text),
        }
        entry
    }

    /// The closing of the loop. `told` is the failure that was shown last, which is not shown again.
    pub(crate) fn closing(&self, closing: &Closing<'_>, told: &str, width: usize) -> String {
        let mut report = closing.report.clone();
        let spent = Some((closing.tally, closing.seen.budget()));
        let advice = advice(&Ending { spent, ..ending(&report, self.verb) });
        (report.next, report.then) = (advice.command, advice.then);
        report.reason = report.reason.map(|reason| closing.reason(reason, told));
        let log = self.log.as_ref().map(|log| log.display().to_string());
        text::closing(&report, log.as_deref(), Some(width))
    }

    /// The last line of a branch.
    pub(crate) fn finished(&self, report: &LoopReport, width: usize) -> String {
        let tasks = self.tasks.as_ref().and_then(|TaskCounter(count)| count());
        let name = self.prefix.unwrap_or_default().saturating_sub(PREFIX);
        text::finished(&LoopReport { tasks, ..report.clone() }, name, width)
    }
}

impl Closing<'_> {
    /// Why it ended, without what was shown, and with what can be done about it.
    fn reason(&self, reason: String, told: &str) -> String {
        let detail = self.detail.map(one_line);
        let told = one_line(told);
        match detail {
            _ if told.is_empty() => detail.filter(|detail| detail.starts_with(&reason)).unwrap_or(reason),
            Some(detail) if detail.starts_with(&told) => {
                match detail[told.len()..].trim_start_matches("; ") {
                    "" => self.outcome.reason().to_owned(),
                    rest => rest.to_owned(),
                }
            }
            _ if reason == told => self.outcome.reason().to_owned(),
            _ => reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anstream::adapter::strip_str;
    use unicode_width::UnicodeWidthStr as _;

    use super::*;
    use crate::engine::fact::Fact;
    use crate::engine::report::{AttemptStatus, Report};
    use crate::record::report::Work;
    use crate::reply::usage::{Class, Usage};
    use crate::reply::verdict::{Failure, Kind};

    fn unstyled(entry: &Entry) -> String {
        strip_str(&entry.line(None)).to_string().trim_end().to_owned()
    }

    #[test]
    fn an_iteration_has_one_line_at_its_start_and_one_at_its_end() {
        assert_eq!(unstyled(&words::attempt_begins(3, None, 0)), "▶ Iteration 3");
        assert_eq!(unstyled(&words::attempt_begins(3, Some(10), 1)), "▶ Iteration 3 of 10, retry 1");
        let tally = Tally { iteration: 3, ..Tally::default() };
        let end = |report: &Report, refuted: Option<&str>, told| {
            let mut seen = Seen::default();
            refuted.map(str::to_owned).clone_into(&mut seen.refuted);
            let fact = Fact::attempt_ended(&tally, report, None, None);
            let Fact::AttemptEnded(ended) = fact else { panic!() };
            unstyled(&PersonLines::end(&ended, &seen, told))
        };
        let mut usage = Usage::default();
        (usage.cost_usd, usage.input_tokens, usage.output_tokens) = (Some(0.123), Some(12_345), Some(678));
        let took = Duration::from_millis(65_432);
        let good = Report { usage, ..Report::given_up(AttemptStatus::Success, took) };
        let expected = "✓ Iteration 3 completed in 1m5s · $0.12 · 12.3k tokens in, 678 out";
        assert_eq!(end(&good, None, ""), expected);
        let failure =
            Failure { kind: Kind::Exit, class: Class::Other, message: "it\nbroke".into(), reset_at: None };
        let bad = Report { failure: Some(failure), ..Report::given_up(AttemptStatus::AgentFailure, took) };
        let said = |told| end(&bad, None, told);
        assert_eq!(said(""), "✗ Iteration 3 failed after 1m5s: it broke");
        assert_eq!(said("it\nbroke"), "✗ Iteration 3 failed after 1m5s: the same again");
        let invalid = end(&good, Some("npm test failed"), "");
        let says_why = invalid.ends_with(" out: npm test failed");
        assert!(invalid.starts_with("? Iteration 3 is not valid, after 1m5s") && says_why, "{invalid}");
    }

    /// A loop with this end, and its last failure.
    fn closing(report: LoopReport, outcome: Outcome, detail: Option<&str>, told: &str) -> String {
        let tally = Tally { iteration: 4, ..Tally::default() };
        let report = LoopReport {
            end: outcome.ended().word().to_owned(),
            exit_reason: Some(outcome.word().to_owned()),
            exit_code: Some(outcome.code()),
            iterations: 4,
            duration_s: 60.0,
            ..report
        };
        let mut lines = PersonLines::new("build");
        lines.log_is(Path::new("l.log"));
        let closing = Closing { report: &report, outcome, detail, tally: &tally, seen: &Seen::default() };
        strip_str(&lines.closing(&closing, told, 80)).collect()
    }

    #[test]
    fn the_end_tells_what_there_is_to_tell_and_what_to_type_next() {
        let mut report = LoopReport::named("my loop");
        report.reason = Some("max iterations reached".to_owned());
        (report.attempts, report.failed_attempts, report.cost_usd) = (6, 1, Some(1.5));
        assert_eq!(
            closing(report, Outcome::MaxIterations, None, ""),
            "■ my loop  limit  1m  $1.50\n    max iterations reached\n    \
             4 iterations, 6 attempts, 1 failed\n    log l.log\n\
             Next: ralph resume 'my loop' --max-iterations 8\n"
        );
        let mut report = LoopReport::named("build");
        report.work = Some(Work {
            commits: Some(1),
            files: Some(2),
            insertions: Some(3),
            deletions: Some(4),
            ..Work::default()
        });
        (report.input_tokens, report.output_tokens) = (12_345, 678);
        assert_eq!(
            closing(report, Outcome::Complete, None, ""),
            "✓ build  done  +3 −4  1 commit  1m\n    4 iterations · 2 files · 12.3k tokens in, 678 out\n    \
             log l.log\nNext: ralph diff build\n"
        );
    }

    #[test]
    fn what_was_told_is_not_told_again_and_what_can_be_done_about_it_is() {
        let report = LoopReport { reason: Some("it broke".to_owned()), ..LoopReport::named("build") };
        let second = |detail, told| {
            let text = closing(report.clone(), Outcome::AgentFailed, detail, told);
            text.lines().nth(1).unwrap_or_default().trim().to_owned()
        };
        assert_eq!(second(None, ""), "it broke");
        assert_eq!(second(None, "it\nbroke"), "agent failure exceeded retries");
        assert_eq!(second(Some("it broke; fix it"), ""), "it broke; fix it");
        assert_eq!(second(Some("it broke; fix it"), "it broke"), "fix it");
        assert_eq!(second(Some("it broke"), "it broke"), "agent failure exceeded retries");
    }

    #[test]
    fn a_branch_that_has_ended_leaves_one_line() {
        let counts = TaskCounts { done: 1, failed: 0, total: 3 };
        let lines = PersonLines::of_branch("loop build", 9, TaskCounter(Box::new(move || Some(counts))));
        let mut report = LoopReport {
            end: "failed".to_owned(),
            reason: Some("claude exited with 3:\n\x1b[31mcannot make it rain".to_owned()),
            duration_s: 61.0,
            cost_usd: Some(0.5),
            ..LoopReport::named("fix")
        };
        let line = |report: &LoopReport, width| strip_str(&lines.finished(report, width)).collect::<String>();
        assert_eq!(
            line(&report, 100),
            "✗ fix        failed  1/3  1m  $0.50  claude exited with 3: cannot make it rain\n"
        );
        assert_eq!(line(&report, 60), "✗ fix        failed  1/3  1m  $0.50  claude exited with 3: …\n");
        let beside_long =
            PersonLines::of_branch("loop build", 32, TaskCounter(Box::new(move || Some(counts))));
        let at_60: String = strip_str(&beside_long.finished(&report, 60)).collect();
        assert!(at_60.starts_with("✗ fix ") && !at_60.contains("…  failed"), "{at_60}");
        assert!(at_60.contains("  failed  1/3  1m  $0.50  claude"), "{at_60}");
        report.name = "a-branch-with-a-rather-long-name".to_owned();
        for width in 24..100 {
            let line = line(&report, width);
            assert!(line.trim_end().width() <= width && line.lines().count() == 1, "{width}: {line}");
        }
        let at_60 = line(&report, 60);
        assert!(at_60.contains("  claude exited with"), "why it failed is worth more than its cost: {at_60}");
        report.end = "done".to_owned();
        assert!(!line(&report, 100).contains("claude"));
    }
}
