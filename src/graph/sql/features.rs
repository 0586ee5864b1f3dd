//! Stores, lists and deletes features.

use super::settle::{Node, list_as_ready, numbers};
use super::values::{Row, values};
use super::{CANDIDATES, Fallible, moment};
use super::{Sql, random};
use crate::graph::error::GraphError;
use crate::graph::feature::{Counts, Feature};
use crate::graph::limits;
use crate::text::nearest::nearest;

const FEATURE: &str =
    "SELECT f.id, f.name, f.spec_path, f.plan_path, f.created_at, f.updated_at, count(t.seq),
    count(*) FILTER (WHERE t.status = 2), count(*) FILTER (WHERE t.status = 4), count(*) FILTER (WHERE t.status = 1),
    count(*) FILTER (WHERE t.status = 5)
    FROM features f LEFT JOIN tasks t ON t.feature = f.seq";

/// Adds a feature, or gives an existing one another spec or plan.
pub(in crate::graph) fn put(
    graph: &dyn Sql,
    name: &str,
    spec: Option<&str>,
    plan: Option<&str>,
) -> Fallible<()> {
    limits::feature(name)?;
    let put = "INSERT INTO features (id, name, spec_path, plan_path, created_at, updated_at)
        VALUES (?5, ?1, ?2, ?3, ?4, ?4) ON CONFLICT (name) DO UPDATE SET
        spec_path = coalesce(?2, features.spec_path), plan_path = coalesce(?3, features.plan_path), updated_at = ?4";
    graph.execute(put, values![name, spec, plan, graph.now()?, new_id()?])?;
    Ok(())
}

/// An id for a feature.
pub(in crate::graph) fn new_id() -> Fallible<String> {
    Ok(format!("f-{}", random(8)?))
}

/// The number of the feature of this name.
pub(in crate::graph) fn seq(graph: &dyn Sql, name: &str) -> Fallible<i64> {
    let query = "SELECT seq FROM features WHERE name = ?1";
    if let Some(seq) = graph.maybe(query, values![name], |row| row.get(0))? {
        return Ok(seq);
    }
    let names: Vec<String> =
        graph
            .all("SELECT name FROM features ORDER BY seq LIMIT ?1", values![CANDIDATES], |row| row.get(0))?;
    let nearest = nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
    Err(GraphError::UnknownFeature { name: name.to_owned(), nearest }.into())
}

pub(in crate::graph) fn one(graph: &dyn Sql, name: &str) -> Fallible<Feature> {
    let seq = seq(graph, name)?;
    graph.one(&format!("{FEATURE} WHERE f.seq = ?1 GROUP BY f.seq"), values![seq], of_row)
}

pub(in crate::graph) fn all(graph: &dyn Sql) -> Fallible<Vec<Feature>> {
    graph.all(&format!("{FEATURE} GROUP BY f.seq ORDER BY f.seq"), values![], of_row)
}

/// Deletes a feature; its tasks stay, without a feature.
pub(in crate::graph) fn delete(graph: &dyn Sql, name: &str) -> Fallible<()> {
    let seq = seq(graph, name)?;
    let running = one(graph, name)?.tasks.in_progress;
    if running > 0 {
        let why = format!("feature '{name}' is running, {running} of its tasks are claimed: end that first");
        return Err(GraphError::BadValue(why).into());
    }
    for task in numbers(graph, "SELECT seq FROM tasks WHERE feature = ?1", seq)? {
        let old = Node::read(graph, task)?;
        if old.ready {
            list_as_ready(graph, &old, false)?;
        }
        graph.execute("UPDATE tasks SET feature = NULL WHERE seq = ?1", values![task])?;
        if old.ready {
            list_as_ready(graph, &Node::read(graph, task)?, true)?;
        }
    }
    graph.execute("DELETE FROM features WHERE seq = ?1", values![seq])?;
    Ok(())
}

fn of_row(row: &dyn Row) -> Fallible<Feature> {
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
