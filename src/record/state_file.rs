//! The state of a loop as a fold over its events, written at every step.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::config_watch::WatchedConfig;
use super::state::{AtTask, Extent, Found, Pending, State, is_json, read};
use super::worker;
use crate::engine::event::{Event, Stamped};
use crate::engine::outcome::{Outcome, Status};
use crate::engine::stop::{Ask, Change, Request};
use crate::engine::tally::Tally;
use crate::files::atomic::{self, Durability};
use crate::files::{FileError, FileId};

/// Keeps the state file true.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    state: State,
    /// The file that was last written; `None` before the first time.
    written: Option<FileId>,
}

impl StateFile {
    /// Nothing is written before the loop starts.
    #[must_use]
    pub fn new(path: &Path, state: State) -> Self {
        Self { path: path.to_owned(), state, written: None }
    }

    /// When the loop began, in place of when this process did.
    pub fn set_started(&mut self, started: DateTime<Utc>) {
        self.state.started_at = started;
    }

    /// Writes the state again where the file is another one than was last written, or gone; answers whether it was.
    pub fn keep(&mut self) -> Result<bool, FileError> {
        if self.written.is_none_or(|written| written.is_at(&self.path)) || self.is_being_edited() {
            return Ok(false);
        }
        self.write(Durability::Atomic)?;
        Ok(true)
    }

    /// Takes one event.
    pub fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), FileError> {
        self.keep_edits();
        self.state.take(stamped).map_or(Ok(()), |durability| self.write(durability))
    }

    /// Whether its user may have put another file in its place: a worker's they may change while it holds.
    fn is_being_edited(&self) -> bool {
        self.state.holds() && is_json(&self.path) && self.path.exists()
    }

    /// What its user has changed in the file stays there, for `resume` to look at.
    fn keep_edits(&mut self) {
        let edited = self.is_being_edited().then(|| read(&self.path, Extent::Whole));
        if let Some(Ok(Found::State(edited))) = edited
            && edited.run == self.state.run
            && let Some(watching) = edited.watching()
        {
            self.state.change(&Change { max_iterations: edited.max_iterations, watching: Some(watching) });
        }
    }

    fn write(&mut self, durability: Durability) -> Result<(), FileError> {
        let text = if is_json(&self.path) {
            worker::write(&self.state).map_err(std::io::Error::from)
        } else {
            toml::to_string(&self.state).map_err(std::io::Error::other)
        };
        let text = text.map_err(|reason| FileError { path: self.path.clone(), reason })?;
        self.written = Some(atomic::write_own(&self.path, text.as_bytes(), durability)?);
        Ok(())
    }
}

impl State {
    /// Takes one event. Answers how the file is to be written: what must survive a power cut is synchronised, the steps
    /// between come often and need not; `None` where nothing has changed.
    fn take(&mut self, stamped: &Stamped<'_>) -> Option<Durability> {
        match stamped.event {
            Event::AttemptStarted { .. } => {
                self.setup.config.iter_mut().for_each(WatchedConfig::attempt_begins);
            }
            Event::AttemptEnded { .. } => self.setup.config.iter_mut().for_each(WatchedConfig::attempt_ends),
            _ => {}
        }
        Some(match stamped.event {
            Event::LoopStarted { tally, limits, .. } => {
                self.tally = tally.clone();
                self.max_iterations = limits.max_iterations;
                self.budget = limits.budget();
                Durability::Synced
            }
            Event::AttemptStarted { tally, .. } | Event::Resumed { tally } => {
                self.stands(Status::Running, None, tally);
                Durability::Atomic
            }
            Event::AgentStarted { .. } | Event::AgentKnown { .. } => {
                // One that is taken up has begun before.
                if matches!(stamped.event, Event::AgentStarted { .. }) {
                    self.last_iteration_at = Some(stamped.at.to_utc());
                }
                self.meet_agent(stamped.event);
                Durability::Atomic
            }
            Event::AttemptEnded { tally, report, .. } => {
                self.tally = tally.clone();
                self.agent_context = report.usage.context();
                self.last_iteration_ended_at = Some(stamped.at.to_utc());
                Durability::Atomic
            }
            Event::TaskStarted { .. }
            | Event::Verifying { .. }
            | Event::Verified { .. }
            | Event::TaskEnded { .. } => {
                self.meet_task(stamped.event);
                Durability::Atomic
            }
            // Kept here until the engine has booked it, so that no crash loses a note.
            Event::Asked { ask: Ask::Request(Request::Note(text)), .. } => {
                self.tally.notes.push(text.clone());
                Durability::Synced
            }
            Event::Asked { ask: Ask::Request(Request::Change(change)), .. } => {
                self.change(change);
                Durability::Synced
            }
            Event::Asked { ask, .. } => {
                self.pending = self.pending_after(ask);
                Durability::Atomic
            }
            Event::Paused { tally } => {
                self.stands(Status::Paused, None, tally);
                self.pending = None;
                Durability::Synced
            }
            Event::Waiting { until, shortage, tally } => {
                self.stands(Status::Waiting, shortage.is_none().then_some(until), tally);
                self.waiting_for = shortage.map(|shortage| shortage.to_string());
                Durability::Synced
            }
            Event::Attention(wanted) => {
                self.status = wanted.map_or(Status::Running, |_| Status::NeedsAttention);
                Durability::Atomic
            }
            Event::Answered(text) => {
                self.status = Status::Running;
                if text.is_some() {
                    self.pending = self.pending.filter(|pending| *pending == Pending::Pause);
                }
                Durability::Atomic
            }
            Event::Queued => {
                self.status = Status::Waiting;
                Durability::Atomic
            }
            Event::Question(_) => {
                self.status = Status::NeedsAttention;
                Durability::Atomic
            }
            // Its agent works on: it is as if its process had been killed.
            Event::LoopEnded { outcome: Outcome::Detached, tally, .. } => {
                self.tally = tally.clone();
                Durability::Synced
            }
            Event::LoopEnded { outcome, tally, .. } => {
                self.stands(outcome.status(), None, tally);
                self.active = false;
                self.pending = None;
                self.ended_at = Some(stamped.at.to_utc());
                self.exit_reason = Some(outcome.word().to_owned());
                self.exit_code = Some(outcome.code());
                Durability::Synced
            }
            _ => return None,
        })
    }

    /// Books what holds from the next iteration on.
    fn change(&mut self, change: &Change) {
        self.max_iterations = change.max_iterations.or(self.max_iterations);
        let Some(watching) = &change.watching else { return };
        self.setup.prompt_file = Some(watching.prompt_file.clone());
        self.setup.done_pattern.clone_from(&watching.done_pattern);
        self.setup.inactivity_timeout = Some(watching.inactivity.as_secs_f64());
        if let Some(worker) = &mut self.setup.worker {
            worker.check_done_continuous = watching.check_done_continuous;
        }
    }

    /// Books what is known of the task at work.
    fn meet_task(&mut self, event: Event<'_>) {
        match (event, &mut self.at_task) {
            (Event::TaskStarted { task, verifies, counts }, at_task) => {
                *at_task = Some(AtTask { task_verifies: verifies, ..AtTask::new(task, counts) });
            }
            (Event::TaskEnded { task, became, counts, .. }, at_task) => {
                let task_became = Some(became.to_owned());
                *at_task = Some(AtTask { task_became, ..AtTask::new(task, counts) });
            }
            (event, Some(at_task)) => at_task.task_verifies = matches!(event, Event::Verifying { .. }),
            (_, None) => {}
        }
    }

    /// Books what is known of the agent of the attempt that has begun.
    fn meet_agent(&mut self, event: Event<'_>) {
        match event {
            Event::AgentStarted { command } => {
                self.agent_command = Some(command.to_owned());
                (self.agent_model, self.agent_session, self.agent_context) = (None, None, None);
            }
            Event::AgentKnown { model, session } => {
                self.agent_model = model.map(str::to_owned);
                self.agent_session = session.map(str::to_owned);
            }
            _ => {}
        }
    }

    fn stands(&mut self, status: Status, waiting_until: Option<DateTime<Utc>>, tally: &Tally) {
        self.status = status;
        self.waiting_until = waiting_until;
        self.waiting_for = None;
        self.tally = tally.clone();
    }

    /// What is left to do once this is asked for, too.
    fn pending_after(&self, ask: &Ask) -> Option<Pending> {
        match ask {
            Ask::Request(Request::Pause) => self.pending.or(Some(Pending::Pause)),
            Ask::Request(Request::Resume) => self.pending.filter(|pending| *pending == Pending::Stop),
            _ => Some(Pending::Stop),
        }
    }
}
