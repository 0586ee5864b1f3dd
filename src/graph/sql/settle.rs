//! Updates derived values after a change: states, counts, lists of ready tasks.

use super::sets::Sets;
use super::values::{Row, Value, values};
use super::{Fallible, number, status};
use super::{Fault, Sql};
use crate::graph::limits;
use crate::graph::task::Status;
use crate::graph::transitions::{self, Facts, Own};

/// A task with the values that its state follows from, as last stored.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is what one column says")]
pub(in crate::graph) struct Node {
    pub(in crate::graph) seq: i64,
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
    /// Whether other tasks wait for it.
    pub(in crate::graph) blocks: bool,
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

/// The query of a [`Node`]; what it says of the task above it, and where that is from, are left out for one that has none.
fn node(is_alone: bool) -> String {
    let (parent, join) = if is_alone {
        ("NULL, NULL", "")
    } else {
        ("p.status, p.held", "LEFT JOIN tasks p ON p.seq = t.parent")
    };
    format!(
        "SELECT t.parent, t.feature, t.status, t.priority, t.children, t.done_children, t.failed_children,
        t.open_blockers, t.held, t.ready, t.holder IS NOT NULL, {parent}, t.work, t.seq,
        EXISTS (SELECT 1 FROM dependencies WHERE blocker = t.seq)
        FROM tasks t {join} WHERE"
    )
}

impl Node {
    pub(in crate::graph) fn read(graph: &dyn Sql, seq: i64) -> Fallible<Self> {
        let query = format!("{} t.seq = ?1 {}", node(false), graph.dialect().for_booking);
        graph.one(&query, values![seq], Self::of_row)
    }

    /// The task `t` with this id that is so. The tasks above it are locked first, from the top, so that two bookings do not wait for
    /// each other. `id` is the first value.
    pub(in crate::graph) fn locked(
        graph: &dyn Sql,
        id: &str,
        is_so: &str,
        values: &[Value<'_>],
    ) -> Fallible<Option<Self>> {
        let for_booking = graph.dialect().for_booking;
        let values: Vec<Value<'_>> = [Value::Text(id)].into_iter().chain(values.iter().copied()).collect();
        let find = |is_alone: bool| {
            let is_also = if is_alone { "AND t.parent IS NULL" } else { "" };
            let query = format!("{} t.id = ?1 AND {is_so} {is_also} {for_booking}", node(is_alone));
            graph.maybe(&query, &values, Self::of_row)
        };
        if !for_booking.is_empty() {
            // Where none is above it, that saves a walk.
            if let Some(node) = find(true)? {
                return Ok(Some(node));
            }
            lock_above(graph, id)?;
        }
        find(false)
    }

    fn of_row(row: &dyn Row) -> Fallible<Self> {
        let parent = match row.get(0)? {
            Some(seq) => Some(Parent { seq, status: status(row.get(11)?)?, held: row.get(12)? }),
            None => None,
        };
        Ok(Self {
            seq: row.get(14)?,
            parent,
            feature: row.get(1)?,
            status: status(row.get(2)?)?,
            priority: row.get(3)?,
            children: row.get(4)?,
            done_children: row.get(5)?,
            failed_children: row.get(6)?,
            open_blockers: row.get(7)?,
            held: row.get(8)?,
            ready: row.get(9)?,
            claimed: row.get(10)?,
            work: Work::of(row.get(13)?),
            blocks: row.get(15)?,
        })
    }

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
    book(graph, Node::read(graph, seq)?, own, Sets::default())
}

/// Books such a change of a task that was read with these facts, and sets more in its row.
pub(in crate::graph) fn book(graph: &dyn Sql, node: Node, own: Option<Own>, sets: Sets<'_>) -> Fallible<()> {
    let mut open = Vec::new();
    book_one(graph, &node, own, sets, &mut open)?;
    while let Some(Follows { seq, done, failed }) = open.pop() {
        let mut node = Node::read(graph, seq)?;
        let mut sets = Sets::default();
        for (column, count, more) in [
            ("done_children", &mut node.done_children, done),
            ("failed_children", &mut node.failed_children, failed),
        ] {
            if more != 0 {
                *count += more;
                sets = sets.set(column, &*count);
            }
        }
        book_one(graph, &node, None, sets, &mut open)?;
    }
    Ok(())
}

/// A task that has to be looked at after another one has changed, and how many of its parts have become done, and failed.
struct Follows {
    seq: i64,
    done: i64,
    failed: i64,
}

impl Follows {
    fn of(seq: i64) -> Self {
        Self { seq, done: 0, failed: 0 }
    }
}

fn book_one(
    graph: &dyn Sql,
    old: &Node,
    own: Option<Own>,
    sets: Sets<'_>,
    open: &mut Vec<Follows>,
) -> Fallible<()> {
    let seq = old.seq;
    let held = transitions::is_held(old.open_blockers, old.parent.is_some_and(|parent| parent.held));
    let facts = Facts { held, ..old.facts() };
    let facts = Facts { own: own.unwrap_or(facts.own), ..facts };
    let work = Work(old.work.0.map(|_| transitions::own(&facts)));
    let status = transitions::status(&facts);
    let ready = transitions::is_listed(&facts, old.parent.map(|parent| parent.status));
    if (held, status, ready, work) == (old.held, old.status, old.ready, old.work) {
        return sets.write(graph, seq);
    }
    let (number, now, is) = (number(status), graph.now()?, work.number());
    let sets = sets.set("held", &held).set("status", &number).set("ready", &ready);
    sets.set("updated_at", &now).set("work", &is).write(graph, seq)?;
    if ready != old.ready {
        list_as_ready(graph, old, ready)?;
    }
    let became = |what: Status| i64::from(status == what) - i64::from(old.status == what);
    let (done, failed) = (became(Status::Done), became(Status::Failed));
    if done != 0 && old.blocks {
        // Locked in one order, so that two bookings do not wait for each other.
        let count = format!(
            "UPDATE tasks SET open_blockers = open_blockers - ?2 WHERE seq IN (SELECT t.seq FROM tasks t WHERE seq IN
            (SELECT blocked FROM dependencies WHERE blocker = ?1) ORDER BY seq {}) RETURNING seq",
            graph.dialect().for_booking
        );
        let blocked: Vec<i64> = graph.all(&count, values![seq, done], |row| row.get(0))?;
        open.extend(blocked.into_iter().map(Follows::of));
    }
    if let Some(parent) = old.parent.filter(|_| done != 0 || failed != 0) {
        open.push(Follows { seq: parent.seq, done, failed });
    }
    if old.children > 0 && (held != old.held || failed != 0) {
        let children = "SELECT seq FROM tasks WHERE parent = ?1";
        open.extend(numbers(graph, children, seq)?.into_iter().map(Follows::of));
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
pub(in crate::graph) fn list_as_ready(graph: &dyn Sql, node: &Node, ready: bool) -> Fallible<()> {
    let mut scopes = vec![0, node.seq];
    scopes.extend(node.feature.map(|feature| -feature));
    if node.parent.is_some() {
        scopes.extend(above(graph, node.seq)?);
    }
    let each = |form: &str| {
        (3..scopes.len() + 3).map(|at| form.replace("??", &format!("?{at}"))).collect::<Vec<_>>().join(", ")
    };
    let change = if ready {
        // Another program may have listed it.
        let rows = each("(??, ?1, ?2)");
        format!("INSERT INTO ready (scope, priority, task) VALUES {rows} ON CONFLICT DO NOTHING")
    } else {
        format!("DELETE FROM ready WHERE priority = ?1 AND task = ?2 AND scope IN ({})", each("??"))
    };
    let values = [node.priority, node.seq].into_iter().chain(scopes);
    graph.execute(&change, &values.map(Value::Int).collect::<Vec<_>>())
}

/// Locks the tasks above a task, from the top.
fn lock_above(graph: &dyn Sql, id: &str) -> Fallible<()> {
    let above = format!(
        "WITH RECURSIVE up (seq, level) AS (SELECT parent, 1 FROM tasks WHERE id = ?1
        UNION ALL SELECT tasks.parent, level + 1 FROM tasks JOIN up ON tasks.seq = up.seq WHERE level < {})
        SELECT t.seq FROM tasks t JOIN up ON up.seq = t.seq ORDER BY level DESC {}",
        limits::LEVELS,
        graph.dialect().for_booking
    );
    graph.each(&above, values![id], &mut |_| Ok(true))
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
