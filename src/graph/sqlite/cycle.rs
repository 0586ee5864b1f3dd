//! Whether a dependency would close a circle, over dependencies and parts together.
//!
//! A task begins after the one that it is a part of has begun, and after those that it waits for have ended; it ends after
//! its parts have. A circle is a beginning that waits for itself.

use std::collections::HashMap;

use rusqlite::Connection;

use super::settle::numbers;
use super::{Fallible, queries};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Point {
    Begin(i64),
    End(i64),
}

/// The way from the beginning of `blocked` to the end of `blocker`, as ids; `None` where there is none.
pub(super) fn way(graph: &Connection, blocked: i64, blocker: i64) -> Fallible<Option<Vec<String>>> {
    let (start, goal) = (Point::Begin(blocked), Point::End(blocker));
    let mut came_from: HashMap<Point, Point> = HashMap::new();
    let mut open = vec![start];
    while let Some(point) = open.pop() {
        if point == goal {
            return names(graph, &came_from, start, goal).map(Some);
        }
        for next in following(graph, point)? {
            if next != start && !came_from.contains_key(&next) {
                came_from.insert(next, point);
                open.push(next);
            }
        }
    }
    Ok(None)
}

fn following(graph: &Connection, point: Point) -> Fallible<Vec<Point>> {
    let (seq, begins, ends) = match point {
        Point::Begin(seq) => (seq, "SELECT seq FROM tasks WHERE parent = ?1", None),
        Point::End(seq) => (
            seq,
            "SELECT blocked FROM dependencies WHERE blocker = ?1",
            Some("SELECT parent FROM tasks WHERE seq = ?1 AND parent IS NOT NULL"),
        ),
    };
    let mut points: Vec<Point> = numbers(graph, begins, seq)?.into_iter().map(Point::Begin).collect();
    match ends {
        Some(ends) => points.extend(numbers(graph, ends, seq)?.into_iter().map(Point::End)),
        None => points.push(Point::End(seq)),
    }
    Ok(points)
}

fn names(
    graph: &Connection,
    came_from: &HashMap<Point, Point>,
    start: Point,
    goal: Point,
) -> Fallible<Vec<String>> {
    let mut way = vec![goal];
    while let Some(&before) =
        way.last().filter(|&&point| point != start).and_then(|point| came_from.get(point))
    {
        way.push(before);
    }
    let mut tasks: Vec<i64> =
        way.into_iter().rev().map(|(Point::Begin(seq) | Point::End(seq))| seq).collect();
    tasks.dedup();
    tasks.into_iter().map(|seq| queries::id(graph, seq)).collect()
}
