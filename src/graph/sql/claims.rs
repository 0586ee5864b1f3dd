//! Takes, renews, books and returns claims.

use super::values::{Row, Value, values};
use super::{Dialect, Sql, holds, noted};
use std::time::Duration;

use super::features;
use super::sets::Sets;
use super::settle::{Node, book};
use super::task_log::write_log;
use super::{Fallible, Fault, landings, queries};
use crate::graph::error::GraphError;
use crate::graph::holder::Holder;
use crate::graph::store::{Claim, Ended, HowDone, Retries, Scope};
use crate::graph::transitions::Own;

/// Which task is claimed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Next {
    /// The first of the ready ones.
    Listed,
    /// The one that could not land and was returned first.
    Returned,
}

impl Next {
    /// Finds it. Where others book meanwhile, its row is read again once it is locked, and the list is not: so the row says that it is
    /// ready, too.
    fn query(self) -> &'static str {
        match self {
            Self::Listed => {
                "SELECT task FROM ready {in_order} tasks AS listed ON listed.seq = task
                WHERE scope = {scope} AND listed.status = 0 AND listed.ready = 1 ORDER BY ready.priority, task LIMIT 1"
            }
            Self::Returned => {
                "SELECT l.task FROM landings l {in_order} tasks AS listed ON listed.seq = l.task
                JOIN ready ON scope = {scope} AND ready.priority = listed.priority AND ready.task = l.task
                WHERE l.standing = 2 AND listed.status = 0 AND listed.ready = 1 ORDER BY l.since, l.task LIMIT 1"
            }
        }
    }
}

/// Claims a task, in one statement.
pub(super) fn claim(
    graph: &dyn Sql,
    next: Next,
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
        next = next.query().replace("{scope}", scope).replace("{in_order}", in_order)
    );
    let holder_text = serde_json::to_string(holder)
        .map_err(|error| GraphError::BadValue(format!("the holder of a claim: {error}")))?;
    let mut values = values![holder.run, holder_text, length(lease)].to_vec();
    values.extend(name.map(Value::from));
    graph.last();
    graph.maybe(&update, &values, |row| of_row(row, &holder.nonce))
}

/// The claim that was made with this nonce, if it still holds.
pub(super) fn claimed(graph: &dyn Sql, nonce: &str) -> Fallible<Option<Claim>> {
    let query = "SELECT id, fence FROM tasks WHERE status = 1 AND holder LIKE '%' || ?1 || '%'";
    graph.maybe(query, values![nonce], |row| of_row(row, nonce))
}

fn of_row(row: &dyn Row, nonce: &str) -> Fallible<Claim> {
    let task: String = row.get(0)?;
    // It becomes a part of names of refs and files.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !task.chars().all(is_plain) || !task.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        let shown: String = task.escape_debug().take(40).collect();
        return Err(Fault::Strange(format!("the id of a task: {shown}")));
    }
    Ok(Claim { task, fence: row.get(1)?, nonce: nonce.to_owned() })
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

/// The claimed task, if the claim still holds: its number and its nonce do (rule 2).
pub(in crate::graph) fn held(graph: &dyn Sql, claim: &Claim) -> Fallible<Node> {
    let holds = "t.fence = ?2 AND t.status + 0 = 1 AND t.holder LIKE '%' || ?3 || '%'";
    let node = Node::locked(graph, &claim.task, holds, values![claim.fence, claim.nonce])?;
    Ok(node.ok_or_else(|| GraphError::ClaimLost { id: claim.task.clone() })?)
}

/// Whether a task is ready, which is listed and not claimed, or claimed for longer than its lease, in one statement. Where processes
/// count, others have to look.
pub(in crate::graph) fn may_claim(graph: &dyn Sql, tables: &str) -> Fallible<bool> {
    let Dialect { counts_processes, clock, .. } = graph.dialect();
    if *counts_processes {
        return Ok(true);
    }
    let query = format!(
        "WITH claimed AS (SELECT seq, coalesce(lease_until, 0) AS until FROM {tables}tasks WHERE status = 1)
        SELECT 1 WHERE EXISTS (SELECT 1 FROM claimed WHERE until <= (SELECT {clock}))
        OR EXISTS (SELECT 1 FROM {tables}ready WHERE scope = 0 AND task NOT IN (SELECT seq FROM claimed))"
    );
    graph.exists(&query, values![])
}

/// In one statement, as a renewal books nothing above the task. `status + 0` here and above: the task is found by its id, and not in
/// the index of the claimed ones, where each claim of the last minutes has left an entry.
pub(in crate::graph) fn renew(graph: &dyn Sql, tables: &str, claim: &Claim, lease: Duration) -> Fallible<()> {
    let update = format!(
        "UPDATE {tables}tasks SET lease_until = {} + ?4 WHERE id = ?1 AND fence = ?2 AND status + 0 = 1 AND holder LIKE '%' || ?3 || '%'",
        graph.dialect().clock
    );
    let renewed = graph.count(&update, values![claim.task, claim.fence, claim.nonce, length(lease)])?;
    if renewed == 0 {
        return Err(GraphError::ClaimLost { id: claim.task.clone() }.into());
    }
    Ok(())
}

pub(in crate::graph) fn complete(graph: &dyn Sql, claim: &Claim, done: HowDone<'_>) -> Fallible<Ended> {
    let node = held(graph, claim)?;
    if node.open_parts() > 0 {
        leave(graph, node, Own::Open, HAS_PARTS, Sets::default())?;
        return Ok(Ended::Released);
    }
    let HowDone { commit, is_verified, .. } = done;
    landings::withdraw(graph, node.seq)?;
    let sets = Sets::default().set("done_at_commit", &commit).set("verification", &is_verified);
    leave(graph, node, Own::Done, "done", sets.and("done_by", "run"))?;
    noted(graph, done)?;
    Ok(Ended::Done)
}

pub(in crate::graph) fn fail(graph: &dyn Sql, claim: &Claim, reason: &str) -> Fallible<Ended> {
    give_up(graph, held(graph, claim)?, reason, Sets::default())
}

/// Books a claimed task as failed.
fn give_up(graph: &dyn Sql, node: Node, reason: &str, sets: Sets<'_>) -> Fallible<Ended> {
    if node.open_parts() > 0 {
        let log = format!("released: it has got parts meanwhile; it was to fail: {reason}");
        leave(graph, node, Own::Open, &log, sets)?;
        return Ok(Ended::Released);
    }
    leave(graph, node, Own::Failed, &format!("failed: {reason}"), sets)?;
    Ok(Ended::Failed)
}

pub(in crate::graph) fn release(graph: &dyn Sql, claim: &Claim, why: &str) -> Fallible<()> {
    let node = held(graph, claim)?;
    let log = if why.is_empty() { String::new() } else { format!("released: {why}") };
    give_back(graph, node, &log)
}

pub(in crate::graph) fn reopen(graph: &dyn Sql, seq: i64, why: &str) -> Fallible<bool> {
    let query = "SELECT work = 2 FROM tasks WHERE seq = ?1";
    let is_done = graph.one(query, values![seq], |row| row.get(0))?;
    if is_done {
        let sets = Sets::default().and("unverified", "1");
        leave(graph, Node::read(graph, seq)?, Own::Open, &format!("opened again: {why}"), sets)?;
    }
    Ok(is_done)
}

pub(in crate::graph) fn release_changed(graph: &dyn Sql, id: &str, run: &str) -> Fallible<bool> {
    let Some(node) = Node::locked(graph, id, "t.status + 0 = 1 AND t.run = ?2", values![run])? else {
        return Ok(false);
    };
    give_back(graph, node, "released: another program than ralph has changed its claim")?;
    Ok(true)
}

pub(in crate::graph) fn mark_unverified(
    graph: &dyn Sql,
    claim: &Claim,
    commit: Option<&str>,
) -> Fallible<()> {
    let node = held(graph, claim)?;
    Sets::default().and("unverified", "1").set("done_at_commit", &commit).write(graph, node.seq)
}

/// The commit at which a task was verified that is not booked yet.
pub(in crate::graph) fn verified_at(graph: &dyn Sql, seq: i64) -> Fallible<Option<String>> {
    let query = "SELECT done_at_commit FROM tasks WHERE seq = ?1 AND unverified = ?2";
    Ok(graph.maybe(query, values![seq, VERIFIED], |row| row.get(0))?.flatten())
}

/// The value of `unverified` of a task whose result was verified and not booked.
const VERIFIED: i64 = 2;

pub(in crate::graph) fn mark_verified(graph: &dyn Sql, claim: &Claim, commit: &str) -> Fallible<()> {
    let node = held(graph, claim)?;
    Sets::default().set("unverified", &VERIFIED).set("done_at_commit", &commit).write(graph, node.seq)
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
    let node = held(graph, claim)?;
    let counts = "SELECT retry_count, max_retries, retries_given FROM tasks WHERE seq = ?1";
    let (count, own, given): (i64, i64, bool) =
        graph.one(counts, values![node.seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let most = retries.of_run.map_or_else(|| if given { own } else { retries.usual.into() }, i64::from);
    let sets = Sets::default().and("verification", "2");
    if count >= most {
        return give_up(graph, node, &format!("{reason} (after {count} of {most} retries)"), sets);
    }
    let sets = sets.and("retry_count", "retry_count + 1");
    leave(graph, node, Own::Open, &format!("retry {} of {most}: {reason}", count + 1), sets)?;
    Ok(Ended::Retried)
}

/// What is said of a task that cannot end now.
pub(super) const HAS_PARTS: &str = "released: it has got parts meanwhile, and comes again after them";

/// Removes the claim of a task without a result. The last agent's answer still has to be verified.
fn give_back(graph: &dyn Sql, node: Node, log: &str) -> Fallible<()> {
    leave(graph, node, Own::Open, log, Sets::default().and("unverified", "unverified"))
}

/// Removes the claim of a task and sets its own state to `own`, and more of its row. Who has done a task that is done, or waits to
/// land, is said there, or was said before.
pub(in crate::graph) fn leave(
    graph: &dyn Sql,
    node: Node,
    own: Own,
    log: &str,
    sets: Sets<'_>,
) -> Fallible<()> {
    if !log.is_empty() {
        write_log(graph, node.seq, log)?;
    }
    // What was waiting waits no more, unless it was booked.
    if matches!(own, Own::Open | Own::Failed) {
        landings::put_by(graph, node.seq)?;
    }
    let sets = sets.and("run", "NULL").and("holder", "NULL").and("lease_until", "NULL").or("unverified", "0");
    let sets = if matches!(own, Own::Done | Own::Landing) { sets } else { sets.or("done_by", "NULL") };
    book(graph, Node { claimed: false, ..node }, Some(own), sets)
}

/// A claim whose holder no longer exists.
pub(in crate::graph) struct Dead {
    task: String,
    run: String,
    /// Its number, and until when its lease lasted.
    claim: [i64; 2],
}

/// The claims whose holders no longer exist.
pub(in crate::graph) fn dead(graph: &dyn Sql) -> Fallible<Vec<Dead>> {
    // Another program may have written a claim without these columns.
    let Dialect { counts_processes, clock, .. } = graph.dialect();
    let is_late = if *counts_processes {
        String::new()
    } else {
        format!("AND coalesce(lease_until, 0) <= (SELECT {clock})")
    };
    let query = format!(
        "SELECT id, coalesce(run, 'another program'), coalesce(holder, ''), coalesce(lease_until, 0), fence FROM tasks
        WHERE status = 1 {is_late}"
    );
    let mut dead = Vec::new();
    graph.each(&query, values![], &mut |row| {
        // An unreadable holder counts as gone.
        let holder: Option<Holder> = serde_json::from_str(&row.get::<String>(2)?).ok();
        let lease = row.get(3)?;
        if !holder.map_or(Ok(false), |holder| holds(graph, &holder, lease))? {
            dead.push(Dead { task: row.get(0)?, run: row.get(1)?, claim: [row.get(4)?, lease] });
        }
        Ok(true)
    })?;
    Ok(dead)
}

pub(in crate::graph) fn recover(graph: &dyn Sql) -> Fallible<usize> {
    let mut count = 0;
    for Dead { task, run, claim } in dead(graph)? {
        // It may have been renewed meanwhile, in one statement that nothing holds up (rule 3).
        let is_so = "t.status + 0 = 1 AND t.fence = ?2 AND coalesce(t.lease_until, 0) = ?3";
        if let Some(node) = Node::locked(graph, &task, is_so, values![claim[0], claim[1]])? {
            give_back(graph, node, &format!("released: {run}, which had claimed it, is gone"))?;
            count += 1;
        }
    }
    Ok(count)
}
