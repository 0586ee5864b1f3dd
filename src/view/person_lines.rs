//! What stands around the iterations on a terminal: a line at the start and the end of each, and a few at the end of the loop.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::next_step::next_step;
use crate::engine::event::LoopIdentity;
use crate::engine::outcome::{Ended, Outcome};
use crate::engine::policy::{Budget, Limits};
use crate::engine::report::{AttemptStatus, Report};
use crate::engine::tally::Tally;
use crate::engine::worktree::WorkDone;
use crate::record::blocks;
use crate::text::palette::{ERROR, GOOD, NOTE, STRONG};
use crate::text::terminal::message;
use crate::text::wrap::wrapped;
use crate::text::{count, duration};

/// What a line at the end is about, in cells.
const FACT: usize = 12;
/// With less room than this beside the head of a line, in cells, it is the terminal that breaks it.
const LEAST_ROOM: usize = 16;

/// The lines of one loop.
#[derive(Debug)]
pub(crate) struct PersonLines {
    /// The words of the command line that start such a loop.
    verb: &'static str,
    /// Of one branch out of many, what stands before each of its lines, in cells.
    prefix: Option<usize>,
    /// The number of the last iteration that may begin.
    last: Option<u64>,
    /// What the loop may use up besides.
    budget: Budget,
    log: Option<PathBuf>,
}

/// A line that begins with `head`; where it is broken, the rest stands below what follows the head.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) style: Style,
    pub(crate) head: String,
    pub(crate) text: String,
}

impl Row {
    /// The line, broken between words so that nothing is wider.
    pub(crate) fn within(&self, width: usize) -> String {
        let Self { style, head, text } = self;
        let indent = head.width();
        let lines = match width.checked_sub(indent) {
            Some(room) if room >= LEAST_ROOM => wrapped(text, room, usize::MAX),
            _ => return Self { head: String::new(), text: format!("{head}{text}"), ..*self }.unbroken(),
        };
        let mut broken = String::new();
        for (at, line) in lines.iter().enumerate() {
            let head = if at == 0 { head } else { &" ".repeat(indent) };
            // Writing to a String cannot fail.
            let _ = writeln!(broken, "{style}{head}{line}{style:#}");
        }
        broken
    }

    /// The line, however long it is.
    pub(crate) fn unbroken(&self) -> String {
        let Self { style, head, text } = self;
        format!("{style}{head}{text}{style:#}\n")
    }
}

/// How a loop has ended.
pub(crate) struct Closing<'a> {
    pub(crate) identity: &'a LoopIdentity,
    pub(crate) outcome: Outcome,
    /// Why, where the outcome alone does not say it.
    pub(crate) detail: Option<&'a str>,
    pub(crate) tally: &'a Tally,
    pub(crate) duration: Duration,
    pub(crate) work: Option<&'a WorkDone>,
}

impl PersonLines {
    /// For a loop that these words start.
    pub(crate) fn new(verb: &'static str) -> Self {
        Self { verb, prefix: None, last: None, budget: Budget::default(), log: None }
    }

    /// The same for one branch out of many, whose lines begin with so many cells.
    pub(crate) fn of_branch(verb: &'static str, prefix: usize) -> Self {
        Self { prefix: Some(prefix), ..Self::new(verb) }
    }

    /// Whether it is one branch out of many.
    pub(crate) fn is_of_branch(&self) -> bool {
        self.prefix.is_some()
    }

    /// The lines, broken between words where a terminal of this width ends.
    pub(crate) fn within(&self, rows: &[Row], width: usize) -> String {
        let width = width.saturating_sub(self.prefix.unwrap_or_default());
        rows.iter().map(|row| row.within(width)).collect()
    }

    /// Everything that its agents write is there.
    pub(crate) fn log_is(&mut self, log: &Path) {
        self.log = Some(log.to_owned());
    }

    /// What the loop may use up.
    pub(crate) fn limits(&mut self, limits: &Limits, tally: &Tally) {
        self.last = limits.last_iteration(tally);
        self.budget = limits.budget();
    }

    /// `▶ Iteration 3 of 20`
    pub(crate) fn begin(&self, tally: &Tally) -> Row {
        let of = self.last.map(|last| format!(" of {last}")).unwrap_or_default();
        let retry = if tally.retries > 0 { format!(", retry {}", tally.retries) } else { String::new() };
        let text = format!("Iteration {}{of}{retry}", tally.iteration);
        Row { style: STRONG, head: "▶ ".to_owned(), text }
    }

    /// `✓ Iteration 3 completed in 1m5s · $0.12 · 12.3k tokens in, 1.2k out`, and what went wrong.
    /// `fails`: the validation of it does. `told`: the failure that was told last, which is not told again.
    pub(crate) fn end(tally: &Tally, report: &Report, fails: bool, told: &str) -> Row {
        let (style, mark, how) = match how_it_ended(report) {
            (GOOD, ..) if fails => (NOTE, "?", "is not valid, after"),
            how => how,
        };
        let took = duration::elapsed_tenths(report.duration);
        let mut facts = vec![format!("Iteration {} {how} {took}", tally.iteration)];
        let cost = report.cost_usd().filter(|cost| *cost > 0.0);
        facts.extend(cost.map(|cost| format!("${cost:.2}")));
        if let (Some(input), Some(output)) = (report.usage.input_tokens, report.usage.output_tokens) {
            facts.push(format!("{} tokens in, {} out", count::short(input), count::short(output)));
        }
        let why = report.failure.as_ref().map(|failure| {
            let is_told = failure.message == told;
            if is_told { ": the same again".to_owned() } else { format!(": {}", message(&failure.message)) }
        });
        Row { style, head: format!("{mark} "), text: facts.join(" · ") + &why.unwrap_or_default() }
    }

    /// The lines at the end of the loop.
    pub(crate) fn summary(&self, closing: &Closing<'_>) -> Vec<Row> {
        let Closing { identity, outcome, detail, tally, .. } = closing;
        let (word, why) = (outcome.ended().word(), message(detail.unwrap_or(outcome.reason())));
        let end = if why == word { why } else { format!("{word}: {why}") };
        // What stands above is not told again.
        let validation = blocks::unproven(tally, *outcome).into_iter().filter(|line| Some(*line) != *detail);
        let from = closing.work.and_then(|work| work.from.as_deref());
        // What is said to be done, with words about what is not.
        let goes_on = self.verb == "build" && *outcome == Outcome::Complete && detail.is_some();
        let next = next_step(self.verb, &identity.name, *outcome, (tally, self.budget), from);
        let next = if goes_on { Some("ralph build".to_owned()) } else { next };
        let facts = validation.map(|line| ("validation", message(line))).chain(
            [
                ("ran", Some(ran(tally, closing.duration))),
                ("spent", spent(tally)),
                ("committed", closing.work.map(committed)),
                ("log", self.log.as_ref().map(|log| message(&log.display().to_string()))),
                ("next", next.map(|next| message(&next))),
            ]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?))),
        );
        let facts = facts.map(|(name, value)| Row {
            style: Style::new(),
            head: format!("  {name:<FACT$}"),
            text: value,
        });
        let end = Row { style: style_of(outcome.ended()), head: "■ ".to_owned(), text: end };
        [end].into_iter().chain(facts).collect()
    }
}

/// The colour of an end.
pub(super) fn style_of(ended: Ended) -> Style {
    match ended {
        Ended::Done => GOOD,
        Ended::Unproven | Ended::Failed | Ended::Error | Ended::Empty | Ended::Killed => ERROR,
        Ended::Limit
        | Ended::Budget
        | Ended::Idle
        | Ended::Interrupted
        | Ended::Cancelled
        | Ended::Replan
        | Ended::Blocked => NOTE,
    }
}

/// What became of an attempt: colour, sign, and the words before how long it took.
fn how_it_ended(report: &Report) -> (Style, &'static str, &'static str) {
    match report.status {
        AttemptStatus::Success | AttemptStatus::Still => (GOOD, "✓", "completed in"),
        AttemptStatus::CompleteUnproven => (NOTE, "?", "says that all is done, which is not proven, after"),
        AttemptStatus::UsageLimit => (NOTE, "⏸", "met a usage limit after"),
        AttemptStatus::Interrupted => (NOTE, "■", "was interrupted after"),
        AttemptStatus::Timeout => (ERROR, "⏱", "timed out after"),
        AttemptStatus::AgentFailure => (ERROR, "✗", "failed after"),
    }
}

/// `20 iterations in 1h 2m (18 succeeded, 2 failed, 23 attempts)`
fn ran(tally: &Tally, took: Duration) -> String {
    let mut of = Vec::new();
    if tally.failed > 0 {
        of.push(format!("{} succeeded, {} failed", tally.succeeded, tally.failed));
    }
    if tally.durations.count > tally.iteration {
        of.push(count::of(tally.durations.count, "attempt"));
    }
    let of = if of.is_empty() { String::new() } else { format!(" ({})", of.join(", ")) };
    format!("{} in {}{of}", count::of(tally.iteration, "iteration"), duration::elapsed(took))
}

/// `$1.42, 1.2M tokens in, 34.0k out`; `None` where nobody has told.
fn spent(tally: &Tally) -> Option<String> {
    let cost = tally.cost_usd.filter(|cost| *cost > 0.0).map(|cost| format!("${cost:.2}"));
    let (input, output) = (tally.input_tokens, tally.output_tokens);
    let tokens = (input.saturating_add(output) > 0)
        .then(|| format!("{} tokens in, {} out", count::short(input), count::short(output)));
    let spent: Vec<String> = cost.into_iter().chain(tokens).collect();
    (!spent.is_empty()).then(|| spent.join(", "))
}

/// `4 commits, 12 files, +412 −18`
fn committed(work: &WorkDone) -> String {
    let WorkDone { commits, files, insertions, deletions, .. } = work;
    format!("{}, {}, +{insertions} −{deletions}", count::of(*commits, "commit"), count::of(*files, "file"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::usage::{Class, Usage};
    use crate::reply::verdict::{Failure, Kind};

    fn identity() -> LoopIdentity {
        let [run, name, mode, agent] = ["r", "my loop", "build", "claude"].map(str::to_owned);
        LoopIdentity { run, name, mode, agent }
    }

    impl Row {
        fn unstyled(&self) -> String {
            format!("{}{}", self.head, self.text)
        }
    }

    fn text(rows: &[Row]) -> String {
        rows.iter().map(|row| row.unstyled() + "\n").collect()
    }

    #[test]
    fn a_broken_line_goes_on_below_its_words() {
        let row =
            Row { style: Style::new(), head: "✗ ".to_owned(), text: "one two three four five".to_owned() };
        assert_eq!(row.within(20), "✗ one two three four\n  five\n");
        assert_eq!(row.within(80), "✗ one two three four five\n");
        assert_eq!(row.within(10), row.unbroken());
    }

    #[test]
    fn an_iteration_has_one_line_at_its_start_and_one_at_its_end() {
        let mut lines = PersonLines::new("build");
        let mut tally = Tally { iteration: 3, ..Tally::default() };
        assert_eq!(lines.begin(&tally).unstyled(), "▶ Iteration 3");
        lines.limits(&Limits::EXAMPLE, &tally);
        tally.retries = 1;
        assert_eq!(lines.begin(&tally).unstyled(), "▶ Iteration 3 of 10, retry 1");
        let mut usage = Usage::default();
        (usage.cost_usd, usage.input_tokens, usage.output_tokens) = (Some(0.123), Some(12_345), Some(678));
        let took = Duration::from_millis(65_432);
        let good = Report { usage, ..Report::given_up(AttemptStatus::Success, took) };
        let expected = "✓ Iteration 3 completed in 1m5s · $0.12 · 12.3k tokens in, 678 out";
        assert_eq!(PersonLines::end(&tally, &good, false, "").unstyled(), expected);
        let failure =
            Failure { kind: Kind::Exit, class: Class::Other, message: "it\nbroke".into(), reset_at: None };
        let bad = Report { failure: Some(failure), ..Report::given_up(AttemptStatus::AgentFailure, took) };
        let said = |told| PersonLines::end(&tally, &bad, false, told).unstyled();
        assert_eq!(said(""), "✗ Iteration 3 failed after 1m5s: it broke");
        assert_eq!(said("it\nbroke"), "✗ Iteration 3 failed after 1m5s: the same again");
        let invalid = PersonLines::end(&tally, &good, true, "").unstyled();
        assert!(invalid.starts_with("? Iteration 3 is not valid, after 1m5s"), "{invalid}");
    }

    #[test]
    fn the_end_tells_what_there_is_to_tell_and_what_to_type_next() {
        let mut tally =
            Tally { iteration: 4, succeeded: 3, failed: 1, cost_usd: Some(1.5), ..Tally::default() };
        tally.durations.count = 6;
        let identity = identity();
        let duration = Duration::from_mins(1);
        let closing = |outcome, tally, work| Closing {
            identity: &identity,
            outcome,
            detail: None,
            tally,
            duration,
            work,
        };
        let mut lines = PersonLines::new("build");
        lines.log_is(Path::new("l.log"));
        assert_eq!(
            text(&lines.summary(&closing(Outcome::MaxIterations, &tally, None))),
            "■ limit: max iterations reached\n  \
             ran         4 iterations in 1m0s (3 succeeded, 1 failed, 6 attempts)\n  \
             spent       $1.50\n  log         l.log\n  next        ralph resume 'my loop' --max-iterations 8\n"
        );
        let work = WorkDone { from: Some("a".repeat(40)), commits: 1, files: 2, insertions: 3, deletions: 4 };
        let tally = Tally { iteration: 1, succeeded: 1, ..Tally::default() };
        assert_eq!(
            text(&PersonLines::new("build").summary(&closing(Outcome::Complete, &tally, Some(&work)))),
            "■ done: completion signal detected\n  ran         1 iteration in 1m0s\n  \
             committed   1 commit, 2 files, +3 −4\n  next        git diff aaaaaaaaaaaa\n"
        );
        let tally = Tally { validation_error: Some("one\n\ntwo\n".into()), ..Tally::default() };
        let told = text(&lines.summary(&closing(Outcome::Unproven, &tally, None)));
        assert!(told.contains("  validation  one\n  validation  two\n"), "{told}");
    }

    #[test]
    fn every_end_that_is_not_the_users_own_names_a_next_step() {
        let tally = Tally { iteration: 2, ..Tally::default() };
        let budget =
            Budget { max_cost_usd: Some(1.0), max_duration_seconds: Some(60.0), ..Budget::default() };
        for outcome in Outcome::ALL {
            let is_quiet =
                matches!(outcome.ended(), Ended::Done | Ended::Idle | Ended::Cancelled | Ended::Killed)
                    || matches!(outcome, Outcome::PromptLost | Outcome::RecordFailed | Outcome::GitFailed);
            let next = next_step("build", "build", outcome, (&tally, budget), None);
            assert_eq!(next.is_none(), is_quiet, "{outcome:?}");
        }
    }
}
