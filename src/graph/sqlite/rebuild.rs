//! Computes anew all that follows from the graph, at once: after many changes that is cheaper than one by one. What is
//! kept in memory is small, for graphs of a million tasks.

use rusqlite::{Connection, params};

use super::settle::{Node, Work, list_as_ready, numbers};
use super::{Fallible, cycle, now, number};
use crate::graph::error::GraphError;
use crate::graph::limits;
use crate::graph::task::Status;
use crate::graph::transitions::{self, Facts};

/// No task is above.
const NONE: u32 = u32::MAX;

/// What follows from the graph for one task, while it is found out.
#[derive(Clone, Copy)]
struct Found {
    parent: u32,
    children: u32,
    done_children: u32,
    failed_children: u32,
    /// How many tasks that it waits for have not ended yet; in the end those that are not done.
    open_blockers: u32,
    /// How many points have to come before its begin, and before its end.
    waits: [u32; 2],
    work: Work,
    status: Status,
    claimed: bool,
    held: bool,
}

impl Found {
    fn facts(&self) -> Facts {
        let parts = [self.children, self.done_children, self.failed_children];
        self.work.facts(self.claimed, self.held, parts.map(i64::from))
    }
}

/// What people call the task with this number.
type Name<'a> = &'a dyn Fn(i64) -> Fallible<String>;

struct Rebuild<'a> {
    graph: &'a Connection,
    name: Name<'a>,
    /// Their numbers, in order; half as large as they might be.
    seqs: Vec<u32>,
    found: Vec<Found>,
}

/// A begin or an end of a task: its place times two, one more for the end.
type Point = u32;

/// Brings everything that follows from the graph up to date. Refused where there is a circle, or something is too deep.
/// `name` says which task is meant.
pub(super) fn rebuild(graph: &Connection, name: Name<'_>) -> Fallible<()> {
    let mut all = Rebuild { graph, name, seqs: Vec::new(), found: Vec::new() };
    all.load()?;
    all.walk()?;
    all.require_levels()?;
    all.write()
}

impl Rebuild<'_> {
    fn place(&self, seq: i64) -> Fallible<u32> {
        let place = u32::try_from(seq).ok().and_then(|seq| self.seqs.binary_search(&seq).ok());
        let place = place.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        Ok(u32::try_from(place).unwrap_or(NONE))
    }

    fn seq(&self, place: usize) -> i64 {
        self.seqs[place].into()
    }

    fn load(&mut self) -> Fallible<()> {
        let mut statement = self.graph.prepare("SELECT seq FROM tasks ORDER BY seq")?;
        self.seqs = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let mut statement =
            self.graph.prepare("SELECT parent, work, holder IS NOT NULL FROM tasks ORDER BY seq")?;
        let mut rows = statement.query([])?;
        self.found.reserve_exact(self.seqs.len());
        while let Some(row) = rows.next()? {
            let parent = row.get::<_, Option<i64>>(0)?.map_or(Ok(NONE), |seq| self.place(seq))?;
            self.found.push(Found {
                parent,
                children: 0,
                done_children: 0,
                failed_children: 0,
                open_blockers: 0,
                waits: [u32::from(parent != NONE), 1],
                work: Work::of(row.get(1)?),
                status: Status::Pending,
                claimed: row.get(2)?,
                held: false,
            });
        }
        for place in 0..self.found.len() {
            let parent = self.found[place].parent as usize;
            if let Some(parent) = self.found.get_mut(parent) {
                parent.children += 1;
                parent.waits[1] += 1;
            }
        }
        let mut statement = self.graph.prepare("SELECT blocked FROM dependencies")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let place = self.place(row.get(0)?)? as usize;
            self.found[place].waits[0] += 1;
        }
        Ok(())
    }

    /// Goes from what waits for nothing to what waits for that, and so on.
    fn walk(&mut self) -> Fallible<()> {
        let count = u32::try_from(self.found.len()).unwrap_or(NONE);
        let mut open: Vec<Point> = (0..count)
            .filter(|&place| self.found[place as usize].waits[0] == 0)
            .map(|place| place * 2)
            .collect();
        let mut passed = 0;
        while let Some(point) = open.pop() {
            passed += 1;
            let place = (point / 2) as usize;
            if point.is_multiple_of(2) {
                self.begin(place, &mut open)?;
            } else {
                self.end(place, &mut open)?;
            }
        }
        if passed < u64::from(count) * 2 {
            return Err(self.circle()?.into());
        }
        Ok(())
    }

    /// One point less is in the way of this one.
    fn pass(&mut self, point: Point, open: &mut Vec<Point>) {
        let waits = &mut self.found[(point / 2) as usize].waits[(point % 2) as usize];
        *waits -= 1;
        if *waits == 0 {
            open.push(point);
        }
    }

    fn begin(&mut self, place: usize, open: &mut Vec<Point>) -> Fallible<()> {
        let task = self.found[place];
        let parent_held = self.found.get(task.parent as usize).is_some_and(|parent| parent.held);
        self.found[place].held = transitions::is_held(task.open_blockers.into(), parent_held);
        if task.children > 0 {
            for seq in numbers(self.graph, "SELECT seq FROM tasks WHERE parent = ?1", self.seq(place))? {
                let child = self.place(seq)?;
                self.pass(child * 2, open);
            }
        }
        self.pass(u32::try_from(place).unwrap_or(NONE) * 2 + 1, open);
        Ok(())
    }

    fn end(&mut self, place: usize, open: &mut Vec<Point>) -> Fallible<()> {
        let task = self.found[place];
        let status = transitions::status(&task.facts());
        self.found[place].status = status;
        self.found[place].work.0 = task.work.0.map(|_| transitions::own(&task.facts()));
        for seq in
            numbers(self.graph, "SELECT blocked FROM dependencies WHERE blocker = ?1", self.seq(place))?
        {
            let blocked = self.place(seq)?;
            self.found[blocked as usize].open_blockers += u32::from(status != Status::Done);
            self.pass(blocked * 2, open);
        }
        if let Some(parent) = self.found.get_mut(task.parent as usize) {
            parent.done_children += u32::from(status == Status::Done);
            parent.failed_children += u32::from(status == Status::Failed);
            self.pass(task.parent * 2 + 1, open);
        }
        Ok(())
    }

    /// A circle among the points that were never passed.
    fn circle(&self) -> Fallible<GraphError> {
        let is_open = |point: &Point| self.found[(point / 2) as usize].waits[(point % 2) as usize] > 0;
        let points = u32::try_from(self.found.len()).unwrap_or(NONE) * 2;
        let mut way: Vec<Point> = (0..points).find(is_open).into_iter().collect();
        // Where each point has its place on the way, from 1.
        let mut places: Vec<u32> = vec![0; points as usize];
        while let Some(&last) = way.last() {
            places[last as usize] = u32::try_from(way.len()).unwrap_or(NONE);
            let Some(next) = self.before(last)?.into_iter().find(is_open) else { break };
            if let Some(at) = places[next as usize].checked_sub(1) {
                way.drain(..at as usize);
                break;
            }
            way.push(next);
        }
        let mut tasks: Vec<u32> = way.iter().rev().map(|point| point / 2).collect();
        tasks.dedup();
        if tasks.len() > 1 && tasks.first() == tasks.last() {
            tasks.pop();
        }
        tasks.extend(tasks.first().copied());
        let shown = cycle::shown(&tasks, |place| (self.name)(self.seq(place as usize)))?;
        Ok(GraphError::BadValue(format!("a cycle, {shown}: leave one of these out")))
    }

    /// Nothing may be too deep. Only asked where there is no circle.
    fn require_levels(&self) -> Fallible<()> {
        for (place, task) in self.found.iter().enumerate() {
            let above = std::iter::successors(Some(task), |task| self.found.get(task.parent as usize));
            let level = above.take(limits::LEVELS + 1).count();
            if level > limits::LEVELS {
                limits::level(&(self.name)(self.seq(place))?, level)?;
            }
        }
        Ok(())
    }

    /// What has to come before a point.
    fn before(&self, point: Point) -> Fallible<Vec<Point>> {
        let place = (point / 2) as usize;
        let task = &self.found[place];
        let (mut points, query) = if point.is_multiple_of(2) {
            let parent = (task.parent != NONE).then(|| task.parent * 2);
            (Vec::from_iter(parent), "SELECT blocker FROM dependencies WHERE blocked = ?1")
        } else {
            (vec![point - 1], "SELECT seq FROM tasks WHERE parent = ?1")
        };
        for seq in numbers(self.graph, query, self.seq(place))? {
            points.push(self.place(seq)? * 2 + 1);
        }
        Ok(points)
    }

    fn write(&self) -> Fallible<()> {
        self.graph.execute("DELETE FROM ready", [])?;
        let mut update = self.graph.prepare(
            "UPDATE tasks SET status = ?2, children = ?3, done_children = ?4, failed_children = ?5, open_blockers = ?6,
            held = ?7, ready = ?8, work = ?10, updated_at = iif(status = ?2, updated_at, ?9) WHERE seq = ?1 AND (status, children,
            done_children, failed_children, open_blockers, held, ready, work) IS NOT (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?10)",
        )?;
        let now = now();
        for (&seq, task) in self.seqs.iter().zip(&self.found) {
            let seq = i64::from(seq);
            let parent = self.found.get(task.parent as usize).map(|parent| parent.status);
            let ready = transitions::is_listed(&task.facts(), parent);
            let counts = [task.children, task.done_children, task.failed_children, task.open_blockers];
            let [children, done, failed, blockers] = counts;
            let status = number(task.status);
            let work = task.work.number();
            update.execute(params![
                seq, status, children, done, failed, blockers, task.held, ready, now, work
            ])?;
            if ready {
                list_as_ready(self.graph, seq, &Node::read(self.graph, seq)?, true)?;
            }
        }
        Ok(())
    }
}
