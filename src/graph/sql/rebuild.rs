//! Recomputes all derived columns at once. After many changes this is cheaper than one update at a time, and it
//! checks the stored values. Memory is kept small for graphs of a million tasks.

use super::values::values;
use super::{Fault, Sql, first};
use std::hash::{BuildHasher as _, RandomState};
use std::iter;

use super::settle::{Work, numbers};
use super::{Fallible, cycle, number};
use crate::graph::error::GraphError;
use crate::graph::limits;
use crate::graph::task::Status;
use crate::graph::transitions::{self, Facts};

/// No parent.
const NONE: u32 = u32::MAX;

/// The derived columns of a task.
const KEPT: &str = "status, children, done_children, failed_children, open_blockers, held, ready, work";
const COLUMNS: usize = 8;

/// The derived values of a task while they are computed.
#[derive(Clone, Copy)]
struct Found {
    parent: u32,
    done_children: u32,
    failed_children: u32,
    /// How many of its blockers have not ended yet; at the end, how many are not done.
    open_blockers: u32,
    /// How many points come before its begin and before its end.
    waits: [u32; 2],
    work: Work,
    status: Status,
    claimed: bool,
    held: bool,
}

/// The parts of each task by index: those of task N are `members[begins[N]..begins[N + 1]]`.
#[derive(Default)]
struct Parts {
    begins: Vec<u32>,
    members: Vec<u32>,
}

impl Parts {
    fn of(found: &[Found]) -> Self {
        // First the end of each range; each member moves it towards the begin.
        let mut begins = vec![0; found.len() + 1];
        for task in found.iter().filter(|task| task.parent != NONE) {
            begins[task.parent as usize] += 1;
        }
        for place in 1..begins.len() {
            begins[place] += begins[place - 1];
        }
        let mut members = vec![0; begins.last().map_or(0, |&end| end as usize)];
        for (place, task) in (0..).zip(found).filter(|(_, task)| task.parent != NONE) {
            let at = &mut begins[task.parent as usize];
            *at -= 1;
            members[*at as usize] = place;
        }
        Self { begins, members }
    }

    fn range(&self, place: usize) -> std::ops::Range<usize> {
        self.begins[place] as usize..self.begins[place + 1] as usize
    }
}

/// Names the task with this number, for messages.
type Name<'a> = &'a dyn Fn(i64) -> Fallible<String>;

struct Rebuild<'a> {
    graph: &'a dyn Sql,
    name: Name<'a>,
    /// The task numbers in order, as 32 bits.
    seqs: Vec<u32>,
    found: Vec<Found>,
    parts: Parts,
    /// A parent or a dependency names a task that does not exist.
    is_dangling: bool,
}

/// The begin or end of a task: twice its index, plus one for the end.
type Point = u32;

/// Updates all derived columns. Refuses cycles and too many levels. `name` names a task in the error.
pub(in crate::graph) fn rebuild(graph: &dyn Sql, name: Name<'_>) -> Fallible<()> {
    Rebuild::of(graph, name)?.write()
}

/// Whether all derived columns are up to date and no task names a missing one. Refuses what [`rebuild`] refuses.
pub(in crate::graph) fn is_up_to_date(graph: &dyn Sql, name: Name<'_>) -> Fallible<bool> {
    Rebuild::of(graph, name)?.is_kept()
}

impl<'a> Rebuild<'a> {
    fn of(graph: &'a dyn Sql, name: Name<'a>) -> Fallible<Self> {
        let (seqs, found) = (Vec::new(), Vec::new());
        let mut all = Self { graph, name, seqs, found, parts: Parts::default(), is_dangling: false };
        all.load()?;
        all.walk()?;
        all.require_levels()?;
        Ok(all)
    }

    /// The index of the task with this number, if it exists.
    fn place(&self, seq: i64) -> Option<u32> {
        let place = u32::try_from(seq).ok().and_then(|seq| self.seqs.binary_search(&seq).ok());
        place.and_then(|place| u32::try_from(place).ok())
    }

    fn seq(&self, place: usize) -> i64 {
        self.seqs[place].into()
    }

    fn facts(&self, task: &Found, place: usize) -> Facts {
        let parts = self.parts.range(place).len();
        let parts = [u32::try_from(parts).unwrap_or(NONE), task.done_children, task.failed_children];
        task.work.facts(task.claimed, task.held, parts.map(i64::from))
    }

    fn load(&mut self) -> Fallible<()> {
        self.seqs = self.graph.all("SELECT seq FROM tasks ORDER BY seq", values![], first)?;
        self.found.reserve_exact(self.seqs.len());
        let tasks = "SELECT parent, work, holder IS NOT NULL FROM tasks ORDER BY seq";
        self.graph.each(tasks, values![], &mut |row| {
            let above: Option<i64> = row.get(0)?;
            let parent = above.and_then(|seq| self.place(seq));
            self.is_dangling |= above.is_some() && parent.is_none();
            self.found.push(Found {
                parent: parent.unwrap_or(NONE),
                done_children: 0,
                failed_children: 0,
                open_blockers: 0,
                waits: [u32::from(parent.is_some()), 1],
                work: Work::of(row.get(1)?),
                status: Status::Pending,
                claimed: row.get(2)?,
                held: false,
            });
            Ok(true)
        })?;
        self.parts = Parts::of(&self.found);
        for (place, task) in self.found.iter_mut().enumerate() {
            task.waits[1] += u32::try_from(self.parts.range(place).len()).unwrap_or(NONE);
        }
        let dependencies = "SELECT blocker, blocked FROM dependencies";
        self.graph.each(dependencies, values![], &mut |row| {
            match (self.place(row.get(0)?), self.place(row.get(1)?)) {
                (Some(_), Some(blocked)) => self.found[blocked as usize].waits[0] += 1,
                _ => self.is_dangling = true,
            }
            Ok(true)
        })
    }

    /// Visits the points in topological order.
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

    /// Counts one predecessor of this point as done. Refuses more predecessors than the table of dependencies has.
    fn pass(&mut self, point: Point, open: &mut Vec<Point>) -> Fallible<()> {
        let waits = &mut self.found[(point / 2) as usize].waits[(point % 2) as usize];
        let Some(left) = waits.checked_sub(1) else {
            return Err(Fault::Torn("an index lacks rows of its table".to_owned()));
        };
        *waits = left;
        if left == 0 {
            open.push(point);
        }
        Ok(())
    }

    fn begin(&mut self, place: usize, open: &mut Vec<Point>) -> Fallible<()> {
        let task = self.found[place];
        let parent_held = self.found.get(task.parent as usize).is_some_and(|parent| parent.held);
        self.found[place].held = transitions::is_held(task.open_blockers.into(), parent_held);
        for at in self.parts.range(place) {
            self.pass(self.parts.members[at] * 2, open)?;
        }
        self.pass(u32::try_from(place).unwrap_or(NONE) * 2 + 1, open)
    }

    fn end(&mut self, place: usize, open: &mut Vec<Point>) -> Fallible<()> {
        let task = self.found[place];
        let facts = self.facts(&task, place);
        let status = transitions::status(&facts);
        self.found[place].status = status;
        self.found[place].work.0 = task.work.0.map(|_| transitions::own(&facts));
        for seq in
            numbers(self.graph, "SELECT blocked FROM dependencies WHERE blocker = ?1", self.seq(place))?
        {
            let Some(blocked) = self.place(seq) else { continue };
            self.found[blocked as usize].open_blockers += u32::from(status != Status::Done);
            self.pass(blocked * 2, open)?;
        }
        if let Some(parent) = self.found.get_mut(task.parent as usize) {
            parent.done_children += u32::from(status == Status::Done);
            parent.failed_children += u32::from(status == Status::Failed);
            self.pass(task.parent * 2 + 1, open)?;
        }
        Ok(())
    }

    /// A cycle among the points that were never visited.
    fn circle(&self) -> Fallible<GraphError> {
        let is_open = |point: &Point| self.found[(point / 2) as usize].waits[(point % 2) as usize] > 0;
        let points = u32::try_from(self.found.len()).unwrap_or(NONE) * 2;
        let mut way: Vec<Point> = (0..points).find(is_open).into_iter().collect();
        // The position of each point on the way, from 1.
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

    /// The indexes of the tasks above one, the nearest first. Call only without a cycle.
    fn above(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let parent = |&place: &usize| {
            let parent = self.found[place].parent;
            (parent != NONE).then_some(parent as usize)
        };
        iter::successors(parent(&place), parent)
    }

    /// Refuses too many levels. Call only without a cycle.
    fn require_levels(&self) -> Fallible<()> {
        for (place, task) in self.found.iter().enumerate() {
            if task.parent == NONE {
                continue;
            }
            let level = 1 + self.above(place).take(limits::LEVELS).count();
            if level > limits::LEVELS {
                limits::level(&(self.name)(self.seq(place))?, level)?;
            }
        }
        Ok(())
    }

    /// The predecessors of a point.
    fn before(&self, point: Point) -> Fallible<Vec<Point>> {
        let place = (point / 2) as usize;
        let task = &self.found[place];
        if !point.is_multiple_of(2) {
            let parts = &self.parts.members[self.parts.range(place)];
            return Ok(iter::once(point - 1).chain(parts.iter().map(|part| part * 2 + 1)).collect());
        }
        let blockers = "SELECT blocker FROM dependencies WHERE blocked = ?1";
        let blockers = numbers(self.graph, blockers, self.seq(place))?;
        let parent = (task.parent != NONE).then(|| task.parent * 2);
        let blockers = blockers.into_iter().filter_map(|seq| self.place(seq));
        Ok(parent.into_iter().chain(blockers.map(|blocker| blocker * 2 + 1)).collect())
    }

    /// The derived values of a task in the order of [`KEPT`].
    fn columns(&self, place: usize) -> [i64; COLUMNS] {
        let task = &self.found[place];
        let facts = self.facts(task, place);
        let counts = [facts.children, facts.done, facts.failed, task.open_blockers.into()];
        let [children, done, failed, blockers] = counts;
        let (held, ready) = (task.held.into(), self.is_listed(place).into());
        [number(task.status), children, done, failed, blockers, held, ready, task.work.number()]
    }

    fn is_listed(&self, place: usize) -> bool {
        let task = &self.found[place];
        let parent = self.found.get(task.parent as usize).map(|parent| parent.status);
        transitions::is_listed(&self.facts(task, place), parent)
    }

    /// The lists of ready tasks that a task is in: see `ready` in the schema.
    fn scopes(&self, place: usize, feature: Option<i64>) -> impl Iterator<Item = i64> + '_ {
        let within = iter::once(place).chain(self.above(place)).map(|place| self.seq(place));
        iter::once(0).chain(feature.map(|feature| -feature)).chain(within)
    }

    /// Shows each task with its stored values, its priority and its feature.
    fn kept(
        &self,
        mut each: impl FnMut(usize, [i64; COLUMNS], i64, Option<i64>) -> Fallible<()>,
    ) -> Fallible<()> {
        let tasks = format!("SELECT priority, feature, {KEPT} FROM tasks ORDER BY seq");
        let mut places = 0..self.found.len();
        self.graph.each(&tasks, values![], &mut |row| {
            let Some(place) = places.next() else { return Ok(false) };
            let mut kept = [0; COLUMNS];
            for (at, value) in kept.iter_mut().enumerate() {
                *value = row.get(at + 2)?;
            }
            each(place, kept, row.get(0)?, row.get(1)?)?;
            Ok(true)
        })
    }

    fn is_kept(&self) -> Fallible<bool> {
        // Sums of hashes compare unordered lists; another program cannot predict them.
        let hash = RandomState::new();
        let (mut is_kept, mut expected, mut listed) = (!self.is_dangling, 0_u64, 0_u64);
        self.kept(|place, kept, priority, feature| {
            is_kept &= kept == self.columns(place);
            if self.is_listed(place) {
                for scope in self.scopes(place, feature) {
                    expected = expected.wrapping_add(hash.hash_one((scope, priority, self.seq(place))));
                }
            }
            Ok(())
        })?;
        self.graph.each("SELECT scope, priority, task FROM ready", values![], &mut |row| {
            let row: (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            listed = listed.wrapping_add(hash.hash_one(row));
            Ok(true)
        })?;
        Ok(is_kept && listed == expected)
    }

    fn write(&self) -> Fallible<()> {
        self.graph.execute("DELETE FROM ready", values![])?;
        let list = "INSERT INTO ready (scope, priority, task) VALUES (?1, ?2, ?3)";
        let mut changed: Vec<u32> = Vec::new();
        self.kept(|place, kept, priority, feature| {
            if kept != self.columns(place) {
                changed.push(u32::try_from(place).unwrap_or(NONE));
            }
            if self.is_listed(place) {
                for scope in self.scopes(place, feature) {
                    self.graph.execute(list, values![scope, priority, self.seq(place)])?;
                }
            }
            Ok(())
        })?;
        let update = format!(
            "UPDATE tasks SET updated_at = CASE WHEN status = ?3 THEN updated_at ELSE ?2 END,
            ({KEPT}) = (?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) WHERE seq = ?1"
        );
        let now = self.graph.now()?;
        for place in changed {
            let [status, children, done, failed, blockers, held, ready, work] = self.columns(place as usize);
            let seq = self.seq(place as usize);
            let values = values![seq, now, status, children, done, failed, blockers, held, ready, work];
            self.graph.execute(&update, values)?;
        }
        Ok(())
    }
}
