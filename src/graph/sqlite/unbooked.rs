//! Finds changes of the database by another program: a program that can write the file can also mark a task as done.
//!
//! Rows that ralph writes carry a seal, see [`super::seals`]. Without a key, and at the first check of a graph whose
//! number of tasks this key has not sealed, the traces of a booked task have to match: the last line by ralph in its
//! log says that it is done, and `done_by` names a run whose journal has the attempt, or a change by hand. This
//! process remembers what it has booked itself.
//!
//! Derived values (states, counts, lists of ready tasks) have no seal: they are recomputed and compared.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::Connection;

use super::seals::{self, Debt, SEAL, Seals, Tally};
use crate::graph::error::GraphError;
use crate::graph::seal::is_same_thing;
use crate::graph::sql::rebuild::{is_up_to_date, rebuild};
use crate::graph::sql::settle::LANDING;
use crate::graph::sql::task_log::write_log;
use crate::graph::sql::{Fallible, Fault, landings, number, queries};
use crate::graph::store::Unbooked;
use crate::graph::task::{Status, Task};

/// Whether the traces of a done task match, except for the journal; with `done_by`, and whether the journal has the
/// attempt.
const TRACES: &str = "SELECT t.id, t.done_by, t.work <> 0,
    CASE WHEN t.work = 0 THEN EXISTS (SELECT 1 FROM tasks AS part WHERE part.parent = t.seq)
      ELSE t.work IN (2, 4) AND t.done_by IS NOT NULL AND coalesce((SELECT message FROM task_logs AS line
        WHERE line.task = t.seq AND NOT line.said ORDER BY line.seq DESC LIMIT 1), '') LIKE 'done%' END,
    EXISTS (SELECT 1 FROM journal WHERE task = t.id AND run = t.done_by AND outcome = 0)
    FROM tasks AS t WHERE t.seq = ?1";
/// Removes references to tasks and features that do not exist.
const DANGLING: &str = "DELETE FROM dependencies WHERE blocker NOT IN (SELECT seq FROM tasks) OR blocked NOT IN (SELECT seq FROM tasks);
    UPDATE tasks SET parent = NULL WHERE parent NOT IN (SELECT seq FROM tasks);
    UPDATE tasks SET feature = NULL WHERE feature NOT IN (SELECT seq FROM features);";

/// The log line of a task whose contents do not match its seal.
const REWRITTEN: &str =
    "another program than ralph has changed its words, its priority, or what it is a part of or waits for";

/// The value of `work` of a failed task.
const FAILED: i64 = 3;

/// The doubts about a graph.
#[expect(clippy::struct_excessive_bools, reason = "each one is a fact of its own, and found by itself")]
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// Marked as done, and not booked.
    unbooked: Vec<i64>,
    /// Marked as failed, and not booked as such.
    given_up: Vec<i64>,
    /// Marked as done or failed, sealed by another key, and opened again before: otherwise two runs would do so for
    /// ever.
    contested: Vec<i64>,
    /// Their contents (texts, priority, parent or blockers) do not match their seals.
    rewritten: Vec<i64>,
    /// Open, and the rest of the seal does not match.
    stale: Vec<i64>,
    /// How many tasks are missing; negative if there are too many.
    missing: i64,
    is_uncounted: bool,
    /// A changed count of reopenings.
    is_reopened_unseen: bool,
    /// This key had not sealed the graph.
    is_unsealed: bool,
    /// How many tasks count as done by their traces alone, as this key had not sealed the graph.
    believed: u64,
    /// Derived values are out of date.
    is_out_of_date: bool,
    /// Earlier doubts, which are sealed.
    debt: Debt,
}

impl Doubts {
    pub(super) fn is_empty(&self) -> bool {
        // Believed tasks need no repair.
        let Self {
            unbooked,
            given_up,
            contested,
            rewritten,
            stale,
            missing,
            is_uncounted,
            is_reopened_unseen,
            is_unsealed,
            is_out_of_date,
            believed: _,
            debt: _,
        } = self;
        let tasks = [unbooked, given_up, contested, rewritten, stale];
        let is_else =
            *is_uncounted || *is_reopened_unseen || *is_unsealed || *is_out_of_date || *missing != 0;
        !is_else && tasks.iter().all(|tasks| tasks.is_empty())
    }

    /// The tasks to open again.
    pub(super) fn reopened(&self) -> impl Iterator<Item = i64> + '_ {
        self.unbooked.iter().chain(&self.given_up).copied()
    }

    /// The tasks that stay done or failed, although no ralph with this key has ended them.
    pub(super) fn contested(&self) -> impl Iterator<Item = i64> + '_ {
        self.contested.iter().copied()
    }

    /// The doubts that are not among those already `told`.
    pub(super) fn untold(&self, graph: &Connection, told: &Debt) -> Fallible<Unbooked> {
        let untold = self.debt.tasks.difference(&told.tasks);
        Ok(Unbooked {
            rewritten: untold.map(|&seq| queries::task(graph, seq)).collect::<Fallible<_>>()?,
            missing: (self.debt.missing - told.missing).max(0).unsigned_abs(),
            is_uncounted: self.debt.is_uncounted && !told.is_uncounted,
            ..Unbooked::default()
        })
    }

    /// Whether all rewritten tasks are new ones that another program has added: that marks nothing as done.
    fn are_new(&self) -> bool {
        i64::try_from(self.rewritten.len()).is_ok_and(|count| count == -self.missing)
    }
}

/// A row of `tasks` with the seal that it should have.
struct Row {
    seq: i64,
    work: i64,
    is_done: bool,
    seal: Option<Vec<u8>>,
    right: Option<Vec<u8>>,
    is_doubted: bool,
}

/// The tasks found.
#[derive(Default)]
struct Found {
    tasks: i64,
    /// The sum of the marks of their ids.
    ids: i64,
    /// The sum over the sealed ones.
    sealed_ids: i64,
}

impl Found {
    fn add(&mut self, row: &Row, mark: i64) {
        self.tasks += 1;
        self.ids += mark;
        self.sealed_ids += if row.has_its_words() { mark } else { 0 };
    }

    /// How many of the expected number of tasks, with this sum of marks, are missing; negative if there are too many.
    fn missing_of(&self, tasks: i64, ids: i64) -> i64 {
        let missing = tasks - self.tasks;
        let are_all_there = self.ids == ids || self.sealed_ids == ids;
        if are_all_there { missing } else { missing.max(1) }
    }
}

impl Row {
    /// Its contents match its seal.
    fn has_its_words(&self) -> bool {
        self.seal.as_ref().zip(self.right.as_ref()).is_some_and(|(seal, right)| is_same_thing(seal, right))
    }
}

/// Refuses a graph whose indexes lack rows: a run would miss tasks and end too early.
pub(super) fn require_indexes(graph: &Connection, path: &Path) -> Fallible<()> {
    for (table, column, index) in [
        ("tasks", "parent", "tasks_parent"),
        ("tasks", "feature", "tasks_feature"),
        ("dependencies", "blocked", "dependencies_blocked"),
    ] {
        let count = |from: &str| format!("SELECT count(*) FROM {table} {from} WHERE {column} IS NOT NULL");
        let (all, listed) = (count("NOT INDEXED"), count(&format!("INDEXED BY {index}")));
        let mut query = graph.prepare_cached(&format!("SELECT ({all}) = ({listed})"))?;
        if !query.query_row([], |row| row.get(0))? {
            let what = "another program has taken rows out of one of its indexes";
            return Err(GraphError::damaged(path, what).into());
        }
    }
    Ok(())
}

/// Whether derived values are up to date. Refuses tasks that wait for each other in a cycle.
fn is_settled(graph: &Connection, path: &Path) -> Fallible<bool> {
    is_up_to_date(graph, &|seq| queries::id(graph, seq)).map_err(|fault| match fault {
        Fault::Graph(error) => {
            let what = format!("another program has changed what tasks wait for or are parts of: {error}");
            let advice = "'ralph task deps rm' does that, or restore a backup of it";
            GraphError::Damaged { path: path.to_owned(), what, advice }.into()
        }
        fault => fault,
    })
}

/// Checks all tasks. `run` is this process's run, with the ids of the tasks that it has booked; `is_first`: none of
/// its agents has run yet.
pub(super) fn doubts(
    graph: &Connection,
    path: &Path,
    run: (&str, &HashSet<String>),
    seals: Option<&Seals>,
    is_first: bool,
) -> Fallible<Doubts> {
    let mut doubts = Doubts { is_out_of_date: !is_settled(graph, path)?, ..Doubts::default() };
    let tally = match seals {
        Some(seals) => seals::tally(graph, seals)?,
        None => Tally::Unsealed,
    };
    doubts.is_unsealed = is_first && seals.is_some() && matches!(tally, Tally::OfAnother | Tally::Unsealed);
    doubts.is_reopened_unseen = seals.is_some()
        && !doubts.is_unsealed
        && !matches!(tally, Tally::Ours { is_reopened_as_sealed: true, .. });
    let query = match seals {
        Some(_) => format!("SELECT seq, work, status, seal, {SEAL}, mark(id), doubted FROM tasks"),
        None => {
            "SELECT seq, work, status, NULL, NULL, 0, 0 FROM tasks WHERE status IN (2, 5) OR work IN (2, 4)"
                .to_owned()
        }
    };
    let mut statement = graph.prepare_cached(&query)?;
    let mut rows = statement.query([])?;
    let mut found = Found::default();
    while let Some(row) = rows.next()? {
        let mark: i64 = row.get(5)?;
        let row = Row {
            seq: row.get(0)?,
            work: row.get(1)?,
            is_done: row.get::<_, i64>(2)? == number(Status::Done),
            seal: row.get(3)?,
            right: row.get(4)?,
            is_doubted: row.get(6)?,
        };
        found.add(&row, mark);
        match seals {
            Some(seals) if !doubts.is_unsealed => doubts.look_at(graph, &row, seals)?,
            _ if !(row.is_done || matches!(row.work, 2 | LANDING)) => {}
            _ if row.work == LANDING && !landings::waits(graph, row.seq)? => doubts.unbooked.push(row.seq),
            _ if is_booked(graph, row.seq, run)? => doubts.believed += u64::from(doubts.is_unsealed),
            _ => doubts.unbooked.push(row.seq),
        }
    }
    match tally {
        Tally::Ours { tasks, ids, .. } => {
            doubts.missing = found.missing_of(tasks, ids);
            let all = seals::debt_of_number(graph)?;
            (doubts.debt.missing, doubts.debt.is_uncounted) = all;
        }
        _ => doubts.is_uncounted = seals.is_some() && !doubts.is_unsealed,
    }
    Ok(doubts)
}

impl Doubts {
    /// Checks a task that should have a seal.
    fn look_at(&mut self, graph: &Connection, row: &Row, seals: &Seals) -> Fallible<()> {
        let Row { seq, work, is_done, seal, right, is_doubted } = row;
        if seals.contested.contains(seq) {
            return Ok(());
        }
        let has_its_words = row.has_its_words();
        let is_as_sealed = right.is_some() && seal == right && !self.is_reopened_unseen;
        let is_finished = match *work {
            // A group's state follows from its parts.
            0 => !has_its_words || *is_done && !has_parts(graph, *seq)?,
            2 | FAILED => !is_as_sealed,
            LANDING => !is_as_sealed || !landings::waits(graph, *seq)?,
            // Derived values have no seal.
            _ => *is_done,
        };
        let is_of_another = seal.as_ref().is_some_and(|seal| seals.key.is_of_another(seal));
        if is_finished && is_of_another && seals.reopened.contains(seq) {
            self.contested.push(*seq);
            return Ok(());
        }
        if !has_its_words {
            self.rewritten.push(*seq);
        } else if *is_doubted {
            self.debt.tasks.insert(*seq);
        }
        match is_finished {
            true if *work == FAILED => self.given_up.push(*seq),
            true => self.unbooked.push(*seq),
            false if !is_as_sealed => self.stale.push(*seq),
            false => {}
        }
        Ok(())
    }
}

fn has_parts(graph: &Connection, seq: i64) -> Fallible<bool> {
    let parts = "SELECT EXISTS (SELECT 1 FROM tasks WHERE parent = ?1)";
    Ok(graph.prepare_cached(parts)?.query_row([seq], |row| row.get(0))?)
}

/// Whether the traces of a done task match.
fn is_booked(graph: &Connection, seq: i64, (run, own): (&str, &HashSet<String>)) -> Fallible<bool> {
    Ok(graph.prepare_cached(TRACES)?.query_row([seq], |row| {
        let (id, by): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        let [has_work, fits, is_in_journal]: [bool; 3] = [row.get(2)?, row.get(3)?, row.get(4)?];
        let is_own = by.as_deref() == Some(run);
        let is_known = !has_work || is_own || is_in_journal || by.is_some_and(|by| by.is_empty());
        Ok(fits && is_known && (!is_own || own.contains(&id)))
    })?)
}

/// Opens unbooked tasks again so that they are verified, seals rows whose seals do not match, and recomputes derived
/// values.
pub(super) fn put_right(graph: &Connection, doubts: &Doubts, has_key: bool) -> Fallible<Unbooked> {
    for &seq in &doubts.unbooked {
        let update = "UPDATE tasks SET work = 1, unverified = 1, done_by = NULL, run = NULL, holder = NULL, lease_until = NULL
            WHERE seq = ?1";
        graph.prepare_cached(update)?.execute([seq])?;
        landings::put_by(graph, seq)?;
        write_log(graph, seq, "opened again: neither a run nor a person has booked that it is done")?;
    }
    for &seq in &doubts.given_up {
        let update = "UPDATE tasks SET work = 1, unverified = min(unverified, 1), run = NULL, holder = NULL, lease_until = NULL
            WHERE seq = ?1";
        graph.prepare_cached(update)?.execute([seq])?;
        write_log(graph, seq, "opened again: neither a run nor a person has booked that it failed")?;
    }
    let are_new = doubts.are_new();
    if !are_new {
        for &seq in &doubts.rewritten {
            write_log(graph, seq, REWRITTEN)?;
        }
    }
    if doubts.is_out_of_date {
        graph.execute_batch(DANGLING)?;
    }
    for &seq in &doubts.stale {
        // Their verification is not trusted.
        let update = "UPDATE tasks SET unverified = min(unverified, 1) WHERE seq = ?1";
        graph.prepare_cached(update)?.execute([seq])?;
    }
    rebuild(graph, &|seq| queries::title(graph, seq))?;
    if has_key {
        for &seq in &doubts.rewritten {
            graph.prepare_cached("UPDATE tasks SET doubted = ?2 WHERE seq = ?1")?.execute((seq, !are_new))?;
        }
        let Doubts { unbooked, given_up, rewritten, stale, .. } = doubts;
        let all = [unbooked, given_up, rewritten, stale];
        all.into_iter().flatten().try_for_each(|&seq| seals::vouch(graph, seq))?;
        if doubts.is_unsealed {
            // No seal of this key says that they were verified.
            graph.execute("UPDATE tasks SET unverified = 1 WHERE unverified > 1", [])?;
        }
        if doubts.is_unsealed || doubts.is_reopened_unseen || seals::identity(graph)?.is_none() {
            seals::seal_anew(graph)?;
        }
        if doubts.missing != 0 || doubts.is_uncounted {
            seals::owe(graph, doubts.missing.max(0), doubts.is_uncounted)?;
        }
    }
    let tasks =
        |seqs: &[i64]| -> Fallible<Vec<Task>> { seqs.iter().map(|&seq| queries::task(graph, seq)).collect() };
    Ok(Unbooked {
        reopened: tasks(&doubts.unbooked)?,
        given_up: tasks(&doubts.given_up)?,
        contested: tasks(&doubts.contested)?,
        rewritten: if are_new { Vec::new() } else { tasks(&doubts.rewritten)? },
        missing: doubts.missing.max(0).unsigned_abs(),
        is_uncounted: doubts.is_uncounted,
        is_recomputed: doubts.is_out_of_date,
        believed: doubts.believed,
    })
}
