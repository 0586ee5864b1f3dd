//! Updates derived values after a change: states, counts, lists of ready tasks.

use rusqlite::{Connection, params};

use super::{Fallible, now, number, status};
use crate::graph::limits;
use crate::graph::task::Status;
use crate::graph::transitions::{self, Facts, Own};

/// A task with the values that its state follows from, as last stored.
pub(super) struct Node {
    pub(super) parent: Option<Parent>,
    pub(super) feature: Option<i64>,
    pub(super) status: Status,
    pub(super) work: Work,
    pub(super) priority: i64,
    pub(super) children: i64,
    pub(super) done_children: i64,
    pub(super) failed_children: i64,
    pub(super) open_blockers: i64,
    pub(super) held: bool,
    pub(super) ready: bool,
    pub(super) claimed: bool,
}

/// The work of a task apart from its parts, and its outcome. In the database: 0 for none, then open, done, failed, landing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Work(pub(super) Option<Own>);

/// The value of `work` of a task that waits to land.
pub(super) const LANDING: i64 = 4;

impl Work {
    pub(super) fn of(number: i64) -> Self {
        Self(match number {
            0 => None,
            2 => Some(Own::Done),
            3 => Some(Own::Failed),
            LANDING => Some(Own::Landing),
            _ => Some(Own::Open),
        })
    }

    pub(super) fn number(self) -> i64 {
        match self.0 {
            None => 0,
            Some(Own::Open) => 1,
            Some(Own::Done) => 2,
            Some(Own::Failed) => 3,
            Some(Own::Landing) => LANDING,
        }
    }

    pub(super) fn own(self) -> Own {
        self.0.unwrap_or(Own::Open)
    }

    /// The facts for a task with this work and these numbers of parts: all, done, failed.
    pub(super) fn facts(self, claimed: bool, held: bool, [children, done, failed]: [i64; 3]) -> Facts {
        Facts { claimed, has_work: self.0.is_some(), own: self.own(), held, children, done, failed }
    }
}

/// What a task needs to know about its parent.
#[derive(Clone, Copy)]
pub(super) struct Parent {
    pub(super) seq: i64,
    status: Status,
    held: bool,
}

const NODE: &str =
    "SELECT t.parent, t.feature, t.status, t.priority, t.children, t.done_children, t.failed_children,
    t.open_blockers, t.held, t.ready, t.holder IS NOT NULL, p.status, p.held, t.work
    FROM tasks t LEFT JOIN tasks p ON p.seq = t.parent WHERE t.seq = ?1";

impl Node {
    pub(super) fn read(graph: &Connection, seq: i64) -> Fallible<Self> {
        Ok(graph.prepare_cached(NODE)?.query_row([seq], |row| {
            let parent = match row.get(0)? {
                Some(seq) => Some(Parent { seq, status: status(row.get(11)?), held: row.get(12)? }),
                None => None,
            };
            Ok(Self {
                parent,
                feature: row.get(1)?,
                status: status(row.get(2)?),
                priority: row.get(3)?,
                children: row.get(4)?,
                done_children: row.get(5)?,
                failed_children: row.get(6)?,
                open_blockers: row.get(7)?,
                held: row.get(8)?,
                ready: row.get(9)?,
                claimed: row.get(10)?,
                work: Work::of(row.get(13)?),
            })
        })?)
    }
}

impl Node {
    /// What its state follows from.
    fn facts(&self) -> Facts {
        self.work.facts(self.claimed, self.held, [self.children, self.done_children, self.failed_children])
    }

    /// How many of its parts are not done.
    pub(super) fn open_parts(&self) -> i64 {
        self.facts().open_parts()
    }
}

/// Books a change in the facts of a task, and all that follows from it. `own` is the outcome of the task itself;
/// `None` leaves it unchanged.
pub(super) fn settle(graph: &Connection, seq: i64, own: Option<Own>) -> Fallible<()> {
    let mut open = vec![(seq, own)];
    while let Some((seq, own)) = open.pop() {
        let old = Node::read(graph, seq)?;
        let held = transitions::is_held(old.open_blockers, old.parent.is_some_and(|parent| parent.held));
        let facts = Facts { held, ..old.facts() };
        let facts = Facts { own: own.unwrap_or(facts.own), ..facts };
        let work = Work(old.work.0.map(|_| transitions::own(&facts)));
        let status = transitions::status(&facts);
        let ready = transitions::is_listed(&facts, old.parent.map(|parent| parent.status));
        if (held, status, ready, work) == (old.held, old.status, old.ready, old.work) {
            continue;
        }
        let update =
            "UPDATE tasks SET held = ?2, status = ?3, ready = ?4, updated_at = ?5, work = ?6 WHERE seq = ?1";
        let values = params![seq, held, number(status), ready, now(), work.number()];
        graph.prepare_cached(update)?.execute(values)?;
        if ready != old.ready {
            list_as_ready(graph, seq, &old, ready)?;
        }
        let became = |what: Status| i64::from(status == what) - i64::from(old.status == what);
        let (done, failed) = (became(Status::Done), became(Status::Failed));
        if done != 0 {
            let count = "UPDATE tasks SET open_blockers = open_blockers - ?2
                WHERE seq IN (SELECT blocked FROM dependencies WHERE blocker = ?1)";
            graph.prepare_cached(count)?.execute([seq, done])?;
            let blocked = "SELECT blocked FROM dependencies WHERE blocker = ?1";
            open.extend(numbers(graph, blocked, seq)?.into_iter().map(|seq| (seq, None)));
        }
        if let Some(parent) = old.parent.filter(|_| done != 0 || failed != 0) {
            count_child(graph, parent.seq, 0, done, failed)?;
            open.push((parent.seq, None));
        }
        if old.children > 0 && (held != old.held || failed != 0) {
            let children = "SELECT seq FROM tasks WHERE parent = ?1";
            open.extend(numbers(graph, children, seq)?.into_iter().map(|seq| (seq, None)));
        }
    }
    Ok(())
}

/// Counts parts that were added, removed or changed; call [`settle`] afterwards.
pub(super) fn count_child(
    graph: &Connection,
    parent: i64,
    count: i64,
    done: i64,
    failed: i64,
) -> Fallible<()> {
    let update = "UPDATE tasks SET children = children + ?2, done_children = done_children + ?3,
        failed_children = failed_children + ?4 WHERE seq = ?1";
    graph.prepare_cached(update)?.execute([parent, count, done, failed])?;
    Ok(())
}

/// Adds a task to the lists of ready tasks, or removes it from them.
pub(super) fn list_as_ready(graph: &Connection, seq: i64, node: &Node, ready: bool) -> Fallible<()> {
    let mut change = graph.prepare_cached(if ready {
        // Another program may have listed it.
        "INSERT OR IGNORE INTO ready (scope, priority, task) VALUES (?1, ?2, ?3)"
    } else {
        "DELETE FROM ready WHERE scope = ?1 AND priority = ?2 AND task = ?3"
    })?;
    change.execute([0, node.priority, seq])?;
    if let Some(feature) = node.feature {
        change.execute([-feature, node.priority, seq])?;
    }
    change.execute([seq, node.priority, seq])?;
    for parent in above(graph, seq)? {
        change.execute([parent, node.priority, seq])?;
    }
    Ok(())
}

/// The tasks above a task, the nearest first. Every walk upwards uses this: in a database that another program has
/// written, a task may be a part of itself.
pub(super) fn above(graph: &Connection, seq: i64) -> Fallible<Vec<i64>> {
    let mut statement = graph.prepare_cached("SELECT parent FROM tasks WHERE seq = ?1")?;
    let mut parent = |seq: i64| statement.query_row([seq], |row| row.get::<_, Option<i64>>(0));
    let mut found = Vec::new();
    let mut next = parent(seq)?;
    while let Some(seq) = next {
        found.push(seq);
        require_level(found.len())?;
        next = parent(seq)?;
    }
    Ok(found)
}

/// Refuses a task deeper than the limit.
pub(super) fn require_level(above: usize) -> Fallible<()> {
    if above < limits::LEVELS {
        return Ok(());
    }
    let corrupt = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    let reason = "a task is a part of itself".to_owned();
    Err(rusqlite::Error::SqliteFailure(corrupt, Some(reason)).into())
}

/// The task numbers that a query with one parameter finds.
pub(super) fn numbers(graph: &Connection, query: &str, seq: i64) -> Fallible<Vec<i64>> {
    let mut statement = graph.prepare_cached(query)?;
    let rows = statement.query_map([seq], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
