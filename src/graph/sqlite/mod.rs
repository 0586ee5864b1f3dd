//! The task store of one machine: an `SQLite` database.
//!
//! `settle` updates derived states after every change; `claims`, `edits` and `queries` implement the store's
//! operations.

#![expect(
    clippy::similar_names,
    reason = "blocker and blocked are the words of everybody who knows such graphs"
)]

mod claims;
mod cycle;
mod edits;
mod fault;
mod features;
mod files;
mod import;
mod journal;
mod lander;
mod landings;
mod older;
mod open;
mod ours;
mod queries;
mod rebuild;
mod schema;
mod seals;
mod settle;
mod spool;
mod task_log;
#[cfg(test)]
mod tests;
mod unbooked;

use std::cell::OnceCell;
use std::collections::HashSet;
use std::env;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::error::GraphError;
use super::feature::{Counts, Feature};
use super::holder::Holder;
use super::import::ImportEntry;
use super::landing::{AtGate, Landing, Lead, Made};
use super::store::{
    Changes, Claim, Ended, HowDone, Imported, JournalQuery, NewTask, Part, Retries, Scope, Selection, Store,
    Stuck, TreePosition, Unbooked,
};
use super::task::{Details, LogLine, Status, Task};
use crate::files::own;
use crate::memory::journal::JournalEntry;

use fault::{Fallible, Fault};
use files::Files;
use seals::Seals;
use spool::Spool;

pub use open::BUSY_TIMEOUT;

/// How many ids or names are searched for the one that the user meant.
const CANDIDATES: i64 = 10_000;

/// A graph of tasks in an `SQLite` database.
#[derive(Debug)]
pub struct SqliteStore {
    /// Declared first, so that it is closed before its files are free.
    connection: Connection,
    path: PathBuf,
    /// The database's files; `None` for a graph in memory.
    files: Option<Files>,
    /// The key that seals what this store writes.
    seals: Option<Seals>,
    /// The ids of the tasks that were booked as done through this store.
    booked: HashSet<String>,
    /// The data version at the last check of all done tasks.
    looked_at: Option<i64>,
    /// The file that was removed or replaced, and what was kept.
    lost: OnceCell<(PathBuf, String)>,
    /// The copy of an older program's database that was migrated when this store was opened.
    taken_over: Option<PathBuf>,
}

impl SqliteStore {
    /// Runs `change` in one transaction, whose result other processes can see.
    fn write<T>(&mut self, change: impl FnOnce(&Transaction<'_>) -> Fallible<T>) -> Result<T, GraphError> {
        self.look_after()?;
        let Self { connection, seals, .. } = self;
        let all = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = change(&transaction)?;
            if seals.is_some() {
                seals::seal_touched(&transaction)?;
            }
            transaction.commit()?;
            Ok(value)
        };
        let written = all();
        self.checked(written)
    }

    /// [`SqliteStore::write`] with a sync to disk: a power cut must not undo it.
    fn write_through<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> Fallible<T>,
    ) -> Result<T, GraphError> {
        let synchronous =
            |store: &Self, how| store.connection.pragma_update(None, "synchronous", how).map_err(Fault::from);
        synchronous(self, "FULL").map_err(|fault| fault.at(&self.path))?;
        let written = self.write(change);
        synchronous(self, "NORMAL").map_err(|fault| fault.at(&self.path))?;
        written
    }

    /// Runs `look` on one state of the database.
    fn read<T>(&self, look: impl FnOnce(&Connection) -> Fallible<T>) -> Result<T, GraphError> {
        let all = || {
            let transaction = self.connection.unchecked_transaction()?;
            look(&transaction)
        };
        let seen = all();
        self.checked(seen)
    }

    /// A number that changes whenever another connection writes.
    fn data_version(&self) -> Result<i64, GraphError> {
        self.read(|graph| Ok(graph.pragma_query_value(None, "data_version", |row| row.get(0))?))
    }

    /// The result of an operation, if the files are still in place.
    fn checked<T>(&self, done: Fallible<T>) -> Result<T, GraphError> {
        self.look_after()?;
        done.map_err(|fault| fault.at(&self.path))
    }

    /// Keeps a copy once its files are no longer in place: the open connection still has the data.
    fn rescue(&self, files: &Files) -> String {
        let put_back = || files.clear().is_ok() && self.save(&self.path).is_ok();
        if files.is_free() && put_back() {
            return "a copy is put back; start again".to_owned();
        }
        match keep_copy(&self.connection, &self.path, ".kept") {
            Ok(copy) => format!(
                "all that was written is kept in {}: compare it with what is there now, and start again",
                copy.display()
            ),
            Err(fault) => format!("it cannot be kept either, {}", fault.at(&self.path)),
        }
    }

    /// [`Store::put_feature`] with a step outside the store: `also` runs when only the commit can still fail.
    pub fn put_feature_with(
        &mut self,
        name: &str,
        spec: Option<&str>,
        plan: Option<&str>,
        also: impl FnOnce() -> Result<(), GraphError>,
    ) -> Result<(), GraphError> {
        self.write(|graph| {
            features::put(graph, name, spec, plan)?;
            Ok(also()?)
        })
    }

    /// A task and the tasks above it, the nearest first.
    pub fn with_above(&self, id: &str) -> Result<Vec<Task>, GraphError> {
        self.read(|graph| queries::with_above(graph, queries::find(graph, id)?))
    }

    /// Makes every task that has parts and only a title a group.
    pub fn group_by_titles(&mut self) -> Result<(), GraphError> {
        self.write(|graph| edits::group_by_titles(graph))
    }

    /// Returns the claims of dead holders if that needs no waiting, and says how many there were. For commands that
    /// only read: the next one tries again.
    pub fn recover_at_once(&mut self) -> usize {
        let patience = |connection: &Connection| {
            connection.pragma_query_value(None, "busy_timeout", |row| row.get(0)).map(Duration::from_millis)
        };
        let Ok(patience) = patience(&self.connection) else { return 0 };
        let _ = self.connection.busy_timeout(Duration::ZERO);
        let count = self.recover().unwrap_or(0);
        let _ = self.connection.busy_timeout(patience);
        count
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The last connection that closes removes the files beside the database by name, which may be another
        // database's by now.
        if self.files.as_ref().is_some_and(|files| files.lost().is_some()) {
            let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

impl Store for SqliteStore {
    fn claim(
        &mut self,
        scope: &Scope,
        holder: &Holder,
        lease: Duration,
    ) -> Result<Option<Claim>, GraphError> {
        self.look_after()?;
        let claim = |scope| self.checked(claims::claim(&self.connection, scope, holder, lease));
        if let Some(claim) = claim(scope)? {
            return Ok(Some(claim));
        }
        // Expensive steps run only if there is nothing to claim.
        let scope = self.read(|graph| claims::resolved(graph, scope))?;
        self.recover()?;
        self.checked(claims::claim(&self.connection, &scope, holder, lease))
    }

    fn renew(&mut self, claim: &Claim, lease: Duration) -> Result<(), GraphError> {
        self.write(|graph| claims::renew(graph, claim, lease))
    }

    fn complete(&mut self, claim: &Claim, done: HowDone<'_>) -> Result<Ended, GraphError> {
        let ended = self.write_through(|graph| {
            let ended = claims::complete(graph, claim, done)?;
            noted(graph, ended == Ended::Done, done)?;
            Ok(ended)
        })?;
        if ended == Ended::Done {
            self.booked.insert(claim.task.clone());
        }
        Ok(ended)
    }

    fn claim_returned(
        &mut self,
        scope: &Scope,
        holder: &Holder,
        lease: Duration,
    ) -> Result<Option<Claim>, GraphError> {
        let scope = self.read(|graph| claims::resolved(graph, scope))?;
        self.checked(claims::claim_returned(&self.connection, &scope, holder, lease))
    }

    fn keep(&mut self, claim: &Claim, made: &Made) -> Result<(), GraphError> {
        self.write(|graph| lander::keep(graph, claim, made))
    }

    fn queue(&mut self, claim: &Claim, made: &Made, done: HowDone<'_>) -> Result<Ended, GraphError> {
        let ended = self.write_through(|graph| {
            let ended = lander::queue(graph, claim, made, done.is_verified)?;
            noted(graph, ended == Ended::Queued, done)?;
            Ok(ended)
        })?;
        if ended == Ended::Queued {
            self.booked.insert(claim.task.clone());
        }
        Ok(ended)
    }

    fn landing(&self, id: &str) -> Result<Option<Landing>, GraphError> {
        self.read(|graph| landings::of_task(graph, queries::find(graph, id)?))
    }

    fn landings(&self) -> Result<Vec<Landing>, GraphError> {
        self.read(landings::on_the_way)
    }

    fn lead(&mut self, trunk: &str, holder: &Holder, lease: Duration) -> Result<Option<Lead>, GraphError> {
        self.write(|graph| lander::lead(graph, trunk, holder, lease))
    }

    fn leader(&self, trunk: &str) -> Result<Option<Holder>, GraphError> {
        self.read(|graph| lander::leader(graph, trunk))
    }

    fn give_up_lead(&mut self, lead: &Lead) -> Result<(), GraphError> {
        self.write(|graph| lander::give_up_lead(graph, lead))
    }

    fn land(&mut self, lead: &Lead, landing: &Landing, tip: &str, commit: &str) -> Result<bool, GraphError> {
        self.write_through(|graph| lander::land(graph, lead, landing, (tip, commit)))
    }

    fn give_back(
        &mut self,
        lead: &Lead,
        landing: &Landing,
        reason: &str,
        most: u32,
    ) -> Result<Option<Ended>, GraphError> {
        let ended = self.write(|graph| lander::give_back(graph, lead, landing, reason, most))?;
        self.booked.remove(&landing.task);
        Ok(ended)
    }

    fn adopt(&mut self, from: &str, to: &str) -> Result<(), GraphError> {
        self.write(|graph| lander::adopt(graph, from, to))
    }

    fn gate_begins(&mut self, lead: &Lead, landings: &[&Landing]) -> Result<(), GraphError> {
        self.write(|graph| lander::gate_begins(graph, lead, landings))
    }

    fn gate_ends(&mut self, lead: &Lead) -> Result<(), GraphError> {
        self.write(|graph| lander::gate_ends(graph, lead))
    }

    fn gates(&self) -> Result<Vec<AtGate>, GraphError> {
        self.read(lander::gates)
    }

    fn fail(&mut self, claim: &Claim, reason: &str) -> Result<Ended, GraphError> {
        self.write(|graph| claims::fail(graph, claim, reason))
    }

    fn release(&mut self, claim: &Claim, why: &str) -> Result<(), GraphError> {
        self.write(|graph| claims::release(graph, claim, why))
    }

    fn reopen(&mut self, id: &str, why: &str) -> Result<bool, GraphError> {
        let is_open_again = self.write(|graph| claims::reopen(graph, queries::find(graph, id)?, why))?;
        self.booked.remove(id);
        Ok(is_open_again)
    }

    fn release_changed(&mut self, id: &str, run: &str) -> Result<bool, GraphError> {
        self.write(|graph| claims::release_changed(graph, id, run))
    }

    fn mark_unverified(&mut self, claim: &Claim, commit: Option<&str>) -> Result<(), GraphError> {
        self.write(|graph| claims::mark_unverified(graph, claim, commit))
    }

    fn mark_verified(&mut self, claim: &Claim, commit: &str) -> Result<(), GraphError> {
        self.write(|graph| claims::mark_verified(graph, claim, commit))
    }

    fn retry(&mut self, claim: &Claim, reason: &str, retries: Retries) -> Result<Ended, GraphError> {
        self.write(|graph| claims::retry(graph, claim, reason, retries))
    }

    fn is_unverified(&self, id: &str) -> Result<bool, GraphError> {
        self.read(|graph| claims::is_unverified(graph, queries::find(graph, id)?))
    }

    fn verified_at(&self, id: &str) -> Result<Option<String>, GraphError> {
        if self.seals.is_none() {
            return Ok(None);
        }
        self.read(|graph| claims::verified_at(graph, queries::find(graph, id)?))
    }

    fn commits_before(&self, id: &str) -> Result<Vec<(String, String)>, GraphError> {
        self.read(|graph| queries::commits_before(graph, queries::find(graph, id)?))
    }

    fn counts(&self, scope: &Scope) -> Result<Counts, GraphError> {
        self.read(|graph| queries::counts(graph, &claims::resolved(graph, scope)?))
    }

    fn unresolved(&self, scope: &Scope, most: usize) -> Result<Vec<Stuck>, GraphError> {
        self.read(|graph| queries::unresolved(graph, &claims::resolved(graph, scope)?, most))
    }

    fn failed(&self, scope: &Scope, most: usize) -> Result<Vec<Task>, GraphError> {
        self.read(|graph| queries::failed(graph, &claims::resolved(graph, scope)?, most))
    }

    fn look_after(&self) -> Result<(), GraphError> {
        let Some(files) = &self.files else { return Ok(()) };
        let Some(path) = files.lost() else { return Ok(()) };
        let (path, advice) = self.lost.get_or_init(|| (path.to_owned(), self.rescue(files))).clone();
        Err(GraphError::Lost { path, advice })
    }

    fn note(&mut self, entry: &JournalEntry) -> Result<(), GraphError> {
        self.write(|graph| journal::note(graph, entry))
    }

    fn journal(
        &self,
        query: &JournalQuery,
        each: &mut dyn FnMut(JournalEntry) -> bool,
    ) -> Result<(), GraphError> {
        self.read(|graph| journal::search(graph, query, each))
    }

    fn reopen_unbooked(&mut self, run: &str) -> Result<Unbooked, GraphError> {
        let version = self.data_version()?;
        // No other program has written since the last check.
        if self.looked_at == Some(version) {
            return Ok(Unbooked::default());
        }
        let is_first = self.looked_at.is_none();
        let (path, booked, mut seals) = (self.path.clone(), self.booked.clone(), self.seals.clone());
        let look = |graph: &Connection, seals: Option<&Seals>| {
            open::require_version(graph, &path)?;
            schema::require(graph, &path)?;
            unbooked::require_indexes(graph, &path)?;
            if let Some(seals) = seals {
                seals.require_seen(graph, &path)?;
            }
            unbooked::doubts(graph, &path, (run, &booked), seals, is_first)
        };
        let told = seals.as_ref().map(|seals| seals.told.clone()).unwrap_or_default();
        let known =
            |graph: &Connection| -> Fallible<_> { Ok((seals::identity(graph)?, seals::debt(graph)?)) };
        let sound = self.read(|graph| {
            let doubts = look(graph, seals.as_ref())?;
            Ok(if doubts.is_empty() { Some((doubts.untold(graph, &told)?, known(graph)?)) } else { None })
        })?;
        let (found, (seen, debt)) = match sound {
            Some(sound) => sound,
            None => self.write(|graph| {
                // Another run may have repaired it meanwhile.
                let doubts = look(graph, seals.as_ref())?;
                let untold = doubts.untold(graph, &told)?;
                let found = unbooked::put_right(graph, &doubts, seals.is_some())?;
                if let Some(seals) = &mut seals {
                    seals.reopened.extend(doubts.reopened());
                    seals.contested.extend(doubts.contested());
                }
                Ok((found.and(untold), known(graph)?))
            })?,
        };
        if let Some(seals) = &mut seals {
            (seals.seen, seals.told) = (seen, debt);
        }
        self.seals = seals;
        self.looked_at = Some(version);
        Ok(found)
    }

    fn settle_doubts(&mut self) -> Result<(), GraphError> {
        let told = self.seals.as_mut().map(|seals| std::mem::take(&mut seals.told)).unwrap_or_default();
        if told == seals::Debt::default() {
            return Ok(());
        }
        self.write(|graph| seals::settle(graph, &told))
    }

    fn is_as_looked_at(&self) -> Result<bool, GraphError> {
        Ok(self.looked_at == Some(self.data_version()?))
    }

    fn recover(&mut self) -> Result<usize, GraphError> {
        // Usually there is nothing to recover, and no write lock is needed.
        if self.read(claims::dead)?.is_empty() {
            return Ok(0);
        }
        self.write(claims::recover)
    }

    fn add(&mut self, task: &NewTask) -> Result<String, GraphError> {
        self.write(|graph| edits::add(graph, task))
    }

    fn update(&mut self, id: &str, changes: &Changes) -> Result<(), GraphError> {
        self.write(|graph| edits::update(graph, id, changes))
    }

    fn force_done(&mut self, id: &str, force: bool) -> Result<String, GraphError> {
        self.write_through(|graph| edits::force_done(graph, id, force))
    }

    fn force_fail(&mut self, id: &str, reason: &str) -> Result<String, GraphError> {
        self.write(|graph| edits::force_fail(graph, id, reason))
    }

    fn reset(&mut self, id: &str) -> Result<String, GraphError> {
        self.write(|graph| edits::reset(graph, id))
    }

    fn delete(&mut self, id: &str, recursive: bool) -> Result<usize, GraphError> {
        self.write(|graph| edits::delete(graph, id, recursive))
    }

    fn log(&mut self, id: &str, message: &str) -> Result<(), GraphError> {
        self.write(|graph| edits::log(graph, id, message))
    }

    fn add_dependency(&mut self, blocker: &str, blocked: &str) -> Result<(), GraphError> {
        self.write(|graph| {
            let (blocker, blocked) = (queries::find(graph, blocker)?, queries::find(graph, blocked)?);
            edits::add_dependency(graph, blocker, blocked)
        })
    }

    fn remove_dependency(&mut self, blocker: &str, blocked: &str) -> Result<(), GraphError> {
        self.write(|graph| edits::remove_dependency(graph, blocker, blocked))
    }

    fn import(
        &mut self,
        entries: &mut dyn Iterator<Item = Result<ImportEntry, GraphError>>,
        dry_run: bool,
    ) -> Result<Imported, GraphError> {
        let folder = if self.has_place() { self.path.parent() } else { None };
        let folder = folder.map_or_else(env::temp_dir, Path::to_owned);
        // Reading may wait for a pipe; no transaction is open meanwhile.
        let read = Spool::fill(&folder, entries)?;
        if dry_run {
            self.look_after()?;
            let mut all = || {
                // Waits for a writer before it begins.
                let transaction =
                    self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let imported = import::import(&transaction, &mut read.entries(&folder))?;
                transaction.rollback()?;
                Ok(imported)
            };
            let imported = all();
            return self.checked(imported);
        }
        self.write_through(|graph| import::import(graph, &mut read.entries(&folder)))
    }

    fn put_feature(&mut self, name: &str, spec: Option<&str>, plan: Option<&str>) -> Result<(), GraphError> {
        self.put_feature_with(name, spec, plan, || Ok(()))
    }

    fn delete_feature(&mut self, name: &str) -> Result<(), GraphError> {
        self.write(|graph| features::delete(graph, name))
    }

    fn feature(&self, name: &str) -> Result<Feature, GraphError> {
        self.read(|graph| features::one(graph, name))
    }

    fn features(&self) -> Result<Vec<Feature>, GraphError> {
        self.read(features::all)
    }

    fn export(&self, each: &mut dyn FnMut(&str) -> bool) -> Result<(), GraphError> {
        self.read(|graph| queries::export(graph, each))
    }

    fn task(&self, id: &str) -> Result<Task, GraphError> {
        self.read(|graph| queries::task(graph, queries::find(graph, id)?))
    }

    fn details(&self, id: &str) -> Result<Details, GraphError> {
        self.read(|graph| queries::details(graph, queries::find(graph, id)?))
    }

    fn logs(&self, id: &str) -> Result<Vec<LogLine>, GraphError> {
        self.read(|graph| queries::logs(graph, queries::find(graph, id)?))
    }

    fn list(&self, selection: &Selection, each: &mut dyn FnMut(Task) -> bool) -> Result<(), GraphError> {
        self.read(|graph| queries::list(graph, selection, each))
    }

    fn tree(
        &self,
        id: Option<&str>,
        each: &mut dyn FnMut(Task, TreePosition) -> bool,
    ) -> Result<(), GraphError> {
        self.read(|graph| queries::tree(graph, id, each))
    }

    fn graph(&self, each: &mut dyn FnMut(Part<'_>) -> bool) -> Result<(), GraphError> {
        self.read(|graph| queries::graph(graph, each))
    }
}

/// Adds the attempt of a task that `is_done` to the journal.
fn noted(graph: &Connection, is_done: bool, done: HowDone<'_>) -> Fallible<()> {
    done.attempt.filter(|_| is_done).map_or(Ok(()), |attempt| journal::note(graph, attempt))
}

/// Writes the whole database into the empty file `into`.
fn copy_into(connection: &Connection, into: &Path) -> Fallible<()> {
    // As bytes, because a path need not be UTF-8.
    let into = ToSqlOutput::Borrowed(ValueRef::Text(into.as_os_str().as_bytes()));
    connection.execute("VACUUM INTO ?1", [into])?;
    Ok(())
}

/// Keeps a copy of the whole database beside it, named with the suffix `end`, and returns its path.
fn keep_copy(connection: &Connection, path: &Path, end: &str) -> Fallible<PathBuf> {
    let mut name = OsString::from(path.file_name().unwrap_or_default());
    name.push(end);
    for number in 1_u32.. {
        let copy = path.with_file_name(if number == 1 {
            name.clone()
        } else {
            let mut numbered = name.clone();
            numbered.push(format!("-{number}"));
            numbered
        });
        match own::create_filled(&copy, |into| copy_into(connection, into)) {
            Err(Fault::File(error)) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| copy),
        }
    }
    Err(io::Error::from(ErrorKind::AlreadyExists).into())
}

/// The current time as the database has it: milliseconds since 1970.
fn now() -> i64 {
    Utc::now().timestamp_millis()
}

fn moment(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).unwrap_or_default()
}

fn number(status: Status) -> i64 {
    // The number of states always fits.
    Status::ALL.iter().position(|&known| known == status).and_then(|at| i64::try_from(at).ok()).unwrap_or(0)
}

fn status(number: i64) -> Status {
    usize::try_from(number).ok().and_then(|at| Status::ALL.get(at).copied()).unwrap_or(Status::Pending)
}
