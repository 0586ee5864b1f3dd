//! The scrolling view: blocks on stdout, what the agent does on stderr.

mod said;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Local};

use super::cells;
use super::person_lines::{Closing, PersonLines};
use super::run_lines::RunLines;
use super::terminal;
use super::terminal::Target;
use super::transcript::Flow;
use super::voice::Voice;
use super::waits::Waits;
use super::worker_lines::WorkerLines;
use crate::engine::event::Stamped;
use crate::engine::fact::{AttemptEnded, Fact, LoopEnded, Word};
use crate::engine::outcome::{Ended, Outcome};
use crate::engine::tally::Tally;
use crate::record::report::{Live, LoopReport};
use crate::tell::blocks;
use crate::tell::seen::Seen;
use crate::tell::words::{self, Entry, Kind};
use crate::text::line::shell_word;
use crate::text::terminal::message;
use crate::text::{count, duration, timestamp};

/// The plain view of one loop.
#[derive(Debug)]
pub(crate) struct Plain {
    voice: Voice,
    quiet: bool,
    frame: Frame,
    /// The text of what the agent says and does.
    flow: Flow,
    /// Text of the agent that waits for facts that came with it.
    pending: String,
    /// Errors of the agent that are not shown yet: mostly its attempt fails next, for that reason.
    held: Vec<String>,
    /// The failure that was shown last.
    told: String,
    /// The report for the closing of the loop.
    live: Live,
    /// For a branch: the agent's latest notice, which is not shown yet, because it may be about a limit that all branches meet.
    notice: Option<Entry>,
    /// For a branch: whether it waits for a limit that is shown once for all.
    waits_for_all: bool,
    /// The waits of many branches.
    waits: SharedWaits,
    /// The time of the latest fact.
    at: DateTime<Local>,
}

/// The waits that were shown, of all loops that share a screen.
pub(crate) type SharedWaits = Arc<Mutex<Waits>>;

/// The lines on stdout around the iterations.
#[derive(Debug)]
pub(crate) enum Frame {
    /// The blocks of the session log.
    Blocks,
    /// The lines for a person on a terminal.
    Person(PersonLines),
    /// One line for each iteration.
    Lines(RunLines),
    /// A line for each iteration with the time of day, and one that tells how the loop ended.
    Branch {
        /// What the agents do, too, and where iterations begin.
        verbose: bool,
    },
    /// The lines of a worker's loop.
    Worker(Box<WorkerLines>),
}

impl Frame {
    /// This frame, or the one for a person if standard output is a terminal; `verb` are the words of the command line that start the
    /// loop.
    #[must_use]
    pub(crate) fn for_reader(self, verb: &'static str) -> Self {
        match self {
            Self::Blocks | Self::Lines(_) if terminal::is_for_person() => {
                Self::Person(PersonLines::new(verb))
            }
            frame => frame,
        }
    }
}

impl Plain {
    /// `quiet` leaves out what the agent does and the frame around it, but not the summary and failures.
    #[must_use]
    pub(crate) fn new(voice: Voice, quiet: bool, frame: Frame, waits: SharedWaits) -> Self {
        Self {
            voice,
            quiet,
            frame,
            flow: Flow::default(),
            pending: String::new(),
            held: Vec::new(),
            told: String::new(),
            live: Live::default(),
            notice: None,
            waits_for_all: false,
            waits,
            at: DateTime::UNIX_EPOCH.into(),
        }
    }

    /// Shows one fact.
    pub(crate) fn take(&mut self, stamped: &Stamped<'_>, seen: &Seen) {
        self.at = stamped.at;
        if let Frame::Worker(lines) = &mut self.frame
            && let Some(text) = lines.take(stamped, seen)
        {
            self.of_worker(stamped.fact, text);
            return;
        }
        if self.is_for_person() {
            self.live.take(stamped);
        }
        if let Frame::Lines(lines) = &mut self.frame {
            lines.count(stamped.fact);
        }
        match stamped.fact {
            Fact::AttemptStarted { iteration, retry, .. } => {
                let text = match &mut self.frame {
                    Frame::Person(_) | Frame::Branch { verbose: true } => {
                        self.text_of(&words::attempt_begins(*iteration, seen.last_iteration, *retry))
                    }
                    Frame::Blocks => blocks::header(*iteration, &stamped.identity.mode, &stamped.at),
                    Frame::Lines(lines) => lines.begin(*iteration),
                    Frame::Branch { verbose: false } | Frame::Worker(_) => return,
                };
                self.block_unless_quiet(text);
            }
            Fact::AttemptEnded(ended) => {
                let text = match &mut self.frame {
                    Frame::Person(_) | Frame::Branch { .. } => return self.iteration_ended(ended, seen),
                    Frame::Blocks => blocks::footer(ended, stamped.at),
                    Frame::Lines(lines) => lines.end(ended, stamped.exceeded()),
                    Frame::Worker(_) => return,
                };
                self.attempt_ended(ended, text);
            }
            &Fact::Retrying { iteration, max_retries, retry, .. } if !self.is_for_person() => {
                self.line(&Entry::new(Kind::Note, "↻", blocks::retry_line(iteration, retry, max_retries)));
            }
            Fact::Waiting { .. } => self.waits(stamped),
            // Its status line shows that.
            Fact::Resumed { .. } if std::mem::take(&mut self.waits_for_all) => {}
            Fact::Asked { stopping: Word::Known(urgency), what: Word::Known(what), .. } => {
                if let Some(entry) = words::asked(*what, *urgency, seen.is_at_work()) {
                    self.line(&entry);
                }
            }
            Fact::LoopEnded(ended) => self.loop_ended(stamped, ended, seen),
            _ => self.told(stamped),
        }
    }

    /// A fact in its one wording.
    fn told(&mut self, stamped: &Stamped<'_>) {
        let fact = stamped.fact;
        let Some(mut entry) = words::entry(fact, &stamped.at).filter(|entry| !self.is_left_out(fact, entry))
        else {
            return;
        };
        if fact.is_shown() {
            return self.shown(fact, entry, stamped.goes_on);
        }
        let below = match fact {
            // The screen of an agent; its first row is the question.
            Fact::NeedsAttention { .. } => entry.text.find('\n').map(|at| entry.text.split_off(at)),
            _ => None,
        };
        if let (Fact::TaskEnded { .. }, Frame::Lines(_)) = (fact, &self.frame) {
            return self.block(entry.line(None));
        }
        self.line(&entry);
        if let Some(below) = below {
            let below = below.lines().skip(1).map(|line| format!("    {}\n", message(line)));
            self.voice.say(Target::Stderr, below.collect());
        }
    }

    /// Whether another line shows the fact, or the user has typed it; with `quiet`, also whether it is a success.
    fn is_left_out(&self, fact: &Fact<'_>, entry: &Entry) -> bool {
        match fact {
            // The line of the attempt shows it.
            Fact::Validated { .. } if self.is_for_person() => true,
            Fact::Validated { ok: true, .. }
            | Fact::Verified { ok: false, .. }
            | Fact::Answered { .. }
            | Fact::HookEnded { .. } => true,
            Fact::Retrying { pause_s, .. } => *pause_s < 1.0,
            Fact::TaskEnded { outcome, .. } => self.quiet && *outcome != "failed",
            Fact::Verified { .. } => self.quiet,
            // The line of the iteration is enough where many branches share a file; `ralph logs --agent` has the rest.
            Fact::Text { .. } | Fact::TextDelta { .. } | Fact::Thought { .. } | Fact::Tool { .. }
                if matches!(self.frame, Frame::Branch { verbose: false }) =>
            {
                self.quiet || terminal::width_of(Target::Stderr).is_none()
            }
            fact => self.quiet && (fact.is_shown() || entry.kind == Kind::Faint),
        }
    }

    fn is_for_person(&self) -> bool {
        matches!(self.frame, Frame::Person(_))
    }

    /// Whether it is one branch out of many.
    fn is_branch(&self) -> bool {
        matches!(self.frame, Frame::Branch { .. }) || self.is_branch_for_person()
    }

    /// Whether it is one branch out of many, on a terminal.
    fn is_branch_for_person(&self) -> bool {
        matches!(&self.frame, Frame::Person(lines) if lines.is_of_branch())
    }

    /// Sets the path of the session log.
    pub(crate) fn log_is(&mut self, log: &Path) {
        if let Frame::Person(lines) = &mut self.frame {
            lines.log_is(log);
        }
    }

    /// The line of a worker's loop, and above it the failure.
    fn of_worker(&mut self, fact: &Fact<'_>, text: String) {
        match fact {
            Fact::AttemptEnded(ended) => self.failed(ended.why()),
            Fact::LoopEnded(LoopEnded { detail: Some(detail), .. })
                if self.told.is_empty() || !detail.ends_with(&self.told) =>
            {
                self.line(&Entry::new(Kind::Error, "✗", &**detail));
            }
            _ => {}
        }
        if !text.is_empty() {
            self.block(text);
        }
        if let Fact::LoopEnded(ended) = fact {
            self.proof(ended);
        }
    }

    /// The line of what shows that the work is good, where nothing else says it.
    fn proof(&mut self, ended: &LoopEnded<'_>) {
        if let Some(proof) = further_proof(ended) {
            self.line(&proof);
        }
    }

    fn attempt_ended(&mut self, ended: &AttemptEnded<'_>, text: String) {
        self.failed(ended.why());
        let cost = words::cost(ended);
        if !self.quiet && !cost.text.is_empty() {
            self.line(&cost);
        }
        self.block_unless_quiet(text);
    }

    /// One line with everything, including the error.
    fn iteration_ended(&mut self, ended: &AttemptEnded<'_>, seen: &Seen) {
        let failure = ended.why();
        // The wait of all branches is shown once.
        if self.is_branch() && ended.waited_for {
            self.held.clear();
            self.notice = None;
            return;
        }
        self.held_errors(failure);
        let entry = PersonLines::end(ended, seen, &self.told);
        failure.clone_into(&mut self.told);
        if !self.quiet || !failure.is_empty() {
            self.block(self.text_of(&entry));
        }
    }

    fn loop_ended(&mut self, stamped: &Stamped<'_>, ended: &LoopEnded<'_>, seen: &Seen) {
        let Some(outcome) = stamped.outcome() else { return };
        let (tally, detail) = (stamped.tally, ended.detail.as_deref());
        if let (Frame::Person(lines), Some(report)) = (&self.frame, self.live.report()) {
            let width = terminal::size().1;
            if lines.is_of_branch() {
                let line = lines.finished(report, width);
                self.end_line();
                return self.voice.say_for_all(Target::Stdout, line);
            }
            let closing = lines.closing(&Closing { report, outcome, detail, tally, seen }, &self.told, width);
            return self.block(closing);
        }
        // A failure that was shown is not shown again; what can be done about it is.
        let detail = detail.map(|detail| match detail.strip_prefix(&self.told) {
            Some(rest) => rest.trim_start_matches("; "),
            None => detail,
        });
        let detail = detail.filter(|detail| !detail.is_empty());
        let (detail, text) = match &self.frame {
            // The blocks have the reason; the lines do not.
            Frame::Blocks => (detail, blocks::summary(ended, outcome, tally)),
            Frame::Lines(lines) => (Some(detail.unwrap_or(outcome.reason())), lines.summary()),
            Frame::Branch { .. } => (None, self.text_of(&branch_ended(ended, outcome, detail, tally))),
            Frame::Person(_) | Frame::Worker(_) => return,
        };
        if let Some(detail) = detail {
            self.line(&Entry { text: detail.to_owned(), ..words::loop_ended(ended, Some(outcome), None) });
        }
        if let Frame::Lines(_) = &self.frame {
            self.proof(ended);
        }
        self.block(text);
    }

    /// Shows that the loop could not be started, for this reason.
    pub(crate) fn refused(&mut self, name: &str, why: &str) {
        match &self.frame {
            Frame::Person(lines) if lines.is_of_branch() => {
                let report = LoopReport {
                    end: Ended::Error.word().to_owned(),
                    reason: Some(why.to_owned()),
                    ..LoopReport::named(name)
                };
                let line = lines.finished(&report, terminal::size().1);
                self.voice.say_for_all(Target::Stdout, line);
            }
            _ => self.voice.say(Target::Stderr, format!("warning: {}\n", message(why))),
        }
    }

    /// A wait, and how to end it. The wait of many branches for one limit is shown once, by the first.
    fn waits(&mut self, stamped: &Stamped<'_>) {
        let is_branch = self.is_branch();
        self.waits_for_all = self.is_branch_for_person();
        if is_branch && !self.waits.lock().unwrap_or_else(PoisonError::into_inner).meet(stamped) {
            return;
        }
        let Some(mut entry) = words::entry(stamped.fact, &stamped.at) else { return };
        let name = shell_word(&stamped.identity.name);
        let (all, name) = if is_branch { (", all branches", "") } else { ("", &*name) };
        let tries =
            if words::is_for_store(&entry.text) { String::new() } else { words::tries_now(name) + ", " };
        entry.text = format!("{}{all}: {tries}Ctrl+C stops", entry.text);
        if self.is_branch_for_person() {
            self.end_line();
            self.voice.say_for_all(Target::Stderr, entry.line(Some(terminal::size().1)));
        } else {
            self.line(&entry);
        }
    }

    /// A line of ralph on stderr.
    fn line(&mut self, entry: &Entry) {
        self.end_line();
        let line = self.text_of(entry);
        self.voice.say(Target::Stderr, line);
    }

    /// The line of an entry in this frame; in a file, with the time of day.
    fn text_of(&self, entry: &Entry) -> String {
        let line = entry.line(self.width());
        match &self.frame {
            Frame::Branch { .. } => format!("{} {line}", timestamp::clock(self.at)),
            _ => line,
        }
    }

    /// The width of a line that is broken between words: for a person.
    fn width(&self) -> Option<usize> {
        match &self.frame {
            Frame::Person(lines) => Some(lines.width(terminal::size().1)),
            _ => None,
        }
    }

    fn block_unless_quiet(&mut self, text: String) {
        if !self.quiet {
            self.block(text);
        }
    }

    fn block(&mut self, text: String) {
        self.end_line();
        self.voice.say(Target::Stdout, text);
    }

    fn end_line(&mut self) {
        self.voice.show(Target::Stderr, std::mem::take(&mut self.pending));
        let newline = self.flow.end();
        if !newline.is_empty() {
            self.voice.say(Target::Stderr, newline.to_owned());
        }
    }
}

/// `■ limit: max iterations reached · 20 iterations · 1h02m03s · $1.42 · proven: npm test`
fn branch_ended(ended: &LoopEnded<'_>, outcome: Outcome, detail: Option<&str>, tally: &Tally) -> Entry {
    let detail = detail.map(cells::plain);
    let end = words::loop_ended(ended, Some(outcome), detail.as_deref());
    let (iterations, took) = (count::of(tally.ran(), "iteration"), duration::elapsed(ended.duration()));
    let proof = further_proof(ended).map(|proof| proof.text);
    let facts = [Some(end.text), Some(iterations), Some(took), count::money(tally.spent.cost_usd), proof];
    Entry { text: words::figures(facts), ..end }
}

/// What shows that the work is good, or that it is not; `None` where the detail of the end says that.
fn further_proof(ended: &LoopEnded<'_>) -> Option<Entry> {
    let is_told = |by: &str| ended.detail.as_deref().is_some_and(|detail| detail.contains(by));
    ended.proof.as_ref().filter(|proof| !is_told(&proof.by)).map(words::proof)
}
