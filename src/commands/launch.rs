//! From a resolved loop to its exit code: the steps that every loop verb has in common.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, anyhow, bail};
use regex::Regex;

use super::signals::{Signals, watch_requests};
use super::worktree::GitWorktree;
use crate::agent::factory::Factory;
use crate::cli::LoopFlags;
use crate::engine::board::Board;
use crate::engine::context::{Context, Sink};
use crate::engine::event::Identity;
use crate::engine::inbox::Inbox;
use crate::engine::outcome::End;
use crate::engine::places::Ticket;
use crate::engine::policy::{Limits, OnFailure};
use crate::engine::run::{Job, run as run_engine};
use crate::engine::source::Source;
use crate::engine::tally::{Last, Tally};
use crate::engine::validator::Validator;
use crate::process::supervised;
use crate::project::Project;
use crate::record::recorder::Recorder;
use crate::record::state::{self, Found, Setup, State};
use crate::settings::Settings;
use crate::side_command::ValidationCommand;
use crate::text::timestamp;
use crate::view::View;
use crate::view::plain::Frame;

/// Whether a loop goes on where the last one in its ralph dir was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resume {
    /// It starts afresh.
    No,
    /// The user wants it to, so whatever speaks against it is an error.
    Asked,
    /// It does so by itself, where it can.
    ByItself,
}

/// A loop that is ready but for its records.
pub(super) struct Launch<'a> {
    pub(super) project: &'a Project,
    pub(super) settings: &'a Settings,
    /// The loop's name.
    pub(super) name: String,
    /// The words of the command line that start such a loop, as in `loop build`.
    pub(super) verb: &'static str,
    pub(super) mode: &'static str,
    pub(super) limits: Limits,
    /// Unique id of this run, see [`run_id`].
    pub(super) run: String,
    pub(super) resume: Resume,
    pub(super) agent: Factory,
    pub(super) source: Box<dyn Source + 'a>,
    /// What proves the work.
    pub(super) validator: Option<Box<dyn Validator + 'a>>,
    /// Counts as part of the work tree wherever it lies.
    pub(super) plan: PathBuf,
    pub(super) board: Board,
    /// Its turn among other loops.
    pub(super) ticket: Option<Ticket>,
    /// The ralph dir of the command line that started it, where that is not the loop's own.
    pub(super) started_from: Option<PathBuf>,
    /// Who listens besides the records and the view.
    pub(super) sinks: Vec<Sink<'a>>,
}

impl Launch<'_> {
    /// Runs the only loop of this process and answers its exit code.
    pub(super) fn run(self, flags: &LoopFlags, frame: Frame) -> anyhow::Result<u8> {
        let inbox = Arc::new(Inbox::default());
        Signals::listen()?.join(&inbox);
        let mut view = View::start(flags.json, flags.quiet, frame);
        for warning in &self.settings.warnings {
            view.warn(warning);
        }
        let end = self.run_as(&mut view, &inbox)?;
        view.finish(&inbox);
        Ok(end.outcome.code())
    }

    /// Opens the records and runs the loop to its end.
    pub(super) fn run_as(mut self, view: &mut View, inbox: &Arc<Inbox>) -> anyhow::Result<End> {
        let project = self.project;
        let done_pattern = done_pattern(self.settings)?;
        let identity = Identity {
            run: self.run.clone(),
            name: std::mem::take(&mut self.name),
            mode: self.mode.to_owned(),
            agent: self.agent.name().to_owned(),
        };
        let file = self.source.file();
        let setup = Setup {
            verb: self.verb.to_owned(),
            prompt_file: file.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned())),
            done_pattern: self.settings.done_pattern.clone(),
            inactivity_timeout: Some(self.settings.inactivity_timeout.as_secs_f64()),
            started_from: self.started_from.take(),
        };
        // Looked at first: a refused start leaves no session log.
        let resumed = resume(self.resume, project, &identity, &setup)?;
        let mut recorder = Recorder::open(project, &identity, setup)?;
        let (tally, from) = resumed.unzip();
        recorder.warnings().iter().chain(&from).for_each(|warning| view.warn(warning));
        watch_requests(project.requests(), self.run, inbox);

        let mut sinks = std::mem::take(&mut self.sinks);
        // Records come first.
        sinks.insert(0, Box::new(|stamped| recorder.take(stamped)));
        sinks.push(Box::new(|stamped| {
            view.take(stamped);
            Ok(())
        }));
        let job = Job {
            context: Context::new(identity, Arc::clone(inbox), sinks),
            project: project.root().to_owned(),
            limits: self.limits,
            tally: tally.unwrap_or_default(),
            delay: self.settings.delay,
            done_pattern,
            source: self.source,
            validator: self.validator,
            agent: Box::new(self.agent),
            worktree: Box::new(GitWorktree::new(project, self.plan)),
            board: self.board,
            ticket: self.ticket,
        };
        let end = run_engine(job);
        recorder.close();
        Ok(end)
    }
}

/// What ends a loop. `limit` is the number on the command line.
pub(super) fn limits(limit: Option<u64>, settings: &Settings) -> Limits {
    let unless_zero = |value: u32| Some(u64::from(value)).filter(|value| *value > 0);
    Limits {
        max_iterations: limit.or(settings.max_iterations.map(u64::from)),
        max_retries: settings.max_retries,
        retry_pause: settings.backoff,
        on_failure: if settings.stop_on_error { OnFailure::End } else { OnFailure::Count },
        last_counts: false,
        breaker: unless_zero(settings.max_consecutive_errors),
        idle: unless_zero(settings.idle_threshold),
        max_duration: settings.max_duration,
        max_cost_usd: settings.max_cost,
        max_tokens: settings.max_tokens,
        max_limit_wait: settings.max_limit_wait,
    }
}

/// A budget in money needs an agent that says what it costs.
pub(super) fn check_budget(settings: &Settings, agent: &str, reports_cost: bool) -> anyhow::Result<()> {
    if settings.max_cost.is_some() && !reports_cost {
        bail!(
            "agent '{agent}' does not report what it costs, so --max-cost could never be reached: use --max-tokens, or \
             set AGENT_USAGE_CMD and AGENT_USAGE_PARSER"
        );
    }
    Ok(())
}

pub(super) fn done_pattern(settings: &Settings) -> anyhow::Result<Option<Regex>> {
    let compile = |pattern: &String| {
        Regex::new(pattern).map_err(|error| {
            // The last line of several says what is wrong.
            let error = error.to_string();
            let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let row = settings.rows().find(|row| row.setting.key == "loop.done_pattern");
            let place = row.map_or_else(|| "done pattern".to_owned(), |row| row.origin.to_string());
            anyhow!("{place}: `{pattern}` is no regular expression: {reason}; '\\' makes a special character a plain one")
        })
    };
    settings.done_pattern.as_ref().map(compile).transpose()
}

/// What the settings say about proving the work; it runs where the agent does.
pub(super) fn validator(settings: &Settings, launch: &supervised::Launch) -> Option<Box<dyn Validator>> {
    let command = settings.validation_command.as_ref().filter(|_| settings.validation_enabled)?;
    let command = ValidationCommand::new(command, settings.validation_timeout, launch);
    Some(Box::new(command))
}

/// The count to go on from, and what to tell about it; `None` to start afresh. A state file that cannot be understood is
/// put aside when the records are opened.
fn resume(
    how: Resume,
    project: &Project,
    identity: &Identity,
    setup: &Setup,
) -> anyhow::Result<Option<(Tally, String)>> {
    if how == Resume::No {
        return Ok(None);
    }
    let found = state::read(&project.state())
        .with_context(|| format!("cannot read {}", project.state().display()))?;
    let (state, why_not) = match found {
        Found::State(state) => {
            // One that goes on by itself is the same with another prompt, too.
            let same_prompt = how == Resume::ByItself || is_same_prompt(&state, setup);
            let why_not = another_loop(&state, identity, setup, same_prompt);
            (Some(state), why_not)
        }
        Found::Nothing | Found::Unknown(_) => (None, None),
    };
    let state = match (state, why_not, how) {
        (_, Some(why_not), Resume::Asked) => bail!("{why_not}: resume that one, or start without --resume"),
        (None, _, Resume::Asked) => {
            let text = "there is nothing to resume; starting afresh".to_owned();
            return Ok(Some((Tally::default(), text)));
        }
        (Some(state), None, _) => state,
        _ => return Ok(None),
    };
    let interrupted = state.was_interrupted();
    let tally = state.tally.resumed(!interrupted, chrono::Utc::now());
    let from = match (interrupted, tally.last) {
        (false, _) => "the last loop had ended; a new one goes on after",
        (true, Last::Nothing | Last::Settled(_)) => "resuming after",
        (true, _) => "resuming at",
    };
    let from = format!("{from} iteration {}", tally.iteration);
    Ok(Some((tally, from)))
}

/// Why a state is that of another loop than the one to be started; `None` when it is not.
fn another_loop(state: &State, identity: &Identity, setup: &Setup, same_prompt: bool) -> Option<String> {
    // States of older versions do not tell the verb.
    let same_verb = state.setup.verb.is_empty() || state.setup.verb == setup.verb;
    if !same_verb || state.mode != identity.mode {
        let last = if same_verb { &state.mode } else { &state.setup.verb };
        let this = if same_verb { &identity.mode } else { &setup.verb };
        return Some(format!("the last loop here was '{last}', not '{this}'"));
    }
    let file = state.setup.prompt_file.as_ref().filter(|_| !same_prompt)?;
    Some(format!("the last loop here ran {}", file.display()))
}

fn is_same_prompt(state: &State, setup: &Setup) -> bool {
    let files = state.setup.prompt_file.as_ref().zip(setup.prompt_file.as_ref());
    files.is_none_or(|(last, this)| last == this)
}

/// Unique on this machine: the time in nanoseconds, our pid, and how many this process has made before.
pub(super) fn run_id() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let (now, pid) = (timestamp::exact(chrono::Utc::now()), std::process::id());
    match MADE.fetch_add(1, Ordering::Relaxed) {
        0 => format!("{now}-{pid}"),
        made => format!("{now}-{pid}-{made}"),
    }
}
