//! `state.toml`: where a loop stands, and how others read it.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::config_watch::WatchedConfig;
use super::state_seal::Seal;
use super::worker::Worker;
use crate::engine::budget::Budget;
use crate::engine::event::LoopIdentity;
use crate::engine::fact::{TaskAtWork, TaskCounts};
use crate::engine::outcome::{Ended, Outcome, Status};
use crate::engine::report::Signal;
use crate::engine::stop::Watching;
use crate::engine::tally::{Last, Tally};
use crate::process::identity::ProcessIdentity;
use crate::reply::usage::ContextUse;
use crate::text::digest::sha256_of_words;

/// The version of the format.
pub const VERSION: u32 = 1;

/// So long it takes at most to end an agent, with all that it has started.
const LADDER: Duration = Duration::from_secs(10);

/// How a loop is set up, for those who look at it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// The words of the command line that start such a loop, as in `loop build`.
    pub verb: String,
    /// Where its prompts come from; absolute. `None` for the prompts that ralph brings along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_file: Option<PathBuf>,
    /// The regular expression that ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_pattern: Option<String>,
    /// Longest time without a sign of life, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inactivity_timeout: Option<f64>,
    /// The ralph dir of the command line that started it, where that is not the loop's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_from: Option<PathBuf>,
    /// A digest of the words of its agent's command line, wherever these come from; `None`: they are known otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_digest: Option<String>,
    /// The same of its validation command; of no words where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_digest: Option<String>,
    /// The files that its settings come from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<WatchedConfig>,
    /// What a worker is set up with; `None` for a loop whose agents are no windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<Box<Worker>>,
}

/// Where a loop over a graph of tasks stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtTask {
    /// The id of the task at hand, or of the last one.
    pub task: String,
    /// One line.
    pub task_title: String,
    /// The name of its feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_feature: Option<String>,
    /// Its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_model: Option<String>,
    /// A fresh agent looks whether it is done.
    pub task_verifies: bool,
    /// What became of it, in a word; `None` while it is at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_became: Option<String>,
    /// Tasks of the target that are done.
    pub tasks_done: u64,
    /// Given up.
    pub tasks_failed: u64,
    /// All.
    pub tasks_total: u64,
}

impl AtTask {
    /// How many tasks its target has.
    #[must_use]
    pub fn counts(&self) -> TaskCounts {
        TaskCounts { done: self.tasks_done, failed: self.tasks_failed, total: self.tasks_total }
    }

    pub(super) fn new(task: &TaskAtWork<'_>, counts: TaskCounts) -> Self {
        let TaskAtWork { feature, id, model, title } = task;
        Self {
            task: id.to_string(),
            task_title: title.to_string(),
            task_feature: feature.as_ref().map(ToString::to_string),
            task_model: model.as_ref().map(ToString::to_string),
            task_verifies: false,
            task_became: None,
            tasks_done: counts.done,
            tasks_failed: counts.failed,
            tasks_total: counts.total,
        }
    }
}

/// What a loop was asked for and has not done yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pending {
    /// To hold.
    Pause,
    /// To end.
    Stop,
}

/// The state file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct State {
    /// Version of the format.
    pub version: u32,
    /// Unique id of the run.
    pub run: String,
    /// The loop's name.
    pub name: String,
    /// `plan`, `build`, `prompt` or `run`.
    pub mode: String,
    /// The agent's name.
    pub agent: String,
    /// Whether the loop is at work (also while it waits).
    pub active: bool,
    /// Where it stands. Only true while its run holds the lock.
    pub status: Status,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_reason: Option<String>,
    /// What led there, in one line, where the reason alone does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_detail: Option<String>,
    /// The process exit code it ended with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When the latest attempt began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_iteration_at: Option<DateTime<Utc>>,
    /// When the latest attempt ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_iteration_ended_at: Option<DateTime<Utc>>,
    /// When the loop ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// Until when it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_until: Option<DateTime<Utc>>,
    /// What it waits for, in words, where nobody knows until when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// How many iterations may run, besides those that were begun before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    /// How often one iteration may be tried again.
    #[serde(default)]
    pub max_retries: u32,
    /// What it may use up besides.
    #[serde(flatten)]
    pub budget: Budget,
    /// What it was asked for and has not done yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// What the agent of the latest attempt was started with, as one would write it for a shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_command: Option<String>,
    /// The model of the latest attempt, as the agent names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_model: Option<String>,
    /// What the agent calls the session of its latest attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<String>,
    /// How full the model's context was at the end of the latest attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_context: Option<ContextUse>,
    /// The task at hand, and where the loop's target stands; `None` where it works on no graph.
    #[serde(flatten)]
    pub at_task: Option<AtTask>,
    /// The session log of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_log: Option<PathBuf>,
    /// So many bytes of the events log beside it are counted here: what follows there is news.
    #[serde(default)]
    pub log_read: u64,
    /// The folder of its records, where it looks for requests. Another one than this file is in: the project was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<PathBuf>,
    /// How it is set up.
    #[serde(flatten)]
    pub setup: Setup,
    /// The command line it was started with.
    pub argv: Vec<String>,
    /// Where it was started.
    pub cwd: PathBuf,
    /// Which process it is.
    pub process: ProcessIdentity,
    /// Whether its run holds the lock at this moment: see [`super::lookup::Loop::at`].
    #[serde(skip)]
    pub is_held: bool,
    /// The seal of the file that the whole of it was read from, see [`super::state_seal`].
    #[serde(skip)]
    pub seal: Option<Box<Seal>>,
    /// What happened so far.
    #[serde(flatten)]
    pub tally: Tally,
}

impl State {
    /// A loop of this process that begins now; nothing else is known of it.
    #[must_use]
    pub fn begun(identity: &LoopIdentity, process: ProcessIdentity) -> Self {
        let cwd = std::env::current_dir().unwrap_or_default();
        Self { is_held: true, ..Self::new(identity, process, Utc::now(), cwd) }
    }

    /// The same of one that began at this moment in this folder, and of which nobody has asked whether it is at work.
    pub(super) fn new(
        identity: &LoopIdentity,
        process: ProcessIdentity,
        started_at: DateTime<Utc>,
        cwd: PathBuf,
    ) -> Self {
        Self {
            version: VERSION,
            run: identity.run.clone(),
            name: identity.name.clone(),
            mode: identity.mode.clone(),
            agent: identity.agent.clone(),
            active: true,
            status: Status::Running,
            exit_reason: None,
            exit_detail: None,
            exit_code: None,
            started_at,
            last_iteration_at: None,
            last_iteration_ended_at: None,
            ended_at: None,
            waiting_until: None,
            waiting_for: None,
            max_iterations: None,
            max_retries: 0,
            budget: Budget::default(),
            pending: None,
            agent_command: None,
            agent_model: None,
            agent_session: None,
            agent_context: None,
            at_task: None,
            session_log: None,
            log_read: 0,
            records: None,
            setup: Setup::default(),
            argv: Vec::new(),
            cwd,
            is_held: false,
            process,
            seal: None,
            tally: Tally::default(),
        }
    }

    /// What its run was started by, as a digest: its id, the command line, where that was typed, and the settings that it began with.
    #[must_use]
    pub fn command_digest(&self) -> String {
        let place = |path: &Path| path.to_string_lossy().into_owned();
        let places = [place(&self.cwd), self.setup.started_from.as_deref().map(place).unwrap_or_default()];
        let Setup { config, agent_digest, validation_digest, .. } = &self.setup;
        let settings = config.iter().map(WatchedConfig::began).chain(agent_digest).chain(validation_digest);
        let words = [&self.run].into_iter().chain(&places).chain(&self.argv).chain(settings);
        sha256_of_words(words.map(String::as_str))
    }

    /// Whether its process is at work at this moment.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.active && self.is_held
    }

    /// When its latest attempt was at work, with the time that it takes to end an agent; `None` where there was none, or nobody knows
    /// when it ended.
    #[must_use]
    pub fn last_at_work(&self) -> Option<RangeInclusive<SystemTime>> {
        let began = SystemTime::from(self.last_iteration_at?);
        let ended = self.last_iteration_ended_at.map(SystemTime::from).filter(|ended| *ended >= began);
        // Cut off, it was at work as long as it has been heard of.
        let heard = || self.session_log.as_deref()?.metadata().ok()?.modified().ok();
        Some(began..=ended.or_else(heard)? + LADDER)
    }

    /// Whether it holds, or is to hold after the current attempt.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.status == Status::Paused || self.pending == Some(Pending::Pause)
    }

    /// Where the loop really stands: one whose process was killed does not run, whatever the file says.
    #[must_use]
    pub fn true_status(&self) -> Status {
        if self.active && !self.is_held { Status::Stopped } else { self.status }
    }

    /// Why it really ended; `None` while it runs. Of a worker in the words of its files, see [`Outcome::worker_word`].
    #[must_use]
    pub fn true_exit_reason(&self) -> Option<&str> {
        let is_killed = self.active && !self.is_held;
        match (self.setup.worker.is_some(), self.outcome()) {
            (true, _) if is_killed => Outcome::Detached.worker_word(),
            (false, _) if is_killed => Some(Ended::Killed.word()),
            (true, Some(outcome)) => outcome.worker_word(),
            _ => self.exit_reason.as_deref(),
        }
    }

    /// How it ended, as far as the file tells it; `None` while it runs.
    #[must_use]
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        Outcome::recorded(self.exit_reason.as_deref()?, self.exit_code)
    }

    /// Where it stands, or how it ended, in one word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if !self.active {
            return match (self.outcome(), self.exit_code) {
                (Some(outcome), _) => outcome.ended().word(),
                // By the words of another version.
                (None, Some(0)) => Ended::Done.word(),
                (None, _) => Ended::Failed.word(),
            };
        }
        match self.status {
            _ if !self.is_held => Ended::Killed.word(),
            Status::Waiting if self.waiting_until.is_none() && self.waiting_for.is_none() => "queued",
            Status::Waiting => "waiting",
            Status::Paused => "paused",
            Status::NeedsAttention => "needs_attention",
            Status::Running | Status::Stopped | Status::Failed => "running",
        }
    }

    /// The number of the last iteration that may begin.
    #[must_use]
    pub fn last_iteration(&self) -> Option<u64> {
        self.tally.last_iteration(self.max_iterations)
    }

    /// How far it has come, as in `3/20`, or `3` where it has no last one.
    #[must_use]
    pub fn progress(&self) -> String {
        let of = self.last_iteration().map(|last| format!("/{last}")).unwrap_or_default();
        format!("{}{of}", self.tally.iteration)
    }

    /// How its worker is watched; `None` for a loop whose agents are no windows.
    #[must_use]
    pub fn watching(&self) -> Option<Watching> {
        let Setup { prompt_file, done_pattern, inactivity_timeout, worker, .. } = &self.setup;
        Some(Watching {
            prompt_file: prompt_file.clone().unwrap_or_default(),
            done_pattern: done_pattern.clone().filter(|pattern| !pattern.is_empty()),
            check_done_continuous: worker.as_ref()?.check_done_continuous,
            inactivity: Duration::try_from_secs_f64(inactivity_timeout.unwrap_or_default())
                .unwrap_or_default(),
        })
    }

    /// Whether the loop was cut off in the middle of its work, rather than having come to an end: by somebody, or by what is to be
    /// fixed outside of it.
    #[must_use]
    pub fn was_interrupted(&self) -> bool {
        let is_through = matches!(self.tally.last, Last::Settled(Signal::Complete | Signal::Done))
            || self.tally.idle_iterations > 0;
        let outcome = self.outcome();
        self.active
            || self.status == Status::Paused
            || outcome.is_some_and(Outcome::goes_on)
            // The work is done; only its way to where it belongs is not.
            || outcome == Some(Outcome::GitFailed) && is_through
    }
}
