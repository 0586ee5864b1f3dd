//! Doubles of what plugs into the engine, for tests: a closure decides what each does.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::agent::{Agent, Attempt};
use super::board::Board;
use super::context::{Context, Sink};
use super::event::LoopIdentity;
use super::inbox::Inbox;
use super::outcome::End;
use super::policy::Limits;
use super::report::{AttemptStatus, Report};
use super::run::Job;
use super::source::{Booked, Source, Work};
use super::tally::{Given, Tally};
use super::validator::{Proof, Validator, Verdict};
use super::worktree::{WorkDone, Worktree};

/// A call of a source.
pub(crate) enum Call<'a> {
    Next(u64, &'a Given),
    Book(&'a Booked<'a>),
    Release,
    Close,
}

/// A source whose calls are answered by a closure; its prompts are `prompt N`.
pub(crate) struct TestSource<F>(pub(crate) F);

impl<F: FnMut(Call<'_>, &mut Context<'_>) -> Result<(), End>> Source for TestSource<F> {
    fn next(&mut self, iteration: u64, given: &Given, context: &mut Context<'_>) -> Result<Work, End> {
        (self.0)(Call::Next(iteration, given), context)?;
        Ok(Work { prompt: format!("prompt {iteration}"), ..Work::default() })
    }

    fn book(&mut self, booked: &Booked<'_>, context: &mut Context<'_>) -> Result<(), End> {
        (self.0)(Call::Book(booked), context)
    }

    fn release(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        (self.0)(Call::Release, context)
    }

    fn close(&mut self, end: End, _: &Tally, context: &mut Context<'_>) -> End {
        (self.0)(Call::Close, context).err().unwrap_or(end)
    }
}

/// An agent whose reports come from a closure.
pub(crate) struct TestAgent<F>(pub(crate) F);

impl<F: FnMut(&Attempt<'_>, &mut Context<'_>) -> Result<Report, End>> Agent for TestAgent<F> {
    fn run(&mut self, attempt: &Attempt<'_>, context: &mut Context<'_>) -> Result<Report, End> {
        (self.0)(attempt, context)
    }
}

/// A validator whose results come from a closure.
pub(crate) struct TestValidator<F>(pub(crate) F);

impl<F: FnMut(Proof<'_>, &mut Context<'_>) -> Result<Verdict, End>> Validator for TestValidator<F> {
    fn validate(&mut self, proof: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        (self.0)(proof, context)
    }
}

/// A project whose files change as a closure says.
pub(crate) struct TestWorktree<F>(pub(crate) F);

impl<F: FnMut() -> Option<bool>> Worktree for TestWorktree<F> {
    fn head(&self) -> Option<String> {
        None
    }

    fn work_since(&self, _: Option<&str>) -> Option<WorkDone> {
        None
    }

    fn iteration_begins(&mut self) {}

    fn agent_begins(&mut self) {}

    fn has_changed(&mut self) -> Option<bool> {
        (self.0)()
    }

    fn is_written_since(&self, _: SystemTime) -> Option<bool> {
        None
    }
}

/// The context of a loop without requests.
pub(crate) fn context<'a>(inbox: &Arc<Inbox>, sinks: Vec<Sink<'a>>) -> Context<'a> {
    let [run, name, mode, agent] = ["run", "loop", "test", "agent"].map(str::to_owned);
    Context::new(LoopIdentity { run, name, mode, agent }, Arc::clone(inbox), sinks)
}

/// A successful attempt that took no time.
pub(crate) fn success() -> Report {
    Report::given_up(AttemptStatus::Success, Duration::ZERO)
}

/// A loop with these parts, without a validator.
pub(crate) fn job<'a>(
    context: Context<'a>,
    limits: Limits,
    source: impl Source + 'a,
    agent: impl Agent + 'a,
) -> Job<'a> {
    Job {
        context,
        project: "/project".into(),
        limits,
        tally: Tally::default(),
        recovered: None,
        delay: Duration::ZERO,
        done_pattern: None,
        source: Box::new(source),
        agent: Box::new(agent),
        validator: None,
        worktree: Box::new(TestWorktree(|| None)),
        tripwire: None,
        board: Board::default(),
        fallback_after: Duration::ZERO,
        ticket: None,
    }
}
