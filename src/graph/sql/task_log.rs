//! Ralph's own lines in the log of a task.

use super::Fallible;
use super::Sql;
use super::values::values;

/// Adds a line to the log of a task.
pub(in crate::graph) fn write_log(graph: &dyn Sql, seq: i64, message: &str) -> Fallible<()> {
    let insert = "INSERT INTO task_logs (task, message, at) VALUES (?1, ?2, ?3)";
    graph.execute(insert, values![seq, message, graph.now()?])?;
    Ok(())
}
