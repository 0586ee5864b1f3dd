//! The scrolling view: blocks on stdout, what the agent does on stderr.

mod said;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anstyle::Style;
use chrono::{DateTime, Utc};

use super::cells;
use super::console::Target;
use super::next_step::shell_word;
use super::person_lines::{Closing, PersonLines, Row};
use super::report::sign;
use super::run_lines::RunLines;
use super::terminal;
use super::voice::Voice;
use super::waits::Waits;
use super::worker_lines::WorkerLines;
use crate::engine::event::Stamped;
use crate::engine::fact::{Asked, AttemptEnded, Fact, LoopEnded, WaitReason, Word};
use crate::engine::outcome::{Ended, Outcome};
use crate::engine::stop::Urgency;
use crate::engine::tally::Tally;
use crate::engine::validator::failure;
use crate::record::blocks;
use crate::record::report::{Live, LoopReport};
use crate::text::duration::of_seconds;
use crate::text::palette::{ERROR, FAINT, GOOD, NOTE, QUESTION};
use crate::text::terminal::message;
use crate::text::{count, duration, timestamp};

/// The plain view of one loop.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact by itself")]
pub(crate) struct Plain {
    voice: Voice,
    quiet: bool,
    frame: Frame,
    /// The agent's text so far does not end in a newline.
    mid_line: bool,
    /// The same of its thoughts.
    mid_thought: bool,
    /// What the agent says and does that is to be written with what came with it.
    pending: String,
    /// Errors of the agent that are not told yet: mostly its attempt fails next, and for that reason.
    held: Vec<String>,
    /// The failure that was told last.
    told: String,
    /// The validation of the iteration that is about to end.
    fails: bool,
    /// An attempt is under way.
    is_at_work: bool,
    /// What a person is told of it in the end.
    live: Live,
    /// Of a branch: the agent's latest notice, which is not told yet, because it may be of the limit that all meet.
    notice: Option<String>,
    /// Of a branch: it waits for what all of them wait for.
    waits_for_all: bool,
    /// What many branches wait for.
    waits: SharedWaits,
}

/// The waits that were told, of all loops that share a screen.
pub(crate) type SharedWaits = Arc<Mutex<Waits>>;

/// What stands on stdout around the iterations.
#[derive(Debug)]
pub(crate) enum Frame {
    /// The blocks of the session log.
    Blocks,
    /// What a person reads on a terminal.
    Person(PersonLines),
    /// A line each.
    Lines(RunLines),
    /// A line each, and one that tells how the loop ended.
    Branch(RunLines),
    /// The lines of a worker's loop.
    Worker(Box<WorkerLines>),
}

impl Frame {
    /// This frame, or in its place the one for a person where standard output is a terminal; `verb` are the words of the command
    /// line that start the loop.
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
    /// `quiet` leaves out what the agent does and the frame around it; the summary and what went wrong stay.
    #[must_use]
    pub(crate) fn new(voice: Voice, quiet: bool, frame: Frame, waits: SharedWaits) -> Self {
        Self {
            voice,
            quiet,
            frame,
            mid_line: false,
            mid_thought: false,
            pending: String::new(),
            held: Vec::new(),
            told: String::new(),
            fails: false,
            is_at_work: false,
            live: Live::default(),
            notice: None,
            waits_for_all: false,
            waits,
        }
    }

    /// Shows one fact.
    pub(crate) fn take(&mut self, stamped: &Stamped<'_>) {
        if let Frame::Worker(lines) = &mut self.frame
            && let Some(text) = lines.take(stamped)
        {
            self.of_worker(stamped.fact, text);
            return;
        }
        if self.is_for_person() {
            self.live.take(stamped);
        }
        match stamped.fact {
            Fact::LoopStarted { limits, max_iterations, .. } => {
                self.last_is(stamped.tally.last_iteration(*max_iterations));
                if let (Frame::Person(lines), Some(limits)) = (&mut self.frame, limits) {
                    lines.budget_is(limits.budget.into());
                }
            }
            Fact::LimitsChanged { max_iterations } => {
                self.last_is(stamped.tally.last_iteration(*max_iterations));
                self.line(NOTE, "▶", "what was changed holds from the next iteration on");
            }
            Fact::AttemptStarted { iteration, retry, .. } => {
                self.is_at_work = true;
                let text = match &mut self.frame {
                    Frame::Person(lines) => {
                        lines.within(&[lines.begin(*iteration, *retry)], terminal::size().1)
                    }
                    Frame::Blocks => blocks::header(*iteration, &stamped.identity.mode, &stamped.at),
                    Frame::Lines(lines) | Frame::Branch(lines) => lines.begin(*iteration),
                    Frame::Worker(_) => return,
                };
                self.block_unless_quiet(text);
            }
            Fact::AttemptEnded(ended) => {
                self.is_at_work = false;
                let text = match &mut self.frame {
                    Frame::Person(_) => return self.iteration_ended(ended),
                    Frame::Blocks => blocks::footer(ended, stamped.at),
                    Frame::Lines(lines) | Frame::Branch(lines) => lines.end(ended, stamped.exceeded()),
                    Frame::Worker(_) => return,
                };
                self.attempt_ended(ended, text);
            }
            Fact::TaskStarted { .. }
            | Fact::TaskEnded { .. }
            | Fact::Verifying { .. }
            | Fact::Verified { ok: true, .. }
                if !self.quiet =>
            {
                self.task(stamped.fact);
            }
            Fact::TaskEnded { outcome, .. } if *outcome == "failed" => self.task(stamped.fact),
            Fact::Validated { ok, .. } if self.is_for_person() => self.fails = !ok,
            Fact::Validated { ok: false, output, undecided } => {
                self.line(ERROR, "✗", failure(*undecided, output));
            }
            // The line of the attempt itself tells of it.
            Fact::Retrying { pause_s, .. } if self.is_for_person() && *pause_s < 1.0 => {}
            Fact::Retrying { pause_s, .. } if self.is_for_person() => {
                let pause = duration::rough(of_seconds(*pause_s));
                self.line(NOTE, "↻", &format!("tries again in {pause}"));
            }
            Fact::Retrying { iteration, max_retries, retry, .. } => {
                let text = format!("Agent failure on iteration {iteration}, retry {retry}/{max_retries}...");
                self.line(NOTE, "↻", &text);
            }
            Fact::Waiting { reason, until, .. } => {
                self.waits(stamped, until.to_utc(), *reason == WaitReason::Overload.into());
            }
            Fact::BackingOff { pause_s, .. } => {
                let text = format!("the next iteration begins in {}", duration::format(of_seconds(*pause_s)));
                self.line(NOTE, "⏸", &text);
            }
            Fact::NeedsAttention { screen } => self.attention(screen),
            Fact::Background { at_most_s, tasks } if !self.quiet => {
                let text = format!(
                    "the agent waits for what it has in the background: {tasks} (at most {})",
                    duration::format(of_seconds(*at_most_s))
                );
                self.line(FAINT, "⏸", &text);
            }
            Fact::Queued if !self.quiet => self.line(FAINT, "⏸", "waiting for a free place"),
            Fact::Paused => self.line(NOTE, "⏸", "paused; 'ralph resume' goes on"),
            // Its status line says so.
            Fact::Resumed { .. } if std::mem::take(&mut self.waits_for_all) => {}
            Fact::Resumed { .. } | Fact::AttentionOver => self.line(NOTE, "▶", "going on"),
            Fact::Asked { stopping: Word::Known(urgency), what: Word::Known(what), .. } => {
                self.asked(*what, *urgency);
            }
            // Also where much is left out: it wants an answer, which is typed on the next row.
            Fact::Question { text } => self.line(QUESTION, "?", text),
            Fact::Published { message } if !self.quiet => self.line(FAINT, "↑", message),
            Fact::Notice { message } => self.line(NOTE, "!", message),
            Fact::Recovered { attempts, cost_usd, .. } => {
                self.line(NOTE, "!", &blocks::recovered_line(*attempts, *cost_usd));
            }
            Fact::LoopEnded(ended) => self.loop_ended(stamped, ended),
            fact if !self.quiet && fact.is_shown() => self.shown(fact, stamped.goes_on),
            _ => {}
        }
    }

    /// Lines as they are shown: for a person, broken between words where the terminal ends.
    fn broken(&self, rows: &[Row]) -> String {
        match &self.frame {
            Frame::Person(lines) => lines.within(rows, terminal::size().1),
            _ => rows.iter().map(Row::unbroken).collect(),
        }
    }

    fn is_for_person(&self) -> bool {
        matches!(self.frame, Frame::Person(_))
    }

    /// Whether it is one branch out of many, on a terminal.
    fn is_branch_for_person(&self) -> bool {
        matches!(&self.frame, Frame::Person(lines) if lines.is_of_branch())
    }

    /// Everything that the loop's agents write is there.
    pub(crate) fn log_is(&mut self, log: &Path) {
        if let Frame::Person(lines) = &mut self.frame {
            lines.log_is(log);
        }
    }

    fn last_is(&mut self, last: Option<u64>) {
        if let Frame::Person(lines) = &mut self.frame {
            lines.last_is(last);
        }
    }

    /// The line of a worker's loop, and above it what went wrong.
    fn of_worker(&mut self, fact: &Fact<'_>, text: String) {
        match fact {
            Fact::AttemptEnded(ended) => self.failed(ended.why()),
            Fact::LoopEnded(LoopEnded { detail: Some(detail), .. }) if **detail != self.told => {
                self.line(ERROR, "✗", detail);
            }
            _ => {}
        }
        if !text.is_empty() {
            self.block(text);
        }
    }

    fn attempt_ended(&mut self, ended: &AttemptEnded<'_>, text: String) {
        self.failed(ended.why());
        if !self.quiet {
            self.cost(ended);
        }
        self.block_unless_quiet(text);
    }

    /// One line with all there is to say, the error among it.
    fn iteration_ended(&mut self, ended: &AttemptEnded<'_>) {
        let failure = ended.why();
        // What all branches wait for is told once, by its wait.
        if self.is_branch_for_person() && ended.waited_for {
            self.held.clear();
            self.notice = None;
            return;
        }
        self.held_errors(failure);
        let row = PersonLines::end(ended, std::mem::take(&mut self.fails), &self.told);
        failure.clone_into(&mut self.told);
        if !self.quiet || !failure.is_empty() {
            let text = self.broken(&[row]);
            self.block(text);
        }
    }

    fn loop_ended(&mut self, stamped: &Stamped<'_>, ended: &LoopEnded<'_>) {
        let Some(outcome) = stamped.outcome() else { return };
        let (tally, detail, duration) = (stamped.tally, ended.detail.as_deref(), ended.duration());
        if let (Frame::Person(lines), Some(report)) = (&self.frame, self.live.report()) {
            let width = terminal::size().1;
            if lines.is_of_branch() {
                let line = lines.finished(report, width);
                self.end_line();
                return self.voice.say_for_all(Target::Stdout, line);
            }
            let closing = lines.closing(&Closing { report, outcome, detail, tally }, &self.told, width);
            return self.block(closing);
        }
        let (style, _) = sign(outcome.ended().word());
        // A failure that was told is not told again; what can be done about it is.
        let detail = detail.map(|detail| match detail.strip_prefix(&self.told) {
            Some(rest) => rest.trim_start_matches("; "),
            None => detail,
        });
        let detail = detail.filter(|detail| !detail.is_empty());
        let (detail, text) = match &self.frame {
            // The blocks name the reason; the lines do not.
            Frame::Blocks => (detail, blocks::summary(tally, outcome, duration)),
            Frame::Lines(lines) => (Some(detail.unwrap_or(outcome.reason())), lines.summary()),
            Frame::Branch(_) => (None, branch_ended(style, outcome, detail, tally, duration).unbroken()),
            Frame::Person(_) | Frame::Worker(_) => return,
        };
        if let Some(detail) = detail {
            self.line(style, "■", detail);
        }
        self.block(text);
    }

    /// The loop could not be started, for this reason.
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

    /// What wants a person, with the screen below it.
    fn attention(&mut self, screen: &str) {
        let mut lines = screen.lines();
        self.line(QUESTION, "?", &format!("needs attention: {}", lines.next().unwrap_or_default()));
        let below: Vec<String> = lines.map(|line| format!("    {}\n", message(line))).collect();
        self.voice.say(Target::Stderr, below.concat());
    }

    /// A wait, and how to end it. That of many branches for one limit is told once, by the first.
    fn waits(&mut self, stamped: &Stamped<'_>, until: DateTime<Utc>, is_overload: bool) {
        let shortage = stamped.fact.shortage();
        let is_branch = matches!(self.frame, Frame::Branch(_)) || self.is_branch_for_person();
        self.waits_for_all = self.is_branch_for_person();
        if is_branch {
            let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
            if !waits.is_new(is_overload || shortage.is_some(), stamped.at.to_utc(), until) {
                return;
            }
        }
        let (all, name) = if is_branch {
            (", all branches", String::new())
        } else {
            ("", format!(" {}", shell_word(&stamped.identity.name)))
        };
        let why = if let Some(shortage) = shortage {
            format!("{shortage}: waiting for room{all}")
        } else {
            let why = if is_overload { "provider overloaded" } else { "usage limit reached" };
            let left = duration::rough((until - stamped.at.to_utc()).to_std().unwrap_or_default());
            let until = timestamp::nearby(&until, stamped.at);
            format!("{why}; waiting until {until} ({left}){all}")
        };
        let text = format!("{why}: 'ralph resume{name}' tries now, Ctrl+C stops");
        if self.is_branch_for_person() {
            self.end_line();
            let row = Row { style: NOTE, head: "⏸ ".to_owned(), text: message(&text) };
            self.voice.say_for_all(Target::Stderr, row.within(terminal::size().1));
        } else {
            self.line(NOTE, "⏸", &text);
        }
    }

    fn task(&mut self, fact: &Fact<'_>) {
        let (style, mark) = match fact {
            Fact::TaskEnded { outcome, .. } => match &**outcome {
                "done" => (GOOD, "✓"),
                "failed" => (ERROR, "✗"),
                _ => (NOTE, "↻"),
            },
            _ => (FAINT, "▶"),
        };
        if let Some(line) = blocks::task_line(fact) {
            self.line(style, mark, &line);
        }
    }

    fn asked(&mut self, what: Asked, urgency: Urgency) {
        let text = match (what, urgency) {
            (Asked::Note, _) => "a note was taken for the next prompt",
            (Asked::Pause, _) => "pausing after this attempt",
            (Asked::Detach, _) => "its state is cleaned away: the agent works on by itself",
            (Asked::Resume | Asked::Change, _) | (_, Urgency::None) => return,
            (_, Urgency::AfterAttempt) if self.is_at_work => {
                "stopping after this attempt; press Ctrl+C again to end the agent now"
            }
            (_, Urgency::AfterAttempt) => "stopping",
            (_, Urgency::Now) => "ending the agent; press Ctrl+C again to kill it and leave",
            (_, Urgency::AtOnce) => "killing the agent",
        };
        self.line(NOTE, "■", text);
    }

    /// What the attempt cost, where the agent said so.
    fn cost(&mut self, ended: &AttemptEnded<'_>) {
        let usage = &ended.usage;
        let mut text = String::new();
        if let Some(model) = &usage.model {
            let _ = write!(text, "{model}  ");
        }
        if let (Some(input), Some(output)) = (usage.input_tokens, usage.output_tokens) {
            let _ = write!(text, "{input} tokens in, {output} out  ");
        }
        if let Some(cost) = ended.cost_usd() {
            let _ = write!(text, "${cost:.4}");
        }
        if !text.is_empty() {
            self.line(FAINT, "Σ", text.trim_end());
        }
    }

    /// One line of ralph's own on stderr.
    fn line(&mut self, style: Style, mark: &str, text: &str) {
        self.end_line();
        let row = Row { style, head: format!("{mark} "), text: message(text) };
        let text = self.broken(&[row]);
        self.voice.say(Target::Stderr, text);
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
        let newline = self.missing_newline();
        if !newline.is_empty() {
            self.voice.say(Target::Stderr, newline.to_owned());
        }
    }

    /// What has to be printed before a line can begin.
    fn missing_newline(&mut self) -> &'static str {
        let is_within = std::mem::take(&mut self.mid_line) | std::mem::take(&mut self.mid_thought);
        if is_within { "\n" } else { "" }
    }
}

/// `■ limit: max iterations reached · 20 iterations · 1h02m03s · $1.42`
fn branch_ended(style: Style, outcome: Outcome, detail: Option<&str>, tally: &Tally, took: Duration) -> Row {
    let (word, why, detail) = (outcome.ended().word(), outcome.reason(), detail.map(cells::plain));
    let why = Some(why).filter(|why| *why != word);
    let reason = [Some(word), why, detail.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(": ");
    let mut facts = vec![reason, count::of(tally.ran(), "iteration"), duration::elapsed(took)];
    if let Some(cost) = tally.cost_usd.filter(|cost| *cost > 0.0) {
        facts.push(format!("${cost:.2}"));
    }
    Row { style, head: "■ ".to_owned(), text: facts.join(" · ") }
}
