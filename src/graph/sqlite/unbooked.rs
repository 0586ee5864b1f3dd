//! Finds what is called done in the database and was booked by nobody: whoever can write the file can write that, too.
//!
//! A booked end leaves traces that fit together. The last line that ralph wrote into the task's log says that it is done, and the
//! task says by whom: by a run, whose journal has the attempt, or by hand. What this process itself books it remembers.

use std::collections::HashSet;

use rusqlite::{Connection, Transaction};

use super::edits::write_log;
use super::rebuild::rebuild;
use super::{Fallible, queries};
use crate::graph::task::Task;

/// Tasks that are called done: what their traces say, and the run that has booked them.
const CALLED_DONE: &str = "SELECT t.seq, t.id, t.done_by, t.work <> 0 AS has_work,
    CASE WHEN t.work = 0 THEN EXISTS (SELECT 1 FROM tasks AS part WHERE part.parent = t.seq)
      ELSE t.work = 2 AND t.done_by IS NOT NULL AND coalesce((SELECT message FROM task_logs AS line
        WHERE line.task = t.seq AND NOT line.said ORDER BY line.seq DESC LIMIT 1), '') LIKE 'done%' END AS is_booked,
    NOT EXISTS (SELECT 1 FROM tasks AS part WHERE part.parent = t.seq AND part.status <> 2) AS is_whole,
    EXISTS (SELECT 1 FROM journal WHERE task = t.id AND run = t.done_by AND outcome = 0) AS is_in_journal
    FROM tasks AS t WHERE t.status = 2 OR t.work = 2";

/// What is wrong with tasks that are called done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Doubts {
    /// Nobody has booked them.
    unbooked: Vec<i64>,
    /// A run has, and its journal does not have that attempt, which it enters right afterwards.
    awaited: Vec<i64>,
    /// A part of them is not done.
    broken: bool,
}

impl Doubts {
    pub(super) fn is_empty(&self) -> bool {
        self.unbooked.is_empty() && self.awaited.is_empty() && !self.broken
    }

    /// Whether nothing but the entry of a journal is missing.
    pub(super) fn is_early(&self) -> bool {
        !self.awaited.is_empty()
    }
}

/// Looks at all that is called done. `run` is this process's own, which has booked the tasks with the ids in `own`.
pub(super) fn doubts(graph: &Connection, run: &str, own: &HashSet<String>) -> Fallible<Doubts> {
    let mut statement = graph.prepare_cached(CALLED_DONE)?;
    let mut rows = statement.query([])?;
    let mut doubts = Doubts::default();
    while let Some(row) = rows.next()? {
        let (seq, id, by): (i64, String, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let [has_work, is_booked, is_whole, is_in_journal]: [bool; 4] =
            [row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?];
        doubts.broken |= !is_whole;
        let is_booked = is_booked && (by.as_deref() != Some(run) || own.contains(&id));
        if !is_booked {
            doubts.unbooked.push(seq);
        } else if has_work && by.is_some_and(|by| !by.is_empty() && by != run) && !is_in_journal {
            doubts.awaited.push(seq);
        }
    }
    Ok(doubts)
}

/// Opens these tasks again, to be verified, and computes anew what follows from that.
pub(super) fn reopen(graph: &Transaction<'_>, doubts: &Doubts) -> Fallible<Vec<Task>> {
    let tasks = doubts.unbooked.iter().chain(&doubts.awaited);
    for &seq in tasks.clone() {
        let update = "UPDATE tasks SET work = 1, unverified = 1, done_by = NULL, run = NULL, holder = NULL, lease_until = NULL
            WHERE seq = ?1";
        graph.prepare_cached(update)?.execute([seq])?;
        write_log(graph, seq, "opened again: neither a run nor a person has booked that it is done")?;
    }
    rebuild(graph, &|seq| queries::title(graph, seq))?;
    tasks.map(|&seq| queries::task(graph, seq)).collect()
}
