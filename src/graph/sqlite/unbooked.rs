//! Finds what another program has written into the database: whoever can write the file can write that a task is done, too.
//!
//! What ralph writes carries a seal, see [`super::seals`]. Without a key, and at the first look at a graph whose number of tasks this key
//! has not sealed, the traces of a booked end have to fit together: the last line that ralph wrote into the task's log says that it is
//! done, and the task says by whom: by a run, whose journal has the attempt, or by hand. What this process itself books it remembers.
//!
//! What follows from the rest (states, counts, lists of what is ready) has no seal: it is computed anew and compared.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::{Connection, Transaction};

use super::rebuild::{is_up_to_date, rebuild};
use super::seals::{self, Debt, SEAL, Seals, Tally};
use super::task_log::write_log;
use super::{Fallible, Fault, number, queries};
use crate::graph::error::GraphError;
use crate::graph::seal::is_same_thing;
use crate::graph::store::Unbooked;
use crate::graph::task::{Status, Task};

/// Whether the traces of a booked end fit together, but for the journal: with who has booked it and whether that has the attempt.
const TRACES: &str = "SELECT t.id, t.done_by, t.work <> 0,
    CASE WHEN t.work = 0 THEN EXISTS (SELECT 1 FROM tasks AS part WHERE part.parent = t.seq)
      ELSE t.work = 2 AND t.done_by IS NOT NULL AND coalesce((SELECT message FROM task_logs AS line
        WHERE line.task = t.seq AND NOT line.said ORDER BY line.seq DESC LIMIT 1), '') LIKE 'done%' END,
    EXISTS (SELECT 1 FROM journal WHERE task = t.id AND run = t.done_by AND outcome = 0)
    FROM tasks AS t WHERE t.seq = ?1";
/// Takes back what names tasks and features that are not there any more.
const DANGLING: &str = "DELETE FROM dependencies WHERE blocker NOT IN (SELECT seq FROM tasks) OR blocked NOT IN (SELECT seq FROM tasks);
    UPDATE tasks SET parent = NULL WHERE parent NOT IN (SELECT seq FROM tasks);
    UPDATE tasks SET feature = NULL WHERE feature NOT IN (SELECT seq FROM features);";

/// What the log says of a task whose words do not fit its seal.
const REWRITTEN: &str =
    "another program than ralph has changed its words, its priority, or what it is a part of or waits for";

/// What `work` says of a task that has failed.
const FAILED: i64 = 3;

/// What is wrong in a graph.
#[expect(clippy::struct_excessive_bools, reason = "each one is a fact of its own, and found by itself")]
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// Called done, and nobody has booked them.
    unbooked: Vec<i64>,
    /// Called failed, and nobody has given them up.
    given_up: Vec<i64>,
    /// Such ones that were opened again before, and that another key has sealed: two runs would do that for ever.
    contested: Vec<i64>,
    /// Their words, priorities, or what they are parts of or wait for, are not those that were sealed.
    rewritten: Vec<i64>,
    /// Open, and the rest of what was sealed does not fit.
    stale: Vec<i64>,
    /// How many tasks there are less than there should be; below zero: more.
    missing: i64,
    is_uncounted: bool,
    /// How often tasks were opened again is not known.
    is_reopened_unseen: bool,
    /// The graph was not sealed by this key until now.
    is_unsealed: bool,
    /// So many tasks are done by their traces alone, as it was not sealed by this key.
    believed: u64,
    /// States, counts or lists are not what follows from the graph.
    is_out_of_date: bool,
    /// What was in doubt before, and is sealed as such.
    debt: Debt,
}

impl Doubts {
    pub(super) fn is_empty(&self) -> bool {
        // What is believed is nothing to put right.
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

    /// The tasks that are opened again.
    pub(super) fn reopened(&self) -> impl Iterator<Item = i64> + '_ {
        self.unbooked.iter().chain(&self.given_up).copied()
    }

    /// The tasks that are left as they are, although no ralph with this key has ended them.
    pub(super) fn contested(&self) -> impl Iterator<Item = i64> + '_ {
        self.contested.iter().copied()
    }

    /// What is in doubt, and is not among what was `told`.
    pub(super) fn untold(&self, graph: &Connection, told: &Debt) -> Fallible<Unbooked> {
        let untold = self.debt.tasks.difference(&told.tasks);
        Ok(Unbooked {
            rewritten: untold.map(|&seq| queries::task(graph, seq)).collect::<Fallible<_>>()?,
            missing: (self.debt.missing - told.missing).max(0).unsigned_abs(),
            is_uncounted: self.debt.is_uncounted && !told.is_uncounted,
            ..Unbooked::default()
        })
    }

    /// All tasks whose words do not fit are new ones, which another program has added: that makes nothing done.
    fn are_new(&self) -> bool {
        i64::try_from(self.rewritten.len()).is_ok_and(|count| count == -self.missing)
    }
}

/// A task as the database has it, and how it should be sealed.
struct Row {
    seq: i64,
    work: i64,
    is_done: bool,
    seal: Option<Vec<u8>>,
    right: Option<Vec<u8>>,
    is_doubted: bool,
}

/// The tasks that there are.
#[derive(Default)]
struct Found {
    tasks: i64,
    /// The sum of their ids' marks.
    ids: i64,
    /// That of those which are sealed.
    sealed_ids: i64,
}

impl Found {
    fn add(&mut self, row: &Row, mark: i64) {
        self.tasks += 1;
        self.ids += mark;
        self.sealed_ids += if row.has_its_words() { mark } else { 0 };
    }

    /// How many of so many tasks, with this sum of marks, are missing; below zero: how many there are besides all of them.
    fn missing_of(&self, tasks: i64, ids: i64) -> i64 {
        let missing = tasks - self.tasks;
        let are_all_there = self.ids == ids || self.sealed_ids == ids;
        if are_all_there { missing } else { missing.max(1) }
    }
}

impl Row {
    /// Its words are those that were sealed.
    fn has_its_words(&self) -> bool {
        self.seal.as_ref().zip(self.right.as_ref()).is_some_and(|(seal, right)| is_same_thing(seal, right))
    }
}

/// Refuses a graph whose indexes lack rows: a run over a part of it would end without them.
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

/// Whether what follows from the graph is up to date. Refused where nothing can follow from it: tasks wait for each other in a circle.
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

/// Looks at all tasks. `run` is this process's own, which has booked the tasks with the ids beside it; `is_first`: no agent of its
/// own has been at work yet.
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
            "SELECT seq, work, status, NULL, NULL, 0, 0 FROM tasks WHERE status = 2 OR work = 2".to_owned()
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
            _ if !(row.is_done || row.work == 2) => {}
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
    /// Looks at a task that should have a seal.
    fn look_at(&mut self, graph: &Connection, row: &Row, seals: &Seals) -> Fallible<()> {
        let Row { seq, work, is_done, seal, right, is_doubted } = row;
        if seals.contested.contains(seq) {
            return Ok(());
        }
        let has_its_words = row.has_its_words();
        let is_as_sealed = right.is_some() && seal == right && !self.is_reopened_unseen;
        let is_finished = match *work {
            // A group is what its parts make it.
            0 => !has_its_words || *is_done && !has_parts(graph, *seq)?,
            2 | FAILED => !is_as_sealed,
            // What follows from the graph has no seal.
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

/// Whether the traces of a task that is called done fit together.
fn is_booked(graph: &Connection, seq: i64, (run, own): (&str, &HashSet<String>)) -> Fallible<bool> {
    Ok(graph.prepare_cached(TRACES)?.query_row([seq], |row| {
        let (id, by): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        let [has_work, fits, is_in_journal]: [bool; 3] = [row.get(2)?, row.get(3)?, row.get(4)?];
        let is_own = by.as_deref() == Some(run);
        let is_known = !has_work || is_own || is_in_journal || by.is_some_and(|by| by.is_empty());
        Ok(fits && is_known && (!is_own || own.contains(&id)))
    })?)
}

/// Opens again, to be verified, what nobody has booked, seals what is sealed wrongly, and computes anew what follows from that.
pub(super) fn put_right(graph: &Transaction<'_>, doubts: &Doubts, has_key: bool) -> Fallible<Unbooked> {
    for &seq in &doubts.unbooked {
        let update = "UPDATE tasks SET work = 1, unverified = 1, done_by = NULL, run = NULL, holder = NULL, lease_until = NULL
            WHERE seq = ?1";
        graph.prepare_cached(update)?.execute([seq])?;
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
        // That it was verified, nobody believes.
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
            // That they were verified, no seal of this key says.
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
