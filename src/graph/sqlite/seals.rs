//! Seals what this connection writes, in the same transaction.
//!
//! Temporary triggers note which tasks a transaction touches, and whether each one matched its seal before. So our
//! change of a task does not seal another program's change of it.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _};

use crate::graph::error::GraphError;
use crate::graph::seal::Key;
use crate::graph::sql::Fallible;
use crate::graph::sql::settle::LANDING;

/// The seal that a row of `tasks` should have. It covers the graph, the task's contents and schedule (its texts,
/// parent, blockers and priority, whether it is in doubt, its number, the name of its feature), and its state.
pub(super) const SEAL: &str =
    "seal(11, (SELECT graph FROM sealed), id, seq, title, (SELECT text FROM descriptions WHERE task = tasks.seq), parent,
    (SELECT name FROM features WHERE features.seq = tasks.feature), work = 0, priority,
    (SELECT group_concat(blocker ORDER BY blocker) FROM dependencies WHERE blocked = tasks.seq), doubted,
    work, done_by, unverified, done_at_commit, (SELECT times FROM reopened WHERE task = tasks.seq))";
/// Whether a task has the seal that it should have.
pub(super) fn is_sealed(graph: &Connection, seq: i64) -> Fallible<bool> {
    let query = format!("SELECT 1 FROM tasks WHERE seq = ?1 AND seal IS {SEAL}");
    Ok(graph.prepare_cached(&query)?.exists([seq])?)
}

/// The seal that the row of `sealed` should have.
pub(super) const SEAL_OF_NUMBER: &str = "seal(2, graph, changes, tasks, ids, reopenings, missing, uncounted)";
/// How many of the sealed values identify the subject: the graph, and the task or the change.
const SUBJECT: usize = 2;
/// The columns of a task that its seal covers.
const COLUMNS: [&str; 9] =
    ["title", "parent", "feature", "priority", "work", "done_by", "unverified", "done_at_commit", "doubted"];

/// What a store with a key knows about seals.
#[derive(Debug, Clone)]
pub(super) struct Seals {
    pub(super) key: Arc<Key>,
    /// The identity of the graph at the last check.
    pub(super) seen: Option<Identity>,
    /// The tasks that this store has opened again.
    pub(super) reopened: HashSet<i64>,
    /// Tasks that were done or failed again after this store had opened them again. They stay so, without a seal of this
    /// key: the next store opens them again.
    pub(super) contested: HashSet<i64>,
    /// The doubts that this store has returned and no run has settled yet.
    pub(super) told: Debt,
}

impl Seals {
    pub(super) fn of(key: Key) -> Self {
        Self {
            key: Arc::new(key),
            seen: None,
            reopened: HashSet::new(),
            contested: HashSet::new(),
            told: Debt::default(),
        }
    }

    /// Refuses a graph other than the one seen before, or an older state of it.
    pub(super) fn require_seen(&self, graph: &Connection, path: &Path) -> Fallible<()> {
        let Some(seen) = &self.seen else { return Ok(()) };
        if identity(graph)?.is_some_and(|now| now.goes_on(seen)) {
            return Ok(());
        }
        if matches!(tally(graph, self)?, Tally::OfAnother) {
            let what =
                "a ralph with another key has begun a run over it, as in a container or with another home"
                    .to_owned();
            let advice = "let only one of them work on it, and start again";
            return Err(GraphError::Damaged { path: path.to_owned(), what, advice }.into());
        }
        let what = "another program has put another graph in its place, or an older state of it";
        Err(GraphError::damaged(path, what).into())
    }
}

/// Defines the SQL functions `seal` and `mark`. They exist only in this connection, so no other program can call
/// them.
pub(super) fn teach(connection: &Connection, key: &Arc<Key>) -> Fallible<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    let sealing = Arc::clone(key);
    connection.create_scalar_function("seal", -1, flags, move |call| {
        let first: usize = call.get(0)?;
        let (mut what, mut state) = (b"what".to_vec(), b"state".to_vec());
        for at in 1..call.len() {
            let value = call.get_raw(at);
            if at <= first {
                append(&mut what, value);
            }
            if at <= SUBJECT || at > first {
                append(&mut state, value);
            }
        }
        Ok(sealing.seal(&what, &state))
    })?;
    // A number for an id, or for how often a task was opened again.
    let marking = Arc::clone(key);
    connection.create_scalar_function("mark", -1, flags, move |call| {
        let mut what = b"mark".to_vec();
        (0..call.len()).for_each(|at| append(&mut what, call.get_raw(at)));
        Ok(marking.number(&what))
    })?;
    Ok(())
}

/// Appends a value with its kind and its length, so that adjacent values cannot be confused.
fn append(bytes: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => bytes.push(b'-'),
        ValueRef::Integer(value) => {
            bytes.push(b'i');
            bytes.extend(value.to_le_bytes());
        }
        ValueRef::Real(value) => {
            bytes.push(b'r');
            bytes.extend(value.to_le_bytes());
        }
        ValueRef::Text(value) | ValueRef::Blob(value) => {
            bytes.push(b't');
            bytes.extend((value.len() as u64).to_le_bytes());
            bytes.extend(value);
        }
    }
}

/// Notes from now on which tasks this connection touches.
pub(super) fn watch(connection: &Connection) -> Fallible<()> {
    let touch = |task: &str| {
        format!(
            "INSERT INTO touched (task, is_sound, was_done) SELECT seq, seal IS {SEAL}, work IN (2, {LANDING}) FROM tasks WHERE seq = {task}"
        )
    };
    let is_new = |task: &str| format!("NOT EXISTS (SELECT 1 FROM touched WHERE task = {task})");
    let of = |row: &str| COLUMNS.map(|column| format!("{row}.{column}")).join(", ");
    let of_tasks = format!(
        "CREATE TEMP TABLE touched (task INTEGER PRIMARY KEY, is_sound INTEGER, was_done INTEGER,
          change INTEGER NOT NULL DEFAULT 0, ids INTEGER NOT NULL DEFAULT 0);
        CREATE TEMP TRIGGER task_added AFTER INSERT ON main.tasks BEGIN
          INSERT INTO touched (task, is_sound, change, ids) VALUES (new.seq, 1, 1, mark(new.id));
        END;
        CREATE TEMP TRIGGER task_removed AFTER DELETE ON main.tasks BEGIN
          INSERT INTO touched (task, change) SELECT old.seq, 0 WHERE {is_new};
          UPDATE touched SET change = change - 1, ids = ids - mark(old.id) WHERE task = old.seq;
        END;
        CREATE TEMP TRIGGER task_changed BEFORE UPDATE OF {columns} ON main.tasks
        WHEN ({old}) IS NOT ({new}) AND {is_new} BEGIN {touch}; END;",
        columns = COLUMNS.join(", "),
        is_new = is_new("old.seq"),
        old = of("old"),
        new = of("new"),
        touch = touch("old.seq")
    );
    connection.execute_batch(&of_tasks)?;
    for (table, column) in [("descriptions", "task"), ("dependencies", "blocked")] {
        for (event, row) in [("INSERT", "new"), ("UPDATE", "old"), ("DELETE", "old")] {
            let task = format!("{row}.{column}");
            let (is_new, touch) = (is_new(&task), touch(&task));
            connection.execute_batch(&format!(
                "CREATE TEMP TRIGGER {table}_by_{event} BEFORE {event} ON main.{table} WHEN {is_new} BEGIN {touch}; END;"
            ))?;
        }
    }
    Ok(())
}

/// Seals the tasks that this transaction has touched and that matched their seals before.
pub(super) fn seal_touched(graph: &Connection) -> Fallible<()> {
    let count = "SELECT count(*), coalesce(sum(change), 0), coalesce(sum(ids), 0) FROM touched";
    let (touched, tasks, ids): (i64, i64, i64) =
        graph.prepare_cached(count)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if touched == 0 {
        return Ok(());
    }
    let reopenings = count_reopened(graph)?;
    let seal =
        format!("UPDATE tasks SET seal = {SEAL} WHERE seq IN (SELECT task FROM touched WHERE is_sound)");
    graph.prepare_cached(&seal)?.execute([])?;
    if (tasks, ids, reopenings) != (0, 0, 0) {
        let seal = format!(
            "UPDATE sealed SET tasks = tasks + ?1, ids = ids + ?2, reopenings = reopenings + ?3, changes = changes + 1,
            seal = seal(2, graph, changes + 1, tasks + ?1, ids + ?2, reopenings + ?3, missing, uncounted) WHERE seal IS {SEAL_OF_NUMBER}"
        );
        graph.prepare_cached(&seal)?.execute([tasks, ids, reopenings])?;
    }
    graph.prepare_cached("DELETE FROM touched")?.execute([])?;
    Ok(())
}

/// Counts for each done task how often it was opened again, which invalidates its older seals, so that no earlier row
/// in which it was done can be restored. Returns the change of the sum of marks.
fn count_reopened(graph: &Connection) -> Fallible<i64> {
    let count = format!(
        "INSERT INTO reopened (task, times) SELECT task, 1 FROM touched JOIN tasks ON seq = task
        WHERE was_done AND work NOT IN (2, {LANDING}) ON CONFLICT (task) DO UPDATE SET times = times + 1
        RETURNING mark(task, times) - iif(times > 1, mark(task, times - 1), 0)"
    );
    let mut statement = graph.prepare_cached(&count)?;
    let changes = statement.query_map([], |row| row.get::<_, i64>(0))?;
    Ok(changes.sum::<rusqlite::Result<i64>>()?)
}

/// Seals a task at the end of this transaction, even if it did not match its seal.
pub(super) fn vouch(graph: &Connection, task: i64) -> Fallible<()> {
    let vouch =
        "INSERT INTO touched (task, is_sound) VALUES (?1, 1) ON CONFLICT (task) DO UPDATE SET is_sound = 1";
    graph.prepare_cached(vouch)?.execute([task])?;
    Ok(())
}

/// Seals the number of tasks of a graph that has no seal, see [`seal_number`].
pub(super) fn seal_empty(graph: &Connection) -> Fallible<()> {
    let has_tasks: bool = graph.query_row("SELECT EXISTS (SELECT 1 FROM tasks)", [], |row| row.get(0))?;
    if has_tasks { Ok(()) } else { seal_number(graph) }
}

/// Seals the number of tasks, their ids, and how often they were opened again.
pub(super) fn seal_number(graph: &Connection) -> Fallible<()> {
    let count = "UPDATE sealed SET (tasks, ids) = (SELECT count(*), coalesce(sum(mark(id)), 0) FROM tasks),
        reopenings = (SELECT coalesce(sum(mark(task, times)), 0) FROM reopened), changes = changes + 1";
    graph.execute(count, [])?;
    graph.execute(&format!("UPDATE sealed SET seal = {SEAL_OF_NUMBER}"), [])?;
    Ok(())
}

/// Gives the graph a new identity, which invalidates all seals, and seals everything at the end of this transaction.
pub(super) fn seal_anew(graph: &Connection) -> Fallible<()> {
    graph.execute_batch(
        "DELETE FROM reopened; DELETE FROM sealed; INSERT INTO sealed (tasks, graph) VALUES (0, lower(hex(randomblob(16))));
        INSERT INTO touched (task, is_sound) SELECT seq, 1 FROM tasks WHERE true ON CONFLICT (task) DO UPDATE SET is_sound = 1;",
    )?;
    seal_number(graph)
}

/// Changes by another program that cannot be repaired, kept until a run that has reported them has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Debt {
    /// The tasks in doubt.
    pub(super) tasks: HashSet<i64>,
    /// How many tasks were removed.
    pub(super) missing: i64,
    /// The expected number of tasks is unknown.
    pub(super) is_uncounted: bool,
}

/// The doubts that the graph keeps.
pub(super) fn debt(graph: &Connection) -> Fallible<Debt> {
    let mut statement = graph.prepare_cached("SELECT seq FROM tasks WHERE doubted <> 0")?;
    let tasks = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let (missing, is_uncounted) = debt_of_number(graph)?;
    Ok(Debt { tasks, missing, is_uncounted })
}

/// How many tasks were removed, and whether the expected number is unknown.
pub(super) fn debt_of_number(graph: &Connection) -> Fallible<(i64, bool)> {
    let mut query = graph.prepare_cached("SELECT missing, uncounted FROM sealed")?;
    let debt = query.query_row([], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(debt.optional()?.unwrap_or_default())
}

/// Adds removed tasks, or an unknown number, to the doubts that the graph keeps, and seals the number.
pub(super) fn owe(graph: &Connection, missing: i64, is_uncounted: bool) -> Fallible<()> {
    let update = "UPDATE sealed SET missing = missing + ?1, uncounted = uncounted OR ?2";
    graph.prepare_cached(update)?.execute((missing, is_uncounted))?;
    seal_number(graph)
}

/// Removes the reported doubts from the graph.
pub(super) fn settle(graph: &Connection, told: &Debt) -> Fallible<()> {
    let mut update = graph.prepare_cached("UPDATE tasks SET doubted = 0 WHERE seq = ?1 AND doubted <> 0")?;
    for seq in &told.tasks {
        update.execute([seq])?;
    }
    let settle = format!(
        "UPDATE sealed SET missing = max(missing - ?1, 0), uncounted = uncounted AND NOT ?2, changes = changes + 1
        WHERE seal IS {SEAL_OF_NUMBER}"
    );
    if graph.prepare_cached(&settle)?.execute((told.missing, told.is_uncounted))? > 0 {
        graph.prepare_cached(&format!("UPDATE sealed SET seal = {SEAL_OF_NUMBER}"))?.execute([])?;
    }
    Ok(())
}

/// The identity of a graph, and how many changes it has had.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    graph: String,
    changes: i64,
}

impl Identity {
    /// Whether it is the graph that was `seen`, in the same or a later state.
    fn goes_on(&self, seen: &Self) -> bool {
        self.graph == seen.graph && self.changes >= seen.changes
    }
}

/// The identity of the graph; `None` if another program has removed it.
pub(super) fn identity(graph: &Connection) -> Fallible<Option<Identity>> {
    let query = "SELECT graph, changes FROM sealed WHERE graph IS NOT NULL";
    let identity = graph
        .prepare_cached(query)?
        .query_row([], |row| Ok(Identity { graph: row.get(0)?, changes: row.get(1)? }));
    Ok(identity.optional()?)
}

/// What the graph says about its tasks as a whole.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tally {
    /// This key has sealed it.
    Ours {
        /// How many there are.
        tasks: i64,
        /// The sum of the marks of their ids.
        ids: i64,
        /// Whether the tasks were opened again as often as it says.
        is_reopened_as_sealed: bool,
    },
    /// Another key has sealed it.
    OfAnother,
    /// No key has sealed it.
    Unsealed,
    /// The seal names this key and does not match, or another program has removed the row.
    Forged,
}

/// What this graph says about its tasks as a whole.
pub(super) fn tally(graph: &Connection, seals: &Seals) -> Fallible<Tally> {
    let query = format!(
        "SELECT tasks, ids, reopenings = (SELECT coalesce(sum(mark(task, times)), 0) FROM reopened), seal, {SEAL_OF_NUMBER}
        FROM sealed"
    );
    let row = graph.prepare_cached(&query)?.query_row([], |row| {
        let ours = Tally::Ours { tasks: row.get(0)?, ids: row.get(1)?, is_reopened_as_sealed: row.get(2)? };
        Ok((ours, row.get::<_, Option<Vec<u8>>>(3)?, row.get::<_, Vec<u8>>(4)?))
    });
    Ok(match row.optional()? {
        Some((ours, Some(seal), right)) if seal == right => ours,
        Some((_, Some(seal), _)) if seals.key.is_of_another(&seal) => Tally::OfAnother,
        Some((_, None, _)) => Tally::Unsealed,
        Some(_) | None => Tally::Forged,
    })
}
