//! The rows of landings: what agents have committed for tasks, and what has become of it.

use super::Sql;
use super::settle::LANDING;
use super::task_log::write_log;
use super::values::{Row, values};
use super::{Fallible, first, moment};
use crate::graph::import::ExportedLanding;
use crate::graph::landing::{Landing, Made, Standing, reference};

/// The query of landings, for [`of_row`]. The task's commit is sealed, and counts as long as it waits. The names of tables begin with
/// what is given.
fn query(tables: &str) -> String {
    format!(
        "SELECT t.id, t.title, l.fence, l.trunk, l.base,
        CASE WHEN l.standing = 3 THEN l.head ELSE coalesce(t.done_at_commit, l.head) END, l.standing, l.since, l.returned, l.gates,
        l.reason, l.landed, (SELECT name FROM {tables}features f WHERE f.seq = t.feature), l.nonce
        FROM {tables}landings l JOIN {tables}tasks t ON t.seq = l.task WHERE"
    )
}

fn of_row(row: &dyn Row) -> Fallible<Landing> {
    Ok(Landing {
        task: row.get(0)?,
        title: row.get(1)?,
        feature: row.get(12)?,
        fence: row.get(2)?,
        nonce: row.get(13)?,
        made: Made { trunk: row.get(3)?, base: row.get(4)?, head: row.get(5)? },
        standing: standing(row.get(6)?),
        since: moment(row.get(7)?),
        returned: row.get(8)?,
        gates: row.get(9)?,
        reason: row.get(10)?,
        landed: row.get(11)?,
    })
}

fn standing(number: usize) -> Standing {
    Standing::ALL.get(number).copied().unwrap_or(Standing::Kept)
}

pub(in crate::graph) fn of_task(graph: &dyn Sql, seq: i64) -> Fallible<Option<Landing>> {
    let query = format!("{} l.task = ?1", query(""));
    graph.maybe(&query, values![seq], of_row)
}

/// Those that wait or were returned, on all trunks: returned ones first, then the oldest.
pub(in crate::graph) fn on_the_way(graph: &dyn Sql, tables: &str) -> Fallible<Vec<Landing>> {
    let query = format!(
        "{} l.standing = 1 AND t.work = {LANDING} OR l.standing = 2 AND t.work = 1 ORDER BY l.returned = 0, l.since, l.task",
        query(tables)
    );
    graph.all(&query, values![], of_row)
}

/// Puts what was exported of a task's commits.
pub(in crate::graph) fn put(graph: &dyn Sql, seq: i64, exported: &ExportedLanding) -> Fallible<()> {
    let ExportedLanding { claim, trunk, base, head, standing, since, returned, gates, reason, landed } =
        exported;
    let put = "INSERT INTO landings (task, fence, nonce, trunk, base, head, standing, since, returned, gates, reason, landed)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let (since, number) = (since.timestamp_millis(), standing.number());
    let values = values![
        seq,
        claim.0,
        claim.1,
        trunk,
        base,
        head,
        number,
        since,
        *returned,
        *gates,
        reason,
        landed.as_deref()
    ];
    graph.execute(put, values)?;
    // Claims of it go on from there, so that their refs are others.
    graph.execute("UPDATE tasks SET fence = ?2 WHERE seq = ?1", values![seq, claim.0])?;
    Ok(())
}

/// Whether a task is on its way to a trunk.
pub(in crate::graph) fn waits(graph: &dyn Sql, seq: i64) -> Fallible<bool> {
    let query = "SELECT 1 FROM landings WHERE task = ?1 AND standing = 1";
    graph.exists(query, values![seq])
}

/// Has a landing wait no more; its commits are kept.
pub(in crate::graph) fn put_by(graph: &dyn Sql, seq: i64) -> Fallible<()> {
    let update = "UPDATE landings SET standing = 0 WHERE task = ?1 AND standing = 1";
    graph.execute(update, values![seq])?;
    Ok(())
}

/// Takes a landing back that waits, and forgets what was kept, returned or landed: the commits stay under their ref.
pub(in crate::graph) fn withdraw(graph: &dyn Sql, seq: i64) -> Fallible<()> {
    let delete = "DELETE FROM landings WHERE task = ?1 RETURNING standing, fence, nonce";
    let gone = graph
        .maybe(delete, values![seq], |row| Ok((standing(row.get(0)?), row.get(1)?, row.get::<String>(2)?)))?;
    let Some((_, fence, nonce)) = gone.filter(|(standing, ..)| *standing != Standing::Landed) else {
        return Ok(());
    };
    let id: String = graph.one("SELECT id FROM tasks WHERE seq = ?1", values![seq], first)?;
    let kept = reference(&id, fence, &nonce);
    write_log(graph, seq, &format!("withdrawn, and not landed: its commits are kept as {kept}"))
}
