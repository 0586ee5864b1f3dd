//! The one loop engine: asks the policy for the next step, takes it, and tells what happened.
//!
//! It never sees a flag and never prints. Sources, agents and checks plug into it; whatever wants to know something
//! listens to its events.

pub mod event;
pub mod inbox;
pub mod outcome;
pub mod policy;
pub mod report;
pub mod shared;
pub mod stop;
pub mod tally;
mod wait;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Local, Utc};
use regex::Regex;

use crate::agent::{Agent, AgentError, Attempt, Context, Message};
use crate::files::FileError;
use crate::prompt::sections::with_sections;
use crate::source::{Source, SourceError, Work};
use crate::text::duration;
use crate::text::jitter;
use event::{Event, Identity, Stamped};
use inbox::{Inbox, Wake};
use outcome::Outcome;
use policy::{Limits, Now, Step, limit_until, named_reset, step};
use report::{AttemptStatus, Report, Signal};
use shared::Shared;
use stop::{Stop, Urgency};
use tally::{Given, Last, Settled, Tally};
use wait::Wait;

/// The longest single look at the clock while waiting, so that a stepped clock or a resumed machine is noticed.
const LOOK: Duration = Duration::from_secs(1);

/// Someone who listens to events. A view never fails; a record that cannot be written ends the loop.
pub type Sink<'a> = Box<dyn FnMut(&Stamped<'_>) -> Result<(), FileError> + 'a>;

/// What proves that an iteration's work is good.
pub trait Validator {
    /// Runs the validation, at most until `deadline`, when the loop's own time is over. `Ok(None)`: it was cut off
    /// because the loop ends.
    ///
    /// # Errors
    /// When a record cannot be written.
    fn validate(
        &mut self,
        deadline: Option<Instant>,
        context: &mut Context<'_>,
    ) -> Result<Option<Validation>, FileError>;
}

/// What a validation found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validation {
    /// The work is good.
    pub ok: bool,
    /// What it printed, cut to a readable length.
    pub output: String,
}

/// What the engine needs to know about the project's files.
pub trait Worktree {
    /// The commit that HEAD names.
    fn head(&self) -> Option<String>;

    /// A number that changes when HEAD, the work tree or the plan does; `None` when that cannot be told.
    fn fingerprint(&self) -> Option<u64>;
}

/// One loop, ready to run.
pub struct Job<'a> {
    /// Who it is.
    pub identity: Identity,
    /// The working directory of its agents.
    pub project: PathBuf,
    /// What it may use up.
    pub limits: Limits,
    /// Where it starts from.
    pub tally: Tally,
    /// The pause between two iterations.
    pub delay: Duration,
    /// The assistant's text that ends the loop.
    pub done_pattern: Option<Regex>,
    /// Where prompts come from.
    pub source: Box<dyn Source + 'a>,
    /// Who works on them.
    pub agent: Box<dyn Agent + 'a>,
    /// What proves the work.
    pub validator: Option<Box<dyn Validator + 'a>>,
    /// The project's files.
    pub worktree: Box<dyn Worktree + 'a>,
    /// What is known of the other loops that use the agent.
    pub shared: Shared,
    /// Who listens, in this order.
    pub sinks: Vec<Sink<'a>>,
}

/// How a loop ended.
#[derive(Debug)]
pub struct End {
    /// Why.
    pub outcome: Outcome,
    /// What led there, where the outcome alone does not say it.
    pub detail: Option<String>,
}

impl From<Outcome> for End {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, detail: None }
    }
}

impl From<FileError> for End {
    fn from(error: FileError) -> Self {
        Self { outcome: Outcome::RecordFailed, detail: Some(error.to_string()) }
    }
}

impl From<SourceError> for End {
    fn from(error: SourceError) -> Self {
        Self { outcome: error.outcome, detail: Some(error.message) }
    }
}

impl From<AgentError> for End {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Record(error) => error.into(),
            AgentError::Start(_) | AgentError::Filter(_) => {
                Self { outcome: Outcome::AgentMissing, detail: Some(error.to_string()) }
            }
        }
    }
}

/// Runs a loop to its end.
pub fn run(job: Job<'_>, inbox: &Arc<Inbox<Message>>) -> End {
    let elapsed_before = Duration::try_from_secs_f64(job.tally.elapsed_seconds).unwrap_or_default();
    let mut running = Loop {
        teller: Teller { identity: job.identity, sinks: job.sinks },
        project: job.project,
        limits: job.limits,
        tally: job.tally,
        delay: job.delay,
        done_pattern: job.done_pattern,
        source: job.source,
        agent: job.agent,
        validator: job.validator,
        worktree: job.worktree,
        shared: job.shared,
        inbox,
        stop: Stop::default(),
        started: Instant::now(),
        elapsed_before,
        work: None,
        fingerprint: None,
    };
    let end = running.run();
    let end = running.close(end);
    running.tell_end(&end);
    end
}

struct Teller<'a> {
    identity: Identity,
    sinks: Vec<Sink<'a>>,
}

impl Teller<'_> {
    fn tell(&mut self, event: Event<'_>) -> Result<(), FileError> {
        let stamped = Stamped { at: Local::now(), identity: &self.identity, event };
        self.sinks.iter_mut().try_for_each(|sink| sink(&stamped))
    }

    /// Tells it at the end of a loop: a record that cannot be written any more must not keep the others from being
    /// true.
    fn tell_whoever_listens(&mut self, event: Event<'_>) {
        let stamped = Stamped { at: Local::now(), identity: &self.identity, event };
        for sink in &mut self.sinks {
            let _ = sink(&stamped);
        }
    }
}

struct Loop<'a> {
    teller: Teller<'a>,
    project: PathBuf,
    limits: Limits,
    tally: Tally,
    delay: Duration,
    done_pattern: Option<Regex>,
    source: Box<dyn Source + 'a>,
    agent: Box<dyn Agent + 'a>,
    validator: Option<Box<dyn Validator + 'a>>,
    worktree: Box<dyn Worktree + 'a>,
    shared: Shared,
    inbox: &'a Arc<Inbox<Message>>,
    stop: Stop,
    started: Instant,
    /// How long earlier processes have run this loop.
    elapsed_before: Duration,
    /// Of the current iteration; a retry gets the same. `None` before the first one of this process.
    work: Option<Work>,
    /// What the project's files looked like when the current iteration began.
    fingerprint: Option<u64>,
}

impl Loop<'_> {
    fn run(&mut self) -> End {
        let begin = Event::LoopStarted { project: &self.project, limits: &self.limits, tally: &self.tally };
        if let Err(error) = self.teller.tell(begin) {
            return error.into();
        }
        loop {
            if let Err(error) = self.heed_asks() {
                return error.into();
            }
            if let Some(outcome) = self.stop.outcome() {
                return outcome.into();
            }
            self.book_time();
            let now = self.now();
            let done = match step(&self.limits, &self.tally, now) {
                Step::End(outcome) => return self.ended_by_policy(outcome),
                _ if self.stop.holds() => self.hold(),
                Step::Wait(until) => self.wait_for_limit(until),
                step => match self.admit() {
                    Ok(true) => self.put_to_work(step),
                    Ok(false) => Ok(()),
                    Err(error) => Err(error.into()),
                },
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    /// Waits until an agent may work. `false`: everything has to be looked at again. Waiting is no time of the loop's own.
    fn admit(&mut self) -> Result<bool, FileError> {
        let began = Instant::now();
        let mut context =
            Context { inbox: self.inbox, stop: &mut self.stop, emit: &mut |event| self.teller.tell(event) };
        let admitted = self.source.admit(&mut context)?;
        self.started += began.elapsed();
        self.tally.notes.extend(self.stop.take_notes());
        Ok(admitted)
    }

    fn put_to_work(&mut self, step: Step) -> Result<(), End> {
        match step {
            Step::Begin => self.begin(),
            Step::Retry { retry, pause } => self.retry(retry, pause),
            // The others do not get here.
            Step::Again | Step::Wait(_) | Step::End(_) => self.again(),
        }
    }

    /// Now, as far as the policy needs to know; what this loop knows, the others know from here on.
    fn now(&self) -> Now {
        let (time, clock) = (Utc::now(), Instant::now());
        self.tell_the_others(time, clock);
        let running = self.elapsed_before + self.started.elapsed();
        let closed_until = self.shared.closed_until(time, clock);
        Now { time, running, closed_until, spent_by_others: self.shared.spent_by_others(&self.tally) }
    }

    /// Lets the other loops know of a usage limit that this one has met.
    fn tell_the_others(&self, time: DateTime<Utc>, clock: Instant) {
        if let Some(until) = limit_until(&self.tally, time) {
            self.shared.close(until, time, clock);
        }
    }

    /// Lets the source do what is left to do for the work as a whole, which may lead to another end.
    fn close(&mut self, end: End) -> End {
        let mut context =
            Context { inbox: self.inbox, stop: &mut self.stop, emit: &mut |event| self.teller.tell(event) };
        self.source.close(end, &self.tally, &mut context).unwrap_or_else(End::from)
    }

    /// Books what came while nobody was waiting.
    fn heed_asks(&mut self) -> Result<(), FileError> {
        let mut context =
            Context { inbox: self.inbox, stop: &mut self.stop, emit: &mut |event| self.teller.tell(event) };
        while let Wake::Asked(_) = context.wait(Some(Instant::now()))? {}
        Ok(())
    }

    fn ended_by_policy(&self, outcome: Outcome) -> End {
        use Outcome::{AgentFailed, Breaker, LastFailed, LimitTooFar, NotLoggedIn, Replan};
        let detail = match outcome {
            Replan => Some(crate::source::prompt_file::REPLAN.to_owned()),
            AgentFailed | Breaker | LastFailed | NotLoggedIn => self.tally.last_error.clone(),
            LimitTooFar => Some(self.limit_too_far()),
            _ => None,
        };
        End { outcome, detail }
    }

    /// Until when the usage limit lasts, and what the user can do about it.
    fn limit_too_far(&self) -> String {
        let met_it = matches!(self.tally.last, Last::Limited { .. });
        let error =
            self.tally.last_error.as_deref().filter(|_| met_it).unwrap_or("the usage limit is reached");
        let longest = duration::format(self.limits.max_limit_wait);
        let end = match self.tally.last {
            Last::Limited { reset } => named_reset(reset, Utc::now()),
            _ => self.shared.closed_until(Utc::now(), Instant::now()),
        };
        let until = match end {
            Some(end) => format!("it lasts until {}", end.with_timezone(&Local).format("%Y-%m-%d %H:%M:%S")),
            None => "nobody says until when".to_owned(),
        };
        format!(
            "{error}; {until}, and {longest} is the longest wait: resume later, or raise --max-limit-wait"
        )
    }

    /// Begins the next iteration with a new prompt.
    fn begin(&mut self) -> Result<(), End> {
        if self.tally.iteration > self.tally.allowance_from && !self.pause(self.delay)? {
            return Ok(());
        }
        let Some(work) = self.next_work(self.tally.iteration + 1)? else { return Ok(()) };
        self.fingerprint = self.limits.idle.and_then(|_| self.worktree.fingerprint());
        // That took a moment, in which another loop may have met the usage limit.
        if self.shared.closed_until(Utc::now(), Instant::now()).is_some() {
            return Ok(());
        }
        self.tally.begin();
        let work = self.with_given(work);
        self.attempt(work)
    }

    fn retry(&mut self, retry: u32, pause: Duration) -> Result<(), End> {
        let (iteration, max_retries) = (self.tally.iteration, self.limits.max_retries);
        let pause = jitter::around(pause);
        self.teller.tell(Event::Retrying { iteration, retry, max_retries, pause })?;
        if !self.pause(pause)? {
            return Ok(());
        }
        self.tally.retry();
        self.same_work()
    }

    /// Runs the current iteration again.
    fn again(&mut self) -> Result<(), End> {
        self.tally.iteration = self.tally.iteration.max(1);
        self.same_work()
    }

    /// The work of the current iteration once more. After a restart it is not there any more.
    fn same_work(&mut self) -> Result<(), End> {
        let work = match self.work.take() {
            Some(work) => Some(work),
            None => self.next_work(self.tally.iteration)?.map(|work| self.with_given(work)),
        };
        work.map_or(Ok(()), |work| self.attempt(work))
    }

    /// What the source says; `None` when the loop was asked to stop or to hold meanwhile.
    fn next_work(&mut self, iteration: u64) -> Result<Option<Work>, End> {
        let mut context =
            Context { inbox: self.inbox, stop: &mut self.stop, emit: &mut |event| self.teller.tell(event) };
        let work = self.source.next(iteration, &mut context);
        self.tally.notes.extend(self.stop.take_notes());
        // Whatever became of it then: being stopped is the reason that counts.
        if self.stop.urgency() != Urgency::None || self.stop.holds() {
            return Ok(None);
        }
        Ok(Some(work?))
    }

    /// Adds to the prompt what the loop has to say.
    fn with_given(&self, work: Work) -> Work {
        let Given { validation_error, notes } = &self.tally.given;
        let prompt = with_sections(work.prompt, validation_error.as_deref(), notes);
        Work { prompt, ..work }
    }

    /// Runs the agent once, has its work checked, and books what came of it.
    fn attempt(&mut self, work: Work) -> Result<(), End> {
        let deadline = self.deadline();
        let work = self.work.insert(work);
        self.tally.in_attempt = true;
        let head = self.worktree.head();
        self.teller.tell(Event::AttemptStarted { tally: &self.tally, head: head.as_deref() })?;

        let (iteration, agent) = (self.tally.iteration, work.agent.as_ref());
        let attempt = Attempt { iteration, prompt: &work.prompt, agent, deadline };
        let mut context =
            Context { inbox: self.inbox, stop: &mut self.stop, emit: &mut |event| self.teller.tell(event) };
        let began = Instant::now();
        let mut report = match self.agent.run(&attempt, &mut context) {
            Ok(report) => report,
            Err(error) => return Err(self.give_up(error, began)),
        };
        let settled = self.settle(&mut report)?;

        self.tally.book(&self.limits, &report, settled);
        self.tell_the_others(Utc::now(), Instant::now());
        self.book_time();
        self.tally.notes.extend(self.stop.take_notes());
        let head = self.worktree.head();
        self.tally.last_commit.clone_from(&head);
        let (tally, changed) = (&self.tally, settled.changed);
        self.teller.tell(Event::AttemptEnded { tally, report: &report, head: head.as_deref(), changed })?;
        let mut context =
            Context { inbox: self.inbox, stop: &mut self.stop, emit: &mut |event| self.teller.tell(event) };
        self.source.book(&mut context)?;
        self.tally.notes.extend(self.stop.take_notes());
        Ok(())
    }

    /// Books an attempt that left no report.
    fn give_up(&mut self, error: AgentError, began: Instant) -> End {
        let status = match error {
            AgentError::Start(_) | AgentError::Filter(_) => AttemptStatus::AgentFailure,
            AgentError::Record(_) => AttemptStatus::Interrupted,
        };
        let report = Report::given_up(status, began.elapsed());
        let settled = Settled { signal: Signal::Continue, changed: None };
        self.tally.book(&self.limits, &report, settled);
        let (tally, report) = (&self.tally, &report);
        let ended = Event::AttemptEnded { tally, report, head: None, changed: None };
        self.teller.tell_whoever_listens(ended);
        error.into()
    }

    /// What a report means for the work; an unproven COMPLETE is not believed.
    fn settle(&mut self, report: &mut Report) -> Result<Settled, End> {
        // Looked at before the validation, whose own traces are no progress.
        let changed = self.fingerprint.and_then(|before| Some(self.worktree.fingerprint()? != before));
        if report.status != AttemptStatus::Success {
            return Ok(Settled { signal: Signal::Continue, changed });
        }
        let mut signal = self.source.settle(report);
        if signal == Signal::Continue
            && self.done_pattern.as_ref().is_some_and(|re| re.is_match(&report.text))
        {
            signal = Signal::Done;
        }
        if !self.is_valid()? && matches!(signal, Signal::Complete | Signal::Done) {
            report.status = AttemptStatus::CompleteUnproven;
            signal = Signal::Continue;
        }
        Ok(Settled { signal, changed })
    }

    /// Runs the validation, if there is one; its failure goes into the next prompt.
    fn is_valid(&mut self) -> Result<bool, End> {
        let deadline = self.deadline();
        let Some(validator) = &mut self.validator else { return Ok(true) };
        self.teller.tell(Event::Validating)?;
        let mut context =
            Context { inbox: self.inbox, stop: &mut self.stop, emit: &mut |event| self.teller.tell(event) };
        let Some(Validation { ok, output }) = validator.validate(deadline, &mut context)? else {
            return Ok(false);
        };
        self.teller.tell(Event::Validated { ok, output: &output })?;
        self.tally.validation_error = (!ok).then_some(output);
        Ok(ok)
    }

    /// Holds until somebody lets the loop go on, or ends it.
    fn hold(&mut self) -> Result<(), End> {
        self.teller.tell(Event::Paused { tally: &self.tally })?;
        while self.stop.holds() && self.stop.urgency() == Urgency::None {
            self.wait(None)?;
        }
        // Going on after a pause is no order to cut a wait short.
        self.stop.take_go_on();
        self.teller.tell(Event::Resumed { tally: &self.tally })?;
        Ok(())
    }

    /// Waits for a usage limit to pass.
    fn wait_for_limit(&mut self, until: DateTime<Utc>) -> Result<(), End> {
        let began = Utc::now();
        self.teller.tell(Event::Waiting { until, tally: &self.tally })?;
        // A wait that was cut short by something else is taken up again after that.
        if self.wait_until(until)? {
            self.tally.waited(began);
            self.teller.tell(Event::Resumed { tally: &self.tally })?;
        }
        Ok(())
    }

    /// Waits for `pause`; `false` when something else comes first, such as a usage limit that another loop has met.
    fn pause(&mut self, pause: Duration) -> Result<bool, End> {
        if pause.is_zero() {
            return Ok(true);
        }
        let passed = self.wait_until(Utc::now() + pause)?;
        Ok(passed && self.shared.closed_until(Utc::now(), Instant::now()).is_none())
    }

    /// Waits until the time has come, or somebody says to go on. `false`: the loop has been asked to hold or to stop
    /// meanwhile, or its own time is over.
    fn wait_until(&mut self, until: DateTime<Utc>) -> Result<bool, End> {
        self.stop.take_go_on();
        let wait = Wait::new(until, Utc::now(), Instant::now());
        let end = self.deadline();
        loop {
            let now = Instant::now();
            let out_of_time = end.is_some_and(|end| now >= end);
            if out_of_time || self.stop.holds() || self.stop.urgency() > Urgency::None {
                return Ok(false);
            }
            let left = wait.left(Utc::now(), now);
            if self.stop.take_go_on() {
                self.shared.open();
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(true);
            }
            self.wait(Some(now + left.min(LOOK)))?;
        }
    }

    /// Keeps how long the loop has run, for a process that takes it up later.
    fn book_time(&mut self) {
        self.tally.elapsed_seconds = (self.elapsed_before + self.started.elapsed()).as_secs_f64();
    }

    /// When the loop's own time is over.
    fn deadline(&self) -> Option<Instant> {
        self.limits.max_duration.map(|duration| self.started + duration.saturating_sub(self.elapsed_before))
    }

    fn wait(&mut self, deadline: Option<Instant>) -> Result<(), End> {
        let mut context =
            Context { inbox: self.inbox, stop: &mut self.stop, emit: &mut |event| self.teller.tell(event) };
        context.wait(deadline)?;
        self.tally.notes.extend(self.stop.take_notes());
        Ok(())
    }

    /// Tells the end. A record that cannot be written any more must not keep the others from being true.
    fn tell_end(&mut self, end: &End) {
        let event = Event::LoopEnded {
            outcome: end.outcome,
            detail: end.detail.as_deref(),
            tally: &self.tally,
            duration: self.started.elapsed(),
        };
        self.teller.tell_whoever_listens(event);
    }
}
