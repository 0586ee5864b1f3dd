//! The graph of tasks: claims the next ready one for each iteration, and books its result.

mod booking;
mod briefing;
mod doubts;
mod dropped;
mod ends;
mod graph;
mod lane;
mod lease;
mod model;
#[cfg(test)]
mod simulation;
mod trace;
mod verifier;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use crate::engine::agent::{How, Inspects};
use crate::engine::context::Context;
use crate::engine::fact::{Fact, TaskAtWork, TaskCounts};
use crate::engine::outcome::{End, Outcome};
use crate::engine::report::{Report, Signal};
use crate::engine::source::{Booked, Source, Work};
use crate::engine::stop::Urgency;
use crate::engine::tally::{Given, Tally};
use crate::engine::uptime::Uptime;
use crate::files::theirs::PromptText;
use crate::git::guard;
use crate::git::landing::Trunk;
use crate::git::range::is_ancestor;
use crate::graph::{Claim, GraphError, Holder, Retries, Scope, Status, Store, Task};
use crate::inspection::{Ground, TakenBack, Watched};
use crate::memory::journal::Became;
use crate::prompt::quote::quoted_line;
use crate::prompt::task::Facts;
use briefing::Briefing;
use dropped::Landed;
pub(crate) use ends::no_tasks;
pub(crate) use graph::Graph;
pub(crate) use lane::Lane;
pub(crate) use lease::Lease;
pub(crate) use model::Models;
use trace::Snapshot;
pub(crate) use verifier::Verifier;

/// How many ready tasks are tried if the first one waits for a merge.
const CANDIDATES: usize = 1000;
/// How often the graph is read again because another process has written meanwhile.
const LOOKS: u32 = 20;
/// At most this many tasks are named in a message.
const SOME: usize = 5;

/// Verifications of tasks that gave no verdict in this run: how many, and the last reason, by the task's id.
type Undecided = BTreeMap<String, (u32, String)>;

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
    /// Where finished tasks land, and how many jobs there are; `None` for one in the user's checkout.
    pub(crate) trunk: Option<(Trunk, usize)>,
}

/// The files that prompts are made of.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// The work tree.
    pub(crate) ground: Ground,
    /// The folder with `features/` and `knowledge/`.
    pub(crate) documents: PathBuf,
    /// The user's own instructions, instead of the built-in ones.
    pub(crate) core: Option<PromptText>,
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
    /// The commit that it is measured against, where it is to land.
    base: Option<String>,
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
    target: Arc<Target>,
    /// Shared with the [`Verifier`].
    current: Rc<RefCell<Option<Current>>>,
    /// Its work tree, where it is one of several jobs.
    lane: Option<Rc<Lane>>,
    traces: Vec<crate::memory::model::Trace>,
    /// The command of the user has passed for the last claim.
    is_proven_by_command: bool,
    /// Whether another agent has verified done tasks.
    is_verified: bool,
    /// Remarks for the next agent of a task, by the task's id.
    remarks: HashMap<String, Vec<String>>,
    undecided: Undecided,
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
    /// Whether something could be claimed when that was tried last, as far as was seen.
    may_claim: Cell<bool>,
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

impl Target {
    /// See [`Tasks::preview`].
    fn preview(&self, graph: &mut dyn Store, is_verified: bool) -> Result<Option<String>, End> {
        for id in ends::ready(graph, &self.scope, CANDIDATES)? {
            if self.missing_here(graph, &id)?.is_none() {
                let task = graph.task(&id)?;
                let briefing = self.briefing(graph);
                let (facts, _) = briefing.facts(&task, Vec::new(), &[])?;
                let only_verifies = is_verified && graph.is_unverified(&id)?;
                return briefing.prompt(&facts, only_verifies).map(Some);
            }
        }
        Ok(None)
    }

    fn briefing<'a>(&'a self, graph: &'a dyn Store) -> Briefing<'a> {
        let Self { places, holder, models, retries, .. } = self;
        Briefing { graph, places, run: &holder.run, of_run: retries.of_run, models: models.ladder() }
    }

    /// See [`Tasks::claim`].
    fn claim(
        &self,
        graph: &mut dyn Store,
        lease: Lease,
        undecided: &Undecided,
    ) -> Result<Option<(Claim, Task, Uptime)>, End> {
        graph.look_after()?;
        graph.recover()?;
        let Self { scope, holder, .. } = self;
        let mut sent = Uptime::now();
        let returned =
            if self.trunk.is_some() { graph.claim_returned(scope, holder, lease.length)? } else { None };
        let has_room = self.has_room(graph)?;
        let claim = match returned {
            None if has_room => {
                sent = Uptime::now();
                graph.claim(scope, holder, lease.length)?
            }
            returned => returned,
        };
        let Some(claim) = claim else { return Ok(None) };
        let task = graph.task(&claim.task)?;
        if self.can_begin(graph, undecided, &task.id)? {
            return Ok(Some((claim, task, sent)));
        }
        // Another task may be possible here.
        graph.release(&claim, "")?;
        if !has_room {
            return Ok(None);
        }
        for id in ends::ready(graph, scope, CANDIDATES)? {
            if !self.can_begin(graph, undecided, &id)? {
                continue;
            }
            let sent = Uptime::now();
            if let Some(claim) = graph.claim(&Scope::Subtree(id), holder, lease.length)? {
                let task = graph.task(&claim.task)?;
                return Ok(Some((claim, task, sent)));
            }
        }
        Ok(None)
    }

    /// Whether this run can start an agent for a task: the commits that it builds on are here, and the run has not
    /// given up verifying it.
    fn can_begin(&self, graph: &dyn Store, undecided: &Undecided, id: &str) -> Result<bool, End> {
        Ok(!booking::is_left_to_others(undecided, id) && self.missing_here(graph, id)?.is_none())
    }

    /// The task that this one builds on and whose commit is not in this work tree, with that commit. An unverified
    /// task builds on itself.
    fn missing_here(&self, graph: &dyn Store, id: &str) -> Result<Option<(String, String)>, End> {
        let Ground { root, in_git, .. } = &self.places.ground;
        let commits = if *in_git { graph.commits_before(id)? } else { Vec::new() };
        if commits.is_empty() {
            return Ok(None);
        }
        // Read now: it may have moved since the task was claimed.
        let tip = self.trunk.as_ref().map(|(trunk, _)| trunk.tip().unwrap_or_default());
        let is_missing = |(task, commit): &(String, String)| match &tip {
            None => !guard::contains(root, commit),
            // What there is of the task itself is laid out for it.
            Some(tip) => task != id && !is_ancestor(root, commit, tip),
        };
        Ok(commits.into_iter().find(is_missing))
    }

    /// A commit that a ready task builds on and that is not here, where such tasks are all that could begin now.
    fn missing(&self, graph: &dyn Store) -> Result<Option<String>, End> {
        let ready = ends::ready(graph, &self.scope, CANDIDATES)?;
        if ready.is_empty() || !self.has_room(graph)? {
            return Ok(None);
        }
        for id in ready {
            if let Some((_, commit)) = self.missing_here(graph, &id)? {
                return Ok(Some(commit));
            }
        }
        Ok(None)
    }
}

impl Tasks {
    /// A source for the tasks of a graph, with a work tree of its own if it is one of several jobs.
    pub(crate) fn new(graph: Graph, target: Target, is_verified: bool, lane: Option<Lane>) -> Self {
        Self {
            lane: lane.map(Rc::new),
            is_proven_by_command: false,
            is_verified,
            graph,
            target: Arc::new(target),
            current: Rc::default(),
            traces: Vec::new(),
            remarks: HashMap::new(),
            undecided: Undecided::new(),
            doubts: Vec::new(),
            landed: Landed::default(),
            notes: Vec::new(),
            last: None,
            unverified: None,
            may_claim: Cell::default(),
        }
    }

    /// The prompt of the first iteration, without claiming a task. `None` if none is ready.
    ///
    /// # Errors
    /// If a file that it needs cannot be read.
    pub(crate) fn preview(&self) -> Result<Option<String>, End> {
        let (target, is_verified) = (Arc::clone(&self.target), self.is_verified);
        self.graph.look_before(move |graph| target.preview(graph, is_verified))?
    }

    /// The validator for this source: a `command` of the user's, and an agent if `asks`.
    pub(crate) fn verifier<'a>(
        &self,
        command: Option<Box<dyn crate::engine::validator::Validator + 'a>>,
        asks: bool,
    ) -> Verifier<'a> {
        let (graph, current) = (self.graph.clone(), Rc::clone(&self.current));
        Verifier::new(graph, current, self.lane.clone(), self.target.places.ground.clone(), command, asks)
    }

    /// Claims a task that this run can work on in this work tree; `None` if there is none.
    fn claim(&self, context: &mut Context<'_>) -> Result<Option<(Claim, Task)>, End> {
        let (target, lease, undecided) =
            (Arc::clone(&self.target), self.graph.lease(), self.undecided.clone());
        let looked = self.graph.look(context, move |graph| {
            let may_claim = graph.may_claim()?;
            let claimed = if may_claim { target.claim(graph, lease, &undecided)? } else { None };
            Ok::<_, End>((claimed, may_claim))
        });
        let (claimed, may_claim) = looked??;
        self.may_claim.set(may_claim);
        Ok(claimed.map(|(claim, task, sent)| {
            self.graph.keep(&claim, sent, context);
            (claim, task)
        }))
    }

    /// Starts work on a claimed task.
    fn begin(
        &mut self,
        claim: Claim,
        task: Task,
        given: &Given,
        context: &mut Context<'_>,
    ) -> Result<Work, End> {
        let remarks = self.remarks.get(&task.id).cloned().unwrap_or_default();
        self.notes.extend(given.notes.iter().cloned());
        let (target, task, notes) = (Arc::clone(&self.target), task, self.notes.clone());
        let is_verified = self.is_verified;
        let ground = self.put(&task, context)?;
        let (base, unlanded) = ground.map_or((None, None), |ground| (Some(ground.base), ground.unlanded));
        let briefed = self.graph.look(context, move |graph| {
            let is_merged = unlanded.as_ref().is_none_or(|unlanded| unlanded.files.is_empty());
            let only_verifies = is_verified && is_merged && graph.is_unverified(&task.id)?;
            let notes = if only_verifies { Vec::new() } else { notes };
            let briefing = target.briefing(graph);
            let (facts, notices) = briefing.facts(&task, remarks, &notes)?;
            let facts = Facts { unlanded, ..facts };
            let prompt = briefing.prompt(&facts, only_verifies)?;
            Ok::<_, End>((task, facts, notices, prompt, only_verifies))
        });
        let (task, facts, notices, prompt, only_verifies) = briefed??;
        if !only_verifies {
            self.notes.clear();
        }
        for notice in notices {
            context.notice(&notice)?;
        }
        let choice = self.target.models.choose(&self.traces);
        if let Some((model, Some(instead_of))) = &choice {
            context.notice(&format!("model {model}, as the last agent asked, instead of {instead_of}"))?;
        }
        let model = choice.map(|(model, _)| model);
        let how = How {
            model: model.clone(),
            inspects: only_verifies.then_some(Inspects::Verifies),
            ..How::default()
        };
        let ground = &self.target.places.ground;
        let before = Snapshot::take(ground);
        if base.is_none() {
            self.landed.begins(&task.id, before.head());
        }
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
            base: base.clone(),
            watched,
            fault: None,
            undecided: None,
            has_to_be_proven: false,
        };
        if let (Some(lane), Some(base)) = (&self.lane, &base) {
            lane.works_on(Some((&current.claim, base)));
        }
        let (task, tasks) = (current.at_work(), self.task_counts(context)?);
        context.tell(Fact::TaskStarted { task, tasks, verifies: only_verifies })?;
        *self.current.borrow_mut() = Some(current);
        Ok(Work { prompt, how, about: Some(about), base })
    }

    /// Puts the work tree of this job on what there is of a task.
    fn put(&self, task: &Task, context: &mut Context<'_>) -> Result<Option<lane::Begun>, End> {
        let Some(lane) = &self.lane else { return Ok(None) };
        let id = task.id.clone();
        let made = self.graph.look(context, move |graph| graph.landing(&id))??;
        lane.put(task, made, context).map(Some)
    }

    /// The counts of the target's tasks.
    fn task_counts(&self, context: &mut Context<'_>) -> Result<TaskCounts, End> {
        let target = Arc::clone(&self.target);
        let counts = self.graph.look(context, move |graph| graph.counts(&target.scope))??;
        Ok(TaskCounts { done: counts.done, failed: counts.failed, total: counts.total })
    }

    /// Returns a claim, with the reason.
    fn return_claim(
        &self,
        claim: &Claim,
        why: &str,
        context: &mut Context<'_>,
    ) -> Result<Result<(), GraphError>, End> {
        context.renew_no_more();
        let (claim, why) = (claim.clone(), why.to_owned());
        self.graph.book(context, move |graph| graph.release(&claim, &why))
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
        let (became, why) = match self.return_claim(&current.claim, why, context)? {
            Ok(()) => (became, why),
            Err(GraphError::ClaimLost { .. }) => {
                self.take_back_changed_claim(current, context)?;
                self.ended_by_another(current, context)?.unwrap_or((became, why))
            }
            Err(error) => return Err(error.into()),
        };
        self.tell_ended(current, became.word(), why, context)
    }

    /// Releases and reports a task whose claim by this run was changed by another program.
    fn take_back_changed_claim(&self, current: &Current, context: &mut Context<'_>) -> Result<(), End> {
        let Task { id, title, .. } = &current.task;
        let (task, target) = (id.clone(), Arc::clone(&self.target));
        if !self.graph.book(context, move |graph| graph.release_changed(&task, &target.holder.run))?? {
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
    fn ended_by_another(
        &self,
        current: &Current,
        context: &mut Context<'_>,
    ) -> Result<Option<(Became, &'static str)>, End> {
        let id = current.task.id.clone();
        Ok(match self.graph.book(context, move |graph| graph.task(&id))? {
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
        outcome: &str,
        reason: &str,
        context: &mut Context<'_>,
    ) -> Result<(), End> {
        if let Some(lane) = &self.lane {
            lane.works_on(None);
        }
        let (tasks, task) = (self.task_counts(context)?, current.at_work());
        context.tell(Fact::TaskEnded { outcome: outcome.into(), reason: reason.into(), task, tasks })
    }
}

impl Source for Tasks {
    fn next(&mut self, iteration: u64, given: &Given, context: &mut Context<'_>) -> Result<Work, End> {
        // Permanent failures release the task.
        self.give_back("its agent did not end", context)?;
        self.reopen_unbooked(context)?;
        let mut looks = 1;
        loop {
            self.may_begin()?;
            let mut claimed = self.claim(context)?;
            if context.is_held_up() {
                // That came meanwhile, and is what counts, whatever is returned.
                self.begins_not();
                if let Some((claim, _)) = claimed {
                    self.return_claim(&claim, "", context)??;
                }
                return Err(Outcome::Blocked.into());
            }
            if claimed.is_none() && self.doubts.is_empty() && self.lane.is_none() {
                self.reopen_dropped(context)?;
                // That takes a moment, in which tasks may come as well.
                claimed = self.claim(context)?;
            }
            let Some((claim, task)) = claimed else {
                self.begins_not();
                // Another job may have written since that a task is ready.
                if self.lane.is_some() && !self.graph.look(context, |graph| graph.is_as_looked_at())?? {
                    self.reopen_unbooked(context)?;
                    continue;
                }
                if self.wait_for_others(context)? {
                    continue;
                }
                return Err(self.end(context)?);
            };
            // Another program may have written since that it is ready.
            if looks < LOOKS && !self.graph.look(context, |graph| graph.is_as_looked_at())?? {
                looks += 1;
                self.return_claim(&claim, "", context)??;
                self.begins_not();
                self.reopen_unbooked(context)?;
                continue;
            }
            let booked = self.book_verified(iteration, &claim, &task, context);
            if matches!(booked, Ok(true)) {
                self.begins_not();
                continue;
            }
            let begun = booked.and_then(|_| self.begin(claim.clone(), task, given, context));
            if begun.is_ok() && context.take_forfeit().is_some() {
                // It took so long to lay out that it is not ours any more.
                self.begins_not();
                self.give_back("no agent was started for it", context)?;
                continue;
            }
            if begun.is_err() {
                self.begins_not();
                // No claim stays; the first reason is the one to report.
                let _ = self.return_claim(&claim, "no agent could be started for it", context);
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

    fn question(&mut self, context: &mut Context<'_>) -> Result<Option<String>, End> {
        let Some(task) = &self.last else { return Ok(None) };
        let counts = self.task_counts(context)?;
        // If no task is left, the loop does not continue.
        let is_left = counts.done + counts.failed < counts.total;
        Ok(is_left.then(|| format!("Feedback for {task} (empty: stop):")))
    }

    fn hear(&mut self, answer: &str, context: &mut Context<'_>) -> Result<(), End> {
        let Some(task) = self.last.clone() else { return Ok(()) };
        let answer = answer.to_owned();
        // The next prompt has the answer even if the task's log cannot be written.
        match self.graph.book(context, move |graph| graph.log(&task, &answer))? {
            Err(GraphError::UnknownTask { .. } | GraphError::BadValue(_)) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn close(&mut self, end: End, _: &Tally, context: &mut Context<'_>) -> End {
        // Also if what follows has to be left to the next run.
        if let Some(lane) = self.lane.as_ref().filter(|_| context.urgency() >= Urgency::Now) {
            lane.team.hurry();
        }
        let end = self.closed(end, context).unwrap_or_else(|failure| failure);
        self.lane.as_ref().map_or(end.clone(), |lane| lane.with_left_over(end))
    }
}
