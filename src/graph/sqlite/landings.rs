//! The rows of landings: what agents have committed for tasks, and what has become of it.

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::settle::LANDING;
use super::task_log::write_log;
use super::{Fallible, moment};
use crate::graph::landing::{Landing, Made, Standing};

/// The columns of a landing, for [`of_row`]. The task's commit is sealed, and counts as long as it waits.
const COLUMNS: &str = "SELECT t.id, t.title, l.fence, l.trunk, l.base,
    iif(l.standing = 3, l.head, coalesce(t.done_at_commit, l.head)), l.standing, l.since, l.returned, l.gates, l.reason, l.landed,
    (SELECT name FROM features WHERE features.seq = t.feature) FROM landings l JOIN tasks t ON t.seq = l.task";

fn of_row(row: &Row<'_>) -> rusqlite::Result<Landing> {
    Ok(Landing {
        task: row.get(0)?,
        title: row.get(1)?,
        feature: row.get(12)?,
        fence: row.get(2)?,
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

pub(super) fn of_task(graph: &Connection, seq: i64) -> Fallible<Option<Landing>> {
    let query = format!("{COLUMNS} WHERE l.task = ?1");
    Ok(graph.prepare_cached(&query)?.query_row([seq], of_row).optional()?)
}

/// Those that wait or were returned, on all trunks: returned ones first, then the oldest.
pub(super) fn on_the_way(graph: &Connection) -> Fallible<Vec<Landing>> {
    let query = format!(
        "{COLUMNS} WHERE l.standing = 1 AND t.work = {LANDING} OR l.standing = 2 AND t.work = 1
        ORDER BY l.returned = 0, l.since, l.task"
    );
    let mut statement = graph.prepare_cached(&query)?;
    let rows = statement.query_map([], of_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Whether a task is on its way to a trunk.
pub(super) fn waits(graph: &Connection, seq: i64) -> Fallible<bool> {
    let query = "SELECT 1 FROM landings WHERE task = ?1 AND standing = 1";
    Ok(graph.prepare_cached(query)?.exists([seq])?)
}

/// Has a landing wait no more; its commits are kept.
pub(super) fn put_by(graph: &Connection, seq: i64) -> Fallible<()> {
    let update = "UPDATE landings SET standing = 0 WHERE task = ?1 AND standing = 1";
    graph.prepare_cached(update)?.execute([seq])?;
    Ok(())
}

/// Takes a landing back that waits, and forgets what was kept, returned or landed: the commits stay under their ref.
pub(super) fn withdraw(graph: &Connection, seq: i64) -> Fallible<()> {
    let Some(landing) = of_task(graph, seq)? else { return Ok(()) };
    graph.prepare_cached("DELETE FROM landings WHERE task = ?1")?.execute([seq])?;
    if landing.standing == Standing::Landed {
        return Ok(());
    }
    write_log(
        graph,
        seq,
        &format!("withdrawn, and not landed: its commits are kept as {}", landing.reference()),
    )
}
