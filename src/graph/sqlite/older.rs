//! Takes over a graph of the program that was here before, whose database may lie at our path.

mod tidy;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction};

use super::rebuild::rebuild;
use super::{Fallible, Fault, now, queries};
use crate::files::own;
use crate::graph::error::GraphError;

/// The versions of its schema that are known.
const VERSIONS: std::ops::RangeInclusive<i64> = 3..=5;
/// The tables that make a graph.
const TABLES: [&str; 4] = ["tasks", "dependencies", "task_logs", "features"];
/// What makes our tables of theirs, which have `older_` before their names by then.
const TAKE_OVER: &str = include_str!("schema/older.sql");
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

/// Keeps a copy of the whole database beside it, and answers where.
pub(super) fn keep_copy(connection: &Connection, path: &Path) -> Fallible<PathBuf> {
    let mut name = OsString::from(path.file_name().unwrap_or_default());
    name.push(".older");
    for number in 1_u32.. {
        let copy = path.with_file_name(if number == 1 {
            name.clone()
        } else {
            let mut numbered = name.clone();
            numbered.push(format!("-{number}"));
            numbered
        });
        match own::create_filled(&copy, |into| super::copy_into(connection, into)) {
            Err(Fault::File(error)) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| copy),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists).into())
}

/// Makes it ours. The schema of ours is `schema`.
pub(super) fn take_over(graph: &Transaction<'_>, schema: &[&str], path: &Path) -> Fallible<()> {
    put_aside(graph)?;
    for step in schema {
        graph.execute_batch(step)?;
    }
    let now = now().to_string();
    graph.execute_batch(&TAKE_OVER.replace("$now", &now))?;
    // It names what it was about; what has no name any more gets another one after that.
    if graph.table_exists(None, "older_journal")? {
        graph.execute_batch(&TAKE_OVER_JOURNAL.replace("$now", &now))?;
    }
    tidy::tidy(graph)?;
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
