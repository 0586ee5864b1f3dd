//! Finds what another program has written into the database: whoever can write the file can write that a task is done, too.
//!
//! What ralph writes carries a seal, see [`super::seals`]. Without a key, and at the first look at a graph whose number of tasks this key
//! has not sealed, the traces of a booked end have to fit together: the last line that ralph wrote into the task's log says that it is
//! done, and the task says by whom: by a run, whose journal has the attempt, or by hand. What this process itself books it remembers.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::{Connection, Transaction};

use super::edits::write_log;
use super::rebuild::rebuild;
use super::seals::{self, SEAL, Seals, Tally};
use super::{Fallible, number, queries};
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
/// Whether a task is called done although a part of it is not.
const BROKEN: &str = "SELECT EXISTS (SELECT 1 FROM tasks AS part CROSS JOIN tasks AS t ON t.seq = part.parent
    WHERE part.parent IS NOT NULL AND part.status <> 2 AND t.status = 2)";

/// What is wrong in a graph.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// Called done, and nobody has booked them.
    unbooked: Vec<i64>,
    /// Such ones that were opened again before, and that another key has sealed: two runs would do that for ever.
    contested: Vec<i64>,
    /// Their words are not those that were sealed.
    rewritten: Vec<i64>,
    /// Open, and the rest of what was sealed does not fit.
    stale: Vec<i64>,
    /// How many tasks there are less than there should be; below zero: more.
    missing: i64,
    is_uncounted: bool,
    /// The graph was not sealed by this key until now.
    is_unsealed: bool,
    /// So many tasks are done by their traces alone, as it was not sealed by this key.
    believed: u64,
    /// A part of a task that is called done is not.
    is_broken: bool,
}

impl Doubts {
    pub(super) fn is_empty(&self) -> bool {
        // What is believed is nothing to put right.
        let Self {
            unbooked,
            contested,
            rewritten,
            stale,
            missing,
            is_uncounted,
            is_unsealed,
            is_broken,
            believed: _,
        } = self;
        let tasks = [unbooked, contested, rewritten, stale];
        let is_else = *is_uncounted || *is_unsealed || *is_broken || *missing != 0;
        !is_else && tasks.iter().all(|tasks| tasks.is_empty())
    }

    /// The tasks that are opened again.
    pub(super) fn reopened(&self) -> impl Iterator<Item = i64> + '_ {
        self.unbooked.iter().copied()
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
    seal: Option<String>,
    right: Option<String>,
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

    /// What is called done, or may become so without any work.
    fn is_finished(&self) -> bool {
        self.is_done || matches!(self.work, 0 | 2)
    }
}

/// Refuses a graph whose indexes lack tasks: a run over a part of it would end without them.
pub(super) fn require_indexes(graph: &Connection, path: &Path) -> Fallible<()> {
    let count =
        |column: &str, from: &str| format!("SELECT count(*) FROM tasks {from} WHERE {column} IS NOT NULL");
    for (column, index) in [("parent", "tasks_parent"), ("feature", "tasks_feature")] {
        let (all, listed) = (count(column, "NOT INDEXED"), count(column, &format!("INDEXED BY {index}")));
        let mut query = graph.prepare_cached(&format!("SELECT ({all}) = ({listed})"))?;
        if !query.query_row([], |row| row.get(0))? {
            let what = "another program has taken tasks out of one of its indexes";
            return Err(GraphError::damaged(path, what).into());
        }
    }
    Ok(())
}

/// Looks at all tasks. `run` is this process's own, which has booked the tasks with the ids beside it; `is_first`: no agent of its
/// own has been at work yet.
pub(super) fn doubts(
    graph: &Connection,
    run: (&str, &HashSet<String>),
    seals: Option<&Seals>,
    is_first: bool,
) -> Fallible<Doubts> {
    let mut doubts =
        Doubts { is_broken: graph.query_row(BROKEN, [], |row| row.get(0))?, ..Doubts::default() };
    let tally = match seals {
        Some(seals) => seals::tally(graph, seals)?,
        None => Tally::Unsealed,
    };
    doubts.is_unsealed = is_first && seals.is_some() && matches!(tally, Tally::OfAnother | Tally::Unsealed);
    let query = match seals {
        Some(_) => format!("SELECT seq, work, status, seal, {SEAL}, mark(id) FROM tasks"),
        None => "SELECT seq, work, status, NULL, NULL, 0 FROM tasks WHERE status = 2 OR work = 2".to_owned(),
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
        Tally::Ours { tasks, ids } => doubts.missing = found.missing_of(tasks, ids),
        _ => doubts.is_uncounted = seals.is_some() && !doubts.is_unsealed,
    }
    Ok(doubts)
}

impl Doubts {
    /// Looks at a task that should have a seal.
    fn look_at(&mut self, graph: &Connection, row: &Row, seals: &Seals) -> Fallible<()> {
        let Row { seq, work, is_done, seal, right } = row;
        if right.is_some() && seal == right {
            // What follows from the graph has no seal.
            let has_parts = || -> Fallible<bool> {
                let parts = "SELECT EXISTS (SELECT 1 FROM tasks WHERE parent = ?1)";
                Ok(graph.prepare_cached(parts)?.query_row([seq], |row| row.get(0))?)
            };
            if *is_done && (*work == 1 || *work == 0 && !has_parts()?) {
                self.unbooked.push(*seq);
            }
            return Ok(());
        }
        if !row.has_its_words() {
            self.rewritten.push(*seq);
        }
        let is_of_another = seal.as_ref().is_some_and(|seal| seals.key.is_of_another(seal));
        match row.is_finished() {
            true if is_of_another && seals.reopened.contains(seq) => self.contested.push(*seq),
            true => self.unbooked.push(*seq),
            false => self.stale.push(*seq),
        }
        Ok(())
    }
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
    let are_new = doubts.are_new();
    if !are_new {
        for &seq in &doubts.rewritten {
            write_log(graph, seq, "another program than ralph has changed its words")?;
        }
    }
    for &seq in &doubts.stale {
        // That it was verified, nobody believes.
        let update = "UPDATE tasks SET unverified = min(unverified, 1) WHERE seq = ?1";
        graph.prepare_cached(update)?.execute([seq])?;
    }
    rebuild(graph, &|seq| queries::title(graph, seq))?;
    if has_key {
        let all = [&doubts.unbooked, &doubts.contested, &doubts.rewritten, &doubts.stale];
        all.into_iter().flatten().try_for_each(|&seq| seals::vouch(graph, seq))?;
        if doubts.is_unsealed {
            // That they were verified, no seal of this key says.
            graph.execute("UPDATE tasks SET unverified = 1 WHERE unverified > 1", [])?;
        }
        if doubts.is_unsealed || seals::identity(graph)?.is_none() {
            seals::seal_anew(graph)?;
        } else if doubts.missing != 0 || doubts.is_uncounted {
            seals::seal_number(graph)?;
        }
    }
    let tasks =
        |seqs: &[i64]| -> Fallible<Vec<Task>> { seqs.iter().map(|&seq| queries::task(graph, seq)).collect() };
    Ok(Unbooked {
        reopened: tasks(&doubts.unbooked)?,
        contested: tasks(&doubts.contested)?,
        rewritten: if are_new { Vec::new() } else { tasks(&doubts.rewritten)? },
        missing: doubts.missing.max(0).unsigned_abs(),
        is_uncounted: doubts.is_uncounted,
        believed: doubts.believed,
    })
}
