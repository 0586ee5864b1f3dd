//! Queries of the graph.

use super::Sql;
use super::values::{Row, Value, values};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::iter;

use serde::Serialize;

use super::settle::{Work, above, numbers, require_level};
use super::{CANDIDATES, Fallible, features, first, issues, journal, landings, moment, number, status};
use crate::graph::error::GraphError;
use crate::graph::feature::{Counts, Feature};
use crate::graph::import::{DeletedIssue, ExportedFeature, ExportedLanding, ExportedTask, header_of};
use crate::graph::store::{Part, Scope, Selection, Stuck, TreePosition};
use crate::graph::task::{Details, LogLine, Status, Task, Verification};
use crate::text::list::some_of;
use crate::text::nearest::nearest;

/// The columns of a task, for [`of_row`].
const TASK: &str =
    "SELECT t.id, p.id, t.title, coalesce(d.text, ''), t.status, t.priority, t.created_at, t.updated_at,
    t.run, f.id, t.retry_count, t.max_retries, t.verification, t.seq
    FROM tasks t LEFT JOIN tasks p ON p.seq = t.parent LEFT JOIN features f ON f.seq = t.feature
    LEFT JOIN descriptions d ON d.task = t.seq";
/// How many ids an error names.
const SOME: usize = 5;

fn of_row(row: &dyn Row) -> Fallible<Task> {
    let feature_id: Option<String> = row.get(9)?;
    Ok(Task {
        id: row.get(0)?,
        parent_id: row.get(1)?,
        title: row.get(2)?,
        description: row.get(3)?,
        status: status(row.get(4)?)?,
        priority: row.get(5)?,
        created_at: moment(row.get(6)?),
        updated_at: moment(row.get(7)?),
        claimed_by: row.get(8)?,
        task_type: if feature_id.is_some() { "feature" } else { "standalone" },
        feature_id,
        retry_count: row.get(10)?,
        max_retries: row.get(11)?,
        verification_status: verification(row.get(12)?),
    })
}

fn verification(number: u8) -> Verification {
    Verification::ALL.get(usize::from(number)).copied().unwrap_or(Verification::Pending)
}

/// The task with exactly this id.
pub(in crate::graph) fn exact(graph: &dyn Sql, id: &str) -> Fallible<Option<i64>> {
    let query = "SELECT seq FROM tasks WHERE id = ?1";
    graph.maybe(query, values![id], |row| row.get(0))
}

/// The task with this id, or the only one whose id has this prefix.
pub(in crate::graph) fn find(graph: &dyn Sql, id: &str) -> Fallible<i64> {
    if let Some(seq) = exact(graph, id)? {
        return Ok(seq);
    }
    let query = "SELECT seq, id FROM tasks WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id LIMIT 7";
    let found: Vec<(i64, String)> = graph.all(query, values![id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    match found.as_slice() {
        [(seq, _)] if !id.is_empty() => Ok(*seq),
        [_, ..] if !id.is_empty() => {
            let some = some_of(found.iter().map(|(_, id)| id), SOME);
            Err(GraphError::AmbiguousTask { prefix: id.to_owned(), some }.into())
        }
        _ => {
            let ids: Vec<String> =
                graph.all("SELECT id FROM tasks ORDER BY seq DESC LIMIT ?1", values![CANDIDATES], |row| {
                    row.get(0)
                })?;
            let nearest = nearest(id, ids.iter().map(String::as_str)).map(str::to_owned);
            Err(GraphError::UnknownTask { id: id.to_owned(), nearest }.into())
        }
    }
}

pub(in crate::graph) fn id(graph: &dyn Sql, seq: i64) -> Fallible<String> {
    graph.one("SELECT id FROM tasks WHERE seq = ?1", values![seq], |row| row.get(0))
}

/// A task's title for messages.
pub(in crate::graph) fn title(graph: &dyn Sql, seq: i64) -> Fallible<String> {
    graph.one("SELECT title FROM tasks WHERE seq = ?1", values![seq], |row| row.get(0))
}

pub(in crate::graph) fn task(graph: &dyn Sql, seq: i64) -> Fallible<Task> {
    graph.one(&format!("{TASK} WHERE t.seq = ?1"), values![seq], of_row)
}

pub(in crate::graph) fn details(graph: &dyn Sql, seq: i64) -> Fallible<Details> {
    let ids = |query: &str| -> Fallible<Vec<String>> {
        numbers(graph, query, seq)?.into_iter().map(|seq| id(graph, seq)).collect()
    };
    let feature = "SELECT f.name FROM tasks t JOIN features f ON f.seq = t.feature WHERE t.seq = ?1";
    Ok(Details {
        task: task(graph, seq)?,
        feature: graph.maybe(feature, values![seq], |row| row.get(0))?,
        blockers: ids("SELECT blocker FROM dependencies WHERE blocked = ?1 ORDER BY blocker")?,
        blocks: ids("SELECT blocked FROM dependencies WHERE blocker = ?1 ORDER BY blocked")?,
        children: ids("SELECT seq FROM tasks WHERE parent = ?1 ORDER BY priority, seq")?,
        log: logs(graph, seq)?,
        landing: landings::of_task(graph, seq)?,
    })
}

pub(in crate::graph) fn logs(graph: &dyn Sql, seq: i64) -> Fallible<Vec<LogLine>> {
    graph.all("SELECT message, at, said FROM task_logs WHERE task = ?1 ORDER BY seq", values![seq], |row| {
        Ok(LogLine { message: row.get(0)?, timestamp: moment(row.get(1)?), said: row.get(2)? })
    })
}

pub(in crate::graph) fn list(
    graph: &dyn Sql,
    selection: &Selection,
    each: &mut dyn FnMut(Task) -> bool,
) -> Fallible<()> {
    let mut wheres = Vec::new();
    let mut values: Vec<i64> = Vec::new();
    let mut add = |condition: &'static str, value: i64| {
        values.push(value);
        wheres.push(condition.replace('?', &format!("?{}", values.len())));
    };
    let feature = selection.feature.as_deref().map(|name| features::seq(graph, name)).transpose()?;
    if selection.ready {
        add("r.scope = ?", feature.map_or(0, |feature| -feature));
        add("t.status = ?", number(Status::Pending));
    }
    if let Some(feature) = feature {
        add("t.feature = ?", feature);
    }
    if let Some(status) = selection.status {
        add("t.status = ?", number(status));
    }
    if selection.standalone {
        wheres.push("t.feature IS NULL".to_owned());
    }
    let (join, order) = if selection.ready {
        (" JOIN ready r ON r.task = t.seq", "r.priority, r.task")
    } else {
        ("", "t.priority, t.seq")
    };
    let conditions =
        if wheres.is_empty() { String::new() } else { format!(" WHERE {}", wheres.join(" AND ")) };
    // The list of ready tasks comes first and is in order, so that no sort is needed.
    let text = format!("{TASK}{join}{conditions} ORDER BY {order}");
    let values: Vec<Value<'_>> = values.iter().map(Value::from).collect();
    graph.each(&text, &values, &mut |row| Ok(each(of_row(row)?)))
}

pub(in crate::graph) fn tree(
    graph: &dyn Sql,
    from: Option<&str>,
    each: &mut dyn FnMut(Task, TreePosition) -> bool,
) -> Fallible<()> {
    if let Some(id) = from {
        return walk(graph, vec![find(graph, id)?], each).map(drop);
    }
    let roots = "SELECT seq FROM tasks WHERE parent IS NULL AND ?1 = 0 ORDER BY priority DESC, seq DESC";
    let shown = walk(graph, numbers(graph, roots, 0)?, each)?;
    let count = graph.one("SELECT count(*) FROM tasks", &[], |row| row.get(0))?;
    match shown {
        Some(shown) if shown < count => walk(graph, parts_of_themselves(graph)?, each).map(drop),
        _ => Ok(()),
    }
}

/// Shows these tasks and all tasks below them, the last one first. Returns how many, or `None` if `each` wants no
/// more.
fn walk(
    graph: &dyn Sql,
    top: Vec<i64>,
    each: &mut dyn FnMut(Task, TreePosition) -> bool,
) -> Fallible<Option<u64>> {
    // A stack: the last part goes in first.
    let placed = |seqs: Vec<i64>, depth| {
        let place = move |(at, seq)| (seq, TreePosition { depth, is_last: at == 0 });
        seqs.into_iter().enumerate().map(place)
    };
    let mut open: Vec<(i64, TreePosition)> = placed(top, 0).collect();
    let (mut begin, mut shown) = (0, 0);
    while let Some((seq, place)) = open.pop() {
        require_level(place.depth)?;
        if !each(task(graph, seq)?, place) {
            return Ok(None);
        }
        if place.depth == 0 {
            begin = seq;
        }
        shown += 1;
        let children = "SELECT seq FROM tasks WHERE parent = ?1 ORDER BY priority DESC, seq DESC";
        let mut children = numbers(graph, children, seq)?;
        // A task that is a part of itself is shown once.
        children.retain(|child| *child != begin);
        open.extend(placed(children, place.depth + 1));
    }
    Ok(Some(shown))
}

/// One task of each cycle of tasks and parts, the last one first. Only another program can have made one.
fn parts_of_themselves(graph: &dyn Sql) -> Fallible<Vec<i64>> {
    let pairs = "SELECT seq, parent FROM tasks WHERE parent IS NOT NULL";
    let parents: HashMap<i64, i64> = graph.all(pairs, values![], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut seqs: Vec<i64> = parents.keys().copied().collect();
    seqs.sort_unstable();
    // The task from which each task was first reached.
    let mut seen: HashMap<i64, i64> = HashMap::new();
    let mut found = Vec::new();
    for &from in &seqs {
        let mut at = from;
        while let Entry::Vacant(unseen) = seen.entry(at) {
            unseen.insert(from);
            match parents.get(&at) {
                Some(parent) => at = *parent,
                None => break,
            }
        }
        if parents.contains_key(&at) && seen.get(&at) == Some(&from) {
            found.push(at);
        }
    }
    found.reverse();
    Ok(found)
}

pub(in crate::graph) fn graph(graph: &dyn Sql, each: &mut dyn FnMut(Part<'_>) -> bool) -> Fallible<()> {
    let mut goes_on = true;
    list(graph, &Selection::default(), &mut |task| {
        goes_on = each(Part::Task(&task));
        goes_on
    })?;
    if !goes_on {
        return Ok(());
    }
    let query =
        "SELECT a.id, b.id FROM dependencies JOIN tasks a ON a.seq = blocker JOIN tasks b ON b.seq = blocked
        ORDER BY blocked, blocker";
    graph.each(query, values![], &mut |row| {
        let (blocker, blocked): (String, String) = (row.get(0)?, row.get(1)?);
        Ok(each(Part::Dependency { blocker: &blocker, blocked: &blocked }))
    })
}

/// Shows an export to `each`, line by line: its header, every feature, then every task.
pub(in crate::graph) fn export(graph: &dyn Sql, each: &mut dyn FnMut(&str) -> bool) -> Fallible<()> {
    let has_issues = issues::are_kept(graph)?;
    if !each(&header_of(has_issues && issues::has_deleted(graph)?)) {
        return Ok(());
    }
    for Feature { id, name, spec_path, plan_path, created_at, updated_at, .. } in features::all(graph)? {
        let feature = ExportedFeature { id, name, spec_path, plan_path, created_at, updated_at };
        if !each(&line(&feature)?) {
            return Ok(());
        }
    }
    let tasks = "SELECT seq, origin, work, retries_given, done_at_commit FROM tasks ORDER BY seq";
    let mut goes_on = true;
    graph.each(tasks, values![], &mut |row| {
        let Details { task, feature, blockers, log, .. } = details(graph, row.get(0)?)?;
        let origin: Option<String> = row.get(1)?;
        let issue = { origin.as_ref().filter(|_| has_issues) }.map(|origin| issues::said(graph, origin));
        let task = ExportedTask {
            issue: issue.transpose()?.flatten(),
            origin,
            feature,
            id: task.id,
            parent_id: task.parent_id,
            title: task.title,
            description: Some(task.description),
            status: task.status,
            priority: Some(task.priority),
            created_at: Some(task.created_at),
            updated_at: Some(task.updated_at),
            retry_count: task.retry_count,
            max_retries: Some(task.max_retries),
            verification_status: task.verification_status,
            blockers,
            group: Work::of(row.get(2)?).0.is_none(),
            log,
            retries_given: row.get(3)?,
            commit: row.get(4)?,
            landing: landings::of_task(graph, row.get(0)?)?.map(ExportedLanding::from),
        };
        goes_on = each(&line(&task)?);
        Ok(goes_on)
    })?;
    if goes_on && has_issues {
        issues::deleted(graph, &mut |deleted, issue| {
            goes_on = each(&line(&DeletedIssue { deleted, issue })?);
            Ok(goes_on)
        })?;
    }
    if !goes_on {
        return Ok(());
    }
    journal::oldest_first(graph, &mut |entry| Ok(each(&line(&entry)?)))
}

fn line(exported: &impl Serialize) -> Fallible<String> {
    let line = serde_json::to_string(exported);
    Ok(line.map_err(|error| GraphError::BadValue(format!("this cannot be exported: {error}")))?)
}

/// The blockers and all parts of a task, and the task itself if it is unverified, with the commits at which they were
/// done.
pub(in crate::graph) fn commits_before(graph: &dyn Sql, seq: i64) -> Fallible<Vec<(String, String)>> {
    let query = "WITH RECURSIVE before (seq) AS (SELECT blocker FROM dependencies WHERE blocked = ?1
        UNION SELECT seq FROM tasks WHERE parent = ?1
        UNION SELECT seq FROM tasks WHERE seq = ?1 AND unverified <> 0
        UNION SELECT tasks.seq FROM tasks JOIN before ON tasks.parent = before.seq)
        SELECT t.id, t.done_at_commit FROM before JOIN tasks t ON t.seq = before.seq
        WHERE t.done_at_commit IS NOT NULL ORDER BY t.seq";
    graph.all(query, values![seq], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// A scope as a condition, and its parameter.
fn within(graph: &dyn Sql, scope: &Scope) -> Fallible<(&'static str, i64)> {
    Ok(match scope {
        Scope::All => ("?1 = 0", 0),
        Scope::Feature(name) => ("t.feature = ?1", features::seq(graph, name)?),
        Scope::Subtree(id) => (
            "t.seq IN (WITH RECURSIVE below (seq) AS (SELECT ?1 UNION
                SELECT tasks.seq FROM tasks JOIN below ON tasks.parent = below.seq) SELECT seq FROM below)",
            find(graph, id)?,
        ),
    })
}

/// Tasks that an agent works on: all but groups.
const WORK: &str = "(t.work <> 0 OR t.children = 0)";

/// How many tasks with work of their own there are, by state.
pub(in crate::graph) fn counts(graph: &dyn Sql, scope: &Scope) -> Fallible<Counts> {
    let (within, number) = within(graph, scope)?;
    let query = format!("SELECT t.status, count(*) FROM tasks t WHERE {within} AND {WORK} GROUP BY t.status");
    let mut counts = Counts::default();
    graph.each(&query, values![number], &mut |row| {
        let count: i64 = row.get(1)?;
        let count = u64::try_from(count).unwrap_or_default();
        counts.total += count;
        match status(row.get(0)?)? {
            Status::Done => counts.done += count,
            Status::Failed => counts.failed += count,
            Status::InProgress => counts.in_progress += count,
            Status::Landing => counts.landing += count,
            Status::Pending | Status::Blocked => {}
        }
        Ok(true)
    })?;
    Ok(counts)
}

/// Tasks with work of their own in one of these states; those that failed because of their parts come last.
fn working(graph: &dyn Sql, scope: &Scope, states: &[Status], most: usize) -> Fallible<Vec<(i64, Task)>> {
    let (within, number_of_scope) = within(graph, scope)?;
    let states: Vec<String> = states.iter().map(|state| number(*state).to_string()).collect();
    let query = format!(
        "{TASK} WHERE {within} AND {WORK} AND t.status IN ({}) ORDER BY t.failed_children > 0, t.priority, t.seq LIMIT {most}",
        states.join(", ")
    );
    graph.all(&query, values![number_of_scope], |row| Ok((row.get(13)?, of_row(row)?)))
}

pub(in crate::graph) fn failed(graph: &dyn Sql, scope: &Scope, most: usize) -> Fallible<Vec<Task>> {
    Ok(working(graph, scope, &[Status::Failed], most)?.into_iter().map(|(_, task)| task).collect())
}

pub(in crate::graph) fn at_work(
    graph: &dyn Sql,
    tables: &str,
    scope: &Scope,
    most: usize,
) -> Fallible<Vec<String>> {
    let (within, number_of_scope) = within(graph, scope)?;
    // In the order of the index of claimed tasks.
    let query = format!(
        "SELECT t.id FROM {tables}tasks t WHERE {within} AND t.status = 1 ORDER BY t.seq LIMIT {most}"
    );
    graph.all(&query, values![number_of_scope], first)
}

/// A task and the tasks above it, the nearest first.
pub(in crate::graph) fn with_above(graph: &dyn Sql, seq: i64) -> Fallible<Vec<Task>> {
    iter::once(seq).chain(above(graph, seq)?).map(|seq| task(graph, seq)).collect()
}

pub(in crate::graph) fn unresolved(graph: &dyn Sql, scope: &Scope, most: usize) -> Fallible<Vec<Stuck>> {
    /// At most this many blockers are named.
    const SOME_BLOCKERS: usize = 5;
    let states = [Status::Pending, Status::InProgress, Status::Landing, Status::Blocked];
    let mut stuck = Vec::new();
    for (seq, task) in working(graph, scope, &states, most)? {
        let (mut waits_for, mut failed_above) = (Vec::new(), None);
        for (at, seq) in iter::once(seq).chain(above(graph, seq)?).enumerate() {
            let blockers = format!(
                "{TASK} WHERE (t.seq IN (SELECT blocker FROM dependencies WHERE blocked = ?1) OR t.parent = ?2) AND t.status <> {} LIMIT {SOME_BLOCKERS}",
                number(Status::Done)
            );
            // For a task above, only its blockers count, not its parts.
            let parts_of = (at == 0).then_some(seq);
            let blockers: Vec<Task> = graph.all(&blockers, values![seq, parts_of], of_row)?;
            waits_for.extend(blockers);
            if at > 0 && failed_above.is_none() {
                let found = self::task(graph, seq)?;
                failed_above = (found.status == Status::Failed).then_some(found.id);
            }
        }
        stuck.push(Stuck { task, waits_for, failed_above });
    }
    Ok(stuck)
}
