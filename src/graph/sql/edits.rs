//! Changes of the graph by users and agents.

use super::claims::leave;
use super::features;
use super::sets::Sets;
use super::settle::{Node, Parent, Work, above, count_child, list_as_ready, numbers, require_level, settle};
use super::task_log::write_log;
use super::values::values;
use super::{Fallible, Fault, cycle, landings, queries};
use super::{Sql, first, random};
use crate::graph::error::GraphError;
use crate::graph::limits;
use crate::graph::store::{Changes, NewTask};
use crate::graph::task::Status;
use crate::graph::transitions::{self, Own};
use crate::text::list::some_of;

/// How many ids an error names.
const SOME: usize = 5;
/// The default limit of retries.
pub(in crate::graph) const MAX_RETRIES: u32 = 3;
/// The least and the largest number of digits in an id.
const DIGITS: std::ops::RangeInclusive<usize> = 6..=16;

pub(in crate::graph) fn add(graph: &dyn Sql, task: &NewTask) -> Fallible<String> {
    limits::title(&task.title)?;
    limits::text("the description", &task.description)?;
    limits::priority(task.priority)?;
    let parent = task.parent.as_deref().map(|id| queries::find(graph, id)).transpose()?;
    let feature = match (&task.feature, parent) {
        (Some(name), _) => Some(features::seq(graph, name)?),
        (None, Some(parent)) => Node::read(graph, parent)?.feature,
        (None, None) => None,
    };
    if let Some(parent) = parent {
        limits::level("the task", level(graph, parent)? + 1)?;
    }
    // Resolved before the new task exists, so that a prefix cannot match it.
    let blockers: Vec<i64> = task.after.iter().map(|id| queries::find(graph, id)).collect::<Fallible<_>>()?;
    let max_retries = task.max_retries.unwrap_or(MAX_RETRIES);
    let (id, now) = (new_id(graph)?, graph.now()?);
    let insert =
        "INSERT INTO tasks (id, parent, feature, title, priority, max_retries, retries_given, created_at, updated_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8) RETURNING seq";
    let given = task.max_retries.is_some();
    let values = values![id, parent, feature, task.title, task.priority, max_retries, given, now];
    let seq = graph.one(insert, values, first)?;
    describe(graph, seq, &task.description)?;
    if let Some(parent) = parent {
        count_child(graph, parent, 1, 0, 0)?;
        settle(graph, parent, None)?;
    }
    settle(graph, seq, Some(Own::Open))?;
    for blocker in blockers {
        // A refused task has no id.
        add_dependency(graph, blocker, seq).map_err(|fault| match fault {
            Fault::Graph(error) => {
                GraphError::BadValue(error.to_string().replace(&id, "the new task")).into()
            }
            fault => fault,
        })?;
    }
    Ok(id)
}

/// An id that no task has; it gets more digits as short ids run out.
pub(in crate::graph) fn new_id(graph: &dyn Sql) -> Fallible<String> {
    for digits in DIGITS {
        let id = format!("t-{}", random(digits)?);
        if queries::exact(graph, &id)?.is_none() {
            return Ok(id);
        }
    }
    Err(GraphError::BadValue("no id is free: delete tasks that are not needed any more".into()).into())
}

pub(in crate::graph) fn describe(graph: &dyn Sql, seq: i64, text: &str) -> Fallible<()> {
    if text.is_empty() {
        graph.execute("DELETE FROM descriptions WHERE task = ?1", values![seq])?;
    } else {
        let replace = "INSERT INTO descriptions (task, text) VALUES (?1, ?2) ON CONFLICT (task) DO UPDATE SET text = ?2";
        graph.execute(replace, values![seq, text])?;
    }
    Ok(())
}

pub(in crate::graph) fn update(graph: &dyn Sql, id: &str, changes: &Changes) -> Fallible<()> {
    changes.title.as_deref().map_or(Ok(()), limits::title)?;
    changes.description.as_deref().map_or(Ok(()), |text| limits::text("the description", text))?;
    changes.priority.map_or(Ok(()), limits::priority)?;
    let seq = queries::find(graph, id)?;
    let feature = match changes.feature.as_deref() {
        None => None,
        Some("") => Some(None),
        Some(name) => Some(Some(features::seq(graph, name)?)),
    };
    // The list of ready tasks has its feature and its priority.
    let old = Node::read(graph, seq)?;
    if old.ready {
        list_as_ready(graph, &old, false)?;
    }
    let mut sets = Sets::default();
    if let Some(title) = &changes.title {
        sets = sets.set("title", title);
    }
    if let Some(feature) = &feature {
        sets = sets.set("feature", feature);
    }
    if let Some(priority) = &changes.priority {
        sets = sets.set("priority", priority);
    }
    if let Some(max_retries) = &changes.max_retries {
        let count = queries::task(graph, seq)?.retry_count.min(*max_retries);
        sets = sets.set("max_retries", max_retries).and("retries_given", "1").set("retry_count", &count);
    }
    if let Some(text) = &changes.description {
        describe(graph, seq, text)?;
    }
    if *changes != Changes::default() {
        sets.set("updated_at", &graph.now()?).write(graph, seq)?;
    }
    if old.ready {
        list_as_ready(graph, &Node::read(graph, seq)?, true)?;
    }
    Ok(())
}

pub(in crate::graph) fn force_done(graph: &dyn Sql, id: &str, force: bool) -> Fallible<String> {
    let seq = queries::find(graph, id)?;
    let advice = "'ralph cancel' ends the run, --force takes the task away from it";
    require_free(graph, seq, force, advice)?;
    if Node::read(graph, seq)?.status == Status::Landing && !force {
        return Err(GraphError::Landing { id: queries::id(graph, seq)? }.into());
    }
    by_hand(graph, seq, Status::Done, Own::Done, "done, by hand")
}

pub(in crate::graph) fn force_fail(graph: &dyn Sql, id: &str, reason: &str) -> Fallible<String> {
    limits::text("the reason", reason)?;
    let seq = queries::find(graph, id)?;
    let reason = if reason.is_empty() { "failed, by hand".to_owned() } else { format!("failed: {reason}") };
    by_hand(graph, seq, Status::Failed, Own::Failed, &reason)
}

/// Ends a task by legal steps, without an agent.
fn by_hand(graph: &dyn Sql, seq: i64, to: Status, own: Own, log: &str) -> Fallible<String> {
    let (node, id) = (Node::read(graph, seq)?, queries::id(graph, seq)?);
    if node.open_parts() > 0 || node.work.0.is_none() {
        return Err(GraphError::HasParts { id, from: node.status, to }.into());
    }
    if transitions::steps(node.status, to).is_none() {
        let advice = if node.status == to { "there is nothing to do" } else { "'ralph task reset' it first" };
        return Err(GraphError::Illegal { id, from: node.status, to, advice }.into());
    }
    landings::withdraw(graph, seq)?;
    leave(
        graph,
        node,
        own,
        log,
        Sets::default().and("done_by", if own == Own::Done { "''" } else { "NULL" }),
    )?;
    Ok(id)
}

pub(in crate::graph) fn reset(graph: &dyn Sql, id: &str) -> Fallible<String> {
    let seq = queries::find(graph, id)?;
    for seq in subtree(graph, seq)? {
        landings::withdraw(graph, seq)?;
        let node = Node::read(graph, seq)?;
        let sets = Sets::default().and("retry_count", "0").and("verification", "0").and("unverified", "0");
        if node.claimed || node.work.own() != Own::Open {
            leave(graph, node, Own::Open, "reset, by hand", sets)?;
        } else {
            sets.write(graph, seq)?;
        }
    }
    queries::id(graph, seq)
}

pub(in crate::graph) fn delete(graph: &dyn Sql, id: &str, recursive: bool) -> Fallible<usize> {
    let seq = queries::find(graph, id)?;
    let ids = |seqs: &[i64]| -> Fallible<String> {
        let shown: Fallible<Vec<String>> =
            seqs.iter().take(SOME + 1).map(|&seq| queries::id(graph, seq)).collect();
        Ok(some_of(shown?, SOME))
    };
    let tasks = subtree(graph, seq)?;
    if tasks.len() > 1 && !recursive {
        let parts = numbers(graph, "SELECT seq FROM tasks WHERE parent = ?1", seq)?;
        return Err(GraphError::Parts { id: queries::id(graph, seq)?, some: ids(&parts)? }.into());
    }
    let set: std::collections::HashSet<i64> = tasks.iter().copied().collect();
    for &seq in &tasks {
        require_free(graph, seq, false, "'ralph cancel' ends the run")?;
        let mut waiting = numbers(graph, "SELECT blocked FROM dependencies WHERE blocker = ?1", seq)?;
        waiting.retain(|blocked| !set.contains(blocked));
        if !waiting.is_empty() {
            return Err(GraphError::Blocks { id: queries::id(graph, seq)?, some: ids(&waiting)? }.into());
        }
    }
    let top = Node::read(graph, seq)?;
    for &seq in tasks.iter().rev() {
        let node = Node::read(graph, seq)?;
        if node.ready {
            list_as_ready(graph, &node, false)?;
        }
        graph.execute("DELETE FROM tasks WHERE seq = ?1", values![seq])?;
    }
    if let Some(Parent { seq: parent, .. }) = top.parent {
        let was = |what: Status| -i64::from(top.status == what);
        count_child(graph, parent, -1, was(Status::Done), was(Status::Failed))?;
        ungroup(graph, parent)?;
        settle(graph, parent, None)?;
    }
    Ok(tasks.len())
}

/// Turns a group that lost its last part into a task of its own; it is done if its parts were.
fn ungroup(graph: &dyn Sql, seq: i64) -> Fallible<()> {
    let node = Node::read(graph, seq)?;
    if node.children > 0 || node.work.0.is_some() {
        return Ok(());
    }
    let is_done = node.status == Status::Done;
    let own = if is_done { Own::Done } else { Own::Open };
    let update = "UPDATE tasks SET work = ?2, done_by = CASE WHEN ?3 = 1 THEN '' END WHERE seq = ?1";
    graph.execute(update, values![seq, Work(Some(own)).number(), is_done])?;
    if is_done { write_log(graph, seq, "done, with its parts") } else { Ok(()) }
}

/// Makes every task that has parts and only a title a group.
pub(in crate::graph) fn group_by_titles(graph: &dyn Sql) -> Fallible<()> {
    let update = "UPDATE tasks SET work = 0, done_by = NULL
        WHERE children > 0 AND NOT EXISTS (SELECT 1 FROM descriptions WHERE task = seq)";
    graph.execute(update, values![])?;
    Ok(())
}

/// A task and all tasks below it, parents first.
fn subtree(graph: &dyn Sql, seq: i64) -> Fallible<Vec<i64>> {
    let mut tasks = vec![seq];
    let (mut level, mut levels) = (vec![seq], 0);
    while !level.is_empty() {
        let mut parts = Vec::new();
        for &seq in &level {
            parts.extend(numbers(graph, "SELECT seq FROM tasks WHERE parent = ?1", seq)?);
        }
        require_level(levels)?;
        levels += 1;
        tasks.extend(&parts);
        level = parts;
    }
    Ok(tasks)
}

fn require_free(graph: &dyn Sql, seq: i64, force: bool, advice: &'static str) -> Fallible<()> {
    let query = "SELECT id, run FROM tasks WHERE seq = ?1 AND status = 1";
    let claimed = graph.maybe(query, values![seq], |row| Ok((row.get(0)?, row.get(1)?)));
    match claimed? {
        Some((id, by)) if !force => Err(GraphError::Claimed { id, by, advice }.into()),
        _ => Ok(()),
    }
}

pub(in crate::graph) fn add_dependency(graph: &dyn Sql, blocker: i64, blocked: i64) -> Fallible<()> {
    let (blocker_id, blocked_id) = (queries::id(graph, blocker)?, queries::id(graph, blocked)?);
    if blocker == blocked {
        return Err(GraphError::SelfDependency { id: blocked_id }.into());
    }
    if has_dependency(graph, blocker, blocked)? {
        return Err(GraphError::DuplicateDependency { blocked: blocked_id, blocker: blocker_id }.into());
    }
    if is_above(graph, blocker, blocked)? || is_above(graph, blocked, blocker)? {
        return Err(GraphError::Kin { blocked: blocked_id, blocker: blocker_id }.into());
    }
    let from = Node::read(graph, blocked)?.status;
    if matches!(from, Status::InProgress | Status::Landing | Status::Done) {
        let (to, advice) = (Status::Blocked, "'ralph task reset' it first");
        return Err(GraphError::Illegal { id: blocked_id, from, to, advice }.into());
    }
    if let Some(path) = cycle::way(graph, blocked, blocker)? {
        return Err(GraphError::Cycle { blocked: blocked_id, blocker: blocker_id, path }.into());
    }
    let insert = "INSERT INTO dependencies (blocker, blocked) VALUES (?1, ?2)";
    graph.execute(insert, values![blocker, blocked])?;
    wait_for(graph, blocker, blocked, 1)
}

pub(in crate::graph) fn remove_dependency(graph: &dyn Sql, blocker: &str, blocked: &str) -> Fallible<()> {
    let (blocker, blocked) = (queries::find(graph, blocker)?, queries::find(graph, blocked)?);
    if !has_dependency(graph, blocker, blocked)? {
        let (blocker, blocked) = (queries::id(graph, blocker)?, queries::id(graph, blocked)?);
        return Err(GraphError::NoDependency { blocked, blocker }.into());
    }
    let delete = "DELETE FROM dependencies WHERE blocker = ?1 AND blocked = ?2";
    graph.execute(delete, values![blocker, blocked])?;
    wait_for(graph, blocker, blocked, -1)
}

/// Updates the number of open blockers after a dependency was added or removed.
fn wait_for(graph: &dyn Sql, blocker: i64, blocked: i64, count: i64) -> Fallible<()> {
    if Node::read(graph, blocker)?.status == Status::Done {
        return Ok(());
    }
    let update = "UPDATE tasks SET open_blockers = open_blockers + ?2 WHERE seq = ?1";
    graph.execute(update, values![blocked, count])?;
    settle(graph, blocked, None)
}

fn has_dependency(graph: &dyn Sql, blocker: i64, blocked: i64) -> Fallible<bool> {
    let query = "SELECT 1 FROM dependencies WHERE blocker = ?1 AND blocked = ?2";
    graph.exists(query, values![blocker, blocked])
}

/// Whether the first task is above the second.
fn is_above(graph: &dyn Sql, first: i64, below: i64) -> Fallible<bool> {
    Ok(above(graph, below)?.contains(&first))
}

/// The level of a task: the number of tasks above it, itself included.
fn level(graph: &dyn Sql, seq: i64) -> Fallible<usize> {
    Ok(1 + above(graph, seq)?.len())
}

pub(in crate::graph) fn log(graph: &dyn Sql, id: &str, message: &str) -> Fallible<()> {
    limits::text("the message", message)?;
    if message.trim().is_empty() {
        return Err(GraphError::BadValue("the message is empty: say what happened".into()).into());
    }
    let insert = "INSERT INTO task_logs (task, message, at, said) VALUES (?1, ?2, ?3, 1)";
    graph.execute(insert, values![queries::find(graph, id)?, message, graph.now()?])?;
    Ok(())
}
