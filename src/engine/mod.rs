//! The one loop engine: asks the policy for the next step, takes it, and tells what happened.
//!
//! It never sees a flag and never prints. Sources and agents plug into it; whatever wants to know something
//! listens to its events.

pub mod event;
pub mod inbox;
pub mod outcome;
pub mod policy;
pub mod stop;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, Local, Utc};

use crate::agent::{Agent, AgentError, Attempt, AttemptStatus, Context, Message, Report};
use crate::record::RecordError;
use crate::source::{Signal, Source, SourceError};
use event::{Event, Identity, Stamped};
use inbox::{Inbox, Wake};
use outcome::Outcome;
use policy::{Limits, Step, Tally, step};
use stop::{Stop, Urgency};

/// Someone who listens to events. A view never fails; a record that cannot be written ends the loop.
pub type Sink<'a> = Box<dyn FnMut(&Stamped<'_>) -> Result<(), RecordError> + 'a>;

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
    /// Where prompts come from.
    pub source: Box<dyn Source + 'a>,
    /// Who works on them.
    pub agent: Box<dyn Agent + 'a>,
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

impl From<RecordError> for End {
    fn from(error: RecordError) -> Self {
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
            AgentError::Start(error) => {
                Self { outcome: Outcome::AgentMissing, detail: Some(error.to_string()) }
            }
        }
    }
}

/// Runs a loop to its end.
pub fn run(job: Job<'_>, inbox: &Arc<Inbox<Message>>) -> End {
    let started = Instant::now();
    let mut running = Loop {
        teller: Teller { identity: job.identity, sinks: job.sinks },
        limits: job.limits,
        tally: job.tally,
        source: job.source,
        agent: job.agent,
        inbox,
        stop: Stop::default(),
        prompt: String::new(),
    };
    let end = running.run(&job.project);
    running.end(&end, started);
    end
}

struct Teller<'a> {
    identity: Identity,
    sinks: Vec<Sink<'a>>,
}

impl Teller<'_> {
    fn tell(&mut self, event: Event<'_>) -> Result<(), RecordError> {
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
    limits: Limits,
    tally: Tally,
    source: Box<dyn Source + 'a>,
    agent: Box<dyn Agent + 'a>,
    inbox: &'a Arc<Inbox<Message>>,
    stop: Stop,
    /// Of the current iteration; a retry gets the same.
    prompt: String,
}

impl Loop<'_> {
    fn run(&mut self, project: &std::path::Path) -> End {
        let begin = Event::LoopStarted { project, limits: &self.limits, tally: &self.tally };
        if let Err(error) = self.teller.tell(begin) {
            return error.into();
        }
        loop {
            if let Err(error) = self.heed_signals() {
                return error.into();
            }
            if let Some(outcome) = self.stop.outcome() {
                return outcome.into();
            }
            let next = step(&self.limits, &self.tally, Utc::now());
            let done = match next {
                Step::End(outcome) => return self.ended_by_policy(outcome),
                Step::Wait(until) => self.wait_until(until),
                Step::Begin => self.begin(),
                Step::Retry(retry) => self.retry(retry),
                Step::Again => self.attempt(),
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    /// Books what came while nobody was waiting.
    fn heed_signals(&mut self) -> Result<(), RecordError> {
        let mut context =
            Context { inbox: self.inbox, stop: &mut self.stop, emit: &mut |event| self.teller.tell(event) };
        while let Wake::Stop(_) = context.wait(Some(Instant::now()))? {}
        Ok(())
    }

    fn ended_by_policy(&self, outcome: Outcome) -> End {
        let detail = match outcome {
            Outcome::Replan => Some(crate::source::prompt_file::REPLAN.to_owned()),
            Outcome::AgentFailed | Outcome::NotLoggedIn | Outcome::LimitTooFar => {
                self.tally.last_error.clone()
            }
            _ => None,
        };
        End { outcome, detail }
    }

    fn begin(&mut self) -> Result<(), End> {
        self.prompt = self.source.next(self.tally.iteration + 1)?;
        self.tally.begin();
        self.attempt()
    }

    fn retry(&mut self, retry: u32) -> Result<(), End> {
        self.tally.retry();
        let max_retries = self.limits.max_retries;
        self.teller.tell(Event::Retrying { iteration: self.tally.iteration, retry, max_retries })?;
        self.attempt()
    }

    /// Runs the agent once and books what it left.
    fn attempt(&mut self) -> Result<(), End> {
        self.teller.tell(Event::AttemptStarted { tally: &self.tally })?;
        let attempt = Attempt { iteration: self.tally.iteration, prompt: &self.prompt };
        let mut context =
            Context { inbox: self.inbox, stop: &mut self.stop, emit: &mut |event| self.teller.tell(event) };
        let started = Instant::now();
        let report = match self.agent.run(&attempt, &mut context) {
            Ok(report) => report,
            Err(error) => return Err(self.give_up(error, started)),
        };
        let signal = match report.status {
            AttemptStatus::Success => self.source.settle(&report),
            _ => Signal::Continue,
        };
        self.tally.book(&report, signal);
        self.teller.tell(Event::AttemptEnded { tally: &self.tally, report: &report })?;
        Ok(())
    }

    /// Books an attempt that left no report.
    fn give_up(&mut self, error: AgentError, started: Instant) -> End {
        let status = match error {
            AgentError::Start(_) => AttemptStatus::AgentFailure,
            AgentError::Record(_) => AttemptStatus::Interrupted,
        };
        let report = Report::given_up(status, started.elapsed());
        self.tally.book(&report, Signal::Continue);
        self.teller.tell_whoever_listens(Event::AttemptEnded { tally: &self.tally, report: &report });
        error.into()
    }

    /// Waits by the wall clock, so that a suspended machine does not wait longer than it has to.
    fn wait_until(&mut self, until: DateTime<Utc>) -> Result<(), End> {
        let began = Utc::now();
        self.teller.tell(Event::Waiting { until, tally: &self.tally })?;
        while let Ok(left) = (until - Utc::now()).to_std() {
            // A clock that is stepped is noticed at the next look.
            let look = left.min(std::time::Duration::from_secs(1));
            let mut context = Context {
                inbox: self.inbox,
                stop: &mut self.stop,
                emit: &mut |event| self.teller.tell(event),
            };
            context.wait(Some(Instant::now() + look))?;
            if self.stop.urgency() > Urgency::None || left.is_zero() {
                break;
            }
        }
        self.tally.waited(began);
        Ok(())
    }

    fn end(&mut self, end: &End, started: Instant) {
        self.teller.tell_whoever_listens(Event::LoopEnded {
            outcome: end.outcome,
            detail: end.detail.as_deref(),
            tally: &self.tally,
            duration: started.elapsed(),
        });
    }
}
