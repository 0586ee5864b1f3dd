//! Takes, renews, books and returns claims.

use super::values::{Value, values};
use super::{Dialect, Sql, holds, nonce, noted};
use std::time::Duration;

use super::features;
use super::settle::{Node, settle};
use super::task_log::write_log;
use super::{Fallible, Fault, landings, queries};
use crate::graph::error::GraphError;
use crate::graph::holder::Holder;
use crate::graph::limits::LEVELS;
use crate::graph::store::{Claim, Ended, HowDone, Retries, Scope};
use crate::graph::transitions::Own;

/// Claims the next ready task, in one statement, which is a transaction of its own. Where others book meanwhile, its row is read again
/// once it is locked, and the list is not: so the row says that it is ready, too.
pub(in crate::graph) fn claim(
    graph: &dyn Sql,
    scope: &Scope,
    holder: &Holder,
    lease: Duration,
) -> Fallible<Option<Claim>> {
    let next = "SELECT task FROM ready {in_order} tasks AS listed ON listed.seq = task
        WHERE scope = {scope} AND listed.status = 0 AND listed.ready = 1 ORDER BY ready.priority, task LIMIT 1";
    claim_of(graph, next, scope, holder, lease)
}

/// Claims the task that could not land and was returned first.
pub(in crate::graph) fn claim_returned(
    graph: &dyn Sql,
    scope: &Scope,
    holder: &Holder,
    lease: Duration,
) -> Fallible<Option<Claim>> {
    let next = "SELECT l.task FROM landings l {in_order} tasks AS listed ON listed.seq = l.task
        JOIN ready ON scope = {scope} AND ready.priority = listed.priority AND ready.task = l.task
        WHERE l.standing = 2 AND listed.status = 0 AND listed.ready = 1 ORDER BY l.since, l.task LIMIT 1";
    claim_of(graph, next, scope, holder, lease)
}

/// Claims the task that a query finds in a scope.
fn claim_of(
    graph: &dyn Sql,
    next: &str,
    scope: &Scope,
    holder: &Holder,
    lease: Duration,
) -> Fallible<Option<Claim>> {
    let (scope, name) = match scope {
        Scope::All => ("0", None),
        Scope::Feature(name) => ("(SELECT -seq FROM features WHERE name = ?4)", Some(name)),
        Scope::Subtree(id) => ("(SELECT seq FROM tasks WHERE id = ?4)", Some(id)),
    };
    let Dialect { in_order, for_claim, clock, .. } = graph.dialect();
    let update = format!(
        "UPDATE tasks SET status = 1, fence = fence + 1, run = ?1, holder = ?2, lease_until = {clock} + ?3, updated_at = {clock}
        WHERE seq = ({next} {for_claim}) RETURNING id, fence",
        next = next.replace("{scope}", scope).replace("{in_order}", in_order)
    );
    let nonce = nonce()?;
    let holder_text = serde_json::to_string(&Holder { nonce: nonce.clone(), ..holder.clone() })
        .map_err(|error| GraphError::BadValue(format!("the holder of a claim: {error}")))?;
    let mut values = values![holder.run, holder_text, length(lease)].to_vec();
    values.extend(name.map(Value::from));
    graph.maybe(&update, &values, |row| {
        let task: String = row.get(0)?;
        // It becomes a part of names of refs and files.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !task.chars().all(is_plain) {
            return Err(Fault::Strange(format!(
                "the id of a task: {}",
                task.escape_debug().take(40).collect::<String>()
            )));
        }
        Ok(Claim { task, fence: row.get(1)?, nonce: nonce.clone() })
    })
}

/// The scope with the full id of its task. An error if there is no such feature or task.
pub(in crate::graph) fn resolved(graph: &dyn Sql, scope: &Scope) -> Fallible<Scope> {
    Ok(match scope {
        Scope::All => Scope::All,
        Scope::Feature(name) => features::seq(graph, name).map(|_| scope.clone())?,
        Scope::Subtree(id) => Scope::Subtree(queries::id(graph, queries::find(graph, id)?)?),
    })
}

pub(in crate::graph) fn until(now: i64, lease: Duration) -> i64 {
    now.saturating_add(length(lease))
}

/// A lease in milliseconds, which any time can be added to.
fn length(lease: Duration) -> i64 {
    i64::try_from(lease.as_millis()).unwrap_or(i64::MAX).min(i64::MAX / 2)
}

/// Locks the tasks above a task, from the top, so that two bookings do not wait for each other.
pub(super) fn lock_above(graph: &dyn Sql, id: &str) -> Fallible<()> {
    let for_booking = graph.dialect().for_booking;
    if for_booking.is_empty() {
        return Ok(());
    }
    let above = format!(
        "WITH RECURSIVE up (seq, level) AS (SELECT parent, 1 FROM tasks WHERE id = ?1
        UNION ALL SELECT tasks.parent, level + 1 FROM tasks JOIN up ON tasks.seq = up.seq WHERE level < {LEVELS})
        SELECT t.seq FROM tasks t JOIN up ON up.seq = t.seq ORDER BY level DESC {for_booking}"
    );
    graph.each(&above, values![id], &mut |_| Ok(true))
}

/// The claimed task, if the claim still holds: its number and its nonce do (rule 2).
pub(in crate::graph) fn held(graph: &dyn Sql, claim: &Claim) -> Fallible<i64> {
    let for_booking = graph.dialect().for_booking;
    lock_above(graph, &claim.task)?;
    let query = format!(
        "SELECT seq FROM tasks t WHERE id = ?1 AND fence = ?2 AND status = 1
        AND holder LIKE '%' || ?3 || '%' {for_booking}"
    );
    let seq = graph.maybe(&query, values![claim.task, claim.fence, claim.nonce], |row| row.get(0));
    Ok(seq?.ok_or_else(|| GraphError::ClaimLost { id: claim.task.clone() })?)
}

/// Whether a task is ready or claimed for longer than its lease, in one statement. Where processes count, others have to look.
pub(in crate::graph) fn may_claim(graph: &dyn Sql, tables: &str) -> Fallible<bool> {
    let Dialect { counts_processes, clock, .. } = graph.dialect();
    if *counts_processes {
        return Ok(true);
    }
    let query = format!(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM {tables}ready JOIN {tables}tasks t ON t.seq = task
            WHERE scope = 0 AND t.status = 0 AND t.ready = 1)
        OR EXISTS (SELECT 1 FROM {tables}tasks WHERE status = 1 AND coalesce(lease_until, 0) <= {clock})"
    );
    graph.exists(&query, values![])
}

/// In one statement, as a renewal books nothing above the task.
pub(in crate::graph) fn renew(graph: &dyn Sql, tables: &str, claim: &Claim, lease: Duration) -> Fallible<()> {
    let update = format!(
        "UPDATE {tables}tasks SET lease_until = {} + ?4 WHERE id = ?1 AND fence = ?2 AND status = 1 AND holder LIKE '%' || ?3 || '%'",
        graph.dialect().clock
    );
    let renewed = graph.count(&update, values![claim.task, claim.fence, claim.nonce, length(lease)])?;
    if renewed == 0 {
        return Err(GraphError::ClaimLost { id: claim.task.clone() }.into());
    }
    Ok(())
}

pub(in crate::graph) fn complete(graph: &dyn Sql, claim: &Claim, done: HowDone<'_>) -> Fallible<Ended> {
    let seq = held(graph, claim)?;
    if has_open_parts(graph, seq)? {
        leave(graph, seq, Own::Open, "released: it has got parts meanwhile, and comes again after them")?;
        return Ok(Ended::Released);
    }
    let HowDone { commit, is_verified, .. } = done;
    let update = "UPDATE tasks SET done_at_commit = ?2, verification = ?3, done_by = run WHERE seq = ?1";
    graph.execute(update, values![seq, commit, is_verified])?;
    landings::withdraw(graph, seq)?;
    leave(graph, seq, Own::Done, "done")?;
    noted(graph, done)?;
    Ok(Ended::Done)
}

pub(in crate::graph) fn fail(graph: &dyn Sql, claim: &Claim, reason: &str) -> Fallible<Ended> {
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

pub(in crate::graph) fn release(graph: &dyn Sql, claim: &Claim, why: &str) -> Fallible<()> {
    let seq = held(graph, claim)?;
    let log = if why.is_empty() { String::new() } else { format!("released: {why}") };
    give_back(graph, seq, &log)
}

pub(in crate::graph) fn reopen(graph: &dyn Sql, seq: i64, why: &str) -> Fallible<bool> {
    let query = "SELECT work = 2 FROM tasks WHERE seq = ?1";
    let is_done = graph.one(query, values![seq], |row| row.get(0))?;
    if is_done {
        leave(graph, seq, Own::Open, &format!("opened again: {why}"))?;
        graph.execute("UPDATE tasks SET unverified = 1 WHERE seq = ?1", values![seq])?;
    }
    Ok(is_done)
}

pub(in crate::graph) fn release_changed(graph: &dyn Sql, id: &str, run: &str) -> Fallible<bool> {
    lock_above(graph, id)?;
    let query = format!(
        "SELECT seq FROM tasks t WHERE id = ?1 AND status = 1 AND run = ?2 {}",
        graph.dialect().for_booking
    );
    let seq = graph.maybe(&query, values![id, run], |row| row.get(0))?;
    if let Some(seq) = seq {
        give_back(graph, seq, "released: another program than ralph has changed its claim")?;
    }
    Ok(seq.is_some())
}

pub(in crate::graph) fn mark_unverified(
    graph: &dyn Sql,
    claim: &Claim,
    commit: Option<&str>,
) -> Fallible<()> {
    let seq = held(graph, claim)?;
    let update = "UPDATE tasks SET unverified = 1, done_at_commit = ?2 WHERE seq = ?1";
    graph.execute(update, values![seq, commit])?;
    Ok(())
}

/// The commit at which a task was verified that is not booked yet.
pub(in crate::graph) fn verified_at(graph: &dyn Sql, seq: i64) -> Fallible<Option<String>> {
    let query = "SELECT done_at_commit FROM tasks WHERE seq = ?1 AND unverified = ?2";
    Ok(graph.maybe(query, values![seq, VERIFIED], |row| row.get(0))?.flatten())
}

/// The value of `unverified` of a task whose result was verified and not booked.
const VERIFIED: i64 = 2;

pub(in crate::graph) fn mark_verified(graph: &dyn Sql, claim: &Claim, commit: &str) -> Fallible<()> {
    let seq = held(graph, claim)?;
    let update = "UPDATE tasks SET unverified = ?3, done_at_commit = ?2 WHERE seq = ?1";
    graph.execute(update, values![seq, commit, VERIFIED])?;
    Ok(())
}

pub(in crate::graph) fn is_unverified(graph: &dyn Sql, seq: i64) -> Fallible<bool> {
    let query = "SELECT unverified FROM tasks WHERE seq = ?1";
    graph.one(query, values![seq], |row| row.get(0))
}

pub(in crate::graph) fn retry(
    graph: &dyn Sql,
    claim: &Claim,
    reason: &str,
    retries: Retries,
) -> Fallible<Ended> {
    let seq = held(graph, claim)?;
    let counts = "SELECT retry_count, max_retries, retries_given FROM tasks WHERE seq = ?1";
    let (count, own, given): (i64, i64, bool) =
        graph.one(counts, values![seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let most = retries.of_run.map_or_else(|| if given { own } else { retries.usual.into() }, i64::from);
    if count >= most {
        graph.execute("UPDATE tasks SET verification = 2 WHERE seq = ?1", values![seq])?;
        return fail(graph, claim, &format!("{reason} (after {count} of {most} retries)"));
    }
    let update = "UPDATE tasks SET retry_count = retry_count + 1, verification = 2 WHERE seq = ?1";
    graph.execute(update, values![seq])?;
    leave(graph, seq, Own::Open, &format!("retry {} of {most}: {reason}", count + 1))?;
    Ok(Ended::Retried)
}

fn has_open_parts(graph: &dyn Sql, seq: i64) -> Fallible<bool> {
    Ok(Node::read(graph, seq)?.open_parts() > 0)
}

/// Removes the claim of a task without a result. The last agent's answer still has to be verified.
fn give_back(graph: &dyn Sql, seq: i64, log: &str) -> Fallible<()> {
    let unverified = "SELECT unverified FROM tasks WHERE seq = ?1";
    let unverified: i64 = graph.one(unverified, values![seq], |row| row.get(0))?;
    leave(graph, seq, Own::Open, log)?;
    let update = "UPDATE tasks SET unverified = ?2 WHERE seq = ?1";
    graph.execute(update, values![seq, unverified])?;
    Ok(())
}

/// Removes the claim of a task and sets its own state to `own`. For a done task, and one that waits to land, `done_by` is already
/// set.
pub(in crate::graph) fn leave(graph: &dyn Sql, seq: i64, own: Own, log: &str) -> Fallible<()> {
    let update = "UPDATE tasks SET run = NULL, holder = NULL, lease_until = NULL, unverified = 0,
        done_by = CASE WHEN ?2 = 1 THEN done_by END WHERE seq = ?1";
    graph.execute(update, values![seq, matches!(own, Own::Done | Own::Landing)])?;
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
pub(in crate::graph) fn dead(graph: &dyn Sql) -> Fallible<Vec<(i64, String)>> {
    // Another program may have written a claim without these columns.
    let Dialect { counts_processes, clock, .. } = graph.dialect();
    let is_late =
        if *counts_processes { String::new() } else { format!("AND coalesce(lease_until, 0) <= {clock}") };
    let query = format!(
        "SELECT seq, coalesce(run, 'another program'), coalesce(holder, ''), coalesce(lease_until, 0) FROM tasks
        WHERE status = 1 {is_late}"
    );
    let mut dead = Vec::new();
    graph.each(&query, values![], &mut |row| {
        // An unreadable holder counts as gone.
        let holder: Option<Holder> = serde_json::from_str(&row.get::<String>(2)?).ok();
        let lease = row.get(3)?;
        if !holder.map_or(Ok(false), |holder| holds(graph, &holder, lease))? {
            dead.push((row.get(0)?, row.get(1)?));
        }
        Ok(true)
    })?;
    Ok(dead)
}

pub(in crate::graph) fn recover(graph: &dyn Sql) -> Fallible<usize> {
    let dead = dead(graph)?;
    for (seq, run) in &dead {
        give_back(graph, *seq, &format!("released: {run}, which had claimed it, is gone"))?;
    }
    Ok(dead.len())
}
