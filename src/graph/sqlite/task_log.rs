//! Ralph's own lines in the log of a task.

use rusqlite::{Connection, params};

use super::{Fallible, now};

/// Adds a line to the log of a task.
pub(super) fn write_log(graph: &Connection, seq: i64, message: &str) -> Fallible<()> {
    let insert = "INSERT INTO task_logs (task, message, at) VALUES (?1, ?2, ?3)";
    graph.prepare_cached(insert)?.execute(params![seq, message, now()])?;
    Ok(())
}
