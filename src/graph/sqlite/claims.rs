//! Takes, renews, books and returns claims.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::features;
use super::seals::SEAL;
use super::settle::{Node, settle};
use super::task_log::write_log;
use super::{Fallible, landings, moment, now, queries};
use crate::graph::error::GraphError;
use crate::graph::holder::Holder;
use crate::graph::store::{Claim, Ended, HowDone, Retries, Scope};
use crate::graph::transitions::Own;

/// Claims the next ready task, in one statement, which is a transaction of its own.
pub(super) fn claim(
    graph: &Connection,
    scope: &Scope,
    holder: &Holder,
    lease: Duration,
) -> Fallible<Option<Claim>> {
    let next = "SELECT task FROM ready CROSS JOIN tasks AS listed ON listed.seq = task
        WHERE scope = {scope} AND listed.status = 0 ORDER BY ready.priority, task LIMIT 1";
    claim_of(graph, next, scope, holder, lease)
}

/// Claims the task that could not land and was returned first.
pub(super) fn claim_returned(
    graph: &Connection,
    scope: &Scope,
    holder: &Holder,
    lease: Duration,
) -> Fallible<Option<Claim>> {
    let next = "SELECT l.task FROM landings l CROSS JOIN tasks AS listed ON listed.seq = l.task
        JOIN ready ON scope = {scope} AND ready.priority = listed.priority AND ready.task = l.task
        WHERE l.standing = 2 AND listed.status = 0 ORDER BY l.since, l.task LIMIT 1";
    claim_of(graph, next, scope, holder, lease)
}

/// Claims the task that a query finds in a scope.
fn claim_of(
    graph: &Connection,
    next: &str,
    scope: &Scope,
    holder: &Holder,
    lease: Duration,
) -> Fallible<Option<Claim>> {
    let (scope, name) = match scope {
        Scope::All => ("0", None),
        Scope::Feature(name) => ("(SELECT -seq FROM features WHERE name = ?5)", Some(name)),
        Scope::Subtree(id) => ("(SELECT seq FROM tasks WHERE id = ?5)", Some(id)),
    };
    let update = format!(
        "UPDATE tasks SET status = 1, fence = fence + 1, run = ?1, holder = ?2, lease_until = ?3, updated_at = ?4
        WHERE seq = ({next}) RETURNING id, fence",
        next = next.replace("{scope}", scope)
    );
    let holder_text = serde_json::to_string(holder)
        .map_err(|error| GraphError::BadValue(format!("the holder of a claim: {error}")))?;
    let now = now();
    let mut statement = graph.prepare_cached(&update)?;
    let mut rows = match name {
        Some(name) => statement.query(params![holder.run, holder_text, until(now, lease), now, name])?,
        None => statement.query(params![holder.run, holder_text, until(now, lease), now])?,
    };
    let claim = match rows.next()? {
        Some(row) => Claim { task: row.get(0)?, fence: row.get(1)? },
        None => return Ok(None),
    };
    // The update takes effect when the statement has ended.
    while rows.next()?.is_some() {}
    Ok(Some(claim))
}

/// The scope with the full id of its task. An error if there is no such feature or task.
pub(super) fn resolved(graph: &Connection, scope: &Scope) -> Fallible<Scope> {
    Ok(match scope {
        Scope::All => Scope::All,
        Scope::Feature(name) => features::seq(graph, name).map(|_| scope.clone())?,
        Scope::Subtree(id) => Scope::Subtree(queries::id(graph, queries::find(graph, id)?)?),
    })
}

pub(super) fn until(now: i64, lease: Duration) -> i64 {
    now.saturating_add(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX))
}

/// The claimed task, if the claim still holds.
pub(super) fn held(graph: &Connection, claim: &Claim) -> Fallible<i64> {
    let query = "SELECT seq FROM tasks WHERE id = ?1 AND fence = ?2 AND status = 1";
    let seq = graph.prepare_cached(query)?.query_row(params![claim.task, claim.fence], |row| row.get(0));
    let seq = seq.optional()?;
    Ok(seq.ok_or_else(|| GraphError::ClaimLost { id: claim.task.clone() })?)
}

pub(super) fn renew(graph: &Connection, claim: &Claim, lease: Duration) -> Fallible<()> {
    let seq = held(graph, claim)?;
    let update = "UPDATE tasks SET lease_until = ?2 WHERE seq = ?1";
    graph.prepare_cached(update)?.execute([seq, until(now(), lease)])?;
    Ok(())
}

pub(super) fn complete(graph: &Connection, claim: &Claim, done: HowDone<'_>) -> Fallible<Ended> {
    let seq = held(graph, claim)?;
    if has_open_parts(graph, seq)? {
        leave(graph, seq, Own::Open, "released: it has got parts meanwhile, and comes again after them")?;
        return Ok(Ended::Released);
    }
    let HowDone { commit, is_verified, .. } = done;
    let update = "UPDATE tasks SET done_at_commit = ?2, verification = ?3, done_by = run WHERE seq = ?1";
    graph.prepare_cached(update)?.execute(params![seq, commit, is_verified])?;
    landings::withdraw(graph, seq)?;
    leave(graph, seq, Own::Done, "done")?;
    Ok(Ended::Done)
}

pub(super) fn fail(graph: &Connection, claim: &Claim, reason: &str) -> Fallible<Ended> {
    let seq = held(graph, claim)?;
    if has_open_parts(graph, seq)? {
        leave(
            graph,
            seq,
            Own::Open,
            &format!("released: it has got parts meanwhile; it was to fail: {reason}"),
        )?;
        return Ok(Ended::Released);
    }
    leave(graph, seq, Own::Failed, &format!("failed: {reason}"))?;
    Ok(Ended::Failed)
}

pub(super) fn release(graph: &Connection, claim: &Claim, why: &str) -> Fallible<()> {
    let seq = held(graph, claim)?;
    let log = if why.is_empty() { String::new() } else { format!("released: {why}") };
    give_back(graph, seq, &log)
}

pub(super) fn reopen(graph: &Connection, seq: i64, why: &str) -> Fallible<bool> {
    let query = "SELECT work = 2 FROM tasks WHERE seq = ?1";
    let is_done = graph.prepare_cached(query)?.query_row([seq], |row| row.get(0))?;
    if is_done {
        leave(graph, seq, Own::Open, &format!("opened again: {why}"))?;
        graph.prepare_cached("UPDATE tasks SET unverified = 1 WHERE seq = ?1")?.execute([seq])?;
    }
    Ok(is_done)
}

pub(super) fn release_changed(graph: &Connection, id: &str, run: &str) -> Fallible<bool> {
    let query = "SELECT seq FROM tasks WHERE id = ?1 AND status = 1 AND run = ?2";
    let seq = graph.prepare_cached(query)?.query_row([id, run], |row| row.get(0)).optional()?;
    if let Some(seq) = seq {
        give_back(graph, seq, "released: another program than ralph has changed its claim")?;
    }
    Ok(seq.is_some())
}

pub(super) fn mark_unverified(graph: &Connection, claim: &Claim, commit: Option<&str>) -> Fallible<()> {
    let seq = held(graph, claim)?;
    let update = "UPDATE tasks SET unverified = 1, done_at_commit = ?2 WHERE seq = ?1";
    graph.prepare_cached(update)?.execute(params![seq, commit])?;
    Ok(())
}

/// The value of `unverified` of a task whose result was verified and not booked.
const VERIFIED: i64 = 2;

pub(super) fn mark_verified(graph: &Connection, claim: &Claim, commit: &str) -> Fallible<()> {
    let seq = held(graph, claim)?;
    let update = "UPDATE tasks SET unverified = ?3, done_at_commit = ?2 WHERE seq = ?1";
    graph.prepare_cached(update)?.execute(params![seq, commit, VERIFIED])?;
    Ok(())
}

/// Only a sealed value shows that ralph wrote it.
pub(super) fn verified_at(graph: &Connection, seq: i64) -> Fallible<Option<String>> {
    let query =
        format!("SELECT done_at_commit FROM tasks WHERE seq = ?1 AND unverified = ?2 AND seal IS {SEAL}");
    let commit = graph.prepare_cached(&query)?.query_row([seq, VERIFIED], |row| row.get(0));
    Ok(commit.optional()?.flatten())
}

pub(super) fn is_unverified(graph: &Connection, seq: i64) -> Fallible<bool> {
    let query = "SELECT unverified FROM tasks WHERE seq = ?1";
    Ok(graph.prepare_cached(query)?.query_row([seq], |row| row.get(0))?)
}

pub(super) fn retry(graph: &Connection, claim: &Claim, reason: &str, retries: Retries) -> Fallible<Ended> {
    let seq = held(graph, claim)?;
    let counts = "SELECT retry_count, max_retries, retries_given FROM tasks WHERE seq = ?1";
    let (count, own, given): (i64, i64, bool) =
        graph.prepare_cached(counts)?.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let most = retries.of_run.map_or_else(|| if given { own } else { retries.usual.into() }, i64::from);
    if count >= most {
        graph.prepare_cached("UPDATE tasks SET verification = 2 WHERE seq = ?1")?.execute([seq])?;
        return fail(graph, claim, &format!("{reason} (after {count} of {most} retries)"));
    }
    let update = "UPDATE tasks SET retry_count = retry_count + 1, verification = 2 WHERE seq = ?1";
    graph.prepare_cached(update)?.execute([seq])?;
    leave(graph, seq, Own::Open, &format!("retry {} of {most}: {reason}", count + 1))?;
    Ok(Ended::Retried)
}

fn has_open_parts(graph: &Connection, seq: i64) -> Fallible<bool> {
    Ok(Node::read(graph, seq)?.open_parts() > 0)
}

/// Removes the claim of a task without a result. The last agent's answer still has to be verified.
fn give_back(graph: &Connection, seq: i64, log: &str) -> Fallible<()> {
    let unverified = "SELECT unverified FROM tasks WHERE seq = ?1";
    let unverified: i64 = graph.prepare_cached(unverified)?.query_row([seq], |row| row.get(0))?;
    leave(graph, seq, Own::Open, log)?;
    let update = "UPDATE tasks SET unverified = ?2 WHERE seq = ?1";
    graph.prepare_cached(update)?.execute([seq, unverified])?;
    Ok(())
}

/// Removes the claim of a task and sets its own state to `own`. For a done task, and one that waits to land, `done_by` is already
/// set.
pub(super) fn leave(graph: &Connection, seq: i64, own: Own, log: &str) -> Fallible<()> {
    let update = "UPDATE tasks SET run = NULL, holder = NULL, lease_until = NULL, unverified = 0,
        done_by = iif(?2, done_by, NULL) WHERE seq = ?1";
    graph.prepare_cached(update)?.execute(params![seq, matches!(own, Own::Done | Own::Landing)])?;
    if !log.is_empty() {
        write_log(graph, seq, log)?;
    }
    // Before its state is: what was waiting is withdrawn, unless it was booked.
    if own != Own::Landing {
        landings::put_by(graph, seq)?;
    }
    settle(graph, seq, Some(own))
}

/// The claimed tasks whose holders no longer exist, with their runs.
pub(super) fn dead(graph: &Connection) -> Fallible<Vec<(i64, String)>> {
    // Another program may have written a claim without these columns.
    let query = "SELECT seq, coalesce(run, 'another program'), coalesce(holder, ''), coalesce(lease_until, 0) FROM tasks
        WHERE status = 1";
    let mut statement = graph.prepare_cached(query)?;
    let mut rows = statement.query([])?;
    let mut dead = Vec::new();
    let now = moment(now());
    while let Some(row) = rows.next()? {
        // An unreadable holder counts as gone.
        let holder: Option<Holder> = serde_json::from_str(&row.get::<_, String>(2)?).ok();
        let lease = moment(row.get(3)?);
        if !holder.is_some_and(|holder| holder.holds(lease, now)) {
            dead.push((row.get(0)?, row.get(1)?));
        }
    }
    Ok(dead)
}

pub(super) fn recover(graph: &Transaction<'_>) -> Fallible<usize> {
    let dead = dead(graph)?;
    for (seq, run) in &dead {
        give_back(graph, *seq, &format!("released: {run}, which had claimed it, is gone"))?;
    }
    Ok(dead.len())
}
