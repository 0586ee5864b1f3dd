//! Runs the loop of a worker.

use std::cell::Cell;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;

use super::setup;
use crate::agent::Timeouts;
use crate::agent::pane::done::DonePattern;
use crate::agent::pane::programs::Program;
use crate::agent::pane::ready::Screens;
use crate::agent::worker::{self, WorkerAgent};
use crate::cli::LoopFlags;
use crate::commands::output::warn;
use crate::engine::outcome::Outcome;
use crate::engine::policy::Limits;
use crate::job::agent_choice::timeouts;
use crate::job::launch::launch_behind_walls;
use crate::job::preflight::limits;
use crate::job::ready::{Ready, hide_own_files, run_id};
use crate::job::resume::Resume;
use crate::job::variables::agent_env;
use crate::job::workspace::{Call, Workspace};
use crate::platform::mark::{RUN_MARK, SUPERVISOR_MARK};
use crate::presets;
use crate::process::launch::Launch;
use crate::project::Project;
use crate::record::state::{Setup, State};
use crate::record::worker::Worker;
use crate::settings::Verb;
use crate::source::worker::WorkerPrompt;
use crate::text::redact::Redactor;
use crate::tmux::Server;
use crate::view::plain::Frame;
use crate::view::worker_lines::WorkerLines;

/// The first pause after a failure.
const BACK_OFF: Duration = Duration::from_secs(1);
/// A hundred years.
const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);
/// Variables of our environment that belong to an agent that has started us, not to its user.
const OF_OUTER: [&str; 5] = [RUN_MARK, SUPERVISOR_MARK, "RALPH_MODEL", "RALPH_ITERATION", "RALPH_BRANCH"];

/// A worker to be watched.
pub(super) struct Watching<'a> {
    pub(super) workspace: &'a Workspace,
    /// Its project.
    pub(super) project: &'a Project,
    pub(super) name: &'a str,
    pub(super) worker: Worker,
    /// The prompt's path, and its name in messages.
    pub(super) prompt: (PathBuf, String),
    /// The limit of iterations.
    pub(super) limit: u64,
    /// Its state, if it is resumed.
    pub(super) state: Option<&'a State>,
    /// Whether it is left alone once it has its prompt.
    pub(super) detaches: bool,
}

impl Watching<'_> {
    /// Runs its loop to the end, and returns the exit code.
    pub(super) fn run(self, flags: &LoopFlags) -> anyhow::Result<u8> {
        let Self { workspace, project, name, worker, state, .. } = &self;
        let settings = &workspace.settings;
        let done = match state {
            Some(state) => state.setup.done_pattern.clone(),
            None => settings.done_pattern.clone(),
        };
        let patterns = setup::patterns(worker, done.as_deref())?;
        let timeouts = self.timeouts();
        setup::warn_of(worker, timeouts.inactivity);

        if self.workspace.project.runs() == project.runs() {
            self.workspace.project.create_run_dir()?;
        }
        if let Some(warning) = hide_own_files(&self.workspace.project) {
            warn(&warning);
        }
        let (call, run) = (workspace.called(Verb::Spawn, flags), run_id());
        let limits = Limits {
            max_retries: 0,
            failure_pause: Some(BACK_OFF),
            breaker_end: Outcome::WorkerFailed,
            // Scripts know that a worker at its limit ends with 0.
            last_counts: false,
            ..limits(Some(self.limit), settings)
        };
        let has_not_begun = Rc::new(Cell::new(false));
        let pane = Rc::default();
        let launch = self.launch(call, &limits, &run, &patterns.0)?;
        let agent = WorkerAgent {
            untried: state.is_none().then(|| Rc::clone(&has_not_begun)),
            pane: Rc::clone(&pane),
            ..self.agent(launch.clone(), patterns, timeouts)
        };
        let mut ready = Ready::new(call, project, limits, (agent_name(worker), &launch), agent, None);
        ready.name = (*name).into();
        ready.resume = if state.is_some() { Resume::Asked } else { Resume::No };
        ready.argv = Some(vec!["ralph".into(), "run".into(), (*name).into()]);
        ready.started = state.filter(|state| state.was_interrupted()).map(|state| state.started_at);
        ready.setup = Setup {
            done_pattern: done,
            inactivity_timeout: Some(timeouts.inactivity.as_secs_f64()),
            started_from: Some(self.started_from()),
            // The worker has words of its own for that.
            agent_digest: None,
            worker: Some(Box::new(kept(worker, &settings.secrets))),
            ..ready.setup
        };
        let source = WorkerPrompt::new(self.prompt.0.clone(), self.prompt.1.clone());
        let lines = WorkerLines::new(name, state.is_none());
        let end = ready.run_to_end(source, Frame::Worker(Box::new(lines)))?;
        if end.outcome != Outcome::Detached {
            worker::close(Some(&Server::new(&worker.socket)), &project.records(), pane.take())?;
        }
        if has_not_begun.get() {
            // Removed, as if it had never been spawned.
            let folder = project.run(&run);
            std::fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
            super::forget(&self.workspace.project, project, name)?;
        }
        Ok(end.outcome.code())
    }

    /// The ralph dir of its project, also if it has a work tree of its own.
    fn started_from(&self) -> PathBuf {
        let of_state = self.state.and_then(|state| state.setup.started_from.clone());
        of_state.unwrap_or_else(|| self.workspace.project.ralph_dir().to_owned())
    }

    /// Its time limits; a resumed one keeps its own.
    fn timeouts(&self) -> Timeouts {
        let settings = &self.workspace.settings;
        let of_state = self.state.and_then(|state| state.setup.inactivity_timeout);
        let of_state = of_state.and_then(span);
        Timeouts { inactivity: of_state.unwrap_or(settings.inactivity_timeout), ..timeouts(settings) }
    }

    /// The agent.
    fn agent(
        &self,
        launch: Launch,
        (screens, done): (Screens, Option<DonePattern>),
        timeouts: Timeouts,
    ) -> WorkerAgent {
        let Self { project, name, worker, .. } = self;
        let heartbeat = worker.heartbeat.and_then(span);
        WorkerAgent {
            name: (*name).to_owned(),
            server: Server::new(&worker.socket),
            session: worker.session.clone(),
            folder: project.records(),
            launch,
            screens,
            ready_timeout: span(worker.ready_timeout).unwrap_or_default(),
            trust: worker.trust,
            done,
            continuous: worker.check_done_continuous,
            heartbeat: heartbeat.map(|every| (every, worker.heartbeat_message.clone())),
            timeouts,
            detaches: self.detaches,
            untried: None,
            pane: Rc::default(),
        }
    }

    /// How its program is started: with our environment without ralph's variables, and with the given variables.
    fn launch(
        &self,
        call: Call<'_>,
        limits: &Limits,
        run: &str,
        screens: &Screens,
    ) -> anyhow::Result<Launch> {
        let Self { workspace: Workspace { settings, .. }, project, worker, .. } = self;
        let ours = std::env::vars_os().filter(|(name, _)| !OF_OUTER.iter().any(|outer| name == *outer));
        let given = worker.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let (program, args) =
            worker.command.split_first().map_or_else(Default::default, |(program, args)| {
                (program.clone(), args.iter().map(OsString::from).collect())
            });
        let env: Vec<_> = ours.chain(agent_env(call, limits, project)).chain(given).collect();
        // Behind walls, its own server is out of its reach.
        let socket = ("RALPH_TMUX_SOCKET".into(), OsString::from(&worker.socket));
        let planned = env.iter().cloned().chain([socket]).collect();
        let preset = presets::preset(screens.program().name).unwrap_or(presets::unknown());
        let (launch, warning) = launch_behind_walls((project, settings), preset, planned, run)?;
        if let Some(warning) = warning {
            warn(&warning);
        }
        Ok(Launch { program: program.into(), args, cwd: worker.cwd.clone(), env, ..launch })
    }
}

/// The set-up of a worker as it is kept: without secrets, which `ralph run NAME` puts back.
fn kept(worker: &Worker, secrets: &Redactor) -> Worker {
    let Ok(kept) = worker.clone().with_words(|word| Ok::<_, Infallible>(secrets.word(&word)));
    kept
}

/// A time in seconds from a file that the user may have changed; `None` if it cannot be represented.
fn span(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|span| *span <= LONGEST)
}

/// The name of a worker's agent: its known program, else the first word.
fn agent_name(worker: &Worker) -> String {
    let known = Program::of(&worker.command).map(|program| program.name);
    let first = worker.command.first().map(String::as_str).unwrap_or_default();
    known.unwrap_or(first.rsplit('/').next().unwrap_or(first)).to_owned()
}
