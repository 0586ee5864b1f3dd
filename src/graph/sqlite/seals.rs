//! Seals what is written through this connection, in the transaction that writes it.
//!
//! Triggers of the connection's own note which tasks a transaction touches, and whether each was as sealed before: what
//! another program has changed is not made ours by a change of ours to the same task.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Transaction};

use super::Fallible;
use crate::graph::error::GraphError;
use crate::graph::seal::Key;

/// The seal that a row of `tasks` should have: in which graph, what it is, and how it stands. With its own number, by which its parts
/// name it, and the name of its feature, by which people do.
pub(super) const SEAL: &str =
    "seal(9, (SELECT graph FROM sealed), (SELECT generation FROM sealed), id, seq, title,
    (SELECT text FROM descriptions WHERE task = tasks.seq), parent,
    (SELECT name FROM features WHERE features.seq = tasks.feature), work = 0,
    work, done_by, unverified, done_at_commit)";
/// The seal that the number of tasks, and which ones they are, should have.
pub(super) const SEAL_OF_NUMBER: &str = "seal(3, graph, generation, changes, tasks, ids)";
/// How many of the values that are sealed say of what something is said: the graph, its generation, and the task or the change.
const SUBJECT: usize = 3;

/// What a store with a key knows of seals.
#[derive(Debug, Clone)]
pub(super) struct Seals {
    pub(super) key: Arc<Key>,
    /// Which graph it was at the last look.
    pub(super) seen: Option<Identity>,
    /// What was opened again through this store.
    pub(super) reopened: HashSet<i64>,
}

impl Seals {
    pub(super) fn of(key: Key) -> Self {
        Self { key: Arc::new(key), seen: None, reopened: HashSet::new() }
    }

    /// Refuses another graph than the one that was seen, or an older state of it.
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

/// The functions `seal` and `mark` for SQL. Only for this connection: no other program can call them.
pub(super) fn teach(connection: &Connection, key: &Arc<Key>) -> Fallible<()> {
    teach_marks(connection, key)?;
    let key = Arc::clone(key);
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("seal", -1, flags, move |call| {
        let first: usize = call.get(0)?;
        let (mut what, mut how) = (Vec::new(), Vec::new());
        for at in 1..call.len() {
            let part = if at <= first { &mut what } else { &mut how };
            append(part, call.get_raw(at));
            if at == SUBJECT {
                // How it stands is said of exactly this one.
                how.clone_from(&what);
            }
        }
        Ok(key.seal(&what, &how))
    })?;
    Ok(())
}

/// The function `mark` for SQL: a number for an id.
fn teach_marks(connection: &Connection, key: &Arc<Key>) -> Fallible<()> {
    let key = Arc::clone(key);
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("mark", 1, flags, move |call| {
        let mut id = b"id ".to_vec();
        append(&mut id, call.get_raw(0));
        Ok(key.number(&id))
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
            "INSERT INTO touched (task, is_sound, was_done) SELECT seq, seal IS {SEAL}, work = 2 FROM tasks WHERE seq = {task}"
        )
    };
    let is_new = |task: &str| format!("NOT EXISTS (SELECT 1 FROM touched WHERE task = {task})");
    let of = |row: &str| {
        let columns = ["title", "parent", "feature", "work", "done_by", "unverified", "done_at_commit"];
        columns.map(|column| format!("{row}.{column}")).join(", ")
    };
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

/// Seals what this transaction has touched and was as sealed before.
pub(super) fn seal_touched(graph: &Transaction<'_>) -> Fallible<()> {
    let count = "SELECT count(*), coalesce(sum(change), 0), coalesce(sum(ids), 0) FROM touched";
    let (touched, change, ids): (i64, i64, i64) =
        graph.prepare_cached(count)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if touched == 0 {
        return Ok(());
    }
    let opens_again =
        "SELECT EXISTS (SELECT 1 FROM touched JOIN tasks ON seq = task WHERE was_done AND work <> 2)";
    if graph.prepare_cached(opens_again)?.query_row([], |row| row.get(0))? {
        begin_generation(graph)?;
    }
    let seal =
        format!("UPDATE tasks SET seal = {SEAL} WHERE seq IN (SELECT task FROM touched WHERE is_sound)");
    graph.prepare_cached(&seal)?.execute([])?;
    if (change, ids) != (0, 0) {
        let seal = format!(
            "UPDATE sealed SET tasks = tasks + ?1, ids = ids + ?2, changes = changes + 1,
            seal = seal(3, graph, generation, changes + 1, tasks + ?1, ids + ?2) WHERE seal IS {SEAL_OF_NUMBER}"
        );
        graph.prepare_cached(&seal)?.execute([change, ids])?;
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

/// Seals the number of tasks in a graph that has none, see [`seal_number`].
pub(super) fn seal_empty(graph: &Connection) -> Fallible<()> {
    let has_tasks: bool = graph.query_row("SELECT EXISTS (SELECT 1 FROM tasks)", [], |row| row.get(0))?;
    if has_tasks { Ok(()) } else { seal_number(graph) }
}

/// Seals the number of tasks as it is, and which ones they are.
pub(super) fn seal_number(graph: &Connection) -> Fallible<()> {
    let count = "UPDATE sealed SET (tasks, ids) = (SELECT count(*), coalesce(sum(mark(id)), 0) FROM tasks),
        changes = changes + 1";
    graph.execute(count, [])?;
    graph.execute(&format!("UPDATE sealed SET seal = {SEAL_OF_NUMBER}"), [])?;
    Ok(())
}

/// Makes it another graph, which no seal is of yet, and seals all as it is at the end of this transaction.
pub(super) fn seal_anew(graph: &Connection) -> Fallible<()> {
    graph.execute_batch(
        "DELETE FROM sealed; INSERT INTO sealed (tasks, graph) VALUES (0, lower(hex(randomblob(16))));
        INSERT INTO touched (task, is_sound) SELECT seq, 1 FROM tasks WHERE true ON CONFLICT (task) DO UPDATE SET is_sound = 1;",
    )?;
    seal_number(graph)
}

/// Begins another generation: seals of before are none any more, so that no row in which a task was done can be put back. Of the
/// tasks, what is as sealed is sealed at the end of this transaction.
fn begin_generation(graph: &Connection) -> Fallible<()> {
    let touch_all = format!(
        "INSERT INTO touched (task, is_sound) SELECT seq, seal IS {SEAL} FROM tasks WHERE true ON CONFLICT (task) DO NOTHING"
    );
    graph.execute(&touch_all, [])?;
    let begin = format!(
        "UPDATE sealed SET generation = generation + 1, seal = seal(3, graph, generation + 1, changes, tasks, ids)
        WHERE seal IS {SEAL_OF_NUMBER}"
    );
    graph.execute(&begin, [])?;
    Ok(())
}

/// Which graph it is, and how far it has come.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    graph: String,
    generation: i64,
    changes: i64,
}

impl Identity {
    /// Whether it is the graph that was `seen`, and no older state of it.
    fn goes_on(&self, seen: &Self) -> bool {
        self.graph == seen.graph && self.generation >= seen.generation && self.changes >= seen.changes
    }
}

/// Which graph it is; none where another program has removed that.
pub(super) fn identity(graph: &Connection) -> Fallible<Option<Identity>> {
    let query = "SELECT graph, generation, changes FROM sealed WHERE graph IS NOT NULL";
    let identity = graph.prepare_cached(query)?.query_row([], |row| {
        Ok(Identity { graph: row.get(0)?, generation: row.get(1)?, changes: row.get(2)? })
    });
    Ok(identity.optional()?)
}

/// What the graph says of its tasks as a whole.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tally {
    /// What this key has sealed.
    Ours {
        /// How many there are.
        tasks: i64,
        /// The sum of their ids' marks.
        ids: i64,
    },
    /// Another key has sealed it.
    OfAnother,
    /// No key has sealed it.
    Unsealed,
    /// It claims to be sealed by this key, and is not; or another program has removed it.
    Forged,
}

/// What this graph says of its tasks as a whole.
pub(super) fn tally(graph: &Connection, seals: &Seals) -> Fallible<Tally> {
    let query = format!("SELECT tasks, ids, seal, {SEAL_OF_NUMBER} FROM sealed");
    let row = graph.prepare_cached(&query)?.query_row([], |row| {
        let (seal, right) = (row.get::<_, Option<String>>(2)?, row.get::<_, String>(3)?);
        Ok((Tally::Ours { tasks: row.get(0)?, ids: row.get(1)? }, seal, right))
    });
    Ok(match row.optional()? {
        Some((ours, Some(seal), right)) if seal == right => ours,
        Some((_, Some(seal), _)) if seals.key.is_of_another(&seal) => Tally::OfAnother,
        Some((_, None, _)) => Tally::Unsealed,
        Some(_) | None => Tally::Forged,
    })
}
