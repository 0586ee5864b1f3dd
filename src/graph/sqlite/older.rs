//! Migrates a graph of the earlier program, whose database may be at our path.

mod tidy;

use std::path::Path;

use rusqlite::Connection;

use super::schema::TABLES as OURS;
use super::{Fallible, Fault, now};
use crate::graph::error::GraphError;
use crate::graph::sql::queries;
use crate::graph::sql::rebuild::rebuild;

/// The schema versions that can be migrated.
const VERSIONS: std::ops::RangeInclusive<i64> = 3..=5;
/// The tables that identify such a graph.
const TABLES: [&str; 4] = ["tasks", "dependencies", "task_logs", "features"];
/// Fills our tables from theirs, which are renamed to `older_…` first.
const TAKE_OVER: &str = include_str!("schema/older.sql");
/// Sets the columns that only our tables have, after the migration.
const OWN_WORK: &str = include_str!("schema/older_work.sql");
/// Migrates the journal, which not every graph has.
const TAKE_OVER_JOURNAL: &str = include_str!("schema/older_journal.sql");

/// Whether this foreign database is one of the earlier program.
pub(super) fn is_one(connection: &Connection, user_version: i64) -> Fallible<bool> {
    let mut is_one = VERSIONS.contains(&user_version);
    for table in TABLES {
        is_one &= connection.table_exists(None, table)?;
    }
    Ok(is_one)
}

/// Migrates it.
pub(super) fn take_over(graph: &Connection, path: &Path) -> Fallible<()> {
    put_aside(graph)?;
    graph.execute_batch(OURS)?;
    let now = now().to_string();
    graph.execute_batch(&TAKE_OVER.replace("$now", &now))?;
    // The journal names its tasks, so it is migrated before unnamed tasks get a name.
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
            advice: "use that program to do so, or move it away".into(),
        }),
        fault => fault,
    })
}

/// Removes everything of theirs but tables, and renames the tables.
fn put_aside(graph: &Connection) -> Fallible<()> {
    let mut others = graph.prepare(
        "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view') OR (type = 'index' AND sql IS NOT NULL)",
    )?;
    let others = others.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (kind, name) in others.collect::<rusqlite::Result<Vec<(String, String)>>>()? {
        graph.execute_batch(&format!("DROP {kind} IF EXISTS {}", quoted(&name)))?;
    }
    // Dropping these also drops the tables of the full-text search.
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
