//! Books landings: what is handed in, lands or is given back, and who has the lead.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::claims::{held, leave, until};
use super::settle::{LANDING, Node};
use super::{Fallible, moment, now};
use crate::graph::error::GraphError;
use crate::graph::holder::Holder;
use crate::graph::landing::{AtGate, Landing, Lead, Made, Standing};
use crate::graph::store::{Claim, Ended};
use crate::graph::transitions::Own;
use crate::text::count;

/// Keeps what an agent has committed for a claimed task, in this standing.
fn put(graph: &Connection, seq: i64, fence: i64, made: &Made, standing: Standing) -> Fallible<()> {
    let put = "INSERT INTO landings (task, fence, trunk, base, head, standing, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
        ON CONFLICT (task) DO UPDATE SET fence = ?2, trunk = ?3, base = ?4, head = ?5, standing = ?6, since = ?7, landed = NULL";
    let Made { trunk, base, head } = made;
    let values = params![seq, fence, trunk, base, head, standing.number(), now()];
    graph.prepare_cached(put)?.execute(values)?;
    stands_at(graph, seq, head)
}

/// Books the commit that a task's work has come to.
fn stands_at(graph: &Connection, seq: i64, commit: &str) -> Fallible<()> {
    let update = "UPDATE tasks SET done_at_commit = ?2 WHERE seq = ?1";
    graph.prepare_cached(update)?.execute(params![seq, commit])?;
    Ok(())
}

pub(super) fn keep(graph: &Connection, claim: &Claim, made: &Made) -> Fallible<()> {
    put(graph, held(graph, claim)?, claim.fence, made, Standing::Kept)
}

pub(super) fn queue(graph: &Connection, claim: &Claim, made: &Made, is_verified: bool) -> Fallible<Ended> {
    let seq = held(graph, claim)?;
    let is_open = Node::read(graph, seq)?.open_parts() > 0;
    put(graph, seq, claim.fence, made, if is_open { Standing::Kept } else { Standing::Waiting })?;
    if is_open {
        leave(graph, seq, Own::Open, "released: it has got parts meanwhile, and comes again after them")?;
        return Ok(Ended::Released);
    }
    let update = "UPDATE tasks SET verification = ?2, done_by = run WHERE seq = ?1";
    graph.prepare_cached(update)?.execute(params![seq, is_verified])?;
    leave(graph, seq, Own::Landing, &format!("done, and handed in to land on {}", made.trunk))?;
    Ok(Ended::Queued)
}

/// The task of a landing that still waits as it was handed in; `None` if it was reset, ended by hand or deleted meanwhile, or is to
/// land elsewhere.
fn waiting(graph: &Connection, landing: &Landing) -> Fallible<Option<i64>> {
    let query = format!(
        "SELECT t.seq FROM tasks t JOIN landings l ON l.task = t.seq
        WHERE t.id = ?1 AND l.fence = ?2 AND l.trunk = ?3 AND l.standing = 1 AND t.work = {LANDING}"
    );
    let mut statement = graph.prepare_cached(&query)?;
    Ok(statement
        .query_row(params![landing.task, landing.fence, landing.made.trunk], |row| row.get(0))
        .optional()?)
}

pub(super) fn land(
    graph: &Connection,
    lead: &Lead,
    landing: &Landing,
    (tip, commit): (&str, &str),
) -> Fallible<bool> {
    require_lead(graph, lead)?;
    let Some(seq) = waiting(graph, landing)? else { return Ok(false) };
    let update =
        "UPDATE landings SET standing = 3, landed = ?2, base = ?4, since = ?3, reason = '' WHERE task = ?1";
    graph.prepare_cached(update)?.execute(params![seq, commit, now(), tip])?;
    stands_at(graph, seq, commit)?;
    leave(graph, seq, Own::Done, &format!("done: landed on {} as {commit:.10}", landing.made.trunk))?;
    Ok(true)
}

pub(super) fn give_back(
    graph: &Connection,
    lead: &Lead,
    landing: &Landing,
    reason: &str,
    most: u32,
) -> Fallible<Option<Ended>> {
    require_lead(graph, lead)?;
    let Some(seq) = waiting(graph, landing)? else { return Ok(None) };
    if landing.returned >= most {
        let keep = "UPDATE landings SET standing = 0, reason = ?2 WHERE task = ?1";
        graph.prepare_cached(keep)?.execute(params![seq, reason])?;
        let kept = landing.reference();
        let log = match landing.returned {
            0 => format!("failed: it could not land, and its commits are kept as {kept}: {reason}"),
            times => format!(
                "failed: it could not land after it was returned {}, and its commits are kept as {kept}: {reason}",
                count::of(times.into(), "time")
            ),
        };
        leave(graph, seq, Own::Failed, &log)?;
        return Ok(Some(Ended::Failed));
    }
    let update =
        "UPDATE landings SET standing = 2, returned = returned + 1, since = ?2, reason = ?3 WHERE task = ?1";
    graph.prepare_cached(update)?.execute(params![seq, now(), reason])?;
    leave(graph, seq, Own::Open, &format!("returned: {reason}"))?;
    Ok(Some(Ended::Returned))
}

/// What was to land on `from` is to land on `to`.
pub(super) fn adopt(graph: &Connection, from: &str, to: &str) -> Fallible<()> {
    let update = "UPDATE landings SET trunk = ?2 WHERE trunk = ?1 AND standing < 3";
    graph.prepare_cached(update)?.execute([from, to])?;
    Ok(())
}

pub(super) fn gate_begins(graph: &Connection, lead: &Lead, landings: &[&Landing]) -> Fallible<()> {
    let update = "UPDATE landings SET gates = gates + 1
        WHERE task = (SELECT seq FROM tasks WHERE id = ?1) AND fence = ?2";
    for landing in landings {
        graph.prepare_cached(update)?.execute(params![landing.task, landing.fence])?;
    }
    let tasks: Vec<&str> = landings.iter().map(|landing| landing.task.as_str()).collect();
    let tasks = serde_json::to_string(&tasks).unwrap_or_default();
    let update = "UPDATE landers SET gated = ?3, gated_since = ?4 WHERE trunk = ?1 AND fence = ?2";
    graph.prepare_cached(update)?.execute(params![lead.trunk, lead.fence, tasks, now()])?;
    Ok(())
}

pub(super) fn gate_ends(graph: &Connection, lead: &Lead) -> Fallible<()> {
    let update = "UPDATE landers SET gated = NULL WHERE trunk = ?1 AND fence = ?2";
    graph.prepare_cached(update)?.execute(params![lead.trunk, lead.fence])?;
    Ok(())
}

/// The gates that run, of processes that live.
pub(super) fn gates(graph: &Connection) -> Fallible<Vec<AtGate>> {
    let query = "SELECT trunk, gated, coalesce(gated_since, 0), holder, lease_until FROM landers WHERE gated IS NOT NULL";
    let mut statement = graph.prepare_cached(query)?;
    let mut rows = statement.query([])?;
    let mut gates = Vec::new();
    while let Some(row) = rows.next()? {
        let (holder, lease): (String, i64) = (row.get(3)?, row.get(4)?);
        if living(&holder, lease).is_some() {
            let tasks = serde_json::from_str(&row.get::<_, String>(1)?).unwrap_or_default();
            gates.push(AtGate { trunk: row.get(0)?, tasks, since: moment(row.get(2)?) });
        }
    }
    Ok(gates)
}

/// The holder of a lead, if its process lives.
fn living(holder: &str, lease: i64) -> Option<Holder> {
    let holder: Holder = serde_json::from_str(holder).ok()?;
    holder.holds(moment(lease), moment(now())).then_some(holder)
}

/// Takes the lead on a trunk, or prolongs it; `None` while another process has it.
pub(super) fn lead(
    graph: &Connection,
    trunk: &str,
    holder: &Holder,
    lease: Duration,
) -> Fallible<Option<Lead>> {
    let query = "SELECT fence, holder, lease_until FROM landers WHERE trunk = ?1";
    let row = graph.prepare_cached(query)?.query_row([trunk], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?))
    });
    let now = now();
    let fence = match row.optional()? {
        None => 1,
        Some((fence, theirs, lease)) => {
            // An unreadable holder counts as gone.
            let theirs: Option<Holder> = serde_json::from_str(&theirs).ok();
            match theirs {
                Some(theirs) if theirs == *holder => fence,
                Some(theirs) if theirs.holds(moment(lease), moment(now)) => return Ok(None),
                _ => fence + 1,
            }
        }
    };
    let text = serde_json::to_string(holder)
        .map_err(|error| GraphError::BadValue(format!("the holder of a lead: {error}")))?;
    let put = "INSERT INTO landers (trunk, fence, holder, lease_until) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (trunk) DO UPDATE SET fence = ?2, holder = ?3, lease_until = ?4";
    graph.prepare_cached(put)?.execute(params![trunk, fence, text, until(now, lease)])?;
    Ok(Some(Lead { trunk: trunk.to_owned(), fence }))
}

/// Refuses a booking by a process that has lost the lead.
fn require_lead(graph: &Connection, lead: &Lead) -> Fallible<()> {
    let query = "SELECT 1 FROM landers WHERE trunk = ?1 AND fence = ?2";
    if graph.prepare_cached(query)?.exists(params![lead.trunk, lead.fence])? {
        return Ok(());
    }
    Err(GraphError::LeadLost { trunk: lead.trunk.clone() }.into())
}

pub(super) fn give_up_lead(graph: &Connection, lead: &Lead) -> Fallible<()> {
    // The fence stays, so that it grows.
    let update =
        "UPDATE landers SET holder = '', lease_until = 0, gated = NULL WHERE trunk = ?1 AND fence = ?2";
    graph.prepare_cached(update)?.execute(params![lead.trunk, lead.fence])?;
    Ok(())
}

/// The process that has the lead on a trunk; `None` where none that lives has it.
pub(super) fn leader(graph: &Connection, trunk: &str) -> Fallible<Option<Holder>> {
    let query = "SELECT holder, lease_until FROM landers WHERE trunk = ?1";
    let mut statement = graph.prepare_cached(query)?;
    let row = statement.query_row([trunk], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)));
    Ok(row.optional()?.and_then(|(holder, lease)| living(&holder, lease)))
}
