//! How a loop ends: if no task is left to claim, and at any other end.

use std::sync::Arc;

use super::booking::is_left_to_others;
use super::{SOME, Target, Tasks, Undecided};
use crate::engine::budget::Limit;
use crate::engine::context::Context;
use crate::engine::outcome::{End, Ended, Outcome};
use crate::graph::{GraphError, Scope, Selection, Status, Store, Stuck, Task};
use crate::text::list::some_of;

impl Target {
    /// See [`Tasks::end`].
    fn end(&self, graph: &dyn Store, undecided: &Undecided) -> Result<End, End> {
        let scope = &self.scope;
        let counts = graph.counts(scope)?;
        if counts.total == 0 {
            return Ok(End::because(Outcome::NoTasks, no_tasks(scope)));
        }
        if counts.done == counts.total {
            return Ok(Outcome::AllDone.into());
        }
        if counts.done + counts.failed == counts.total {
            let failed_ones = graph.failed(scope, SOME + 1)?;
            let names = some_of(failed_ones.iter().map(named), SOME);
            let detail = format!(
                "{} of {} tasks failed: {names}: see 'ralph task log ID', then 'ralph task reset ID'",
                counts.failed, counts.total
            );
            return Ok(End::because(Outcome::TasksFailed, detail));
        }
        if let Some(why) = not_verified(graph, undecided) {
            return Ok(End::because(Outcome::Unproven, why));
        }
        let stuck = graph.unresolved(scope, SOME)?;
        let mut why = Vec::new();
        for one in &stuck {
            why.push(match self.missing_here(graph, &one.task.id)? {
                Some((task, commit)) if task == one.task.id => format!(
                    "{task} is said to be done in another work tree: merge {commit:.10} and run again to verify it, or \
                     'ralph task reset {task}' to do it again"
                ),
                Some((task, commit)) => format!(
                    "{id} waits for a merge of {task}: merge {commit:.10}, or 'ralph task deps rm {task} {id}' if its work is here",
                    id = one.task.id
                ),
                None => {
                    let landing = graph.landing(&one.task.id)?;
                    reason(one, landing.as_ref().map(|landing| landing.made.trunk.as_str()))
                }
            });
        }
        let open = counts.total - counts.done - counts.failed;
        let more = usize::try_from(open).unwrap_or(usize::MAX).saturating_sub(stuck.len());
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        Ok(End::because(Outcome::Blocked, format!("nothing is ready: {}{more}", why.join("; "))))
    }
}

impl Tasks {
    /// The end, if no task of the target can be claimed here.
    pub(super) fn end(&self, context: &mut Context<'_>) -> Result<End, End> {
        let (target, undecided) = (Arc::clone(&self.target), self.undecided.clone());
        self.graph.look(context, move |graph| target.end(graph, &undecided))?
    }

    /// The loop's end, after what the graph says of the target.
    pub(super) fn closed(&mut self, end: End, context: &mut Context<'_>) -> Result<End, End> {
        use Outcome::{AllDone, LastFailed, MaxIterations, NoTasks, TasksFailed, Unproven};
        self.give_back("the loop ended", context)?;
        self.drain(context)?;
        // Where all is done, this was the last thing that was checked.
        if end.outcome != AllDone && self.lane.is_none() {
            self.reopen_dropped(context)?;
        }
        let by_graph = self.sound_end(context)?;
        // At a limit, the graph decides whether anything is left.
        let is_at_limit = end.outcome.wants_more_iterations() || Limit::that_ended(end.outcome).is_some();
        let is_at_number = matches!(end.outcome, MaxIterations | LastFailed);
        let end = match by_graph.outcome {
            AllDone | TasksFailed if is_at_limit => self.doubted(by_graph),
            Unproven if is_at_number => by_graph,
            AllDone | NoTasks => self.doubted(end),
            _ if end.outcome == AllDone => {
                let why = "tasks were added or opened again while the run ended: run again to work on them";
                End::because(Unproven, why)
            }
            _ => self.doubted(end),
        };
        let end = match (&self.unverified, end.outcome.if_unproven()) {
            (Some(why), Some(unproven)) => End::because(unproven, why),
            _ => end,
        };
        // If the run is killed before this, or its end does not report them, the next one does.
        if self.doubts.is_empty() || end.outcome.ended() == Ended::Unproven {
            self.graph.book(context, |graph| graph.settle_doubts())??;
        }
        Ok(end)
    }
}

/// The tasks that are claimed to be done and that this run could not verify.
fn not_verified(graph: &dyn Store, undecided: &Undecided) -> Option<String> {
    let mut found = Vec::new();
    for (id, (_, why)) in undecided.iter().filter(|(id, _)| is_left_to_others(undecided, id)) {
        // A task that was removed meanwhile is not unverified.
        if graph.is_unverified(id).unwrap_or_default() {
            found.push((id, why));
        }
    }
    let (_, why) = found.last()?;
    let ids = some_of(found.iter().map(|(id, _)| (*id).clone()), SOME);
    Some(format!(
        "{ids}: said to be done, and no verification reached a verdict ({why}): run again to verify it first"
    ))
}

/// What to do if there are no tasks.
pub(crate) fn no_tasks(scope: &Scope) -> String {
    match scope {
        Scope::Feature(name) => format!(
            "No tasks: feature '{name}' has none: add some with 'ralph task add TITLE --feature {name}', or import them with \
             'ralph task import FILE'"
        ),
        Scope::All | Scope::Subtree(_) => {
            "No tasks: add one with 'ralph task add TITLE', or import some with 'ralph task import FILE'"
                .to_owned()
        }
    }
}

fn named(task: &Task) -> String {
    format!("{} {}", task.id, task.title)
}

/// Why a task is blocked. `trunk`: where it is to land.
fn reason(stuck: &Stuck, trunk: Option<&str>) -> String {
    let id = &stuck.task.id;
    if let (Status::InProgress, Some(run)) = (stuck.task.status, &stuck.task.claimed_by) {
        return format!("{id} is held by {run}");
    }
    if let Some(above) = &stuck.failed_above {
        return format!("{id} is below {above}, which failed: 'ralph task reset {above}'");
    }
    let because = |blocker: &Task| match blocker.status {
        Status::Failed => format!("{}, which failed: 'ralph task reset {}'", blocker.id, blocker.id),
        status => format!("{} ({})", blocker.id, status.word()),
    };
    if stuck.task.status == Status::Landing {
        let onto = trunk.map(|trunk| format!(" --onto {}", shlex::try_quote(trunk).unwrap_or_default()));
        let onto = onto.unwrap_or_default();
        return format!("{id} waits to land: 'ralph run --all --jobs 2{onto}' lands it");
    }
    match stuck.waits_for.first() {
        Some(blocker) => format!("{id} waits for {}", because(blocker)),
        None => format!("{id} is {}", stuck.task.status.word()),
    }
}

/// The ids of the first tasks that can be claimed.
pub(super) fn ready(graph: &dyn Store, scope: &Scope, most: usize) -> Result<Vec<String>, GraphError> {
    let feature = if let Scope::Feature(name) = scope { Some(name.clone()) } else { None };
    let selection = Selection { feature, ready: true, ..Selection::default() };
    let mut below = Vec::new();
    if let Scope::Subtree(id) = scope {
        graph.tree(Some(id), &mut |task, _| {
            below.push(task.id);
            true
        })?;
    }
    let mut ids = Vec::new();
    graph.list(&selection, &mut |task| {
        if !matches!(scope, Scope::Subtree(_)) || below.contains(&task.id) {
            ids.push(task.id);
        }
        ids.len() < most
    })?;
    Ok(ids)
}
