//! From a resolved loop to its exit code: the steps that every loop verb has in common.

use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use regex::Regex;

use super::house::House;
use super::signals;
use super::worktree::GitWorktree;
use crate::agent::ValidationCommand;
use crate::agent::pipe::PipeAgent;
use crate::cli::LoopFlags;
use crate::engine::event::Identity;
use crate::engine::inbox::Inbox;
use crate::engine::policy::{Limits, OnFailure};
use crate::engine::tally::{Last, Tally};
use crate::engine::window::Window;
use crate::engine::{Job, Validator, run as run_engine};
use crate::project::Project;
use crate::record::log_dir::LogDir;
use crate::record::recorder::Recorder;
use crate::record::state::{self, Found, Setup};
use crate::settings::Settings;
use crate::source::Source;
use crate::view::View;
use crate::view::plain::Frame;

/// What a verb does where neither flags nor settings say otherwise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    pub(super) max_iterations: Option<u64>,
    pub(super) max_retries: u32,
    pub(super) breaker: Option<u64>,
    pub(super) idle: Option<u64>,
    pub(super) on_failure: OnFailure,
}

/// A loop that is ready but for its records.
pub(super) struct Launch<'a> {
    pub(super) house: House,
    pub(super) flags: &'a LoopFlags,
    /// The loop's name, unless the user gave one.
    pub(super) name: String,
    pub(super) mode: &'static str,
    pub(super) limits: Limits,
    /// Unique id of this run, see [`run_id`].
    pub(super) run: String,
    pub(super) agent: PipeAgent,
    pub(super) source: Box<dyn Source + 'a>,
    pub(super) log_dir: Option<LogDir>,
    pub(super) frame: Frame,
}

impl Launch<'_> {
    /// Runs the loop and answers its exit code.
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let House { project, settings } = self.house;
        let done_pattern = done_pattern(&settings)?;
        let identity = Identity {
            run: self.run.clone(),
            name: self.flags.name.clone().unwrap_or(self.name),
            mode: self.mode.to_owned(),
            agent: self.agent.name.clone(),
        };
        let inbox = Arc::new(Inbox::default());
        signals::listen(&inbox)?;
        let mut view = View::start(self.flags.json, self.flags.quiet, self.frame);

        let setup = Setup {
            prompt_file: self
                .source
                .file()
                .map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned())),
            done_pattern: settings.done_pattern.clone(),
            inactivity_timeout: Some(settings.inactivity_timeout.as_secs_f64()),
        };
        // Looked at first: a refused start leaves no session log.
        let resumed = if self.flags.resume { Some(resume(&project, &identity, &setup)?) } else { None };
        let mut recorder = Recorder::open(&project, &identity, setup)?;
        let (tally, from) = resumed.unzip();
        if let Some(from) = from {
            recorder.warn(from);
        }
        signals::watch_requests(project.requests(), self.run, &inbox);
        for warning in settings.warnings.iter().chain(recorder.warnings()) {
            view.warn(warning);
        }

        let mut log_dir = self.log_dir;
        let job = Job {
            project: project.root().to_owned(),
            limits: self.limits,
            tally: tally.unwrap_or_default(),
            delay: settings.delay,
            done_pattern,
            source: self.source,
            validator: validator(&settings, &self.agent),
            agent: Box::new(self.agent),
            worktree: Box::new(GitWorktree::new(&project)),
            window: Window::default(),
            sinks: vec![
                Box::new(|stamped| recorder.take(stamped)),
                Box::new(|stamped| log_dir.as_mut().map_or(Ok(()), |log_dir| log_dir.take(stamped))),
                Box::new(|stamped| {
                    view.take(stamped);
                    Ok(())
                }),
            ],
            identity,
        };
        let end = run_engine(job, &inbox);
        recorder.close();
        view.finish(&inbox);
        Ok(end.outcome.code())
    }
}

/// What ends a loop: the settings, else the verb's own defaults. `limit` is the number on the command line.
pub(super) fn limits(limit: Option<u64>, settings: &Settings, defaults: Defaults) -> Limits {
    let set = |value: Option<u32>, default: Option<u64>| match value {
        // Zero switches a limit off that the verb would have by itself.
        Some(0) => None,
        Some(value) => Some(u64::from(value)),
        None => default,
    };
    Limits {
        max_iterations: limit.or(set(settings.max_iterations, defaults.max_iterations)),
        max_retries: settings.max_retries.unwrap_or(defaults.max_retries),
        retry_pause: settings.backoff,
        on_failure: match settings.stop_on_error {
            Some(true) => OnFailure::End,
            Some(false) => OnFailure::Count,
            // A breaker that the user asked for would never see a second failure otherwise.
            None if settings.max_consecutive_errors.is_some_and(|errors| errors > 0) => OnFailure::Count,
            None => defaults.on_failure,
        },
        breaker: set(settings.max_consecutive_errors, defaults.breaker),
        idle: set(settings.idle_threshold, defaults.idle),
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

fn done_pattern(settings: &Settings) -> anyhow::Result<Option<Regex>> {
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

fn validator(settings: &Settings, agent: &PipeAgent) -> Option<Box<dyn Validator>> {
    let command = settings.validation_command.as_ref().filter(|_| settings.validation_enabled)?;
    let command = ValidationCommand::new(command, settings.validation_timeout, &agent.launch);
    Some(Box::new(command))
}

/// The count to go on from, and what to tell about it. A state file that cannot be understood is put aside when the
/// records are opened.
fn resume(project: &Project, identity: &Identity, setup: &Setup) -> anyhow::Result<(Tally, String)> {
    let found = state::read(&project.state())
        .with_context(|| format!("cannot read {}", project.state().display()))?;
    let Found::State(state) = found else {
        return Ok((Tally::default(), "there is nothing to resume; starting afresh".to_owned()));
    };
    if state.mode != identity.mode {
        bail!(
            "the last loop here was '{}', not '{}': resume that one, or start without --resume",
            state.mode,
            identity.mode
        );
    }
    if let (Some(last), Some(file)) = (&state.setup.prompt_file, &setup.prompt_file)
        && last != file
    {
        bail!("the last loop here ran {}: resume that one, or start without --resume", last.display());
    }
    let interrupted = state.was_interrupted();
    let tally = state.tally.resumed(!interrupted, chrono::Utc::now());
    let from = match (interrupted, tally.last) {
        (false, _) => "the last loop had ended; a new one goes on after",
        (true, Last::Nothing | Last::Settled(_)) => "resuming after",
        (true, _) => "resuming at",
    };
    let from = format!("{from} iteration {}", tally.iteration);
    Ok((tally, from))
}

/// Unique on this machine: the time in nanoseconds and our pid.
pub(super) fn run_id() -> String {
    let now = chrono::Utc::now();
    format!("{}-{}", now.format("%Y%m%dT%H%M%S%9f"), std::process::id())
}
