//! A snapshot of a loop, from which all views are made: its records, its process and its worker, read once.

use super::next_step::{Advice, Ending, Merges, advice};
use crate::engine::fact::TaskCounts;
use crate::engine::outcome::{Phase, Status};
use crate::engine::validation::Evidence;
use crate::record::lookup::Loop;
use crate::record::state::{AtTask, Pending, State};
use crate::tell::group::{Group, Place, UNKNOWN, place};
use crate::text::duration;

/// A loop at this moment.
#[derive(Debug)]
pub(crate) struct LoopSnapshot<'a> {
    pub(crate) found: &'a Loop,
    /// Whether its process runs.
    pub(super) alive: bool,
    /// For a worker, what its state does not have.
    pub(super) worker: Option<WorkerSight>,
    /// The tasks of its target.
    pub(super) tasks: Option<TaskCounts>,
    /// For a branch, what git and the plan know of it.
    merges: Option<&'a Merges>,
}

impl<'a> LoopSnapshot<'a> {
    /// Checks the loop's process once, so that everything that is shown agrees.
    #[must_use]
    pub(crate) fn of(found: &'a Loop, worker: Option<WorkerSight>) -> Self {
        let tasks = found.state.as_ref().ok().and_then(|state| state.at_task.as_ref().map(AtTask::counts));
        Self { found, alive: found.alive().is_some(), worker, tasks, merges: None }
    }

    /// Adds the tasks of a loop whose state does not count them, such as a branch.
    #[must_use]
    pub(crate) fn with_tasks(self, tasks: Option<TaskCounts>) -> Self {
        Self { tasks: self.tasks.or(tasks), ..self }
    }

    /// How many tasks of its target are done, as far as it knows.
    #[must_use]
    pub(crate) fn tasks(&self) -> Option<TaskCounts> {
        self.tasks
    }

    /// Has the newer counts of another loop of its run, which works on the same tasks.
    pub(crate) fn catch_up(&mut self, newer: TaskCounts) {
        self.tasks = self.tasks.map(|_| newer);
    }

    /// Adds what git and the plan know of the branches of its project.
    #[must_use]
    pub(crate) fn with_merges(self, merges: &'a Merges) -> Self {
        let project = &self.found.project;
        let is_meant = project.is_of_branch() && project.runs() == merges.runs;
        Self { merges: Some(merges).filter(|_| is_meant), ..self }
    }

    /// Its name.
    #[must_use]
    pub(crate) fn name(&self) -> &str {
        &self.found.name
    }

    /// Its place in a list, see [`place`].
    #[must_use]
    pub(crate) fn place(&self) -> Place<'_> {
        place(self.word(), self.group(), self.found.run(), self.name())
    }

    /// What is to be done about it, once it has ended.
    #[must_use]
    pub(crate) fn group(&self) -> Option<Group> {
        self.advice().map(|advice| advice.group)
    }

    /// What to do next, once it has ended.
    #[must_use]
    pub(crate) fn advice(&self) -> Option<Advice> {
        let state = self.found.state.as_ref().ok().filter(|_| !self.alive)?;
        let ending = Ending::of_state(&self.found.name, state);
        Some(advice(&self.merges.map_or(ending, |merges| merges.of_branch(ending))))
    }

    /// Whether it has this tag; only workers have tags.
    #[must_use]
    pub(crate) fn has_tag(&self, tag: &str) -> bool {
        let state = self.found.state.as_ref().ok();
        let worker = state.and_then(|state| state.setup.worker.as_ref());
        worker.is_some_and(|worker| worker.tags.iter().any(|known| known == tag))
    }

    /// Its state or its end in one word; `unknown` if the state cannot be read. Workers have words of their own, which scripts
    /// know.
    #[must_use]
    pub(crate) fn word(&self) -> &'static str {
        match self.found.state.as_deref() {
            Ok(state) if self.worker.is_some() => {
                let holds = self.alive && state.pending == Some(Pending::Pause);
                if holds { Phase::Paused.word() } else { self.status(state).word() }
            }
            Ok(state) => state.word(),
            Err(_) => UNKNOWN,
        }
    }

    pub(super) fn status(&self, state: &State) -> Status {
        match state.true_status() {
            _ if self.alive => state.status,
            // An agent that goes on without its monitor.
            Status::Running if !state.active => Status::Stopped,
            status => status,
        }
    }

    /// The request to it, shown after its status.
    pub(super) fn pending(&self, state: &State) -> &'static str {
        match state.pending.filter(|_| self.alive) {
            Some(Pending::Pause) => " (pausing after the current attempt)",
            Some(Pending::Stop) => " (ending after the current attempt)",
            None => "",
        }
    }

    /// What shows that its work is good, once it has ended.
    #[must_use]
    pub(crate) fn proof(&self) -> Option<&Evidence> {
        let state = self.found.state.as_ref().ok().filter(|_| !self.alive)?;
        state.proof.as_ref()
    }

    pub(super) fn exit_reason<'s>(&self, state: &'s State) -> Option<&'s str> {
        if self.alive { None } else { state.true_exit_reason() }
    }

    /// The mean duration of finished iterations, in seconds.
    pub(super) fn average(state: &State) -> Option<f64> {
        let over = state.tally.iteration.saturating_sub(u64::from(state.tally.in_attempt));
        #[expect(clippy::cast_precision_loss, reason = "no loop runs 2^52 times")]
        let count = over as f64;
        (over > 0).then(|| state.tally.durations.sum / count)
    }

    /// The expected time of the remaining iterations, in seconds.
    pub(super) fn remaining(&self, state: &State) -> Option<f64> {
        let left = state.last_iteration().filter(|_| self.alive)?.saturating_sub(state.tally.iteration);
        #[expect(clippy::cast_precision_loss, reason = "no loop runs 2^52 times")]
        let left = left as f64;
        Some(Self::average(state)? * left)
    }

    /// `3 of 20 (avg 2m/iter, ~34m remaining)`
    pub(super) fn iteration(&self, state: &State) -> String {
        let average = Self::average(state)
            .map(|seconds| format!("avg {}/iter", duration::elapsed(duration::of_seconds(seconds))));
        let rest = self
            .remaining(state)
            .map(|seconds| format!("~{} remaining", duration::rough(duration::of_seconds(seconds))));
        let notes: Vec<String> = average.into_iter().chain(rest).collect();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        state.progress() + &notes
    }
}

/// What the state of a worker does not have.
#[derive(Debug)]
pub(crate) struct WorkerSight {
    /// Whether its program runs.
    pub(crate) runs: bool,
    /// Its tmux session and the window in it, which have one name; `None`: it has no pane.
    pub(crate) window: Option<String>,
}

impl WorkerSight {
    /// Its status in one word.
    #[must_use]
    pub(crate) fn word(&self) -> &'static str {
        if self.runs { Status::Running } else { Status::Stopped }.word()
    }
}
