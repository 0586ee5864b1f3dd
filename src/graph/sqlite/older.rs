//! Takes over a graph of the program that was here before, whose database may lie at our path.

mod tidy;

use std::path::Path;

use rusqlite::{Connection, Transaction};

use super::rebuild::rebuild;
use super::schema::TABLES as OURS;
use super::{Fallible, Fault, now, queries};
use crate::graph::error::GraphError;

/// The versions of its schema that are known.
const VERSIONS: std::ops::RangeInclusive<i64> = 3..=5;
/// The tables that make a graph.
const TABLES: [&str; 4] = ["tasks", "dependencies", "task_logs", "features"];
/// What makes our tables of theirs, which have `older_` before their names by then.
const TAKE_OVER: &str = include_str!("schema/older.sql");
/// What our tables know of each task itself, and theirs do not. By what they are once they are ours.
const OWN_WORK: &str = include_str!("schema/older_work.sql");
/// The same for the journal, which not every graph has.
const TAKE_OVER_JOURNAL: &str = include_str!("schema/older_journal.sql");

/// Whether a database that is not ours is one of theirs.
pub(super) fn is_one(connection: &Connection, user_version: i64) -> Fallible<bool> {
    let mut is_one = VERSIONS.contains(&user_version);
    for table in TABLES {
        is_one &= connection.table_exists(None, table)?;
    }
    Ok(is_one)
}

/// Makes it ours.
pub(super) fn take_over(graph: &Transaction<'_>, path: &Path) -> Fallible<()> {
    put_aside(graph)?;
    graph.execute_batch(OURS)?;
    let now = now().to_string();
    graph.execute_batch(&TAKE_OVER.replace("$now", &now))?;
    // It names what it was about; what has no name any more gets another one after that.
    if graph.table_exists(None, "older_journal")? {
        graph.execute_batch(&TAKE_OVER_JOURNAL.replace("$now", &now))?;
    }
    tidy::tidy(graph)?;
    graph.execute_batch(OWN_WORK)?;
    for table in tables(graph, "name LIKE 'older\\_%' ESCAPE '\\'")? {
        graph.execute_batch(&format!("DROP TABLE {}", quoted(&table)))?;
    }
    rebuild(graph, &|seq| queries::title(graph, seq)).map_err(|fault| match fault {
        Fault::Graph(error) => Fault::Graph(GraphError::Foreign {
            path: path.to_owned(),
            what: format!("is of an older program and cannot be taken over: {error}"),
            advice: "use that program to do so, or move it away",
        }),
        fault => fault,
    })
}

/// Leaves nothing of theirs but tables, which make room for ours.
fn put_aside(graph: &Transaction<'_>) -> Fallible<()> {
    let mut others = graph.prepare(
        "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view') OR (type = 'index' AND sql IS NOT NULL)",
    )?;
    let others = others.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (kind, name) in others.collect::<rusqlite::Result<Vec<(String, String)>>>()? {
        graph.execute_batch(&format!("DROP {kind} IF EXISTS {}", quoted(&name)))?;
    }
    // Those of the full-text search have tables of their own behind them.
    for table in tables(graph, "sql LIKE 'CREATE VIRTUAL%'")? {
        graph.execute_batch(&format!("DROP TABLE {}", quoted(&table)))?;
    }
    for table in tables(graph, "name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")? {
        let aside = quoted(&format!("older_{table}"));
        graph.execute_batch(&format!("ALTER TABLE {} RENAME TO {aside}", quoted(&table)))?;
    }
    Ok(())
}

fn tables(graph: &Connection, condition: &str) -> Fallible<Vec<String>> {
    let query = format!("SELECT name FROM sqlite_schema WHERE type = 'table' AND {condition}");
    let mut statement = graph.prepare(&query)?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<rusqlite::Result<_>>()?)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
