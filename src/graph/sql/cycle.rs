//! Whether a dependency would close a cycle, over dependencies and parts together.
//!
//! A task begins after its parent has begun and its blockers have ended; it ends after its parts have ended. A cycle
//! is a beginning that waits for itself.

use super::settle::numbers;
use super::{Fallible, queries};
use super::{Fault, Sql};

/// The begin or end of a task: twice its number, plus one for the end. 32 bits, because a search may visit millions
/// of them.
type Point = u32;

/// The longest cycle that is shown whole.
const SHOWN: usize = 12;

/// The way from the beginning of `blocked` to the end of `blocker` and back, in ids; `None` if there is no cycle.
pub(in crate::graph) fn way(graph: &dyn Sql, blocked: i64, blocker: i64) -> Fallible<Option<String>> {
    let (start, goal) = (begin(blocked)?, begin(blocker)? + 1);
    let last: i64 = graph.one("SELECT coalesce(max(seq), 0) FROM tasks", &[], |row| row.get(0))?;
    // Zeroed pages take memory only once they are written. No point is 0.
    let mut came_from: Vec<Point> = vec![0; begin(last)? as usize + 2];
    let mut open = vec![start];
    while let Some(point) = open.pop() {
        if point == goal {
            return names(graph, &came_from, start, goal).map(Some);
        }
        for next in following(graph, point)? {
            let before = &mut came_from[next as usize];
            if next != start && *before == 0 {
                *before = point;
                open.push(next);
            }
        }
    }
    Ok(None)
}

fn begin(seq: i64) -> Fallible<Point> {
    let point = u32::try_from(seq).ok().and_then(|seq| seq.checked_mul(2));
    point.ok_or_else(|| Fault::Strange(format!("task number {seq}")))
}

fn following(graph: &dyn Sql, point: Point) -> Fallible<Vec<Point>> {
    let seq = i64::from(point / 2);
    let begins = |query: &str| -> Fallible<Vec<Point>> {
        numbers(graph, query, seq)?.into_iter().map(begin).collect()
    };
    if point.is_multiple_of(2) {
        let mut points = begins("SELECT seq FROM tasks WHERE parent = ?1")?;
        points.push(point + 1);
        return Ok(points);
    }
    let mut points = begins("SELECT blocked FROM dependencies WHERE blocker = ?1")?;
    let above = begins("SELECT parent FROM tasks WHERE seq = ?1 AND parent IS NOT NULL")?;
    points.extend(above.into_iter().map(|parent| parent + 1));
    Ok(points)
}

fn names(graph: &dyn Sql, came_from: &[Point], start: Point, goal: Point) -> Fallible<String> {
    let mut tasks = vec![start / 2];
    let mut point = goal;
    while point != start {
        tasks.push(point / 2);
        point = came_from[point as usize];
    }
    tasks.push(start / 2);
    tasks.reverse();
    tasks.dedup();
    shown(&tasks, |seq| queries::id(graph, i64::from(seq)))
}

/// A cycle on one line; a long one is cut in the middle.
pub(in crate::graph) fn shown(tasks: &[u32], name: impl Fn(u32) -> Fallible<String>) -> Fallible<String> {
    let left_out = tasks.len().saturating_sub(SHOWN);
    let head = if left_out == 0 { tasks.len() } else { SHOWN / 2 };
    let (head, tail) = tasks.split_at(head);
    let mut names: Vec<String> = head.iter().map(|&task| name(task)).collect::<Fallible<_>>()?;
    if left_out > 0 {
        names.push(format!("({left_out} more)"));
        for &task in &tail[left_out..] {
            names.push(name(task)?);
        }
    }
    Ok(names.join(" → "))
}
