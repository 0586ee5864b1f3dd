//! Checks that the tables in a database are ours: a view in the place of a table, or an index that refuses rows,
//! changes reads and writes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use rusqlite::Connection;

use super::Fallible;
use crate::graph::error::GraphError;

/// Creates the tables.
pub(in crate::graph) const TABLES: &str = include_str!("schema/tables.sql");

/// Refuses a database in which a table, a view or an index is not defined as ours, or in which our tables have more
/// indexes. Other objects belong to other programs and are ignored.
pub(super) fn require(graph: &Connection, path: &Path) -> Fallible<()> {
    let (ours, found) = (ours()?, definitions(graph)?);
    let differs = |name: &String| {
        let of_ours = |definition: &Definition| ours.contains_key(&definition.table);
        found.get(name) != ours.get(name) && (ours.contains_key(name) || found.get(name).is_some_and(of_ours))
    };
    match ours.keys().chain(found.keys()).find(|name| differs(name)) {
        Some(name) => {
            let what = format!("another program has changed its schema (the definition of {name})");
            Err(GraphError::damaged(path, &what).into())
        }
        None => Ok(()),
    }
}

/// The definition of an object, and its table.
#[derive(PartialEq, Eq)]
struct Definition {
    table: String,
    sql: String,
}

/// Definitions by name.
type Definitions = BTreeMap<String, Definition>;

/// The definitions of our tables. Computed once: a graph is checked each time another process has written.
fn ours() -> Fallible<&'static Definitions> {
    static OURS: OnceLock<Definitions> = OnceLock::new();
    if let Some(ours) = OURS.get() {
        return Ok(ours);
    }
    let empty = Connection::open_in_memory()?;
    empty.execute_batch(TABLES)?;
    let ours = definitions(&empty)?;
    Ok(OURS.get_or_init(|| ours))
}

/// All definitions in a database. No trigger of the file runs. Tables of the full-text search are left out.
fn definitions(graph: &Connection) -> Fallible<Definitions> {
    let query = "SELECT name, tbl_name, sql FROM sqlite_schema
        WHERE sql IS NOT NULL AND type <> 'trigger' AND name NOT LIKE 'journal\\_words\\_%' ESCAPE '\\'";
    let mut statement = graph.prepare_cached(query)?;
    let definitions = statement
        .query_map([], |row| Ok((row.get(0)?, Definition { table: row.get(1)?, sql: row.get(2)? })))?;
    Ok(definitions.collect::<rusqlite::Result<_>>()?)
}
