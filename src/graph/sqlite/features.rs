//! Stores, lists and deletes features.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use super::settle::{Node, list_as_ready, numbers};
use super::{CANDIDATES, Fallible, moment, now};
use crate::graph::error::GraphError;
use crate::graph::feature::{Counts, Feature};
use crate::graph::limits;
use crate::text::nearest::nearest;

const FEATURE: &str =
    "SELECT f.id, f.name, f.spec_path, f.plan_path, f.created_at, f.updated_at, count(t.seq),
    coalesce(sum(t.status = 2), 0), coalesce(sum(t.status = 4), 0), coalesce(sum(t.status = 1), 0), coalesce(sum(t.status = 5), 0)
    FROM features f LEFT JOIN tasks t ON t.feature = f.seq";

/// Adds a feature, or gives an existing one another spec or plan.
pub(super) fn put(graph: &Connection, name: &str, spec: Option<&str>, plan: Option<&str>) -> Fallible<()> {
    limits::feature(name)?;
    let put = "INSERT INTO features (id, name, spec_path, plan_path, created_at, updated_at)
        VALUES ('f-' || lower(hex(randomblob(4))), ?1, ?2, ?3, ?4, ?4)
        ON CONFLICT (name) DO UPDATE SET spec_path = coalesce(?2, spec_path), plan_path = coalesce(?3, plan_path),
        updated_at = ?4";
    graph.prepare_cached(put)?.execute(params![name, spec, plan, now()])?;
    Ok(())
}

/// The number of the feature of this name.
pub(super) fn seq(graph: &Connection, name: &str) -> Fallible<i64> {
    let query = "SELECT seq FROM features WHERE name = ?1";
    if let Some(seq) = graph.prepare_cached(query)?.query_row([name], |row| row.get(0)).optional()? {
        return Ok(seq);
    }
    let mut statement = graph.prepare_cached("SELECT name FROM features ORDER BY seq LIMIT ?1")?;
    let rows = statement.query_map([CANDIDATES], |row| row.get(0))?;
    let names: Vec<String> = rows.collect::<rusqlite::Result<_>>()?;
    let nearest = nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
    Err(GraphError::UnknownFeature { name: name.to_owned(), nearest }.into())
}

pub(super) fn one(graph: &Connection, name: &str) -> Fallible<Feature> {
    let seq = seq(graph, name)?;
    Ok(graph
        .prepare_cached(&format!("{FEATURE} WHERE f.seq = ?1 GROUP BY f.seq"))?
        .query_row([seq], of_row)?)
}

pub(super) fn all(graph: &Connection) -> Fallible<Vec<Feature>> {
    let mut statement = graph.prepare(&format!("{FEATURE} GROUP BY f.seq ORDER BY f.seq"))?;
    let rows = statement.query_map([], of_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Deletes a feature; its tasks stay, without a feature.
pub(super) fn delete(graph: &Transaction<'_>, name: &str) -> Fallible<()> {
    let seq = seq(graph, name)?;
    let running = one(graph, name)?.tasks.in_progress;
    if running > 0 {
        let why = format!("feature '{name}' is running, {running} of its tasks are claimed: end that first");
        return Err(GraphError::BadValue(why).into());
    }
    for task in numbers(graph, "SELECT seq FROM tasks WHERE feature = ?1", seq)? {
        let old = Node::read(graph, task)?;
        if old.ready {
            list_as_ready(graph, task, &old, false)?;
        }
        graph.prepare_cached("UPDATE tasks SET feature = NULL WHERE seq = ?1")?.execute([task])?;
        if old.ready {
            list_as_ready(graph, task, &Node::read(graph, task)?, true)?;
        }
    }
    graph.execute("DELETE FROM features WHERE seq = ?1", [seq])?;
    Ok(())
}

fn of_row(row: &Row<'_>) -> rusqlite::Result<Feature> {
    let tasks = Counts {
        total: row.get(6)?,
        done: row.get(7)?,
        failed: row.get(8)?,
        in_progress: row.get(9)?,
        landing: row.get(10)?,
    };
    let plan_path: Option<String> = row.get(3)?;
    Ok(Feature {
        id: row.get(0)?,
        name: row.get(1)?,
        spec_path: row.get(2)?,
        status: tasks.status(plan_path.is_some()),
        plan_path,
        tasks,
        created_at: moment(row.get(4)?),
        updated_at: moment(row.get(5)?),
    })
}
