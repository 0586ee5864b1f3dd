//! The loop itself: from one step to the next, until it ends.

mod attempt;
mod fallback;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::Utc;
use regex::Regex;

use attempt::Start;
use fallback::Fallback;

use super::agent::Agent;
use super::board::Board;
use super::budget::Limit;
use super::context::Context;
use super::event::Unwritten;
use super::fact::Fact;
use super::inbox::Wake;
use super::outcome::{End, Outcome};
use super::person::Answer;
use super::places::Ticket;
use super::policy::{Limits, Now, Rooms, Step, shortage, step};
use super::source::{Source, Work};
use super::tally::{Given, Last, Tally, named_reset};
use super::tripwire::Tripwire;
use super::validator::Validator;
use super::worktree::Worktree;
use crate::text::{duration, jitter, timestamp};

/// One loop, ready to run.
pub struct Job<'a> {
    /// Its identity, the requests to it, and its listeners.
    pub context: Context<'a>,
    /// The working directory of its agents.
    pub project: PathBuf,
    /// Its limits.
    pub limits: Limits,
    /// The count that it starts from.
    pub tally: Tally,
    /// What the count has from the log of an earlier process that was cut off before it could keep it; `None`: nothing.
    pub recovered: Option<Fact<'static>>,
    /// The pause between two iterations.
    pub delay: Duration,
    /// The assistant's text that ends the loop.
    pub done_pattern: Option<Regex>,
    /// Where prompts come from.
    pub source: Box<dyn Source + 'a>,
    /// The agent that works on them.
    pub agent: Box<dyn Agent + 'a>,
    /// What proves the work.
    pub validator: Option<Box<dyn Validator + 'a>>,
    /// The project's files.
    pub worktree: Box<dyn Worktree + 'a>,
    /// What is looked at around each attempt; `None`: nothing.
    pub tripwire: Option<Box<dyn Tripwire + 'a>>,
    /// What it shares with other loops that use the agent.
    pub board: Board,
    /// After how long another agent takes over from one whose provider is out of order.
    pub fallback_after: Duration,
    /// Its turn among them; `None` if it does not have to wait for one.
    pub ticket: Option<Ticket>,
}

/// Runs a loop to its end.
#[must_use]
pub fn run(job: Job<'_>) -> End {
    let elapsed_before = Duration::try_from_secs_f64(job.tally.elapsed_seconds).unwrap_or_default();
    let mut running = Loop {
        job,
        started: Instant::now(),
        elapsed_before,
        work: None,
        handed_out: false,
        is_interrupted: false,
        backed_off: None,
        fallback: Fallback::default(),
        first: None,
        goes_without_room: false,
        validated: Validated::Nothing,
    };
    running.choose_anew();
    let end = running.run();
    let end = running.with_reason(end);
    let end = running.validate_end(end);
    let end = running.close(end);
    // The source may have found that all is done.
    let end = running.validate_end(end);
    running.tell_end(&end);
    running.job.context.redactions.end(end)
}

/// A loop while it runs.
pub(super) struct Loop<'a> {
    pub(super) job: Job<'a>,
    /// When this process started it, later by the time that does not count as its own.
    started: Instant,
    /// How long earlier processes have run it.
    elapsed_before: Duration,
    /// The work of the current iteration; a retry gets the same. `None` before the first one of this process.
    pub(super) work: Option<Work>,
    /// Whether the source has handed out work for which no attempt is booked.
    pub(super) handed_out: bool,
    /// Whether Ctrl+C was pressed in the attempt that is over.
    pub(super) is_interrupted: bool,
    /// The iteration whose failure has had its pause, in full or cut short.
    backed_off: Option<u64>,
    /// Which of its agents works.
    pub(super) fallback: Fallback,
    /// Where the first attempt of this process began; `None` before.
    first: Option<Start>,
    /// Whether the user wants the next attempt in spite of a full disk.
    pub(super) goes_without_room: bool,
    /// What this process has validated.
    pub(super) validated: Validated,
}

/// What one process of a loop has validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Validated {
    /// Nothing: the files may be in any state.
    Nothing,
    /// The work of an attempt, or the files, which passed.
    Work,
    /// The files at its end, which did not pass.
    RefutedEnd,
}

impl Loop<'_> {
    fn run(&mut self) -> End {
        let Job { context, project, limits, tally, recovered, source, validator, .. } = &mut self.job;
        source.loop_begins(&tally.gone);
        if let Some(validator) = validator {
            validator.loop_begins(context.name(), &mut tally.base);
        }
        let mut step = context.count(tally).tell(Fact::loop_started(project, limits, tally));
        if let Some(recovered) = recovered.take() {
            step = step.and_then(|()| context.tell(recovered));
        }
        loop {
            match step {
                Ok(()) => step = self.take_step(),
                Err(end) => return self.as_asked(end),
            }
        }
    }

    /// An end by what was interrupted below the loop is the one that was asked for.
    fn as_asked(&self, end: End) -> End {
        let is_below = end.outcome == Outcome::Interrupted && end.detail.is_none();
        let asked = self.job.context.stopped_by().filter(|_| is_below);
        asked.map_or(end, End::from)
    }

    /// An end that says why the loop was stopped, where its outcome does not.
    fn with_reason(&self, end: End) -> End {
        let reason = || self.job.context.stop.reason().map(str::to_owned);
        let detail = end.detail.or_else(|| reason().filter(|_| end.outcome == Outcome::Terminated));
        End { detail, ..end }
    }

    /// One step of the loop; an error is its end.
    fn take_step(&mut self) -> Result<(), End> {
        self.heed_asks()?;
        if let Some(outcome) = self.job.context.stopped_by()
            && !self.is_told_to_go_on()?
        {
            return Err(outcome.into());
        }
        self.book_time();
        let next = step(&self.job.limits, &self.job.tally, self.now());
        let would_end = matches!(next, Step::End(Outcome::Overloaded | Outcome::NoConnection));
        let is_over = matches!(next, Step::End(outcome) if outcome != Outcome::LimitTooFar) && !would_end;
        match next {
            _ if !is_over && self.turns(would_end)? => Ok(()),
            Step::End(outcome) => Err(self.ended_by_policy(outcome)),
            _ if self.job.context.stop.holds() => self.hold(),
            Step::Wait(until) => self.wait_for_provider(until).map(drop),
            Step::AwaitRoom(shortage) => self.wait_for_room(shortage),
            step if self.admit()? => self.put_to_work(step),
            _ => Ok(()),
        }
    }

    /// Asks the user who has pressed Ctrl+C during the attempt that is over, if the source has a question. The answer goes into the
    /// next prompt.
    fn is_told_to_go_on(&mut self) -> Result<bool, End> {
        if !std::mem::take(&mut self.is_interrupted) || !self.job.context.stop.can_be_forgiven() {
            return Ok(false);
        }
        // A loop that is over anyway asks no question.
        if matches!(step(&self.job.limits, &self.job.tally, self.now()), Step::End(_)) {
            return Ok(false);
        }
        let Job { context, source, .. } = &mut self.job;
        let Some(question) = source.question(context)? else { return Ok(false) };
        let answer = context.ask(&question)?;
        self.started += self.job.context.take_thought();
        let can_go_on = self.job.context.stop.can_be_forgiven();
        let Answer::Line(answer) = answer else { return Ok(false) };
        if answer.is_empty() || !can_go_on {
            return Ok(false);
        }
        let Job { context, source, .. } = &mut self.job;
        source.hear(&answer, context)?;
        context.forgive();
        // The work that was cut off is handed out again, with this answer.
        self.work = None;
        self.job.tally.note(answer);
        Ok(true)
    }

    fn put_to_work(&mut self, step: Step) -> Result<(), End> {
        match step {
            Step::Begin { pause } => self.begin(pause),
            Step::BackOff { pause } => self.back_off(pause),
            Step::Retry { retry, pause } => self.retry(retry, pause),
            // The caller has handled the other steps.
            Step::Again | Step::Wait(_) | Step::AwaitRoom(_) | Step::End(_) => self.again(),
        }
    }

    /// Waits until an agent may work. `false`: the next step must be decided again. Waiting is not the loop's own time.
    fn admit(&mut self) -> Result<bool, End> {
        let Job { context, ticket: Some(ticket), .. } = &mut self.job else { return Ok(true) };
        if ticket.take(context.inbox()) {
            return Ok(true);
        }
        let began = Instant::now();
        context.tell(Fact::Queued)?;
        loop {
            if context.is_held_up() {
                ticket.leave();
                break;
            }
            context.wait(None)?;
            if ticket.take(context.inbox()) {
                break;
            }
        }
        self.started += began.elapsed();
        self.take_notes();
        Ok(false)
    }

    /// The current situation for the policy.
    pub(super) fn now(&self) -> Now {
        let (time, clock) = (Utc::now(), Instant::now());
        let Job { board, tally, .. } = &self.job;
        let rooms = self.rooms();
        let running = self.elapsed_before + self.started.elapsed();
        let closed_until = self.closed_until(time, clock);
        Now { time, running, closed_until, spent_by_others: board.spent_by_others(tally), rooms }
    }

    /// Free space on the file systems, as far as it counts.
    pub(super) fn rooms(&self) -> Rooms {
        if self.goes_without_room { [None; 2] } else { self.job.worktree.rooms() }
    }

    /// Books requests that came while the loop was not waiting.
    fn heed_asks(&mut self) -> Result<(), End> {
        while let Wake::Asked(_) = self.job.context.wait(Some(Instant::now()))? {}
        self.take_notes();
        self.take_change()
    }

    /// Takes changes that came since this was last called.
    fn take_change(&mut self) -> Result<(), End> {
        let Job { context, limits, tally, source, agent, .. } = &mut self.job;
        let Some(change) = context.stop.take_change() else { return Ok(()) };
        let limit = change.max_iterations.or(limits.max_iterations);
        let is_other = [
            source.change(&change),
            agent.change(&change),
            std::mem::replace(&mut limits.max_iterations, limit) != limit,
        ];
        if !is_other.contains(&true) {
            return Ok(());
        }
        context.count(tally).tell(Fact::LimitsChanged { max_iterations: limits.max_iterations })
    }

    /// Keeps the user's notes for the next prompt. To be called before the tally is passed on, which becomes the state file.
    pub(super) fn take_notes(&mut self) {
        let notes = self.job.context.stop.take_notes();
        self.job.tally.notes.extend(notes);
    }

    pub(super) fn ended_by_policy(&self, outcome: Outcome) -> End {
        use Outcome::{
            AgentFailed, Breaker, LastFailed, LimitTooFar, MaxIterations, NoConnection, NoModel, NotLoggedIn,
            NotRetried, OutOfCredit, Overloaded, StoppedOnError, Unproven, WorkerFailed,
        };
        let detail = self.job.source.advice(outcome).or_else(|| match outcome {
            AgentFailed | NotRetried | StoppedOnError | Breaker | WorkerFailed | LastFailed | NotLoggedIn
            | NoModel | OutOfCredit => self.job.tally.last_error.clone(),
            // That of a worker is no failure of the loop.
            MaxIterations => self.last_failed(),
            Overloaded | NoConnection => Some(self.out_of_reach()),
            Unproven => Some(self.unproven()),
            LimitTooFar => Some(self.limit_too_far()),
            _ => self.at_limit(Limit::that_ended(outcome)?, outcome),
        });
        End { outcome, detail }
    }

    /// What is wrong with the last work of a loop that this limit has ended.
    fn at_limit(&self, limit: Limit, outcome: Outcome) -> Option<String> {
        let reached = limit.outcome();
        if outcome == reached {
            return self.last_failed();
        }
        let is_unproven = reached.if_unproven() == Some(outcome);
        let why = if is_unproven { self.unproven() } else { self.last_failed()? };
        Some(format!("{}, and {why}", limit.row().over))
    }

    /// The failure of the last iteration, if it has failed.
    fn last_failed(&self) -> Option<String> {
        let Tally { last, last_error, .. } = &self.job.tally;
        let why = last_error.as_deref().filter(|_| matches!(last, Last::Failed(_)))?;
        Some(format!("the last iteration failed: {why}"))
    }

    /// Until when the usage limit lasts, and what the user can do about it.
    fn limit_too_far(&self) -> String {
        let Job { tally, limits, .. } = &self.job;
        let met_it = matches!(tally.last, Last::Limited { .. });
        let error = tally.last_error.as_deref().filter(|_| met_it).unwrap_or("the usage limit is reached");
        let longest = duration::format(limits.max_limit_wait);
        let end = match tally.last {
            Last::Limited { reset } => named_reset(reset, Utc::now()),
            _ => self.closed_until(Utc::now(), Instant::now()),
        };
        let until = match end {
            Some(end) => format!("it lasts until {}", timestamp::local(&end)),
            None => "it is not known until when".to_owned(),
        };
        format!(
            "{error}; {until}, and {longest} is the longest wait: resume later, or raise --max-limit-wait"
        )
    }

    /// What is not proven, in words.
    fn unproven(&self) -> String {
        let refutation = self.job.tally.refutation();
        refutation.unwrap_or_else(|| "what was said to be done last has not been proven".to_owned())
    }

    /// What the provider said last, and what the user can do about it.
    fn out_of_reach(&self) -> String {
        let error = self.job.tally.last_error.as_deref().unwrap_or("the provider cannot be reached");
        let longest = duration::format(self.job.limits.max_limit_wait);
        format!("{error}; {longest} is the longest wait: resume later, or raise --max-limit-wait")
    }

    /// Begins the next iteration with a new prompt, `pause` after a provider was overloaded.
    fn begin(&mut self, pause: Duration) -> Result<(), End> {
        let pause = self.unless_resumed(pause);
        if !pause.is_zero() && !self.wait_for_provider(Utc::now() + pause)? {
            return Ok(());
        }
        let Job { tally, delay, .. } = &self.job;
        let (is_first, delay) = (tally.iteration == tally.allowance_from, *delay);
        if !is_first && !self.pause(delay)? || self.job.context.stop.is_changed() {
            return Ok(());
        }
        let given = self.job.tally.upcoming();
        let Some(work) = self.next_work(self.job.tally.iteration + 1, &given)? else { return Ok(()) };
        if self.job.limits.idle.is_some() {
            self.job.worktree.iteration_begins();
        }
        // Meanwhile another loop may have met the usage limit, or the disk may have become full.
        if self.closed_until(Utc::now(), Instant::now()).is_some()
            || shortage(&self.job.limits, self.rooms()).is_some()
        {
            return self.release();
        }
        let Job { tally, validator, .. } = &mut self.job;
        let is_other = tally.about != work.about;
        tally.begin(given, work.about.as_deref());
        if let Some(validator) = validator {
            validator.work_begins(&work, is_other, &mut tally.base);
        }
        self.attempt(work)
    }

    /// Begins the next iteration some time after the latest one has failed. A pause that was cut short is not made again.
    fn back_off(&mut self, pause: Duration) -> Result<(), End> {
        let pause = self.unless_resumed(pause);
        let Job { context, tally, limits, .. } = &mut self.job;
        if self.backed_off.replace(tally.iteration) != Some(tally.iteration) {
            context.count(tally).tell(Fact::backing_off(tally, limits.breaker, pause))?;
            if !self.pause(pause)? {
                return Ok(());
            }
        }
        self.begin(Duration::ZERO)
    }

    fn retry(&mut self, retry: u32, pause: Duration) -> Result<(), End> {
        let (iteration, max_retries) = (self.job.tally.iteration, self.job.limits.max_retries);
        let pause = jitter::around(self.unless_resumed(pause));
        let pause_s = pause.as_secs_f64();
        self.job.context.tell(Fact::Retrying { iteration, max_retries, pause_s, retry })?;
        if !self.pause(pause)? {
            return Ok(());
        }
        self.job.tally.retry();
        self.same_work()
    }

    /// A pause after a failure; none where an earlier process has met that: who resumes the loop wants the next attempt now.
    fn unless_resumed(&self, pause: Duration) -> Duration {
        if self.first.is_some() { pause } else { Duration::ZERO }
    }

    /// Runs the current iteration again.
    fn again(&mut self) -> Result<(), End> {
        self.job.tally.iteration = self.job.tally.iteration.max(1);
        self.same_work()
    }

    /// The work of the current iteration. After a restart the source is asked for it again.
    fn same_work(&mut self) -> Result<(), End> {
        let work = if let Some(work) = self.work.take() {
            Some(work)
        } else {
            let (iteration, given) = (self.job.tally.iteration, self.job.tally.given.clone());
            self.next_work(iteration, &given)?
        };
        work.map_or(Ok(()), |work| self.attempt(work))
    }

    /// The source's next work; `None` when a request to stop or to hold came meanwhile.
    fn next_work(&mut self, iteration: u64, given: &Given) -> Result<Option<Work>, End> {
        self.work = None;
        let work = self.job.source.next(iteration, given, &mut self.job.context);
        self.started += self.job.context.take_thought();
        self.handed_out = work.is_ok();
        self.take_notes();
        // Whatever the source returned: the stop is the reason that counts.
        if self.job.context.is_held_up() {
            self.release()?;
            return Ok(None);
        }
        work.map(Some)
    }

    /// Gives work back that no attempt was made on.
    fn release(&mut self) -> Result<(), End> {
        if !std::mem::take(&mut self.handed_out) {
            return Ok(());
        }
        self.job.source.release(&mut self.job.context)
    }

    /// Keeps how long the loop has run, for a later process that resumes it.
    pub(super) fn book_time(&mut self) {
        self.job.tally.elapsed_seconds = (self.elapsed_before + self.started.elapsed()).as_secs_f64();
    }

    /// The end of the loop's own time.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let max = duration::of_seconds(self.job.limits.budget.get(Limit::Duration)?);
        Some(self.started + max.saturating_sub(self.elapsed_before))
    }

    /// Lets the source finish the work as a whole, which may lead to another end.
    fn close(&mut self, end: End) -> End {
        // Another loop can have this place now.
        self.job.ticket = None;
        // The first reason is the one that counts.
        let _ = self.release();
        let Job { source, tally, context, .. } = &mut self.job;
        let end = source.close(end, tally, context);
        let end = self.as_asked(end);
        self.job.tally.ended(end.outcome.ended(), end.detail.as_deref());
        end
    }

    /// Passes on the end of the loop.
    fn tell_end(&mut self, end: &End) {
        self.take_notes();
        // The time of all its processes, like its counts and its cost.
        self.book_time();
        let Job { worktree, context, tally, .. } = &mut self.job;
        let work = self.first.as_ref().and_then(|first| worktree.work_since(first.head.as_deref()));
        let duration = duration::of_seconds(tally.elapsed_seconds);
        let fact = Fact::loop_ended(end.outcome, end.detail.as_deref(), tally, duration, work);
        context.count(tally).tell_whoever_listens(fact, Unwritten::Outcome(end.outcome));
    }
}
