//! The operations of a store in SQL, for every database that holds a graph.
//!
//! [`settle`] updates derived states after every change; `claims`, `edits`, `lander` and `queries` implement the operations of a
//! store. Each runs within one transaction of a [`Sql`], in statements that mean the same in `SQLite` and in `PostgreSQL`; where the
//! two differ, [`Sql::dialect`] says how.

#![expect(
    clippy::similar_names,
    reason = "blocker and blocked are the words of everybody who knows such graphs"
)]

pub(super) mod claims;
mod cycle;
pub(super) mod edits;
pub(super) mod fault;
pub(super) mod features;
pub(super) mod import;
mod issues;
pub(super) mod journal;
pub(super) mod lander;
pub(super) mod landings;
pub(super) mod queries;
pub(super) mod rebuild;
pub(super) mod sets;
pub(super) mod settle;
mod spool;
pub(super) mod store;
pub(super) mod task_log;
pub(super) mod values;

use chrono::{DateTime, Utc};

use super::holder::Holder;
use super::store::HowDone;
use super::task::Status;
use crate::text::digest;
pub(super) use fault::{Fallible, Fault};
use values::{Column, Row, Value};

/// How many ids or names are searched for the one that the user meant.
const CANDIDATES: i64 = 10_000;

/// A database within one transaction.
pub(super) trait Sql {
    /// Runs a statement with the values for `?1`, `?2` …. Where a server has to answer, an error may only be returned by a later
    /// call; nothing of the transaction is written then.
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Fallible<()>;
    /// Runs a statement, and returns how many rows it has changed.
    fn count(&self, sql: &str, values: &[Value<'_>]) -> Fallible<usize>;
    /// Runs a query and shows its rows to `each`, until that returns `false`.
    fn each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Fallible<bool>,
    ) -> Fallible<()>;
    /// Says that the next statement is the last one of the transaction, so that nothing is waited for between that and its end. If it
    /// writes, it may be asked for again after its answer was lost.
    fn last(&self) {}
    /// The time that leases are measured by, in milliseconds since 1970.
    fn now(&self) -> Fallible<i64>;
    /// How its SQL differs from that of others.
    fn dialect(&self) -> &'static Dialect;
}

/// Where the SQL of two databases differs.
#[derive(Debug)]
pub(super) struct Dialect {
    /// Joins the list of ready tasks with the tasks, in the order of the list.
    pub(super) in_order: &'static str,
    /// What comes after a query of the next task, so that two who claim at once get different ones.
    pub(super) for_claim: &'static str,
    /// What comes after a query of rows `t` that are to be booked, so that nothing else changes them until then.
    pub(super) for_booking: &'static str,
    /// Whether a process that lives holds what it has claimed here, whatever its lease says.
    pub(super) counts_processes: bool,
    /// Whether the words of the journal are in a table of their own.
    pub(super) has_word_table: bool,
    /// Compares texts without regard to case.
    pub(super) like: &'static str,
    /// The time that leases are measured by, in milliseconds since 1970.
    pub(super) clock: &'static str,
    /// The table of issues, where a graph gets it when the first issue is imported; `None` where each graph has it.
    pub(super) issues: Option<Later>,
}

/// A table that a graph may lack.
#[derive(Debug)]
pub(super) struct Later {
    /// Finds it.
    pub(super) exists: &'static str,
    /// Makes it, unless it is there.
    pub(super) create: &'static str,
}

impl dyn Sql + '_ {
    /// The first row of a query; `None` if it has none.
    pub(super) fn maybe<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl Fn(&dyn Row) -> Fallible<T>,
    ) -> Fallible<Option<T>> {
        let mut found = None;
        // To its end, so that a statement that also changes something has ended.
        self.each(sql, values, &mut |row| {
            if found.is_none() {
                found = Some(read(row)?);
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// The first row of a query that has one.
    pub(super) fn one<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl Fn(&dyn Row) -> Fallible<T>,
    ) -> Fallible<T> {
        self.maybe(sql, values, read)?.ok_or_else(|| Fault::Strange("a row is missing".to_owned()))
    }

    /// All rows of a query.
    pub(super) fn all<T, C: FromIterator<T>>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl Fn(&dyn Row) -> Fallible<T>,
    ) -> Fallible<C> {
        let mut found = Vec::new();
        self.each(sql, values, &mut |row| {
            found.push(read(row)?);
            Ok(true)
        })?;
        Ok(found.into_iter().collect())
    }

    /// Whether a query finds anything.
    pub(super) fn exists(&self, sql: &str, values: &[Value<'_>]) -> Fallible<bool> {
        let mut is_there = false;
        self.each(sql, values, &mut |_| {
            is_there = true;
            Ok(false)
        })?;
        Ok(is_there)
    }
}

/// Adds the attempt that has done a task to the journal.
fn noted(graph: &dyn Sql, done: HowDone<'_>) -> Fallible<()> {
    done.attempt.map_or(Ok(()), |attempt| journal::note(graph, attempt))
}

/// Whether a claim or a lead still holds.
fn holds(graph: &dyn Sql, holder: &Holder, lease: i64) -> Fallible<bool> {
    let (lease, now) = (moment(lease), moment(graph.now()?));
    Ok(if graph.dialect().counts_processes { holder.holds(lease, now) } else { now < lease })
}

/// What tells one claim, or one operation, from every other one.
pub(super) fn nonce() -> Fallible<String> {
    random(16)
}

/// So many random hexadecimal digits, at most 16.
fn random(digits: usize) -> Fallible<String> {
    let mut text = digest::hex(&digest::random::<8>()?);
    text.truncate(digits);
    Ok(text)
}

pub(super) fn moment(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).unwrap_or_default()
}

pub(super) fn number(status: Status) -> i64 {
    // The number of states always fits.
    Status::ALL.iter().position(|&known| known == status).and_then(|at| i64::try_from(at).ok()).unwrap_or(0)
}

pub(super) fn status(number: i64) -> Fallible<Status> {
    let known = usize::try_from(number).ok().and_then(|at| Status::ALL.get(at).copied());
    known.ok_or_else(|| Fault::Strange(format!("status {number} of a task")))
}

/// The first column of a row.
pub(super) fn first<T: Column>(row: &dyn Row) -> Fallible<T> {
    row.get(0)
}
