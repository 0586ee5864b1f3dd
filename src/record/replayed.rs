//! The events of a loop again, as its events log has them: for the views that have shown them, and for the policy.
//!
//! What no line tells is missing: raw bytes, and which time limit an attempt has exceeded.

use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Datelike as _, FixedOffset, Local};

use super::event_line::{
    Asked, EventLine, Fact, LineLimits, LineTask, LoopEnded, Stopping, WaitReason, Word,
};
use super::state::State;
use super::state_fold;
use crate::engine::event::{Event, LoopIdentity, Recovered, Stamped, TaskAtWork};
use crate::engine::hindsight::Next;
use crate::engine::outcome::Outcome;
use crate::engine::policy::{Limits, Now, OnFailure, Spent};
use crate::engine::stop::{Ask, Change, Request, Urgency};
use crate::engine::tally::{Last, Tally};
use crate::engine::worktree::WorkDone;
use crate::files::room::{Floor, Shortage};
use crate::process::identity::ProcessIdentity;
use crate::reply::show::Show;
use crate::text::terminal::message;

/// Years that the clock of a loop may show.
const YEARS: RangeInclusive<i32> = 1970..=9999;
/// What `task_ended` says of a task.
const BECAME: [&str; 5] = ["done", "failed", "retried", "blocked", "interrupted"];

/// Reads a line of an events log; `None` for one that is torn, of another version, or of a time that no clock shows.
#[must_use]
pub fn read(line: &[u8]) -> Option<EventLine<'_>> {
    let line = EventLine::read(std::str::from_utf8(line).ok()?).ok()?;
    let until = match &line.fact {
        Fact::Waiting { until, .. } => *until,
        _ => line.at,
    };
    [line.at, until].iter().all(|at| YEARS.contains(&at.year())).then_some(line)
}

/// A step that a loop has taken, and what the policy knew.
#[derive(Debug)]
pub struct Taken<'a> {
    /// What it did.
    pub next: Next,
    /// What had happened before.
    pub tally: &'a Tally,
    /// When, and for how long it had run.
    pub now: Now,
}

/// A loop as far as its lines were read.
#[derive(Debug)]
pub struct Replayed {
    identity: LoopIdentity,
    /// As each of its lines names it.
    run: String,
    state: State,
    limits: Limits,
    /// The limits are those that the loop had, and no guess.
    limits_are_known: bool,
    has_begun: bool,
    /// The next attempt was announced by a retry or a back-off.
    is_announced: bool,
    /// How long it had run at some moment, in seconds.
    ran: (DateTime<FixedOffset>, f64),
    /// When the last line was written, and whether the time since is no time of the loop's own.
    last: (DateTime<FixedOffset>, bool),
    /// What the other loops of the run had spent when the last line was written, and what they have until the next one.
    others: [Spent; 2],
}

impl Replayed {
    /// The loop that a line is of. Its names are made harmless to terminals.
    ///
    /// # Errors
    /// When the system does not tell which process this is.
    pub fn of(line: &EventLine<'_>) -> io::Result<Self> {
        let [run, name, mode, agent] =
            [&line.run, &line.name, &line.mode, &line.agent].map(|word| message(word));
        let identity = LoopIdentity { run, name, mode, agent };
        let process = ProcessIdentity::of_self()?;
        Ok(Self {
            state: State::new(&identity, process, line.at.to_utc(), "/".into()),
            identity,
            run: line.run.to_string(),
            limits: unknown_limits(),
            limits_are_known: false,
            has_begun: false,
            is_announced: false,
            ran: (line.at, 0.0),
            last: (line.at, false),
            others: [Spent::default(); 2],
        })
    }

    /// Whose loop it is.
    #[must_use]
    pub fn identity(&self) -> &LoopIdentity {
        &self.identity
    }

    /// What the loop may use up; `None` where no line has told it, as of an older ralph.
    #[must_use]
    pub fn limits(&self) -> Option<&Limits> {
        self.limits_are_known.then_some(&self.limits)
    }

    /// What it has spent.
    #[must_use]
    pub fn spent(&self) -> Spent {
        Spent::of(&self.state.tally)
    }

    /// The other loops that share its budget have spent this much until the next line.
    pub fn others_have_spent(&mut self, spent: Spent) {
        self.others[1] = spent;
    }

    /// The step that this next line tells of; `None`: of none, or of one that no limit has led to.
    #[must_use]
    pub fn taken(&self, line: &EventLine<'_>) -> Option<Taken<'_>> {
        let tally = &self.state.tally;
        if !self.has_begun || tally.in_attempt || line.run != self.run {
            return None;
        }
        // What comes before an attempt or an end may last; a pause and a wait are told when they begin.
        let mut at = line.at;
        let mut closed_until = None;
        let next = match &line.fact {
            Fact::AttemptStarted { .. } if self.is_announced => return None,
            Fact::AttemptStarted { iteration, retry, .. } => {
                at = self.last.0;
                match (*iteration > tally.iteration, *retry > tally.retries) {
                    (true, _) => Next::Iteration,
                    (false, true) => Next::Retry,
                    (false, false) => Next::Again,
                }
            }
            Fact::Retrying { .. } => Next::Retry,
            Fact::BackingOff { .. } => Next::Iteration,
            Fact::Waiting { reason: Word::Known(reason), until, .. } if *reason != WaitReason::DiskSpace => {
                // Another loop has met the limit.
                let is_of_others =
                    *reason == WaitReason::UsageLimit && !matches!(tally.last, Last::Limited { .. });
                closed_until = is_of_others.then(|| until.to_utc());
                Next::Wait
            }
            Fact::LoopEnded(ended) => {
                at = self.last.0;
                Next::End(outcome(ended).filter(|outcome| !is_of_people(*outcome))?)
            }
            _ => return None,
        };
        let running = Duration::try_from_secs_f64(self.ran.1 + seconds(self.ran.0, at)).unwrap_or_default();
        let [mut spent, mut otherwise] = self.others;
        if !matches!(next, Next::End(_)) {
            // Before a begin the loop may have waited for its place among the others; behind an end it may publish for long.
            std::mem::swap(&mut spent, &mut otherwise);
        }
        let mut now =
            Now { time: at.to_utc(), running, closed_until, spent_by_others: spent, rooms: [None; 2] };
        if !Next::decided(&self.limits, tally, now).explains(next, tally) {
            now.spent_by_others = otherwise;
        }
        Some(Taken { next, tally, now })
    }

    /// Takes the next line, and shows the event that it tells of. A line of another run is passed over.
    pub fn take(&mut self, line: &EventLine<'_>, see: &mut dyn FnMut(&Stamped<'_>)) {
        if line.run != self.run {
            return;
        }
        // Some ends have the same word: the limits say which one it was.
        let ended = match (&line.fact, self.taken(line)) {
            (Fact::LoopEnded(ended), Some(taken)) => {
                match Next::decided(&self.limits, taken.tally, taken.now) {
                    Next::End(decided) if is_told_as(decided, ended) => Some(decided),
                    _ => outcome(ended),
                }
            }
            (Fact::LoopEnded(ended), None) => outcome(ended),
            _ => None,
        };
        self.state.apply(line.at.to_utc(), &line.fact);
        self.book(line);
        let at = line.at.with_timezone(&Local);
        let mut tell = |event: Event<'_>| see(&Stamped { at, identity: &self.identity, event });
        match &line.fact {
            Fact::LoopEnded(line) => tell_end(line, ended, &self.state.tally, &mut tell),
            fact => self.tell(fact, &mut tell),
        }
    }

    /// Keeps what the next step depends on and the state does not have.
    fn book(&mut self, line: &EventLine<'_>) {
        let (before, stood_still) = self.last;
        if stood_still {
            self.ran.0 = self.ran.0.checked_add_signed(line.at - before).unwrap_or(line.at);
        }
        self.others[0] = self.others[1];
        self.last = (line.at, matches!(line.fact, Fact::Queued | Fact::Question { .. }));
        match &line.fact {
            Fact::LoopStarted { limits, max_iterations, max_retries, .. } => {
                self.has_begun = true;
                self.is_announced = false;
                self.limits_are_known = limits.is_some();
                let limits = limits.as_deref().map_or_else(unknown_limits, limits_of);
                let (max_iterations, max_retries) = (*max_iterations, *max_retries);
                self.limits = Limits { max_iterations, max_retries, ..limits };
                self.ran = (line.at, self.state.tally.elapsed_seconds);
            }
            Fact::LimitsChanged { max_iterations } => self.limits.max_iterations = *max_iterations,
            Fact::AttemptEnded(ended) => {
                let elapsed = ended.elapsed_s.unwrap_or_else(|| self.ran.1 + seconds(self.ran.0, line.at));
                self.ran = (line.at, elapsed);
            }
            Fact::Retrying { .. } | Fact::BackingOff { .. } => self.is_announced = true,
            Fact::AttemptStarted { .. } | Fact::Paused | Fact::Waiting { .. } => self.is_announced = false,
            _ => {}
        }
    }

    fn tell(&self, fact: &Fact<'_>, tell: &mut dyn FnMut(Event<'_>)) {
        let (tally, limits) = (&self.state.tally, &self.limits);
        match fact {
            Fact::LoopStarted { project, .. } => {
                tell(Event::LoopStarted { project: Path::new(&**project), limits, tally });
            }
            Fact::Recovered { attempts, cost_usd, from } => tell(Event::Recovered(&Recovered {
                from: from.to_string(),
                attempts: *attempts,
                cost_usd: *cost_usd,
            })),
            Fact::LimitsChanged { .. } => tell(Event::LimitsChanged { limits, tally }),
            Fact::AttemptStarted { head, .. } => {
                tell(Event::AttemptStarted { tally, head: head.as_deref() });
            }
            Fact::AgentStarted { command } => tell(Event::AgentStarted { command }),
            Fact::AgentKnown { model, session_id } => {
                let [model, session] = [model, session_id].map(|word| word.as_deref().map(message));
                tell(Event::AgentKnown { model: model.as_deref(), session: session.as_deref() });
            }
            Fact::AttemptEnded(ended) => {
                let (report, head) = (state_fold::report(ended), ended.head.as_deref());
                tell(Event::AttemptEnded { tally, report: &report, head, changed: ended.changed });
            }
            Fact::Background { at_most_s, tasks } => {
                tell(Event::Background { tasks, at_most: span(*at_most_s) });
            }
            Fact::Validating => tell(Event::Validating),
            Fact::Validated { ok, output, undecided } => {
                tell(Event::Validated { ok: *ok, undecided: *undecided, output });
            }
            Fact::Retrying { iteration, max_retries, pause_s, retry } => tell(Event::Retrying {
                iteration: *iteration,
                retry: *retry,
                max_retries: *max_retries,
                pause: span(*pause_s),
            }),
            Fact::BackingOff { max_failures, pause_s, .. } => {
                tell(Event::BackingOff { tally, breaker: *max_failures, pause: span(*pause_s) });
            }
            Fact::Waiting { free_bytes, until, wanted_bytes, .. } => {
                let shortage = free_bytes.zip(*wanted_bytes).map(|(free, wanted)| Shortage { free, wanted });
                tell(Event::Waiting { until: until.to_utc(), shortage, tally });
            }
            Fact::Queued => tell(Event::Queued),
            Fact::Paused => tell(Event::Paused { tally }),
            Fact::Resumed { .. } => tell(Event::Resumed { tally }),
            Fact::NeedsAttention { screen } => tell(Event::Attention(Some(screen))),
            Fact::AttentionOver => tell(Event::Attention(None)),
            Fact::Asked { note, stopping, what } => {
                if let (Some(ask), Some(stopping)) = (asked(what, note.as_deref()), stopping.known()) {
                    tell(Event::Asked { ask: &ask, urgency: urgency(*stopping) });
                }
            }
            Fact::Question { text } => tell(Event::Question(text)),
            Fact::Answered { text } => tell(Event::Answered(text.as_deref())),
            Fact::Published { message } => tell(Event::Published(message)),
            Fact::HookEnded { hook, ok, output } => tell(Event::HookEnded { hook, ok: *ok, output }),
            Fact::Notice { message } => tell(Event::Notice(message)),
            // The loop's own end is told with its outcome.
            Fact::LoopEnded(_) | Fact::BuildEnded { .. } | Fact::Unknown => {}
            fact => match shown(fact) {
                Some(show) => tell(Event::Shown(&[show])),
                None => tell_of_task(fact, tell),
            },
        }
    }
}

fn tell_of_task(fact: &Fact<'_>, tell: &mut dyn FnMut(Event<'_>)) {
    match fact {
        Fact::TaskStarted { task, tasks, verifies } => {
            tell(Event::TaskStarted { task: at_work(task), verifies: *verifies, counts: *tasks });
        }
        Fact::TaskEnded { outcome, reason, task, tasks } => {
            // What a later release calls otherwise is shown as a task that goes back.
            let became = BECAME.into_iter().find(|word| word == outcome).unwrap_or("blocked");
            tell(Event::TaskEnded { task: at_work(task), became, reason, counts: *tasks });
        }
        Fact::Verifying { task } => tell(Event::Verifying { task: at_work(task) }),
        Fact::Verified { ok, reason, task } => {
            tell(Event::Verified { task: at_work(task), ok: *ok, reason });
        }
        _ => {}
    }
}

fn at_work<'a>(task: &'a LineTask<'_>) -> TaskAtWork<'a> {
    let LineTask { feature, id, model, title } = task;
    TaskAtWork { id, title, feature: feature.as_deref(), model: model.as_deref() }
}

/// What the agent did that a person may want to see.
fn shown(fact: &Fact<'_>) -> Option<Show> {
    Some(match fact {
        Fact::Text { text } => Show::Text(text.to_string()),
        Fact::TextDelta { text } => Show::Delta(text.to_string()),
        Fact::Thought { text } => Show::Thought(text.to_string()),
        Fact::Tool { input, name } => Show::Tool { name: name.to_string(), input: input.to_string() },
        Fact::AgentError { message } => Show::Error(message.to_string()),
        Fact::AgentNotice { message } => Show::Notice(message.to_string()),
        Fact::Permission { answer: Word::Known(leave), kind, what } => {
            Show::Permission { leave: *leave, kind: kind.to_string(), what: what.to_string() }
        }
        _ => return None,
    })
}

fn asked(what: &Word<Asked>, note: Option<&str>) -> Option<Ask> {
    Some(match what.known()? {
        Asked::Interrupt => Ask::Interrupt,
        Asked::Terminate => Ask::Terminate,
        Asked::Pause => Ask::Request(Request::Pause),
        Asked::Resume => Ask::Request(Request::Resume),
        Asked::Cancel => Ask::Request(Request::Cancel),
        Asked::CancelNow => Ask::Request(Request::CancelNow),
        Asked::Detach => Ask::Request(Request::Detach),
        Asked::Note => Ask::Request(Request::Note(note.unwrap_or_default().to_owned())),
        // What was changed, no line tells.
        Asked::Change => Ask::Request(Request::Change(Change::default())),
    })
}

fn urgency(stopping: Stopping) -> Urgency {
    match stopping {
        Stopping::Not => Urgency::None,
        Stopping::AfterAttempt => Urgency::AfterAttempt,
        Stopping::Now => Urgency::Now,
        Stopping::AtOnce => Urgency::AtOnce,
    }
}

fn tell_end(line: &LoopEnded<'_>, outcome: Option<Outcome>, tally: &Tally, tell: &mut dyn FnMut(Event<'_>)) {
    let Some(outcome) = outcome else {
        let why = format!("the loop ended: {}, which this version of ralph does not know", line.exit_reason);
        return tell(Event::Notice(&why));
    };
    let work = line.work.as_ref().map(|work| WorkDone {
        from: work.from.as_ref().map(ToString::to_string),
        commits: work.commits,
        files: work.files,
        insertions: work.insertions,
        deletions: work.deletions,
    });
    let (detail, duration) = (line.detail.as_deref(), span(line.duration_s));
    tell(Event::LoopEnded { outcome, detail, tally, duration, work: work.as_ref() });
}

fn outcome(line: &LoopEnded<'_>) -> Option<Outcome> {
    Outcome::recorded(&line.exit_reason, Some(line.exit_code))
}

fn is_told_as(outcome: Outcome, line: &LoopEnded<'_>) -> bool {
    outcome.word() == line.exit_reason && outcome.code() == line.exit_code
}

/// Whether a loop that ends so was stopped from outside, before the policy was asked.
fn is_of_people(outcome: Outcome) -> bool {
    use Outcome::{Cancelled, Detached, Interrupted, Terminated};
    matches!(outcome, Cancelled | Detached | Interrupted | Terminated)
}

/// Those of a loop of which no line tells more.
fn unknown_limits() -> Limits {
    Limits {
        max_iterations: None,
        max_retries: 0,
        retry_pause: None,
        failure_pause: None,
        on_failure: OnFailure::Count,
        failed_end: Outcome::AgentFailed,
        last_counts: false,
        breaker: None,
        breaker_end: Outcome::Breaker,
        idle: None,
        max_duration: None,
        max_cost_usd: None,
        max_tokens: None,
        max_limit_wait: Duration::MAX,
        free_space_floor: Floor::NONE,
    }
}

fn limits_of(line: &LineLimits) -> Limits {
    let unknown = unknown_limits();
    Limits {
        retry_pause: line.retry_pause_s.map(span),
        failure_pause: line.failure_pause_s.map(span),
        on_failure: if line.stop_on_error { OnFailure::End } else { OnFailure::Count },
        failed_end: line.failed_end.known().copied().unwrap_or(unknown.failed_end),
        last_counts: line.last_counts,
        breaker: line.breaker,
        breaker_end: line.breaker_end.known().copied().unwrap_or(unknown.breaker_end),
        idle: line.idle,
        max_duration: line.max_duration_s.map(span),
        max_cost_usd: line.max_cost_usd,
        max_tokens: line.max_tokens,
        max_limit_wait: span(line.max_limit_wait_s),
        ..unknown
    }
}

/// So many seconds; what is no span of time is none.
fn span(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// From one moment to another, in seconds; none where the clock was set back.
fn seconds(from: DateTime<FixedOffset>, to: DateTime<FixedOffset>) -> f64 {
    (to - from).to_std().unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
pub(super) mod tests;
