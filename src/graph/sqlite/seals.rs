//! Seals what is written through this connection, in the transaction that writes it.
//!
//! Triggers of the connection's own note which tasks a transaction touches, and whether each was as sealed before: what
//! another program has changed is not made ours by a change of ours to the same task.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Transaction};

use super::Fallible;
use crate::graph::seal::Key;

/// The seal that a row of `tasks` should have: what it is, in six values, and how it stands.
pub(super) const SEAL: &str =
    "seal(6, id, title, (SELECT text FROM descriptions WHERE task = tasks.seq), parent, feature, work = 0,
    work, done_by, unverified, done_at_commit)";
/// The seal that the number of tasks should have.
pub(super) const SEAL_OF_NUMBER: &str = "seal(1, tasks)";

/// What a store with a key knows of seals.
#[derive(Debug)]
pub(super) struct Seals {
    pub(super) key: Arc<Key>,
    /// Our own seal for each task that another key has sealed, as it was at the first look: as long as it fits, it stands.
    pub(super) adopted: HashMap<i64, String>,
    /// How many tasks there were at the last look.
    pub(super) seen: Option<i64>,
    /// What was opened again through this store.
    pub(super) reopened: HashSet<i64>,
}

impl Seals {
    pub(super) fn of(key: Key) -> Self {
        Self { key: Arc::new(key), adopted: HashMap::new(), seen: None, reopened: HashSet::new() }
    }
}

/// The function `seal` for SQL. Only for this connection: no other program can call it.
pub(super) fn teach(connection: &Connection, key: &Arc<Key>) -> Fallible<()> {
    let key = Arc::clone(key);
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("seal", -1, flags, move |call| {
        let first: usize = call.get(0)?;
        let (mut what, mut how) = (Vec::new(), Vec::new());
        for at in 1..call.len() {
            let part = if at <= first { &mut what } else { &mut how };
            append(part, call.get_raw(at));
            if at == 1 {
                // How it stands is said of exactly this one.
                how.clone_from(&what);
            }
        }
        Ok(key.seal(&what, &how))
    })?;
    Ok(())
}

/// Each value with its length before it, so that none can run into the next.
fn append(bytes: &mut Vec<u8>, value: ValueRef<'_>) {
    let number;
    let value: &[u8] = match value {
        ValueRef::Null => return bytes.extend(b"-"),
        ValueRef::Integer(value) => {
            number = value.to_string();
            number.as_bytes()
        }
        ValueRef::Real(value) => {
            number = value.to_string();
            number.as_bytes()
        }
        ValueRef::Text(value) | ValueRef::Blob(value) => value,
    };
    bytes.extend(value.len().to_string().bytes());
    bytes.push(b':');
    bytes.extend(value);
}

/// Notes from now on which tasks are touched through this connection.
pub(super) fn watch(connection: &Connection) -> Fallible<()> {
    let touch = |task: &str| {
        format!(
            "INSERT INTO touched (task, before, is_sound) SELECT seq, {SEAL}, seal IS {SEAL} FROM tasks WHERE seq = {task}"
        )
    };
    let is_new = |task: &str| format!("NOT EXISTS (SELECT 1 FROM touched WHERE task = {task})");
    let of = |row: &str| {
        let columns = ["title", "parent", "feature", "work", "done_by", "unverified", "done_at_commit"];
        columns.map(|column| format!("{row}.{column}")).join(", ")
    };
    let of_tasks = format!(
        "CREATE TEMP TABLE touched (task INTEGER PRIMARY KEY, before TEXT, is_sound INTEGER, change INTEGER NOT NULL DEFAULT 0);
        CREATE TEMP TRIGGER task_added AFTER INSERT ON main.tasks BEGIN
          INSERT INTO touched (task, is_sound, change) VALUES (new.seq, 1, 1);
        END;
        CREATE TEMP TRIGGER task_removed AFTER DELETE ON main.tasks BEGIN
          INSERT INTO touched (task, change) SELECT old.seq, 0 WHERE {is_new};
          UPDATE touched SET change = change - 1 WHERE task = old.seq;
        END;
        CREATE TEMP TRIGGER task_changed
        BEFORE UPDATE OF title, parent, feature, work, done_by, unverified, done_at_commit ON main.tasks
        WHEN ({old}) IS NOT ({new}) AND {is_new} BEGIN {touch}; END;",
        is_new = is_new("old.seq"),
        old = of("old"),
        new = of("new"),
        touch = touch("old.seq")
    );
    connection.execute_batch(&of_tasks)?;
    for (event, row) in [("INSERT", "new"), ("UPDATE", "old"), ("DELETE", "old")] {
        let task = format!("{row}.task");
        let (is_new, touch) = (is_new(&task), touch(&task));
        connection.execute_batch(&format!(
            "CREATE TEMP TRIGGER described_by_{event} BEFORE {event} ON main.descriptions WHEN {is_new} BEGIN {touch}; END;"
        ))?;
    }
    Ok(())
}

/// Seals what this transaction has touched and was as sealed before, or as it was when a seal of another key was `adopted`.
pub(super) fn seal_touched(graph: &Transaction<'_>, adopted: &HashMap<i64, String>) -> Fallible<()> {
    let count = "SELECT count(*), coalesce(sum(change), 0) FROM touched";
    let (touched, change): (i64, i64) =
        graph.prepare_cached(count)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if touched == 0 {
        return Ok(());
    }
    if !adopted.is_empty() {
        let mut unsound = graph.prepare_cached("SELECT task, before FROM touched WHERE NOT is_sound")?;
        let unsound =
            unsound.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?)))?;
        for (task, before) in unsound.collect::<rusqlite::Result<Vec<_>>>()? {
            if before.is_some() && adopted.get(&task) == before.as_ref() {
                vouch(graph, task)?;
            }
        }
    }
    let seal =
        format!("UPDATE tasks SET seal = {SEAL} WHERE seq IN (SELECT task FROM touched WHERE is_sound)");
    graph.prepare_cached(&seal)?.execute([])?;
    if change != 0 {
        let seal = format!(
            "UPDATE sealed SET tasks = tasks + ?1, seal = seal(1, tasks + ?1) WHERE seal IS {SEAL_OF_NUMBER}"
        );
        graph.prepare_cached(&seal)?.execute([change])?;
    }
    graph.prepare_cached("DELETE FROM touched")?.execute([])?;
    Ok(())
}

/// Seals a task at the end of this transaction, whatever it was before.
pub(super) fn vouch(graph: &Connection, task: i64) -> Fallible<()> {
    let vouch =
        "INSERT INTO touched (task, is_sound) VALUES (?1, 1) ON CONFLICT (task) DO UPDATE SET is_sound = 1";
    graph.prepare_cached(vouch)?.execute([task])?;
    Ok(())
}

/// Seals all as it is.
pub(super) fn seal_all(graph: &Connection) -> Fallible<()> {
    graph.execute(&format!("UPDATE tasks SET seal = {SEAL}"), [])?;
    seal_number(graph)
}

/// Seals the number of tasks as it is.
pub(super) fn seal_number(graph: &Connection) -> Fallible<()> {
    graph.execute_batch("DELETE FROM sealed; INSERT INTO sealed (tasks) SELECT count(*) FROM tasks;")?;
    graph.execute(&format!("UPDATE sealed SET seal = {SEAL_OF_NUMBER}"), [])?;
    Ok(())
}

/// How many tasks there should be, with the seal of that and the one it should have. None where another program has removed it.
pub(super) fn number(graph: &Connection) -> Fallible<Option<(i64, Option<String>, String)>> {
    let query = format!("SELECT tasks, seal, {SEAL_OF_NUMBER} FROM sealed");
    let row = graph.prepare_cached(&query)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    Ok(row.optional()?)
}
