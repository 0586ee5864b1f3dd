//! Updates derived values after a change: states, counts, lists of ready tasks.

use super::values::values;
use super::{Fallible, number, status};
use super::{Fault, Sql};
use crate::graph::limits;
use crate::graph::task::Status;
use crate::graph::transitions::{self, Facts, Own};

/// A task with the values that its state follows from, as last stored.
pub(in crate::graph) struct Node {
    pub(in crate::graph) parent: Option<Parent>,
    pub(in crate::graph) feature: Option<i64>,
    pub(in crate::graph) status: Status,
    pub(in crate::graph) work: Work,
    pub(in crate::graph) priority: i64,
    pub(in crate::graph) children: i64,
    pub(in crate::graph) done_children: i64,
    pub(in crate::graph) failed_children: i64,
    pub(in crate::graph) open_blockers: i64,
    pub(in crate::graph) held: bool,
    pub(in crate::graph) ready: bool,
    pub(in crate::graph) claimed: bool,
}

/// The work of a task apart from its parts, and its outcome. In the database: 0 for none, then open, done, failed, landing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::graph) struct Work(pub(in crate::graph) Option<Own>);

/// The value of `work` of a task that waits to land.
pub(in crate::graph) const LANDING: i64 = 4;

impl Work {
    pub(in crate::graph) fn of(number: i64) -> Self {
        Self(match number {
            0 => None,
            2 => Some(Own::Done),
            3 => Some(Own::Failed),
            LANDING => Some(Own::Landing),
            _ => Some(Own::Open),
        })
    }

    pub(in crate::graph) fn number(self) -> i64 {
        match self.0 {
            None => 0,
            Some(Own::Open) => 1,
            Some(Own::Done) => 2,
            Some(Own::Failed) => 3,
            Some(Own::Landing) => LANDING,
        }
    }

    pub(in crate::graph) fn own(self) -> Own {
        self.0.unwrap_or(Own::Open)
    }

    /// The facts for a task with this work and these numbers of parts: all, done, failed.
    pub(in crate::graph) fn facts(
        self,
        claimed: bool,
        held: bool,
        [children, done, failed]: [i64; 3],
    ) -> Facts {
        Facts { claimed, has_work: self.0.is_some(), own: self.own(), held, children, done, failed }
    }
}

/// What a task needs to know about its parent.
#[derive(Clone, Copy)]
pub(in crate::graph) struct Parent {
    pub(in crate::graph) seq: i64,
    status: Status,
    held: bool,
}

const NODE: &str =
    "SELECT t.parent, t.feature, t.status, t.priority, t.children, t.done_children, t.failed_children,
    t.open_blockers, t.held, t.ready, t.holder IS NOT NULL, p.status, p.held, t.work
    FROM tasks t LEFT JOIN tasks p ON p.seq = t.parent WHERE t.seq = ?1";

impl Node {
    pub(in crate::graph) fn read(graph: &dyn Sql, seq: i64) -> Fallible<Self> {
        graph.one(&format!("{NODE} {}", graph.dialect().for_booking), values![seq], |row| {
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
        })
    }
}

impl Node {
    /// What its state follows from.
    fn facts(&self) -> Facts {
        self.work.facts(self.claimed, self.held, [self.children, self.done_children, self.failed_children])
    }

    /// How many of its parts are not done.
    pub(in crate::graph) fn open_parts(&self) -> i64 {
        self.facts().open_parts()
    }
}

/// Books a change in the facts of a task, and all that follows from it. `own` is the outcome of the task itself;
/// `None` leaves it unchanged.
pub(in crate::graph) fn settle(graph: &dyn Sql, seq: i64, own: Option<Own>) -> Fallible<()> {
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
        let values = values![seq, held, number(status), ready, graph.now()?, work.number()];
        graph.execute(update, values)?;
        if ready != old.ready {
            list_as_ready(graph, seq, &old, ready)?;
        }
        let became = |what: Status| i64::from(status == what) - i64::from(old.status == what);
        let (done, failed) = (became(Status::Done), became(Status::Failed));
        if done != 0 {
            // Locked in one order, so that two bookings do not wait for each other.
            let blocked = format!(
                "SELECT t.seq FROM tasks t WHERE seq IN (SELECT blocked FROM dependencies WHERE blocker = ?1) ORDER BY seq {}",
                graph.dialect().for_booking
            );
            let blocked = numbers(graph, &blocked, seq)?;
            let count = "UPDATE tasks SET open_blockers = open_blockers - ?2
                WHERE seq IN (SELECT blocked FROM dependencies WHERE blocker = ?1)";
            graph.execute(count, values![seq, done])?;
            open.extend(blocked.into_iter().map(|seq| (seq, None)));
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
pub(in crate::graph) fn count_child(
    graph: &dyn Sql,
    parent: i64,
    count: i64,
    done: i64,
    failed: i64,
) -> Fallible<()> {
    let update = "UPDATE tasks SET children = children + ?2, done_children = done_children + ?3,
        failed_children = failed_children + ?4 WHERE seq = ?1";
    graph.execute(update, values![parent, count, done, failed])?;
    Ok(())
}

/// Adds a task to the lists of ready tasks, or removes it from them.
pub(in crate::graph) fn list_as_ready(graph: &dyn Sql, seq: i64, node: &Node, ready: bool) -> Fallible<()> {
    let change = if ready {
        // Another program may have listed it.
        "INSERT INTO ready (scope, priority, task) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING"
    } else {
        "DELETE FROM ready WHERE scope = ?1 AND priority = ?2 AND task = ?3"
    };
    let change = |scope: i64| graph.execute(change, values![scope, node.priority, seq]);
    change(0)?;
    if let Some(feature) = node.feature {
        change(-feature)?;
    }
    change(seq)?;
    for parent in above(graph, seq)? {
        change(parent)?;
    }
    Ok(())
}

/// The tasks above a task, the nearest first. Every walk upwards uses this: in a database that another program has
/// written, a task may be a part of itself.
pub(in crate::graph) fn above(graph: &dyn Sql, seq: i64) -> Fallible<Vec<i64>> {
    let above = format!(
        "WITH RECURSIVE up (seq, level) AS (SELECT parent, 1 FROM tasks WHERE seq = ?1
        UNION ALL SELECT tasks.parent, level + 1 FROM tasks JOIN up ON tasks.seq = up.seq WHERE level <= {})
        SELECT seq FROM up WHERE seq IS NOT NULL ORDER BY level",
        limits::LEVELS
    );
    let found = numbers(graph, &above, seq)?;
    require_level(found.len())?;
    Ok(found)
}

/// Refuses a task deeper than the limit.
pub(in crate::graph) fn require_level(above: usize) -> Fallible<()> {
    if above < limits::LEVELS {
        return Ok(());
    }
    Err(Fault::Torn("a task is a part of itself".to_owned()))
}

/// The task numbers that a query with one parameter finds.
pub(in crate::graph) fn numbers(graph: &dyn Sql, query: &str, seq: i64) -> Fallible<Vec<i64>> {
    graph.all(query, values![seq], |row| row.get(0))
}
