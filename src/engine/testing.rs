//! Doubles of what plugs into the engine, for tests: each does what its closure says.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::Utc;

use super::agent::{Agent, Attempt};
use super::board::Board;
use super::context::{Context, Sink};
use super::event::LoopIdentity;
use super::fact::{Fact, TaskAtWork, TaskCounts};
use super::inbox::Inbox;
use super::outcome::{End, Outcome};
use super::policy::Limits;
use super::report::{AttemptStatus, Balance, Report};
use super::run::Job;
use super::source::{Booked, Source, Work};
use super::stop::{Ask, Change, Request, Urgency};
use super::tally::{Given, Last, Tally};
use super::validator::{Proof, Validator, Verdict};
use super::worktree::{WorkDone, Worktree};
use crate::files::room::Shortage;
use crate::reply::show::{Leave, Show};
use crate::reply::usage::{Class, Fault};
use crate::reply::verdict::{Failure, Kind};

/// What a source is asked to do.
pub(crate) enum Call<'a> {
    Next(u64, &'a Given),
    Book(&'a Booked<'a>),
    Release,
    Close,
}

/// A source that leaves everything to a closure; its prompts are `prompt N`.
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

/// An agent that leaves what a closure answers.
pub(crate) struct TestAgent<F>(pub(crate) F);

impl<F: FnMut(&Attempt<'_>, &mut Context<'_>) -> Result<Report, End>> Agent for TestAgent<F> {
    fn run(&mut self, attempt: &Attempt<'_>, context: &mut Context<'_>) -> Result<Report, End> {
        (self.0)(attempt, context)
    }
}

/// A validator that finds what a closure answers.
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

/// The context of a loop that nothing has been asked of yet.
pub(crate) fn context<'a>(inbox: &Arc<Inbox>, sinks: Vec<Sink<'a>>) -> Context<'a> {
    let [run, name, mode, agent] = ["run", "loop", "test", "agent"].map(str::to_owned);
    Context::new(LoopIdentity { run, name, mode, agent }, Arc::clone(inbox), sinks)
}

/// A successful attempt that took no time.
pub(crate) fn success() -> Report {
    Report::given_up(AttemptStatus::Success, Duration::ZERO)
}

/// A loop of these parts, without validator.
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
        board: Board::default(),
        ticket: None,
    }
}

/// A count with this text wherever it has one.
pub(crate) fn tally_of(text: &str) -> Tally {
    let (text, texts) = (|| Some(text.to_owned()), || vec![text.to_owned(), "b".to_owned()]);
    Tally {
        last: Last::Waited,
        cost_usd: Some(0.5),
        last_error: text(),
        validation_error: text(),
        notes: texts(),
        said_alone: texts(),
        given: Given { validation_error: text(), notes: texts() },
        ..Tally::default()
    }
}

/// A report with this text wherever it has one.
pub(crate) fn report_of(text: &str) -> Report {
    let message = || text.to_owned();
    let mut report = success();
    (report.status, report.signal) = (AttemptStatus::UsageLimit, Some(9));
    report.text = message();
    (report.usage.cost_usd, report.usage.input_tokens, report.usage.output_tokens) =
        (Some(0.1), Some(1), Some(2));
    (report.usage.model, report.usage.session_id) = (Some(message()), Some(message()));
    report.usage.fault = Some(Fault { class: Class::Limit, message: message(), reset_at: Some(1) });
    report.failure =
        Some(Failure { kind: Kind::Reported, class: Class::Limit, message: message(), reset_at: Some(1) });
    report.balance = Some(Balance { spent: None, left: 1.0 });
    report
}

/// All that an agent can show, with this text.
pub(crate) fn each_show(text: &str) -> [Show; 7] {
    let text = || text.to_owned();
    [
        Show::Text(text()),
        Show::Delta(text()),
        Show::Thought(text()),
        Show::Tool { name: text(), input: text() },
        Show::Error(text()),
        Show::Notice(text()),
        Show::Permission { leave: Leave::Refused, kind: text(), what: text() },
    ]
}

/// Every other kind of fact that a loop tells, with this text wherever agents, commands and people have a word.
pub(crate) fn each_fact(text: &str, take: &mut dyn FnMut(Fact<'_>)) {
    let (limits, tally, counted, report) =
        (Limits::EXAMPLE, Tally::default(), tally_of(text), report_of(text));
    let words = || text.into();
    for tally in [&tally, &counted] {
        take(Fact::loop_started(Path::new("/p"), &limits, tally));
        take(Fact::attempt_started(tally, Some("a")));
        take(Fact::resumed(tally));
        for (report, changed) in [(&report, None), (&success(), Some(true))] {
            take(Fact::attempt_ended(tally, report, Some("b"), changed));
        }
    }
    take(Fact::Recovered { attempts: 1, cost_usd: Some(0.5), from: "r".into() });
    take(Fact::LimitsChanged { max_iterations: limits.max_iterations });
    take(Fact::AgentStarted { command: words() });
    take(Fact::AgentKnown { model: Some(words()), session_id: Some(words()) });
    take(Fact::Background { at_most_s: 1800.0, tasks: words() });
    let tasks = TaskCounts { done: 7, failed: 1, total: 20 };
    let usual = TaskAtWork { feature: None, id: "t-1a2b3c".into(), model: None, title: words() };
    let task = TaskAtWork { feature: Some("f".into()), model: Some("m".into()), ..usual.clone() };
    take(Fact::TaskStarted { task: usual, tasks, verifies: false });
    take(Fact::TaskEnded { outcome: "done".into(), reason: words(), task: task.clone(), tasks });
    take(Fact::Verifying { task: task.clone() });
    take(Fact::Verified { ok: false, reason: words(), task });
    take(Fact::Validating);
    take(Fact::Validated { ok: false, output: words(), undecided: true });
    take(Fact::Retrying { iteration: 1, max_retries: 3, pause_s: 0.0, retry: 1 });
    take(Fact::backing_off(&tally, Some(5), Duration::from_secs(4)));
    take(Fact::NeedsAttention { screen: words() });
    take(Fact::AttentionOver);
    for shortage in [None, Some(Shortage { free: 1, wanted: 2 })] {
        take(Fact::waiting(Utc::now(), shortage, &tally));
    }
    take(Fact::Queued);
    take(Fact::Paused);
    let requests = [Request::Pause, Request::Resume, Request::Cancel, Request::CancelNow, Request::Detach];
    let requests =
        requests.into_iter().chain([Request::Note(text.to_owned()), Request::Change(Change::default())]);
    let asks = [Ask::Interrupt, Ask::Terminate].into_iter().chain(requests.map(Ask::Request));
    let urgencies = [Urgency::None, Urgency::AfterAttempt, Urgency::Now, Urgency::AtOnce].into_iter().cycle();
    asks.zip(urgencies).for_each(|(ask, urgency)| take(Fact::asked(&ask, urgency)));
    take(Fact::Question { text: words() });
    take(Fact::Answered { text: Some(words()) });
    take(Fact::Answered { text: None });
    take(Fact::Published { message: words() });
    take(Fact::HookEnded { hook: "on_end".into(), ok: true, output: words() });
    take(Fact::notice(text));
    let work = WorkDone { commits: 1, deletions: 4, files: 2, from: Some("a".into()), insertions: 3 };
    take(Fact::loop_ended(Outcome::BudgetReached, Some(text), &tally, Duration::from_secs(1), Some(work)));
}
