//! The graph of tasks: claims the next ready one for each iteration, and books its result.

mod booking;
mod briefing;
mod doubts;
mod dropped;
mod ends;
mod model;
mod trace;
mod verifier;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use crate::engine::agent::How;
use crate::engine::context::Context;
use crate::engine::fact::{Fact, TaskAtWork, TaskCounts};
use crate::engine::outcome::End;
use crate::engine::report::{Report, Signal};
use crate::engine::source::{Booked, Source, Work};
use crate::engine::tally::{Given, Tally};
use crate::git::guard;
use crate::graph::{Claim, GraphError, Holder, Retries, Scope, Status, Store, Task};
use crate::inspection::{Ground, TakenBack, Watched};
use crate::memory::journal::Became;
use crate::prompt::quote::quoted_line;
use crate::prompt::task::Facts;
use briefing::Briefing;
use dropped::Landed;
pub(crate) use ends::no_tasks;
pub(crate) use model::Models;
use trace::Snapshot;
pub(crate) use verifier::Verifier;

/// How long a claim holds for processes that cannot see ours.
const LEASE: Duration = Duration::from_mins(10);
/// The interval of its renewal.
const RENEWAL: Duration = Duration::from_mins(2);
/// How many ready tasks are tried if the first one waits for a merge.
const CANDIDATES: usize = 1000;
/// How often the graph is read again because another process has written meanwhile.
const LOOKS: u32 = 20;
/// At most this many tasks are named in a message.
const SOME: usize = 5;

/// A store that a source, its claim's renewal and a validator share, in one thread.
pub(crate) type Graph = Rc<RefCell<dyn Store>>;

/// The tasks to work on, and how.
pub(crate) struct Target {
    /// The tasks.
    pub(crate) scope: Scope,
    /// The holder of claims.
    pub(crate) holder: Holder,
    /// The limits of retries.
    pub(crate) retries: Retries,
    /// How models are chosen.
    pub(crate) models: Models,
    /// The files of prompts.
    pub(crate) places: Places,
}

/// The files that prompts are made of.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// The work tree.
    pub(crate) ground: Ground,
    /// The folder with `features/` and `knowledge/`.
    pub(crate) documents: PathBuf,
    /// The user's own instructions, instead of the built-in ones.
    pub(crate) core: Option<PathBuf>,
    /// The command line of our own executable for agents.
    pub(crate) ralph: String,
}

/// The task that an agent works on.
pub(crate) struct Current {
    claim: Claim,
    task: Task,
    facts: Facts,
    /// Its last agent has claimed that it is done; this one only verifies it.
    only_verifies: bool,
    /// The model that was chosen for it.
    model: Option<String>,
    usual_model: Option<String>,
    before: Snapshot,
    /// The work tree before a verifying agent, until its changes are undone.
    watched: Option<Watched>,
    /// Why the verifying agent's verdict does not count: it has changed something.
    fault: Option<String>,
    /// Why the verification gave no verdict.
    undecided: Option<String>,
    /// Whether the validation command has to pass, too, after a verifying agent's positive verdict.
    has_to_be_proven: bool,
}

/// A source over a graph of tasks.
pub(crate) struct Tasks {
    graph: Graph,
    target: Target,
    /// Shared with the [`Verifier`].
    current: Rc<RefCell<Option<Current>>>,
    traces: Vec<crate::memory::model::Trace>,
    /// Whether another agent has verified done tasks.
    is_verified: bool,
    /// Remarks for the next agent of a task, by the task's id.
    remarks: HashMap<String, Vec<String>>,
    /// How many verifications of a task gave no verdict in this run, and the last reason, by the task's id.
    undecided: BTreeMap<String, (u32, String)>,
    /// Changes of the graph by another program that cannot be repaired.
    doubts: Vec<String>,
    /// What it has done in git.
    landed: Landed,
    /// The user's notes that came before a verifying agent.
    notes: Vec<String>,
    /// The task of the last attempt.
    last: Option<String>,
    /// Why that one is not verified, where it was for that alone.
    unverified: Option<String>,
}

impl Current {
    /// The task as events have it.
    fn at_work(&self) -> TaskAtWork<'_> {
        TaskAtWork {
            feature: self.facts.feature.as_deref().map(Into::into),
            id: (&*self.task.id).into(),
            model: self.model.as_deref().or(self.usual_model.as_deref()).map(Into::into),
            title: (&self.task.title).into(),
        }
    }

    /// Undoes a verifying agent's changes: its verdict does not count then.
    fn look_at_what_was_left(
        &mut self,
        ground: &Ground,
        is_proven_again: bool,
        context: &mut Context<'_>,
    ) -> Result<(), End> {
        let Some(watched) = self.watched.take() else { return Ok(()) };
        match ground.take_back(verifier::VERIFYING, &watched, context) {
            Ok(changed) => {
                let counts = |changed: &TakenBack| is_proven_again && changed.is_output;
                self.fault = changed.filter(|changed| !counts(changed)).map(|changed| changed.why);
            }
            Err(end) => {
                self.fault = Some(end.detail.clone().unwrap_or_default());
                return Err(end);
            }
        }
        Ok(())
    }
}

impl Tasks {
    /// A source for the tasks of a graph.
    pub(crate) fn new(graph: Graph, target: Target, is_verified: bool) -> Self {
        Self {
            is_verified,
            graph,
            target,
            current: Rc::default(),
            traces: Vec::new(),
            remarks: HashMap::new(),
            undecided: BTreeMap::new(),
            doubts: Vec::new(),
            landed: Landed::default(),
            notes: Vec::new(),
            last: None,
            unverified: None,
        }
    }

    /// The prompt of the first iteration, without claiming a task. `None` if none is ready.
    ///
    /// # Errors
    /// If a file that it needs cannot be read.
    pub(crate) fn preview(&self) -> Result<Option<String>, End> {
        let graph = self.graph.borrow();
        for id in ends::ready(&*graph, &self.target.scope, CANDIDATES)? {
            if self.missing_here(&*graph, &id)?.is_none() {
                let task = graph.task(&id)?;
                let briefing = self.briefing(&*graph);
                let (facts, _) = briefing.facts(&task, Vec::new(), &[])?;
                let only_verifies = self.is_verified && graph.is_unverified(&id)?;
                return briefing.prompt(&facts, only_verifies).map(Some);
            }
        }
        Ok(None)
    }

    fn briefing<'a>(&'a self, graph: &'a dyn Store) -> Briefing<'a> {
        let Target { places, holder, models, retries, .. } = &self.target;
        Briefing { graph, places, run: &holder.run, of_run: retries.of_run, models: models.ladder() }
    }

    /// The validator for this source: a `command` of the user's, and an agent if `asks`.
    pub(crate) fn verifier<'a>(
        &self,
        command: Option<Box<dyn crate::engine::validator::Validator + 'a>>,
        asks: bool,
    ) -> Verifier<'a> {
        let (graph, current) = (Rc::clone(&self.graph), Rc::clone(&self.current));
        Verifier::new(graph, current, self.target.places.ground.clone(), command, asks)
    }

    /// Claims a task that this run can work on in this work tree; `None` if there is none.
    fn claim(&self) -> Result<Option<(Claim, Task)>, End> {
        let mut graph = self.graph.borrow_mut();
        graph.look_after()?;
        graph.recover()?;
        let Target { scope, holder, .. } = &self.target;
        let Some(claim) = graph.claim(scope, holder, LEASE)? else { return Ok(None) };
        let task = graph.task(&claim.task)?;
        if self.can_begin(&*graph, &task.id)? {
            return Ok(Some((claim, task)));
        }
        // Another task may be possible here.
        graph.release(&claim, "")?;
        for id in ends::ready(&*graph, scope, CANDIDATES)? {
            if !self.can_begin(&*graph, &id)? {
                continue;
            }
            if let Some(claim) = graph.claim(&Scope::Subtree(id), holder, LEASE)? {
                let task = graph.task(&claim.task)?;
                return Ok(Some((claim, task)));
            }
        }
        Ok(None)
    }

    /// Whether this run can start an agent for a task: the commits that it builds on are here, and the run has not
    /// given up verifying it.
    fn can_begin(&self, graph: &dyn Store, id: &str) -> Result<bool, End> {
        Ok(!self.is_left_to_others(id) && self.missing_here(graph, id)?.is_none())
    }

    /// The task that this one builds on and whose commit is not in this work tree, with that commit. An unverified
    /// task builds on itself.
    fn missing_here(&self, graph: &dyn Store, id: &str) -> Result<Option<(String, String)>, End> {
        let Ground { root, in_git, .. } = &self.target.places.ground;
        let commits = if *in_git { graph.commits_before(id)? } else { Vec::new() };
        let is_missing = |(_, commit): &(String, String)| !guard::contains(root, commit);
        Ok(commits.into_iter().find(is_missing))
    }

    /// Starts work on a claimed task.
    fn begin(
        &mut self,
        claim: Claim,
        task: Task,
        given: &Given,
        context: &mut Context<'_>,
    ) -> Result<Work, End> {
        let is_unverified = self.graph.borrow().is_unverified(&task.id)?;
        let only_verifies = is_unverified && self.is_verified;
        let remarks = self.remarks.get(&task.id).cloned().unwrap_or_default();
        self.notes.extend(given.notes.iter().cloned());
        let notes = if only_verifies { Vec::new() } else { std::mem::take(&mut self.notes) };
        let graph = self.graph.borrow();
        let briefing = self.briefing(&*graph);
        let (facts, notices) = briefing.facts(&task, remarks, &notes)?;
        for notice in notices {
            context.notice(&notice)?;
        }
        let prompt = briefing.prompt(&facts, only_verifies)?;
        drop(graph);
        let choice = self.target.models.choose(&self.traces);
        if let Some((model, Some(instead_of))) = &choice {
            context.notice(&format!("model {model}, as the last agent asked, instead of {instead_of}"))?;
        }
        let model = choice.map(|(model, _)| model);
        let how = How {
            model: model.clone(),
            read_only: only_verifies && self.target.places.ground.looks_only,
            ..How::default()
        };
        self.renew(&claim, context);
        let ground = &self.target.places.ground;
        let before = Snapshot::take(ground);
        self.landed.begins(&task.id, before.head());
        let watched = only_verifies.then(|| ground.watched(None));
        let usual_model = self.target.models.usual().map(str::to_owned);
        let about = task.id.clone();
        let current = Current {
            claim,
            task,
            facts,
            only_verifies,
            model,
            usual_model,
            before,
            watched,
            fault: None,
            undecided: None,
            has_to_be_proven: false,
        };
        let (task, tasks) = (current.at_work(), self.task_counts()?);
        context.tell(Fact::TaskStarted { task, tasks, verifies: only_verifies })?;
        *self.current.borrow_mut() = Some(current);
        Ok(Work { prompt, how, about: Some(about) })
    }

    /// The counts of the target's tasks.
    fn task_counts(&self) -> Result<TaskCounts, End> {
        let counts = self.graph.borrow().counts(&self.target.scope)?;
        Ok(TaskCounts { done: counts.done, failed: counts.failed, total: counts.total })
    }

    /// Renews the claim while it is ours.
    fn renew(&self, claim: &Claim, context: &mut Context<'_>) {
        let (graph, claim) = (Rc::clone(&self.graph), claim.clone());
        context.renew(RENEWAL, move || graph.borrow_mut().renew(&claim, LEASE).map_err(End::from));
    }

    /// Releases the claimed task without a booking.
    fn give_back(&mut self, why: &str, context: &mut Context<'_>) -> Result<(), End> {
        let current = self.current.borrow_mut().take();
        current.map_or(Ok(()), |current| self.give_up(&current, Became::Blocked, why, context))
    }

    /// Releases this task for the next claim.
    fn give_up(
        &self,
        current: &Current,
        became: Became,
        why: &str,
        context: &mut Context<'_>,
    ) -> Result<(), End> {
        context.renew_no_more();
        let mut graph = self.graph.borrow_mut();
        let given_back = graph.release(&current.claim, why);
        drop(graph);
        let (became, why) = match given_back {
            Ok(()) => (became, why),
            Err(GraphError::ClaimLost { .. }) => {
                self.take_back_changed_claim(current, context)?;
                self.ended_by_another(current)?.unwrap_or((became, why))
            }
            Err(error) => return Err(error.into()),
        };
        self.tell_ended(current, became, why, context)
    }

    /// Releases and reports a task whose claim by this run was changed by another program.
    fn take_back_changed_claim(&self, current: &Current, context: &mut Context<'_>) -> Result<(), End> {
        let Task { id, title, .. } = &current.task;
        let is_changed = self.graph.borrow_mut().release_changed(id, &self.target.holder.run)?;
        if !is_changed {
            return Ok(());
        }
        context.notice(&format!(
            "another program than ralph has changed the claim of {id} {} in the graph: what its agent says is not booked, and it is \
             open again",
            quoted_line(title, 80)
        ))
    }

    /// The result of a task that was taken from this run while its agent worked, according to the graph; `None` if it
    /// has not ended.
    fn ended_by_another(&self, current: &Current) -> Result<Option<(Became, &'static str)>, End> {
        let task = self.graph.borrow().task(&current.task.id);
        Ok(match task {
            Ok(Task { status: Status::Done, .. }) => {
                Some((Became::Done, "it was set to done meanwhile, and not by this run"))
            }
            Ok(Task { status: Status::Failed, .. }) => {
                Some((Became::Failed, "it was set to failed meanwhile, and not by this run"))
            }
            // It may have been deleted.
            Ok(_) | Err(GraphError::UnknownTask { .. }) => None,
            Err(error) => return Err(error.into()),
        })
    }

    /// Reports the booked result of a task.
    fn tell_ended(
        &self,
        current: &Current,
        became: Became,
        reason: &str,
        context: &mut Context<'_>,
    ) -> Result<(), End> {
        let (outcome, task, tasks) = (became.word().into(), current.at_work(), self.task_counts()?);
        context.tell(Fact::TaskEnded { outcome, reason: reason.into(), task, tasks })
    }
}

impl Source for Tasks {
    fn next(&mut self, iteration: u64, given: &Given, context: &mut Context<'_>) -> Result<Work, End> {
        // Permanent failures release the task.
        self.give_back("its agent did not end", context)?;
        self.reopen_unbooked(context)?;
        let mut looks = 1;
        loop {
            let mut claimed = self.claim()?;
            if claimed.is_none() && self.doubts.is_empty() {
                self.reopen_dropped(context)?;
                // That takes a moment, in which tasks may come as well.
                claimed = self.claim()?;
            }
            let Some((claim, task)) = claimed else { return Err(self.end()?) };
            // Another program may have written since that it is ready.
            if looks < LOOKS && !self.graph.borrow().is_as_looked_at()? {
                looks += 1;
                self.graph.borrow_mut().release(&claim, "")?;
                self.reopen_unbooked(context)?;
                continue;
            }
            let booked = self.book_verified(iteration, &claim, &task, context);
            if matches!(booked, Ok(true)) {
                continue;
            }
            let begun = booked.and_then(|_| self.begin(claim.clone(), task, given, context));
            if begun.is_err() {
                // No claim stays; the first reason is the one to report.
                let _ = self.graph.borrow_mut().release(&claim, "no agent could be started for it");
            }
            return begun;
        }
    }

    fn settle(&self, report: &Report) -> Signal {
        if report.sigils.failure() { Signal::Failure } else { Signal::Continue }
    }

    fn book(&mut self, booked: &Booked<'_>, context: &mut Context<'_>) -> Result<(), End> {
        self.book_attempt(booked, context)
    }

    fn release(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        self.give_back("no agent was started for it", context)
    }

    fn question(&self) -> Option<String> {
        let task = self.last.as_ref()?;
        // If no task is left, the loop does not continue.
        self.task_counts().ok().filter(|counts| counts.done + counts.failed < counts.total)?;
        Some(format!("Feedback for {task} (empty: stop):"))
    }

    fn hear(&mut self, answer: &str) -> Result<(), End> {
        let Some(task) = &self.last else { return Ok(()) };
        // The next prompt has the answer even if the task's log cannot be written.
        match self.graph.borrow_mut().log(task, answer) {
            Err(GraphError::UnknownTask { .. } | GraphError::BadValue(_)) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn close(&mut self, end: End, _: &Tally, context: &mut Context<'_>) -> End {
        self.closed(end, context).unwrap_or_else(|failure| failure)
    }
}
