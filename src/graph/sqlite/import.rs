//! Imports the tasks of a file in one transaction.

use rusqlite::{OptionalExtension as _, Transaction, params};

use super::edits::{MAX_RETRIES, describe, new_id};
use super::features;
use super::rebuild::rebuild;
use super::settle::{Node, Work};
use super::task_log::write_log;
use super::{Fallible, Fault, now, number, queries, status};
use crate::graph::error::GraphError;
use crate::graph::import::{FeatureItem, ImportEntry, Item, Key, at};
use crate::graph::limits;
use crate::graph::store::Imported;
use crate::graph::task::{LogLine, Status, Verification};
use crate::graph::transitions::Own;

/// Temporary tables: relations to tasks that come later in the file, the states of known tasks, and which tasks are
/// groups.
const SCRATCH: &str = "CREATE TEMP TABLE seen (task INTEGER PRIMARY KEY, line INTEGER, status INTEGER, same INTEGER, groups INTEGER);
    CREATE TEMP TABLE said (line INTEGER, task INTEGER, is_parent INTEGER, is_id INTEGER, name TEXT, other TEXT);";

/// The log line of a task that a file calls done.
const IMPORTED: &str = "done, by an import";

pub(super) fn import(
    graph: &Transaction<'_>,
    entries: &mut dyn Iterator<Item = Result<ImportEntry, GraphError>>,
) -> Fallible<Imported> {
    graph.execute_batch(SCRATCH)?;
    let mut imported = Imported::default();
    let mut changed = 0;
    for entry in entries {
        let item = match entry? {
            ImportEntry::Task(item) => item,
            ImportEntry::Feature(feature) => {
                take_feature(graph, &feature).map_err(|fault| on_line(feature.line, fault))?;
                continue;
            }
        };
        let line = item.line;
        match take(graph, &item).map_err(|fault| on_line(line, fault))? {
            Taken::New => imported.added += 1,
            Taken::Updated => imported.updated += 1,
            Taken::Same => imported.unchanged += 1,
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
            WHERE seq IN (SELECT task FROM seen WHERE groups AND status IS NULL)
            AND EXISTS (SELECT 1 FROM tasks AS parts WHERE parts.parent = tasks.seq)";
        graph.execute(groups, [])?;
        rebuild(graph, &|seq| title(graph, seq))?;
    }
    graph.execute_batch("DROP TABLE seen; DROP TABLE said;")?;
    Ok(imported)
}

/// The title of a task and its line in the file.
fn title(graph: &Transaction<'_>, seq: i64) -> Fallible<String> {
    let title = queries::title(graph, seq)?;
    let line = "SELECT line FROM seen WHERE task = ?1";
    let line: Option<i64> = graph.prepare_cached(line)?.query_row([seq], |row| row.get(0)).optional()?;
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
}

fn take(graph: &Transaction<'_>, item: &Item) -> Fallible<Taken> {
    limits::title(&item.title)?;
    item.description.as_deref().map_or(Ok(()), |text| limits::text("the description", text))?;
    item.priority.map_or(Ok(()), limits::priority)?;
    item.log.iter().try_for_each(|line| limits::text("a line of the log", &line.message))?;
    let known = find(graph, &item.key)?;
    let was = known.map(|seq| Node::read(graph, seq)).transpose()?.map(|node| number(node.status));
    let (seq, taken) = match known {
        Some(seq) => (seq, renew(graph, seq, item)?),
        None => (insert(graph, item)?, Taken::New),
    };
    let insert = "INSERT INTO seen (task, line, status, same, groups) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
    let is_same = matches!(taken, Taken::Same);
    if graph.prepare_cached(insert)?.execute(params![seq, item.line, was, is_same, item.is_group])? == 0 {
        let first = "SELECT line FROM seen WHERE task = ?1";
        let first: i64 = graph.prepare_cached(first)?.query_row([seq], |row| row.get(0))?;
        let name = item.key.name();
        let twice = format!("'{name}' is there twice, first in line {first}: give one of them another name");
        return Err(GraphError::BadValue(twice).into());
    }
    let others = item.parent.iter().map(|key| (true, key)).chain(item.after.iter().map(|key| (false, key)));
    for (is_parent, key) in others {
        let (is_id, other) = match key {
            Key::Id(id) => (true, id),
            Key::Origin(origin) => (false, origin),
        };
        let insert =
            "INSERT INTO said (line, task, is_parent, is_id, name, other) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let values = params![item.line, seq, is_parent, is_id, key.name(), other];
        graph.prepare_cached(insert)?.execute(values)?;
    }
    Ok(taken)
}

/// The task with exactly this key.
fn find(graph: &Transaction<'_>, key: &Key) -> Fallible<Option<i64>> {
    match key {
        Key::Id(id) => queries::exact(graph, id),
        Key::Origin(origin) => {
            let query = "SELECT seq FROM tasks WHERE origin = ?1";
            Ok(graph.prepare_cached(query)?.query_row([origin], |row| row.get(0)).optional()?)
        }
    }
}

fn insert(graph: &Transaction<'_>, item: &Item) -> Fallible<i64> {
    let (id, origin) = match &item.key {
        Key::Id(id) => (id.clone(), item.origin.as_ref()),
        Key::Origin(origin) => (new_id(graph)?, Some(origin)),
    };
    let feature = item.feature.as_deref().map(|name| feature(graph, name)).transpose()?;
    let now = now();
    let (created, updated) = item
        .times
        .map_or((now, now), |(created, updated)| (created.timestamp_millis(), updated.timestamp_millis()));
    let (retries, max_retries) = item.retries.unwrap_or((0, MAX_RETRIES));
    let insert = "INSERT INTO tasks (id, origin, feature, title, status, priority, created_at, updated_at, retry_count,
        max_retries, verification, work, done_by) VALUES (?1, iif(EXISTS (SELECT 1 FROM tasks WHERE origin = ?2), NULL, ?2),
        ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    let status = number(item.status);
    let is_done = item.status == Status::Done;
    let work = Work(Some(Own::of(item.status))).number();
    let verification = Verification::ALL.iter().position(|&known| known == item.verification);
    let priority = item.priority.unwrap_or(0);
    let retries = retries.min(max_retries);
    let values = params![
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
        is_done.then_some("")
    ];
    graph.prepare_cached(insert)?.execute(values)?;
    let seq = graph.last_insert_rowid();
    describe(graph, seq, item.description.as_deref().unwrap_or_default())?;
    for LogLine { message, timestamp, said } in &item.log {
        let insert = "INSERT INTO task_logs (task, message, at, said) VALUES (?1, ?2, ?3, ?4)";
        graph.prepare_cached(insert)?.execute(params![seq, message, timestamp.timestamp_millis(), said])?;
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
fn feature(graph: &Transaction<'_>, name: &str) -> Fallible<i64> {
    let query = "SELECT seq FROM features WHERE name = ?1";
    if let Some(seq) = graph.prepare_cached(query)?.query_row([name], |row| row.get(0)).optional()? {
        return Ok(seq);
    }
    features::put(graph, name, None, None)?;
    features::seq(graph, name)
}

/// Features are identified by name. A new one keeps its id, unless another feature has that id.
fn take_feature(graph: &Transaction<'_>, item: &FeatureItem) -> Fallible<()> {
    limits::feature(&item.name)?;
    for path in [&item.spec_path, &item.plan_path].into_iter().flatten() {
        limits::path(path)?;
    }
    let (created, updated) = (item.times.0.timestamp_millis(), item.times.1.timestamp_millis());
    let insert = "INSERT INTO features (id, name, spec_path, plan_path, created_at, updated_at)
        SELECT iif(EXISTS (SELECT 1 FROM features WHERE id = ?1), 'f-' || lower(hex(randomblob(4))), ?1), ?2, ?3, ?4, ?5, ?6
        WHERE NOT EXISTS (SELECT 1 FROM features WHERE name = ?2)";
    let values = params![item.id, item.name, item.spec_path, item.plan_path, created, updated];
    graph.prepare_cached(insert)?.execute(values)?;
    let update = "UPDATE features SET spec_path = coalesce(?2, spec_path), plan_path = coalesce(?3, plan_path), updated_at = ?4
        WHERE name = ?1 AND (spec_path IS NOT coalesce(?2, spec_path) OR plan_path IS NOT coalesce(?3, plan_path))";
    graph.prepare_cached(update)?.execute(params![item.name, item.spec_path, item.plan_path, now()])?;
    Ok(())
}

/// Updates a known task. A task that was done here stays done, and a claimed one stays claimed. A tick in a user's
/// file means done; an export is a snapshot, and undoes no reset.
fn renew(graph: &Transaction<'_>, seq: i64, item: &Item) -> Fallible<Taken> {
    let old = queries::task(graph, seq)?;
    let priority = item.priority.unwrap_or(old.priority);
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
        work = iif(?5 IS NULL, work, 2), done_by = iif(?5 IS NULL, done_by, '') WHERE seq = ?1";
    let finished = (is_finished && is_leaf).then(|| number(Status::Done));
    graph.prepare_cached(update)?.execute(params![seq, item.title, priority, now(), finished])?;
    if finished.is_some() {
        write_log(graph, seq, IMPORTED)?;
    }
    // The list of ready tasks has its priority.
    Ok(if finished.is_some() || old.priority != priority { Taken::Reopened } else { Taken::Updated })
}

/// Refuses new dependencies of a claimed or done task, as `task deps add` does. `other` is the SQL condition for
/// them.
fn require_open(graph: &Transaction<'_>, other: &str) -> Fallible<()> {
    let query = format!(
        "SELECT said.line, said.task, seen.status FROM said JOIN seen ON seen.task = said.task
        WHERE NOT is_parent AND seen.status IN (?1, ?2, ?3) AND NOT EXISTS
        (SELECT 1 FROM dependencies WHERE blocked = said.task AND blocker = {other}) ORDER BY said.line LIMIT 1"
    );
    let closed = [Status::InProgress, Status::Done, Status::Landing].map(number);
    let first = graph.query_row(&query, closed, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let Some((line, seq, from)) = first.optional()? else { return Ok(()) };
    let (id, to, advice) = (queries::id(graph, seq)?, Status::Blocked, "'ralph task reset' it first");
    Err(on_line(line, GraphError::Illegal { id, from: status(from), to, advice }.into()))
}

/// The parents and dependencies that changed.
struct Connected {
    /// How many changed.
    changes: usize,
    /// How many tasks have no other change.
    tasks: usize,
}

/// Books the parents and dependencies of the file.
fn connect(graph: &Transaction<'_>) -> Fallible<Connected> {
    let other = "coalesce((SELECT seq FROM tasks WHERE NOT is_id AND origin = other),
        (SELECT seq FROM tasks WHERE is_id AND id = other))";
    let missing = format!("SELECT line, name FROM said WHERE {other} IS NULL ORDER BY line LIMIT 1");
    let missing = graph.query_row(&missing, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    if let Some((line, name)) = missing {
        let name: String = name;
        return Err(at(line, &format!("no task '{name}': add it to the file, or leave it out there")).into());
    }
    require_open(graph, other)?;
    let waits = format!(
        "INSERT INTO dependencies (blocker, blocked) SELECT {other}, task FROM said WHERE NOT is_parent
        ON CONFLICT (blocker, blocked) DO NOTHING"
    );
    let parents = format!(
        "UPDATE tasks SET parent = said_parent FROM (SELECT task, {other} AS said_parent FROM said WHERE is_parent)
        WHERE seq = task AND parent IS NOT said_parent"
    );
    let tasks = format!(
        "SELECT count(DISTINCT said.task) FROM said JOIN seen ON seen.task = said.task JOIN tasks ON seq = said.task
        WHERE same AND iif(is_parent, parent IS NOT {other}, NOT EXISTS
        (SELECT 1 FROM dependencies WHERE blocked = said.task AND blocker = {other}))"
    );
    let tasks: i64 = graph.query_row(&tasks, [], |row| row.get(0))?;
    let changes = graph.execute(&waits, [])? + graph.execute(&parents, [])?;
    Ok(Connected { changes, tasks: usize::try_from(tasks).unwrap_or_default() })
}
