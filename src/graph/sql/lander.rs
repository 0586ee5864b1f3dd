//! Books landings: what is handed in, lands or is given back, and who has the lead.

use super::sets::Sets;
use super::values::values;
use super::{Sql, holds, noted};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::claims::{HAS_PARTS, held, leave, until};
use super::settle::{LANDING, Node};
use super::{Fallible, moment};
use crate::graph::error::GraphError;
use crate::graph::holder::Holder;
use crate::graph::landing::{AtGate, Landing, Lead, Made, Standing};
use crate::graph::store::{Claim, Ended, HowDone};
use crate::graph::transitions::Own;
use crate::text::count;

/// Keeps what an agent has committed for a claimed task, in this standing.
fn put(graph: &dyn Sql, seq: i64, claim: &Claim, made: &Made, standing: Standing) -> Fallible<()> {
    let put = "INSERT INTO landings (task, fence, trunk, base, head, standing, since, nonce) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
        ON CONFLICT (task) DO UPDATE SET fence = ?2, trunk = ?3, base = ?4, head = ?5, standing = ?6, since = ?7, nonce = ?8,
        landed = NULL";
    let Made { trunk, base, head } = made;
    let values = values![seq, claim.fence, trunk, base, head, standing.number(), graph.now()?, claim.nonce];
    graph.execute(put, values)
}

pub(in crate::graph) fn keep(graph: &dyn Sql, claim: &Claim, made: &Made) -> Fallible<()> {
    let node = held(graph, claim)?;
    put(graph, node.seq, claim, made, Standing::Kept)?;
    Sets::default().set("done_at_commit", &made.head).write(graph, node.seq)
}

pub(in crate::graph) fn queue(
    graph: &dyn Sql,
    claim: &Claim,
    made: &Made,
    done: HowDone<'_>,
) -> Fallible<Ended> {
    let node = held(graph, claim)?;
    let is_open = node.open_parts() > 0;
    put(graph, node.seq, claim, made, if is_open { Standing::Kept } else { Standing::Waiting })?;
    let sets = Sets::default().set("done_at_commit", &made.head);
    if is_open {
        leave(graph, node, Own::Open, HAS_PARTS, sets)?;
        return Ok(Ended::Released);
    }
    let sets = sets.set("verification", &done.is_verified).and("done_by", "run");
    leave(graph, node, Own::Landing, &format!("done, and handed in to land on {}", made.trunk), sets)?;
    noted(graph, done)?;
    Ok(Ended::Queued)
}

/// The task of a landing that still waits as it was handed in; `None` if it was reset, ended by hand or deleted meanwhile, or is to
/// land elsewhere.
fn waiting(graph: &dyn Sql, landing: &Landing) -> Fallible<Option<Node>> {
    let waits = format!(
        "t.work = {LANDING} AND EXISTS (SELECT 1 FROM landings l WHERE l.task = t.seq AND l.fence = ?2 AND l.trunk = ?3
        AND l.nonce = ?4 AND l.standing = 1)"
    );
    let values = values![landing.fence, landing.made.trunk, landing.nonce];
    Node::locked(graph, &landing.task, &waits, values)
}

pub(in crate::graph) fn land(
    graph: &dyn Sql,
    lead: &Lead,
    landing: &Landing,
    (tip, commit): (&str, &str),
) -> Fallible<bool> {
    require_lead(graph, lead)?;
    let Some(node) = waiting(graph, landing)? else { return Ok(false) };
    let update =
        "UPDATE landings SET standing = 3, landed = ?2, base = ?4, since = ?3, reason = '' WHERE task = ?1";
    graph.execute(update, values![node.seq, commit, graph.now()?, tip])?;
    let log = format!("done: landed on {} as {commit:.10}", landing.made.trunk);
    leave(graph, node, Own::Done, &log, Sets::default().set("done_at_commit", &commit))?;
    Ok(true)
}

pub(in crate::graph) fn give_back(
    graph: &dyn Sql,
    lead: &Lead,
    landing: &Landing,
    reason: &str,
    most: u32,
) -> Fallible<Option<Ended>> {
    require_lead(graph, lead)?;
    let Some(node) = waiting(graph, landing)? else { return Ok(None) };
    if landing.returned >= most {
        let keep = "UPDATE landings SET standing = 0, reason = ?2 WHERE task = ?1";
        graph.execute(keep, values![node.seq, reason])?;
        let kept = landing.reference();
        let log = match landing.returned {
            0 => format!("failed: it could not land, and its commits are kept as {kept}: {reason}"),
            times => format!(
                "failed: it could not land after it was returned {}, and its commits are kept as {kept}: {reason}",
                count::of(times.into(), "time")
            ),
        };
        leave(graph, node, Own::Failed, &log, Sets::default())?;
        return Ok(Some(Ended::Failed));
    }
    let update =
        "UPDATE landings SET standing = 2, returned = returned + 1, since = ?2, reason = ?3 WHERE task = ?1";
    graph.execute(update, values![node.seq, graph.now()?, reason])?;
    leave(graph, node, Own::Open, &format!("returned: {reason}"), Sets::default())?;
    Ok(Some(Ended::Returned))
}

/// What was to land on `from` is to land on `to`.
pub(in crate::graph) fn adopt(graph: &dyn Sql, from: &str, to: &str) -> Fallible<()> {
    let update = "UPDATE landings SET trunk = ?2 WHERE trunk = ?1 AND standing < 3";
    graph.execute(update, values![from, to])?;
    Ok(())
}

pub(in crate::graph) fn gate_begins(graph: &dyn Sql, lead: &Lead, landings: &[&Landing]) -> Fallible<()> {
    let update = "UPDATE landings SET gates = gates + 1
        WHERE task = (SELECT seq FROM tasks WHERE id = ?1) AND fence = ?2";
    for landing in landings {
        graph.execute(update, values![landing.task, landing.fence])?;
    }
    let tasks: Vec<&str> = landings.iter().map(|landing| landing.task.as_str()).collect();
    let tasks = serde_json::to_string(&tasks).unwrap_or_default();
    let update =
        "UPDATE landers SET gated = ?4, gated_since = ?5 WHERE trunk = ?1 AND fence = ?2 AND holder = ?3";
    graph.execute(update, values![lead.trunk, lead.fence, lead.holder, tasks, graph.now()?])?;
    Ok(())
}

pub(in crate::graph) fn gate_ends(graph: &dyn Sql, lead: &Lead) -> Fallible<()> {
    let update = "UPDATE landers SET gated = NULL WHERE trunk = ?1 AND fence = ?2 AND holder = ?3";
    graph.execute(update, values![lead.trunk, lead.fence, lead.holder])?;
    Ok(())
}

/// The gates that run, of processes that live.
pub(in crate::graph) fn gates(graph: &dyn Sql) -> Fallible<Vec<AtGate>> {
    let query = "SELECT trunk, gated, coalesce(gated_since, 0), holder, lease_until FROM landers WHERE gated IS NOT NULL";
    let mut gates = Vec::new();
    graph.each(query, values![], &mut |row| {
        let (holder, lease): (String, i64) = (row.get(3)?, row.get(4)?);
        if living(graph, &holder, lease)?.is_some() {
            let tasks = serde_json::from_str(&row.get::<String>(1)?).unwrap_or_default();
            gates.push(AtGate { trunk: row.get(0)?, tasks, since: moment(row.get(2)?) });
        }
        Ok(true)
    })?;
    Ok(gates)
}

/// The holder of a lead, if its process lives.
fn living(graph: &dyn Sql, holder: &str, lease: i64) -> Fallible<Option<Holder>> {
    let Ok(holder) = serde_json::from_str::<Holder>(holder) else { return Ok(None) };
    Ok(holds(graph, &holder, lease)?.then_some(holder))
}

/// Takes the lead on a trunk, or prolongs it; `None` while another process has it.
pub(in crate::graph) fn lead(
    graph: &dyn Sql,
    trunk: &str,
    holder: &Holder,
    lease: Duration,
) -> Fallible<Option<Lead>> {
    let new = "INSERT INTO landers (trunk, fence, holder, lease_until) VALUES (?1, 0, '', 0) ON CONFLICT DO NOTHING";
    graph.execute(new, values![trunk])?;
    let for_booking = graph.dialect().for_booking;
    let query = format!("SELECT fence, holder, lease_until FROM landers t WHERE trunk = ?1 {for_booking}");
    let (fence, theirs, theirs_until): (i64, String, i64) =
        graph.one(&query, values![trunk], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    // An unreadable holder counts as gone.
    let fence = match serde_json::from_str::<Holder>(&theirs) {
        Ok(theirs) if theirs == *holder => fence,
        Ok(theirs) if holds(graph, &theirs, theirs_until)? => return Ok(None),
        _ => fence + 1,
    };
    let text = serde_json::to_string(holder)
        .map_err(|error| GraphError::BadValue(format!("the holder of a lead: {error}")))?;
    let put = "UPDATE landers SET fence = ?2, holder = ?3, lease_until = ?4 WHERE trunk = ?1";
    graph.execute(put, values![trunk, fence, text, until(graph.now()?, lease)])?;
    Ok(Some(Lead { trunk: trunk.to_owned(), fence, holder: text }))
}

/// Refuses a booking by a process that has lost the lead: its number and its holder have to hold (rule 2).
fn require_lead(graph: &dyn Sql, lead: &Lead) -> Fallible<()> {
    let for_booking = graph.dialect().for_booking;
    let query =
        format!("SELECT 1 FROM landers t WHERE trunk = ?1 AND fence = ?2 AND holder = ?3 {for_booking}");
    if graph.exists(&query, values![lead.trunk, lead.fence, lead.holder])? {
        return Ok(());
    }
    Err(GraphError::LeadLost { trunk: lead.trunk.clone() }.into())
}

pub(in crate::graph) fn give_up_lead(graph: &dyn Sql, lead: &Lead) -> Fallible<()> {
    // The fence stays, so that it grows.
    let update = "UPDATE landers SET holder = '', lease_until = 0, gated = NULL
        WHERE trunk = ?1 AND fence = ?2 AND holder = ?3";
    graph.execute(update, values![lead.trunk, lead.fence, lead.holder])?;
    Ok(())
}

/// The process that has the lead on a trunk, and until when; `None` where none that lives has it.
pub(in crate::graph) fn leader(graph: &dyn Sql, trunk: &str) -> Fallible<Option<(Holder, DateTime<Utc>)>> {
    let query = "SELECT holder, lease_until FROM landers WHERE trunk = ?1";
    graph.last();
    let row = graph.maybe(query, values![trunk], |row| Ok((row.get::<String>(0)?, row.get::<i64>(1)?)))?;
    let Some((holder, lease)) = row else { return Ok(None) };
    Ok(living(graph, &holder, lease)?.map(|holder| (holder, moment(lease))))
}
