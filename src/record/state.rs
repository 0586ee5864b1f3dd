//! `state.toml`: the state of a loop, and how it is read.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::config_watch::WatchedConfig;
use super::event_line::EVENTS_LOG;
use super::state_seal::Seal;
use super::worker::Worker;
use crate::engine::budget::Budget;
use crate::engine::event::LoopIdentity;
use crate::engine::fact::{TaskAtWork, TaskCounts};
use crate::engine::outcome::{Ended, Outcome, Phase, Status};
use crate::engine::report::Signal;
use crate::engine::stop::Watching;
use crate::engine::tally::{Last, Tally};
use crate::engine::validation::Evidence;
use crate::platform::identity::ProcessIdentity;
use crate::reply::usage::ContextUse;
use crate::tell::words::KILLED;
use crate::text::digest::sha256_of_words;
use crate::text::line::one_line;
use crate::version;

/// The version of the format.
pub const VERSION: u32 = 1;

/// The longest time that ending an agent and its processes takes.
const LADDER: Duration = Duration::from_secs(10);

/// The setup of a loop, for its readers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// The words of the command line that start such a loop, as in `loop build`.
    pub verb: String,
    /// The absolute path of its prompt file; `None` for built-in prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_file: Option<PathBuf>,
    /// The regular expression that ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_pattern: Option<String>,
    /// Longest time without a sign of life, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inactivity_timeout: Option<f64>,
    /// The ralph dir of the command line that started it, if that is not the loop's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_from: Option<PathBuf>,
    /// A digest of its agent's command line, from any source; `None` if it is known otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_digest: Option<String>,
    /// A digest of its validation command; of an empty one if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_digest: Option<String>,
    /// The files of its settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<WatchedConfig>,
    /// The setup of a worker; `None` for other loops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<Box<Worker>>,
}

/// The progress of a loop over a graph of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtTask {
    /// The id of the current or last task.
    pub task: String,
    /// Its title.
    pub task_title: String,
    /// The name of its feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_feature: Option<String>,
    /// Its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_model: Option<String>,
    /// Whether a fresh agent verifies it.
    pub task_verifies: bool,
    /// The outcome of the task in one word; `None` while it is current.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_became: Option<String>,
    /// How many tasks of the target are done.
    pub tasks_done: u64,
    /// How many have failed.
    pub tasks_failed: u64,
    /// How many there are.
    pub tasks_total: u64,
}

impl AtTask {
    /// The counts of its target's tasks.
    #[must_use]
    pub fn counts(&self) -> TaskCounts {
        TaskCounts { done: self.tasks_done, failed: self.tasks_failed, total: self.tasks_total }
    }

    pub(super) fn take_counts(&mut self, counts: TaskCounts) {
        (self.tasks_done, self.tasks_failed, self.tasks_total) = (counts.done, counts.failed, counts.total);
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

/// A request that the loop has not carried out yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pending {
    /// To pause.
    Pause,
    /// To stop.
    Stop,
}

/// The state file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct State {
    /// Version of the format.
    pub version: u32,
    /// The ralph that began it: an older one says that this one is needed.
    #[serde(default)]
    pub ralph: String,
    /// Unique id of the run.
    pub run: String,
    /// The loop's name.
    pub name: String,
    /// What it runs, see [`LoopIdentity::mode`](crate::engine::event::LoopIdentity::mode).
    pub mode: String,
    /// The agent's name.
    pub agent: String,
    /// Why it works in the place of another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_instead: Option<String>,
    /// Whether the loop runs (also while it waits).
    pub active: bool,
    /// Its status. Only true while its run holds the lock.
    pub status: Status,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_reason: Option<String>,
    /// The cause in one line, if the reason alone does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_detail: Option<String>,
    /// What shows that its work is good, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Evidence>,
    /// It has committed something, once it has ended.
    #[serde(default)]
    pub has_work: bool,
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
    /// What it waits for, in words, if the end of the wait is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// How many iterations may begin, besides those begun before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    /// How often one iteration may be retried.
    #[serde(default)]
    pub max_retries: u32,
    /// Its other limits.
    #[serde(flatten)]
    pub budget: Budget,
    /// The request that it has not carried out yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// The command line of the agent of the latest attempt, quoted for a shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_command: Option<String>,
    /// The model of the latest attempt, as the agent names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_model: Option<String>,
    /// The agent's id of the session of its latest attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<String>,
    /// How full the model's context was at the end of the latest attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_context: Option<ContextUse>,
    /// The current task, and the progress of the loop's target; `None` if it works on no graph.
    #[serde(flatten)]
    pub at_task: Option<AtTask>,
    /// The session log of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_log: Option<PathBuf>,
    /// How many bytes of the events log are counted here; what follows is new.
    #[serde(default)]
    pub log_read: u64,
    /// The folder of its records, where it waits for requests. If this file is in another one, the project was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<PathBuf>,
    /// Its setup.
    #[serde(flatten)]
    pub setup: Setup,
    /// Its command line.
    pub argv: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its process.
    pub process: ProcessIdentity,
    /// Whether its run holds the lock now: see [`super::lookup::Loop::at`].
    #[serde(skip)]
    pub is_held: bool,
    /// The seal of the file that this was read from, see [`super::state_seal`].
    #[serde(skip)]
    pub seal: Option<Box<Seal>>,
    /// The counts so far.
    #[serde(flatten)]
    pub tally: Tally,
}

impl State {
    /// A loop of this process that begins now, with defaults for the rest.
    #[must_use]
    pub fn begun(identity: &LoopIdentity, process: ProcessIdentity) -> Self {
        let cwd = std::env::current_dir().unwrap_or_default();
        Self { is_held: true, ..Self::new(identity, process, Utc::now(), cwd) }
    }

    /// A loop that began at this time in this folder; whether it runs is not checked.
    pub(super) fn new(
        identity: &LoopIdentity,
        process: ProcessIdentity,
        started_at: DateTime<Utc>,
        cwd: PathBuf,
    ) -> Self {
        Self {
            version: VERSION,
            ralph: version::NUMBER.to_owned(),
            run: identity.run.clone(),
            name: identity.name.clone(),
            mode: identity.mode.clone(),
            agent: identity.agent.clone(),
            agent_instead: None,
            active: true,
            status: Status::Running,
            exit_reason: None,
            exit_detail: None,
            proof: None,
            has_work: false,
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

    /// A digest of what started its run: its id, the command line, the working directory, and the settings at its
    /// beginning.
    #[must_use]
    pub fn command_digest(&self) -> String {
        let place = |path: &Path| path.to_string_lossy().into_owned();
        let places = [place(&self.cwd), self.setup.started_from.as_deref().map(place).unwrap_or_default()];
        let Setup { config, agent_digest, validation_digest, .. } = &self.setup;
        let settings = config.iter().map(WatchedConfig::began).chain(agent_digest).chain(validation_digest);
        let words = [&self.run].into_iter().chain(&places).chain(&self.argv).chain(settings);
        sha256_of_words(words.map(String::as_str))
    }

    /// Whether its process runs now.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.active && self.is_held
    }

    /// Whether its process is gone and has not said how it ended.
    fn is_killed(&self) -> bool {
        self.active && !self.is_held
    }

    /// When its latest attempt ran, plus the time to end an agent; `None` if there was none, or if its end is
    /// unknown.
    #[must_use]
    pub fn last_at_work(&self) -> Option<RangeInclusive<SystemTime>> {
        // A power cut may have taken the beginning of the attempt from the file, and the end of the one before is not
        // its end.
        let began = self.last_iteration_at.or(self.is_killed().then_some(self.started_at))?;
        let ended = self.last_iteration_ended_at.filter(|ended| !self.is_killed() && *ended >= began);
        // If it was killed, it ran at least until its last log line; a power cut may leave only one of the logs.
        let heard = || {
            let (log, written) =
                (self.session_log.as_deref()?, |log: &Path| log.metadata().ok()?.modified().ok());
            written(log).max(written(&log.with_extension(EVENTS_LOG)))
        };
        Some(began.into()..=ended.map(SystemTime::from).or_else(heard)? + LADDER)
    }

    /// Whether it is paused, or will pause after the current attempt.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.status == Status::Paused || self.pending == Some(Pending::Pause)
    }

    /// Its true status: a loop whose process was killed does not run, whatever the file says.
    #[must_use]
    pub fn true_status(&self) -> Status {
        if self.is_killed() { Status::Stopped } else { self.status }
    }

    /// Why it really ended; `None` while it runs. For a worker in the words of its files, see
    /// [`Outcome::worker_word`].
    #[must_use]
    pub fn true_exit_reason(&self) -> Option<&str> {
        match (self.setup.worker.is_some(), self.outcome()) {
            (true, _) if self.is_killed() => Outcome::Detached.worker_word(),
            (false, _) if self.is_killed() => Some(Ended::Killed.word()),
            (true, Some(outcome)) => outcome.worker_word(),
            _ => self.exit_reason.as_deref(),
        }
    }

    /// How it ended, as far as the file says; `None` while it runs.
    #[must_use]
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        Outcome::recorded(self.exit_reason.as_deref()?, self.exit_code)
    }

    /// Why it ended, where it is not done; `None` while it runs.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        // The agent of a worker may go on.
        if self.active && !self.is_held && self.setup.worker.is_none() {
            return Some(KILLED.to_owned());
        }
        let outcome = self.outcome().filter(|outcome| !self.active && outcome.ended() != Ended::Done)?;
        let detail = self.exit_detail.as_deref().map(one_line).filter(|detail| !detail.is_empty());
        Some(detail.unwrap_or_else(|| outcome.reason().to_owned()))
    }

    /// Its status, or how it ended, in one word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if !self.active {
            return match (self.outcome(), self.exit_code) {
                (Some(outcome), _) => outcome.ended().word(),
                // Written by another version, with unknown words.
                (None, Some(0)) => Ended::Done.word(),
                (None, _) => Ended::Failed.word(),
            };
        }
        match self.status {
            _ if !self.is_held => Ended::Killed.word(),
            Status::Waiting if self.waiting_until.is_none() && self.waiting_for.is_none() => {
                Phase::Queued.word()
            }
            Status::Waiting => Phase::Waiting.word(),
            Status::Paused => Phase::Paused.word(),
            Status::NeedsAttention => Phase::NeedsAttention.word(),
            Status::Running | Status::Stopped | Status::Failed => Phase::Running.word(),
        }
    }

    /// The number of the last iteration that may begin.
    #[must_use]
    pub fn last_iteration(&self) -> Option<u64> {
        self.tally.last_iteration(self.max_iterations)
    }

    /// Its progress, as in `3/20`, or `3` without a limit.
    #[must_use]
    pub fn progress(&self) -> String {
        let of = self.last_iteration().map(|last| format!("/{last}")).unwrap_or_default();
        format!("{}{of}", self.tally.iteration)
    }

    /// How its worker is watched; `None` for other loops.
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

    /// Whether the loop was cut off in the middle of its work: by a user, or by a problem outside of it.
    #[must_use]
    pub fn was_interrupted(&self) -> bool {
        let is_through = matches!(self.tally.last, Last::Settled(Signal::Complete | Signal::Done))
            || self.tally.idle_iterations > 0;
        let outcome = self.outcome();
        self.active
            || self.status == Status::Paused
            || outcome.is_some_and(Outcome::goes_on)
            // The work is done; only publishing it has failed.
            || outcome == Some(Outcome::GitFailed) && is_through
    }
}
