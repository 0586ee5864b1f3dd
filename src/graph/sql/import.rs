//! Imports the tasks of a file in one transaction.

use super::edits::{MAX_RETRIES, describe, new_id};
use super::features;
use super::rebuild::rebuild;
use super::settle::{Node, Work};
use super::task_log::write_log;
use super::values::values;
use super::{Fallible, Fault, issues, journal, landings, number, queries, status};
use super::{Sql, first};
use crate::graph::error::GraphError;
use crate::graph::import::{DeletedIssue, FeatureItem, FromIssue, ImportEntry, Item, Key, at};
use crate::graph::limits;
use crate::graph::store::Imported;
use crate::graph::task::{LogLine, Status, Verification};
use crate::graph::transitions::Own;

/// Temporary tables: relations to tasks that come later in the file, the states of known tasks, and which tasks are
/// groups.
const SCRATCH: [&str; 2] = [
    "CREATE TEMP TABLE seen (task INTEGER PRIMARY KEY, line INTEGER, status INTEGER, same INTEGER, groups INTEGER, id TEXT)",
    "CREATE TEMP TABLE said (line INTEGER, task INTEGER, is_parent INTEGER, is_id INTEGER, name TEXT, other TEXT)",
];

/// The log line of a task that a file calls done.
const IMPORTED: &str = "done, by an import";

pub(in crate::graph) fn import(
    graph: &dyn Sql,
    entries: &mut dyn Iterator<Item = Result<ImportEntry, GraphError>>,
) -> Fallible<Imported> {
    for table in SCRATCH {
        graph.execute(table, &[])?;
    }
    let mut imported = Imported::default();
    let mut changed = 0;
    let mut has_issues = issues::are_kept(graph)?;
    for entry in entries {
        let item = match entry? {
            ImportEntry::Task(item) => item,
            ImportEntry::Attempt(attempt) => {
                journal::note_once(graph, &attempt)?;
                continue;
            }
            ImportEntry::Feature(feature) => {
                take_feature(graph, &feature).map_err(|fault| on_line(feature.line, fault))?;
                continue;
            }
            ImportEntry::Skipped(_) => continue,
            ImportEntry::Deleted(DeletedIssue { deleted, issue }) => {
                keep_issues(graph, &mut has_issues)?;
                if issues::said(graph, &deleted)?.is_none() {
                    issues::note(graph, &deleted, &issue)?;
                }
                continue;
            }
        };
        if item.issue.is_some() {
            keep_issues(graph, &mut has_issues)?;
        }
        let line = item.line;
        match take(graph, &item, has_issues).map_err(|fault| on_line(line, fault))? {
            Taken::New => imported.added += 1,
            Taken::Updated => imported.updated += 1,
            Taken::Same => imported.unchanged += 1,
            Taken::LeftDeleted => imported.left_deleted += 1,
            Taken::Reopened => {
                imported.updated += 1;
                changed += 1;
            }
        }
    }
    let Connected { changes, tasks } = connect(graph)?;
    changed += imported.added + changes;
    imported.unchanged -= tasks;
    imported.updated += tasks;
    if changed > 0 {
        // A task that had no parts keeps its own work.
        let groups = "UPDATE tasks SET work = 0, done_by = NULL
            WHERE seq IN (SELECT task FROM seen WHERE groups = 1 AND status IS NULL)
            AND EXISTS (SELECT 1 FROM tasks AS parts WHERE parts.parent = tasks.seq)";
        graph.execute(groups, values![])?;
        rebuild(graph, &|seq| title(graph, seq))?;
    }
    graph.execute("DROP TABLE seen", &[])?;
    graph.execute("DROP TABLE said", &[])?;
    Ok(imported)
}

/// Makes the table of issues, once in an import.
fn keep_issues(graph: &dyn Sql, has_issues: &mut bool) -> Fallible<()> {
    if !*has_issues {
        issues::keep(graph)?;
        *has_issues = true;
    }
    Ok(())
}

/// The title of a task and its line in the file.
fn title(graph: &dyn Sql, seq: i64) -> Fallible<String> {
    let title = queries::title(graph, seq)?;
    let line = "SELECT line FROM seen WHERE task = ?1";
    let line: Option<i64> = graph.maybe(line, values![seq], |row| row.get(0))?;
    Ok(line.map_or_else(|| title.clone(), |line| format!("{title} (line {line})")))
}

fn on_line(line: usize, fault: Fault) -> Fault {
    match fault {
        Fault::Graph(error) => at(line, &error.to_string()).into(),
        fault => fault,
    }
}

enum Taken {
    New,
    Updated,
    /// Its state changed, and other states with it.
    Reopened,
    Same,
    /// The task of this issue was deleted here.
    LeftDeleted,
}

fn take(graph: &dyn Sql, item: &Item, has_issues: bool) -> Fallible<Taken> {
    limits::title(&item.title)?;
    item.description.as_deref().map_or(Ok(()), |text| limits::text("the description", text))?;
    item.priority.map_or(Ok(()), limits::priority)?;
    item.issue.as_ref().and_then(|issue| issue.priority).map_or(Ok(()), limits::priority)?;
    item.log.iter().try_for_each(|line| limits::text("a line of the log", &line.message))?;
    // Of an export, each task may be an issue; of other files, only what says so.
    let may_be_issue = has_issues && (item.issue.is_some() || matches!(item.key, Key::Id(_)));
    let origin = item.key.origin().or(item.origin.as_deref()).filter(|_| may_be_issue);
    let before = origin.map_or(Ok(None), |origin| issues::said(graph, origin))?;
    let is_issue = item.issue.is_some() || before.is_some();
    let known = find(graph, item, is_issue)?;
    if let (None, Key::Origin(_), Some(FromIssue { again: false, .. }), Some(_)) =
        (known, &item.key, &item.issue, &before)
    {
        return Ok(Taken::LeftDeleted);
    }
    let was = known.map(|seq| Node::read(graph, seq)).transpose()?.map(|node| number(node.status));
    let (seq, taken) = match known {
        Some(seq) => (seq, renew(graph, seq, item, before.as_ref())?),
        None => (insert(graph, item)?, Taken::New),
    };
    if let (Some(origin), Some(issue)) = (origin, &item.issue) {
        issues::note(graph, origin, issue)?;
    }
    let insert = "INSERT INTO seen (task, line, status, same, groups, id) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
    let is_same = matches!(taken, Taken::Same);
    let id = if let Key::Id(id) = &item.key { Some(id) } else { None };
    if graph.count(insert, values![seq, item.line, was, is_same, item.is_group, id])? == 0 {
        let first = "SELECT line FROM seen WHERE task = ?1";
        let first: i64 = graph.one(first, values![seq], |row| row.get(0))?;
        let name = item.key.name();
        let twice = format!("'{name}' is there twice, first in line {first}: give one of them another name");
        return Err(GraphError::BadValue(twice).into());
    }
    let others = item.parent.iter().map(|key| (true, key)).chain(item.after.iter().map(|key| (false, key)));
    for (is_parent, key) in others {
        let name = key.name();
        let (is_id, other) = match key {
            Key::Id(id) => (true, id),
            Key::Origin(origin) => (false, origin),
        };
        let insert =
            "INSERT INTO said (line, task, is_parent, is_id, name, other) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let values = values![item.line, seq, is_parent, is_id, name, other];
        graph.execute(insert, values)?;
    }
    Ok(taken)
}

/// The task with exactly the key of this item. That of an issue may have another id here.
fn find(graph: &dyn Sql, item: &Item, is_issue: bool) -> Fallible<Option<i64>> {
    let (id, origin) = match &item.key {
        Key::Id(id) => (Some(id), item.origin.as_ref().filter(|_| is_issue)),
        Key::Origin(origin) => (None, Some(origin)),
    };
    if let Some(seq) = id.map_or(Ok(None), |id| queries::exact(graph, id))? {
        return Ok(Some(seq));
    }
    let query = "SELECT seq FROM tasks WHERE origin = ?1";
    origin.map_or(Ok(None), |origin| graph.maybe(query, values![origin], |row| row.get(0)))
}

fn insert(graph: &dyn Sql, item: &Item) -> Fallible<i64> {
    let (id, origin) = match &item.key {
        Key::Id(id) => (id.clone(), item.origin.as_ref()),
        Key::Origin(origin) => (new_id(graph)?, Some(origin)),
    };
    let feature = item.feature.as_deref().map(|name| feature(graph, name)).transpose()?;
    let now = graph.now()?;
    let (created, updated) = item
        .times
        .map_or((now, now), |(created, updated)| (created.timestamp_millis(), updated.timestamp_millis()));
    let (retries, max_retries) = item.retries.unwrap_or((0, MAX_RETRIES));
    let insert = "INSERT INTO tasks (id, origin, feature, title, status, priority, created_at, updated_at, retry_count,
        max_retries, verification, work, done_by, retries_given, done_at_commit) VALUES (?1, CASE WHEN EXISTS (SELECT 1 FROM tasks WHERE origin = ?2) THEN NULL ELSE ?2 END,
        ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) RETURNING seq";
    let status = number(item.status);
    let is_done = item.status == Status::Done;
    let work = Work(Some(Own::of(item.status))).number();
    let verification = Verification::ALL.iter().position(|&known| known == item.verification);
    let priority = item.priority.or_else(|| item.issue.as_ref()?.priority).unwrap_or(0);
    let retries = retries.min(max_retries);
    let done_by = is_done.then_some("");
    let values = values![
        id,
        origin,
        feature,
        item.title,
        status,
        priority,
        created,
        updated,
        retries,
        max_retries,
        verification,
        work,
        done_by,
        item.retries_given,
        item.commit
    ];
    let seq = graph.one(insert, values, first)?;
    describe(graph, seq, item.description.as_deref().unwrap_or_default())?;
    for LogLine { message, timestamp, said } in &item.log {
        let insert = "INSERT INTO task_logs (task, message, at, said) VALUES (?1, ?2, ?3, ?4)";
        graph.execute(insert, values![seq, message, timestamp.timestamp_millis(), *said])?;
    }
    if let Some(landing) = &item.landing {
        landings::put(graph, seq, landing)?;
    }
    let last = item.log.iter().rev().find(|line| !line.said);
    // An export says which tasks are groups; for other files, that follows from the parts.
    let is_group = item.is_group && matches!(item.key, Key::Id(_));
    if is_done && !is_group && !last.is_some_and(|line| line.message.starts_with("done")) {
        write_log(graph, seq, IMPORTED)?;
    }
    Ok(seq)
}

/// The feature of this name, created if it does not exist.
fn feature(graph: &dyn Sql, name: &str) -> Fallible<i64> {
    let query = "SELECT seq FROM features WHERE name = ?1";
    if let Some(seq) = graph.maybe(query, values![name], |row| row.get(0))? {
        return Ok(seq);
    }
    features::put(graph, name, None, None)?;
    features::seq(graph, name)
}

/// Features are identified by name. A new one keeps its id, unless another feature has that id.
fn take_feature(graph: &dyn Sql, item: &FeatureItem) -> Fallible<()> {
    limits::feature(&item.name)?;
    for path in [&item.spec_path, &item.plan_path].into_iter().flatten() {
        limits::path(path)?;
    }
    let (created, updated) = (item.times.0.timestamp_millis(), item.times.1.timestamp_millis());
    let insert = "INSERT INTO features (id, name, spec_path, plan_path, created_at, updated_at)
        SELECT CASE WHEN EXISTS (SELECT 1 FROM features WHERE id = ?1) THEN ?7 ELSE ?1 END, ?2, ?3, ?4, ?5, ?6
        WHERE NOT EXISTS (SELECT 1 FROM features WHERE name = ?2)";
    let other = features::new_id()?;
    let values = values![item.id, item.name, item.spec_path, item.plan_path, created, updated, other];
    graph.execute(insert, values)?;
    let update = "UPDATE features SET spec_path = coalesce(?2, spec_path), plan_path = coalesce(?3, plan_path), updated_at = ?4
        WHERE name = ?1 AND (spec_path IS DISTINCT FROM coalesce(?2, spec_path) OR plan_path IS DISTINCT FROM coalesce(?3, plan_path))";
    graph.execute(update, values![item.name, item.spec_path, item.plan_path, graph.now()?])?;
    Ok(())
}

/// Updates a known task. A task that was done here stays done, and a claimed one stays claimed. A tick in a user's
/// file means done; an export is a snapshot, and undoes no reset.
fn renew(graph: &dyn Sql, seq: i64, item: &Item, before: Option<&FromIssue>) -> Fallible<Taken> {
    let old = queries::task(graph, seq)?;
    let of_issue = item.issue.as_ref().map(|issue| issues::priority(before, issue, old.priority));
    let priority = item.priority.or(of_issue).unwrap_or(old.priority);
    let is_tick = item.status == Status::Done && matches!(item.key, Key::Origin(_));
    let is_finished = is_tick && matches!(old.status, Status::Pending | Status::Blocked | Status::Failed);
    let node = Node::read(graph, seq)?;
    let is_leaf = node.work.0.is_some() && node.open_parts() == 0;
    let is_described = item.description.as_ref().is_none_or(|description| *description == old.description);
    let is_same = old.title == item.title && is_described && old.priority == priority;
    if is_same && !(is_finished && is_leaf) {
        return Ok(Taken::Same);
    }
    if let Some(description) = &item.description {
        describe(graph, seq, description)?;
    }
    let update = "UPDATE tasks SET title = ?2, priority = ?3, updated_at = ?4, status = coalesce(?5, status),
        work = CASE WHEN ?6 = 1 THEN 2 ELSE work END, done_by = CASE WHEN ?6 = 1 THEN '' ELSE done_by END WHERE seq = ?1";
    let finished = (is_finished && is_leaf).then(|| number(Status::Done));
    graph.execute(update, values![seq, item.title, priority, graph.now()?, finished, finished.is_some()])?;
    if finished.is_some() {
        write_log(graph, seq, IMPORTED)?;
    }
    // The list of ready tasks has its priority.
    Ok(if finished.is_some() || old.priority != priority { Taken::Reopened } else { Taken::Updated })
}

/// Refuses new dependencies of a claimed or done task, as `task deps add` does. `other` is the SQL condition for
/// them.
fn require_open(graph: &dyn Sql, other: &str) -> Fallible<()> {
    let query = format!(
        "SELECT said.line, said.task, seen.status FROM said JOIN seen ON seen.task = said.task
        WHERE is_parent = 0 AND seen.status IN (?1, ?2, ?3) AND NOT EXISTS
        (SELECT 1 FROM dependencies WHERE blocked = said.task AND blocker = {other}) ORDER BY said.line LIMIT 1"
    );
    let closed = [Status::InProgress, Status::Done, Status::Landing].map(number);
    let first = graph.maybe(&query, values![closed[0], closed[1], closed[2]], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    });
    let Some((line, seq, from)) = first? else { return Ok(()) };
    let (id, to, advice) = (queries::id(graph, seq)?, Status::Blocked, "'ralph task reset' it first");
    Err(on_line(line, GraphError::Illegal { id, from: status(from)?, to, advice }.into()))
}

/// The parents and dependencies that changed.
struct Connected {
    /// How many changed.
    changes: usize,
    /// How many tasks have no other change.
    tasks: usize,
}

/// Books the parents and dependencies of the file.
fn connect(graph: &dyn Sql) -> Fallible<Connected> {
    let other = "coalesce((SELECT seq FROM tasks WHERE is_id = 0 AND origin = other),
        (SELECT seq FROM tasks WHERE is_id = 1 AND id = other),
        (SELECT also.task FROM seen AS also WHERE is_id = 1 AND also.id = other))";
    let missing = format!("SELECT line, name FROM said WHERE {other} IS NULL ORDER BY line LIMIT 1");
    let missing = graph.maybe(&missing, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if let Some((line, name)) = missing {
        let name: String = name;
        return Err(at(line, &format!("no task '{name}': add it to the file, or leave it out there")).into());
    }
    require_open(graph, other)?;
    let waits = format!(
        "INSERT INTO dependencies (blocker, blocked) SELECT {other}, task FROM said WHERE is_parent = 0
        ON CONFLICT (blocker, blocked) DO NOTHING"
    );
    let parents = format!(
        "UPDATE tasks SET parent = said_parent FROM (SELECT task, {other} AS said_parent FROM said WHERE is_parent = 1) AS parents
        WHERE seq = task AND parent IS DISTINCT FROM said_parent"
    );
    let tasks = format!(
        "SELECT count(DISTINCT said.task) FROM said JOIN seen ON seen.task = said.task JOIN tasks ON seq = said.task
        WHERE same = 1 AND CASE WHEN is_parent = 1 THEN parent IS DISTINCT FROM {other} ELSE NOT EXISTS
        (SELECT 1 FROM dependencies WHERE blocked = said.task AND blocker = {other}) END"
    );
    let tasks: i64 = graph.one(&tasks, &[], |row| row.get(0))?;
    let changes = graph.count(&waits, values![])? + graph.count(&parents, values![])?;
    Ok(Connected { changes, tasks: usize::try_from(tasks).unwrap_or_default() })
}
