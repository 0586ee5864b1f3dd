//! What trackers last said about issues: a row for each issue that was imported. A row without a task is an issue whose task was
//! deleted here.

use super::values::{Row, values};
use super::{Fallible, Sql, status};
use crate::graph::import::FromIssue;
use crate::graph::store::IssueTask;

/// The columns of a row, for [`of_row`].
const COLUMNS: &str = "issue.address, issue.priority";

/// The issues whose tasks were deleted here.
const WITHOUT_TASK: &str =
    "FROM ralph_issues issue WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.origin = issue.origin)";

/// Whether the graph has the table. That of a server always has.
pub(super) fn are_kept(graph: &dyn Sql) -> Fallible<bool> {
    graph.dialect().issues.as_ref().map_or(Ok(true), |table| graph.exists(table.exists, values![]))
}

/// Makes the table, if the graph lacks it.
pub(super) fn keep(graph: &dyn Sql) -> Fallible<()> {
    graph.dialect().issues.as_ref().map_or(Ok(()), |table| graph.execute(table.create, values![]))
}

fn of_row(row: &dyn Row, at: usize) -> Fallible<FromIssue> {
    Ok(FromIssue { address: row.get(at)?, priority: row.get(at + 1)?, again: false })
}

/// What the tracker last said about an issue; `None` if it was never imported.
pub(super) fn said(graph: &dyn Sql, origin: &str) -> Fallible<Option<FromIssue>> {
    let query = format!("SELECT {COLUMNS} FROM ralph_issues issue WHERE issue.origin = ?1");
    graph.maybe(&query, values![origin], |row| of_row(row, 0))
}

/// Keeps what the tracker says now.
pub(super) fn note(graph: &dyn Sql, origin: &str, issue: &FromIssue) -> Fallible<()> {
    let insert = "INSERT INTO ralph_issues (origin, address, priority) VALUES (?1, ?2, ?3)
        ON CONFLICT (origin) DO UPDATE SET address = excluded.address, priority = excluded.priority";
    graph.execute(insert, values![origin, issue.address, issue.priority])
}

/// The priority of a known task whose issue was imported once more. One that a user has set here stays.
pub(super) fn priority(before: Option<&FromIssue>, now: &FromIssue, here: i64) -> i64 {
    match before {
        Some(before) if before.priority.unwrap_or(0) == here => now.priority.unwrap_or(0),
        Some(_) => here,
        // Imported by a ralph that did not keep what the tracker says.
        None => now.priority.unwrap_or(here),
    }
}

/// Whether there are issues whose tasks were deleted.
pub(super) fn has_deleted(graph: &dyn Sql) -> Fallible<bool> {
    graph.exists(&format!("SELECT 1 {WITHOUT_TASK} LIMIT 1"), values![])
}

/// Shows the issues whose tasks were deleted here to `each`, until it returns `false`.
pub(super) fn deleted(
    graph: &dyn Sql,
    each: &mut dyn FnMut(String, FromIssue) -> Fallible<bool>,
) -> Fallible<()> {
    let query = format!("SELECT issue.origin, {COLUMNS} {WITHOUT_TASK} ORDER BY issue.origin");
    graph.each(&query, values![], &mut |row| each(row.get(0)?, of_row(row, 1)?))
}

/// The tasks that were imported, the oldest first.
pub(super) fn tasks(graph: &dyn Sql) -> Fallible<Vec<IssueTask>> {
    let (address, join) = if are_kept(graph)? {
        ("issue.address", "LEFT JOIN ralph_issues issue ON issue.origin = t.origin")
    } else {
        ("NULL", "")
    };
    let query = format!(
        "SELECT t.id, t.origin, t.status, coalesce(landings.landed, t.done_at_commit), {address}
        FROM tasks t LEFT JOIN landings ON landings.task = t.seq {join} WHERE t.origin IS NOT NULL ORDER BY t.seq"
    );
    graph.all(&query, values![], |row| {
        let status = status(row.get(2)?)?;
        Ok(IssueTask {
            id: row.get(0)?,
            origin: row.get(1)?,
            status,
            commit: row.get(3)?,
            address: row.get(4)?,
        })
    })
}
