//! One of several jobs on a graph: its work tree, and where its finished tasks land.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::{Current, Graph, SOME, Tasks};
use crate::engine::context::Context;
use crate::engine::fact::{Fact, WaitReason};
use crate::engine::inbox::Wake;
use crate::engine::outcome::{End, Outcome};
use crate::engine::report::AttemptStatus;
use crate::engine::stop::Urgency;
use crate::engine::validator::Verdict;
use crate::git::landing::{self, Trunk};
use crate::git::range::is_ancestor;
use crate::git::trees::{CheckedOut, checked_out};
use crate::graph::{Claim, GraphError, Landing, Made, Patience, Scope, Standing, Status, Store, Task};
use crate::landing::{AtWork, Exchange, Failed, Standstill, Team, at_work, unprepared};
use crate::prompt::task::Unlanded;
use crate::side_command::{ValidationCommand, beside_for};
use crate::text::jitter;
use crate::text::list::some_of;
use crate::text::references::unlinked;

/// How often the graph is read again while a job waits for others, and, where many machines ask one server, how rarely at last.
const LOOK: Duration = Duration::from_secs(2);
const RARELY: Duration = Duration::from_secs(30);
/// What is said of commits that could not be booked, before their ref.
const KEPT_HERE: &str = "is kept here as";
/// How long what is committed may be on its way to the remote while the loop ends.
const LAST: Duration = Duration::from_secs(5);
/// At most this many commits of others are named for files that conflict.
const MOST_COMMITS: usize = 10;
/// At most this many waiting tasks are looked at for those that they wait for.
const MOST_STUCK: usize = 100;

/// A job with a work tree of its own.
pub(crate) struct Lane {
    /// The other jobs, and the lander.
    pub(crate) team: Arc<Team>,
    /// Where its tasks land.
    pub(crate) trunk: Trunk,
    /// A work tree of the repository that is not removed.
    pub(crate) root: PathBuf,
    /// Its own.
    pub(crate) tree: PathBuf,
    /// Its name in refs that keep what would be lost.
    pub(crate) name: String,
    /// How many iterations the jobs may begin together.
    pub(crate) limit: Option<u64>,
    /// How many failed iterations in a row end them all.
    pub(crate) breaker: Option<u64>,
    /// Makes what a new tree lacks.
    pub(crate) prepare: Option<ValidationCommand>,
    /// Whether what validates its work is what the gate runs.
    pub(crate) is_gated_alike: bool,
    /// The last ref that was kept, and its commit.
    pub(crate) kept: RefCell<Option<(String, String)>>,
    /// Its place among the jobs.
    pub(crate) place: usize,
    /// It has told what it waits for.
    pub(crate) has_told: Cell<bool>,
    /// The remote, where many machines work on the graph.
    pub(crate) exchange: Option<Arc<Exchange>>,
    /// How long it waits for others before it reads the graph again.
    pub(crate) idle: Cell<Duration>,
}

/// Where what is committed for a task is kept, where many machines work on the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Here, for now.
    Here,
    /// On the remote, and in the graph.
    There,
    /// There, and it is to be handed in.
    Finished,
}

/// Where work on a task begins.
pub(super) struct Begun {
    /// The landed tip, which claims are measured against.
    pub(super) base: String,
    /// What keeps an earlier agent's work from landing.
    pub(super) unlanded: Option<Unlanded>,
}

impl Lane {
    /// Puts the tree on what there is of the task, with the landed tip merged into it, or on that tip.
    pub(super) fn put(
        &self,
        task: &Task,
        made: Option<Landing>,
        context: &mut Context<'_>,
    ) -> Result<Begun, End> {
        self.has_told.set(false);
        self.idle.set(LOOK);
        self.works_on(None);
        let made = self.bring(made, context)?;
        let base = self.trunk.tip().ok_or_else(|| self.trunk.tip_is_gone())?;
        // A rewritten trunk may have nothing in common with it.
        let is_known = |made: &Landing| landing::fork(&self.root, &base, &made.made.head).is_some();
        let made = made.filter(|made| made.made.trunk == self.trunk.name() && is_known(made));
        let start = made.as_ref().map_or_else(|| base.clone(), |made| made.made.head.clone());
        landing::add(&self.root, &self.tree, &base)?;
        for saved in landing::put(&self.root, &self.tree, Some(&self.name), &start)? {
            let kept = saved.reference;
            context.notice(&format!("what was left in {} is kept as {kept}", self.tree.display()))?;
        }
        self.prepare(context)?;
        let Some(made) = made else { return Ok(Begun { base, unlanded: None }) };
        let message = format!("Merge {} into {}", self.trunk.name(), task.id);
        let files = if is_ancestor(&self.root, &base, &start) {
            Vec::new()
        } else {
            landing::merge_into(&self.tree, &base, &message)?
        };
        if files.is_empty() && made.standing != Standing::Returned {
            return Ok(Begun { base, unlanded: None });
        }
        let whose = landing::who_changed(&self.root, &made.made.base, &base, &files, MOST_COMMITS);
        let whose = if files.is_empty() { Vec::new() } else { whose };
        let trunk = self.trunk.name().to_owned();
        Ok(Begun { base, unlanded: Some(Unlanded { trunk, reason: made.reason, files, whose }) })
    }

    /// Brings the landed tip here, as another machine has landed this commit; returns whether there is anything new in it.
    fn catches_up(&self, missing: &str, context: &mut Context<'_>) -> Result<bool, End> {
        let before = self.trunk.tip();
        self.bring(None, context)?;
        let tip = self.trunk.tip();
        // The lander may have brought it a moment ago.
        Ok(tip != before || tip.is_some_and(|tip| is_ancestor(&self.root, missing, &tip)))
    }

    /// Brings the landed tip here from the remote, and what there is of a task, unless that is nowhere any more.
    fn bring(&self, made: Option<Landing>, context: &mut Context<'_>) -> Result<Option<Landing>, End> {
        let Some(exchange) = self.exchange.clone() else { return Ok(made) };
        let wanted = made.as_ref().map(|made| (made.reference(), made.made.head.clone()));
        let patience = Arc::clone(&exchange.patience);
        let there =
            remotely((Urgency::AfterAttempt, Duration::ZERO), &patience, context, move |cancelled| {
                exchange.bring_tip(false, cancelled)?;
                wanted.map_or(Ok(true), |(reference, head)| exchange.bring(&reference, &head, cancelled))
            })?;
        if let Some(made) = made.as_ref().filter(|_| !there) {
            context.notice(&format!(
                "what an earlier agent has committed for {} ({:.10}) is not on the remote: it is done again",
                made.task, made.made.head
            ))?;
        }
        Ok(made.filter(|_| there))
    }

    /// What is committed here from now on is for this claim, or for none.
    pub(super) fn works_on(&self, claim: Option<(&Claim, &str)>) {
        let at_work = |(claim, base): (&Claim, &str)| AtWork {
            tree: self.tree.clone(),
            claim: claim.clone(),
            base: base.to_owned(),
        };
        self.team.works_on(self.place, claim.map(at_work));
    }

    /// Runs what a new tree needs.
    fn prepare(&self, context: &mut Context<'_>) -> Result<(), End> {
        let is_missing = |by: &&ValidationCommand| !landing::is_prepared(&self.tree, by.shown());
        let Some(prepare) = self.prepare.as_ref().filter(is_missing) else { return Ok(()) };
        // No agent has begun that should end by itself.
        match prepare.run_until(Urgency::AfterAttempt, None, context)? {
            Verdict::Found(found) if !found.ok => Err(unprepared(&self.tree, &found)),
            Verdict::Found(_) => {
                landing::set_prepared(&self.tree, prepare.shown());
                Ok(())
            }
            // The loop ends or holds: it is made when work begins.
            Verdict::CutOff(_) | Verdict::Unable(..) => Ok(()),
        }
    }

    /// Commits what the agent of a task has left uncommitted, in its name; returns why that cannot be done, so that the task is
    /// not done.
    pub(super) fn commit_rest(
        &self,
        current: &Current,
        context: &mut Context<'_>,
    ) -> Result<Option<String>, End> {
        match landing::relink(&self.root, &self.tree) {
            Ok(true) => {}
            Ok(false) => return Ok(Some(format!("the work tree {} is gone", self.tree.display()))),
            Err(error) => return Ok(Some(error.to_string())),
        }
        let message = format!("{}: {}", current.task.id, unlinked(&current.task.title));
        match landing::commit_rest(&self.tree, &message) {
            Ok(None) => {}
            Ok(Some(files)) => {
                context.notice(&format!("the agent has left {files} uncommitted: committed in its name"))?;
            }
            Err(error) => return Ok(Some(format!("what the agent has left cannot be committed: {error}"))),
        }
        let marked = landing::still_marked(&self.tree, &self.base_of(current))?;
        let why = || format!("there are still conflict markers in {}: resolve them", some_of(&marked, SOME));
        Ok((!marked.is_empty()).then(why))
    }

    /// What is committed for a task, kept so that its next agent goes on from there: in the graph, and by a ref. `None` if that is
    /// nothing.
    pub(super) fn keep(
        &self,
        graph: &Graph,
        current: &Current,
        how: Keep,
        context: &mut Context<'_>,
    ) -> Result<Option<Made>, End> {
        let base = self.base_of(current);
        let was_on = checked_out(&self.tree);
        // The trunk does not follow as long as it is checked out here.
        landing::detach(&self.root, &self.tree);
        let head = landing::head_of(&self.root, &self.tree);
        let head = head.filter(|head| !is_ancestor(&self.root, head, &base));
        let Some(head) = head else { return Ok(None) };
        if matches!(was_on, Ok(CheckedOut::Branch(name)) if name == self.trunk.name()) {
            let what = "the agent has committed on {} itself, before the gate has looked at that";
            context.notice(&what.replace("{}", self.trunk.name()))?;
        }
        let made = Made { trunk: self.trunk.name().to_owned(), base, head };
        let own = current.claim.reference();
        if self.kept.borrow().as_ref().is_some_and(|(kept, head)| *kept == own && *head == made.head) {
            return Ok(Some(made));
        }
        if let Some(exchange) = self.exchange.clone() {
            // The remote first (rule 4): the graph names nothing that could not be got from there.
            landing::keep(&self.root, &own, &made.head)?;
            match how {
                Keep::Here => return Ok(Some(made)),
                Keep::There => {}
                Keep::Finished => landing::set_finished(&self.root, &own, &made.head)?,
            }
            let (reference, head) = (own.clone(), made.head.clone());
            // Also while the loop ends, for a moment: another machine is to go on from there.
            let patience = Arc::clone(&exchange.patience);
            let pushed = remotely((Urgency::Now, context.last(LAST)), &patience, context, move |cancelled| {
                exchange.push_claim(&reference, &head, cancelled)
            });
            if let Err(end) = pushed {
                if context.urgency() < Urgency::Now || how == Keep::Finished {
                    return Err(self.kept_here(current, end));
                }
                context.notice(&format!(
                    "{} is kept here as {own}, and is not on the remote",
                    current.claim.task
                ))?;
                return Ok(None);
            }
        }
        // The graph first: no later agent would find a ref that it does not know.
        let (claim, kept) = (current.claim.clone(), made.clone());
        let told = graph.book(context, move |graph| graph.keep(&claim, &kept));
        match told.map_err(|end| self.kept_here(current, end))? {
            Ok(()) => {}
            // What follows reports that.
            Err(GraphError::ClaimLost { .. }) if self.exchange.is_none() => {}
            Err(GraphError::ClaimLost { .. }) => {
                context.notice(&format!(
                    "{} is not this run's any more: what its agent has committed is kept as {own}",
                    current.claim.task
                ))?;
            }
            Err(error) => return Err(self.kept_here(current, error.into())),
        }
        landing::keep(&self.root, &own, &made.head)?;
        self.kept.replace(Some((own, made.head.clone())));
        Ok(Some(made))
    }

    /// An end of the loop before what there is of a task could be booked, with where that is.
    pub(super) fn kept_here(&self, current: &Current, mut end: End) -> End {
        if self.exchange.is_some() {
            let (task, reference) = (&current.claim.task, current.claim.reference());
            let why = end.detail.take().unwrap_or_default();
            end.detail = Some(format!(
                "{why}; what there is of {task} {KEPT_HERE} {reference}, and the next run in this clone books it if it can"
            ));
        }
        end
    }

    /// An end by a store or a remote that cannot be used, with what is kept here for that.
    pub(super) fn with_left_over(&self, end: End) -> End {
        let is_for_them = matches!(end.outcome, Outcome::StoreAway | Outcome::StoreRefused);
        let is_said = end.detail.as_deref().is_some_and(|why| why.contains(KEPT_HERE));
        if self.exchange.is_none() || !is_for_them || is_said {
            return end;
        }
        let tip = self.trunk.tip().unwrap_or_default();
        let left = landing::left_over(&self.root, &tip).unwrap_or_default();
        if left.is_empty() {
            return end;
        }
        let names = some_of(left.into_iter().map(|(reference, ..)| reference), SOME);
        let why = end.detail.unwrap_or_default();
        End::because(
            end.outcome,
            format!(
                "{why}; what is not booked {KEPT_HERE} {names}, and the next run in this clone books it if it can"
            ),
        )
    }

    /// It is booked, or its claim is lost.
    pub(super) fn is_booked(&self, current: &Current) -> Result<(), End> {
        if self.exchange.is_some() {
            landing::forget_finished(&self.root, &current.claim.reference())?;
        }
        Ok(())
    }

    /// Waits before the graph is read again: longer each time, where many machines ask one server.
    fn wait_a_moment(&self, context: &mut Context<'_>) -> Result<bool, End> {
        let mut span = LOOK;
        if self.exchange.is_some() {
            span = self.idle.get().clamp(LOOK, RARELY);
            self.idle.set(span * 3 / 2);
            span = jitter::around(span);
        }
        match context.wait(Some(Instant::now() + span))? {
            // A request to stop or to hold counts, whatever is returned.
            Wake::Asked(_) if context.is_held_up() => Err(Outcome::Blocked.into()),
            _ => Ok(true),
        }
    }

    fn base_of(&self, current: &Current) -> String {
        current.base.clone().or_else(|| self.trunk.tip()).unwrap_or_default()
    }
}

/// Does something with the remote while the loop handles requests; one of this urgency ends it after this time.
fn remotely<T: Send + 'static>(
    cut_at: (Urgency, Duration),
    patience: &Patience,
    context: &mut Context<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<T, Failed> + Send + 'static,
) -> Result<T, End> {
    let done = beside_for(cut_at, &|| patience.waits(), context, work)?;
    let done = done.map_err(|error| End::because(Outcome::GitFailed, error.to_string()))?;
    let cut = || context.stopped_by().unwrap_or(Outcome::Interrupted).into();
    done.map_err(|failed| failed.end().unwrap_or_else(cut))
}

impl Tasks {
    /// Keeps what is committed for the current task.
    pub(super) fn keep_made(
        &self,
        current: &Current,
        how: Keep,
        context: &mut Context<'_>,
    ) -> Result<(), End> {
        let keep = |lane: &Rc<Lane>| lane.keep(&self.graph, current, how, context);
        self.lane.as_ref().map_or(Ok(None), keep).map(drop)
    }

    /// The end of a loop that cannot book what is finished, with where that is.
    pub(super) fn unbooked(&self, current: &Current, end: End) -> End {
        match &self.lane {
            Some(lane) => lane.kept_here(current, end),
            None => end,
        }
    }

    /// Commits what an attempt has left that did not end by itself, where its work tree may never be seen again.
    pub(super) fn save_rest(
        &self,
        current: &Current,
        status: AttemptStatus,
        context: &mut Context<'_>,
    ) -> Result<(), End> {
        let Some(lane) = self.lane.as_ref().filter(|lane| lane.exchange.is_some()) else { return Ok(()) };
        if current.only_verifies || matches!(status, AttemptStatus::Success | AttemptStatus::Still) {
            return Ok(());
        }
        // What cannot be committed stays in the tree, and is kept when that is used again.
        lane.commit_rest(current, context).map(drop)
    }

    /// Reports that a task waits to land, and wakes the lander.
    pub(super) fn handed_in(
        &self,
        current: &Current,
        made: &Made,
        context: &mut Context<'_>,
    ) -> Result<(), End> {
        let Some(lane) = &self.lane else { return Ok(()) };
        let validated = self.is_proven_by_command && lane.is_gated_alike;
        let green = if validated { landing::files_of(&lane.root, &made.head) } else { None };
        context.tell(Fact::LandingQueued {
            commit: made.head.clone().into(),
            reference: current.claim.reference().into(),
            task: current.at_work(),
            trunk: made.trunk.clone().into(),
        })?;
        lane.team.hand_in(green);
        Ok(())
    }

    /// Tells what this run has handed in and another one has landed.
    fn tell_landed_elsewhere(&self, lane: &Lane, context: &mut Context<'_>) -> Result<(), End> {
        let handed_in = lane.team.handed_in();
        if handed_in.is_empty() {
            return Ok(());
        }
        let looked = self.graph.look(context, move |graph| {
            let known = |reference: String| {
                let claim = Claim::of_reference(&reference);
                match claim.map_or(Ok(None), |claim| graph.landing(&claim.task)) {
                    Ok(found) => Ok((found.filter(|one| one.reference() == reference), reference)),
                    // It was deleted.
                    Err(GraphError::UnknownTask { .. }) => Ok((None, reference)),
                    Err(error) => Err(error),
                }
            };
            handed_in.into_iter().map(known).collect::<Result<Vec<_>, _>>()
        });
        for (found, reference) in looked?? {
            let Some(one) = found else {
                // It was reset, or is done anew.
                lane.team.waits_no_more(&reference);
                continue;
            };
            let Some(commit) = one.landed.clone().filter(|_| lane.team.waits_no_more(&reference)) else {
                continue;
            };
            let (task, trunk) = (at_work(&one), one.made.trunk.clone().into());
            let tasks = self.task_counts(context)?;
            context.tell(Fact::Landed { commit: commit.into(), task, tasks, trunk })?;
        }
        Ok(())
    }

    /// Counts an iteration for the run; ends where none may begin any more.
    pub(super) fn may_begin(&self) -> Result<(), End> {
        let Some(lane) = &self.lane else { return Ok(()) };
        if let Some(end) = lane.team.ended() {
            return Err(end);
        }
        if lane.team.begin(lane.limit) { Ok(()) } else { Err(Outcome::MaxIterations.into()) }
    }

    /// The iteration that was counted has not begun.
    pub(super) fn begins_not(&self) {
        if let Some(lane) = &self.lane {
            lane.team.begin_not();
        }
    }

    /// An attempt has failed, or not.
    pub(super) fn count_failure(&self, failed: bool) {
        let Some(lane) = &self.lane else { return };
        let in_a_row = lane.team.count(failed);
        if lane.breaker.is_some_and(|most| in_a_row >= most) {
            lane.team.end(&Outcome::Breaker.into());
        }
    }

    /// Waits for tasks that are at work or landing, if any are; returns whether there may be something to do now.
    pub(super) fn wait_for_others(&self, context: &mut Context<'_>) -> Result<bool, End> {
        let Some(lane) = &self.lane else { return Ok(false) };
        self.tell_landed_elsewhere(lane, context)?;
        let (target, trunk, at) =
            (Arc::clone(&self.target), lane.trunk.name().to_owned(), lane.team.standstill());
        let lands = !matches!(at, Standstill::Paused(_) | Standstill::Ended);
        let (is_remote, was_there) = (lane.exchange.is_some(), self.may_claim.get());
        let tells = !lane.has_told.get();
        let looked = self.graph.look(context, move |graph| {
            let moving = target.moving(graph, &trunk, lands)?;
            let missing = if is_remote && was_there { target.missing(graph)? } else { None };
            // What landed, or was returned, since a task was looked for.
            let comes = is_remote && !was_there && moving.is_empty() && graph.may_claim()?;
            let has_room = !tells || moving.is_empty() || target.has_room(graph)?;
            Ok::<_, End>((moving, missing, comes || !graph.is_as_looked_at()?, has_room))
        });
        let (moving, missing, has_changed, has_room) = looked??;
        if let Some(missing) = missing
            && lane.catches_up(&missing, context)?
        {
            return Ok(true);
        }
        if moving.is_empty() {
            return match at {
                // They may have ended a moment ago, and something else is ready.
                _ if has_changed => Ok(true),
                // What it takes in may be what a task waits for.
                Standstill::None => lane.wait_a_moment(context),
                Standstill::Paused(why) => Err(End::because(Outcome::Blocked, why)),
                _ => Ok(false),
            };
        }
        if !lane.has_told.replace(true) {
            let why = if has_room { "nothing is ready" } else { "enough is finished and has to land first" };
            context.notice(&format!("{why}: waits for {}", some_of(&moving, SOME)))?;
        }
        lane.wait_a_moment(context)
    }

    /// Waits until what is handed in has landed, or cannot now, unless the user wants to leave at once.
    pub(super) fn drain(&self, context: &mut Context<'_>) -> Result<(), End> {
        let Some(lane) = &self.lane else { return Ok(()) };
        let mut told = false;
        while lane.team.standstill() == Standstill::None {
            let away = lane.exchange.as_ref().and_then(|exchange| exchange.patience.waits());
            if context.urgency() >= Urgency::Now || away.is_some() && context.is_to_leave() {
                lane.team.hurry();
                break;
            }
            let is_away = away.is_some();
            if let Some((until, why)) = away.filter(|_| !told) {
                context.tell(Fact::waiting_for(WaitReason::Remote, until, why))?;
            } else if told && !is_away {
                context.tell(Fact::Resumed { blind_waits: None, waited_s: None })?;
            }
            told = is_away;
            context.wait(Some(Instant::now() + LOOK))?;
        }
        if context.urgency() < Urgency::Now {
            self.tell_landed_elsewhere(lane, context)?;
        }
        lane.team.leave(lane.place);
        // Where no other loop is left that could tell it.
        context.look_after()
    }
}

impl super::Target {
    /// Whether another task may begin now, and not only one that was returned.
    pub(super) fn has_room(&self, graph: &dyn Store) -> Result<bool, End> {
        let Some((trunk, jobs)) = &self.trunk else { return Ok(true) };
        let waits = |one: &&Landing| one.standing == Standing::Waiting && one.made.trunk == trunk.name();
        let waiting = graph.landings()?.iter().filter(waits).count();
        Ok(crate::graph::landing::may_begin(waiting, *jobs))
    }

    /// The tasks that others are at work on, or that land, and that this target may wait for. `lands`: ours do.
    fn moving(&self, graph: &mut dyn Store, trunk: &str, lands: bool) -> Result<Vec<String>, End> {
        let named = |id: &String, status: Status| format!("{id} ({})", status.word());
        // All workers that wait ask this again and again, so the cheap answer comes first.
        let found = graph.at_work(&self.scope, SOME + 1)?;
        if !found.is_empty() {
            return Ok(found.iter().map(|id| named(id, Status::InProgress)).collect());
        }
        let mut trunks = Vec::new();
        for one in graph.landings()? {
            let moves =
                if one.made.trunk == trunk { lands } else { graph.leader(&one.made.trunk)?.is_some() };
            if one.standing == Standing::Waiting && moves {
                trunks.push(one.task);
            }
        }
        if self.scope == Scope::All && !trunks.is_empty() {
            return Ok(trunks.iter().map(|id| named(id, Status::Landing)).collect());
        }
        let mut found = Vec::new();
        for stuck in graph.unresolved(&self.scope, MOST_STUCK)? {
            for task in [&stuck.task].into_iter().chain(&stuck.waits_for) {
                let moves = match task.status {
                    Status::InProgress => true,
                    Status::Landing => trunks.contains(&task.id),
                    _ => false,
                };
                let name = named(&task.id, task.status);
                if moves && !found.contains(&name) {
                    found.push(name);
                }
            }
        }
        Ok(found)
    }
}
