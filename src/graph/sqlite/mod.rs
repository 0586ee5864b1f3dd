//! The store of one machine: an `SQLite` database.
//!
//! `settle` keeps the states true after every change; `claims`, `edits` and `queries` are what a store can do.

#![expect(
    clippy::similar_names,
    reason = "blocker and blocked are the words of everybody who knows such graphs"
)]

mod claims;
mod cycle;
mod edits;
mod features;
mod import;
mod journal;
mod older;
mod open;
mod queries;
mod rebuild;
mod settle;
mod spool;
#[cfg(test)]
mod tests;

use std::env;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use super::error::GraphError;
use super::feature::{Counts, Feature};
use super::holder::Holder;
use super::import::Entry;
use super::store::{
    Changes, Claim, Ended, HowDone, Imported, JournalQuery, NewTask, Part, Place, Retries, Scope, Selection,
    Store, Stuck,
};
use super::task::{Details, LogLine, Status, Task};
use crate::files::{FileId, own};
use crate::memory::journal::Entry as JournalEntry;

use spool::Spool;

pub use open::BUSY_TIMEOUT;

/// A graph of tasks in an `SQLite` database.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    path: PathBuf,
    /// It is at that path; else it is in no file yet.
    has_place: bool,
    /// Which file it is, where that is known.
    file: Option<FileId>,
    /// The copy of an older program's database that was taken over when this one was opened.
    taken_over: Option<PathBuf>,
}

/// What goes wrong inside of an operation.
#[derive(Debug)]
enum Fault {
    /// It is refused.
    Graph(GraphError),
    /// The database fails.
    Sql(rusqlite::Error),
    /// A file beside it.
    File(io::Error),
}

type Fallible<T> = Result<T, Fault>;

impl From<GraphError> for Fault {
    fn from(error: GraphError) -> Self {
        Self::Graph(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl Fault {
    /// The same for people, who want to know which file it is about.
    fn at(self, path: &Path) -> GraphError {
        let error = match self {
            Self::Graph(error) => return error,
            Self::File(error) => {
                let advice = "move away what is there, or mend the permissions and the room of its folder";
                return GraphError::Storage { path: path.to_owned(), reason: error.to_string(), advice };
            }
            Self::Sql(error) => error,
        };
        let (path, reason) = (path.to_owned(), error.to_string());
        let advice = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "another program has locked it: end that, and try again"
            }
            Some(ErrorCode::DiskFull) => "free some space on that disk",
            Some(ErrorCode::SystemIoFailure) => "the disk may be full: free some space, or check it",
            Some(ErrorCode::NotADatabase) => {
                let (what, advice) = ("is no database".to_owned(), "move it away");
                return GraphError::Foreign { path, what, advice };
            }
            Some(ErrorCode::DatabaseCorrupt) => {
                let advice =
                    "move it away with its -wal file, and save what is left with 'sqlite3 FILE .recover'";
                return GraphError::Foreign { path, what: format!("is torn ({reason})"), advice };
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                "mend the permissions of the file and its folder"
            }
            _ => "check that file and its disk",
        };
        GraphError::Storage { path, reason, advice }
    }
}

impl SqliteStore {
    /// All that `change` does, or nothing of it.
    fn write<T>(&mut self, change: impl FnOnce(&Transaction<'_>) -> Fallible<T>) -> Result<T, GraphError> {
        let all = |connection: &mut Connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = change(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        all(&mut self.connection).map_err(|fault: Fault| fault.at(&self.path))
    }

    /// What `look` sees is one state of the database.
    fn read<T>(&self, look: impl FnOnce(&Connection) -> Fallible<T>) -> Result<T, GraphError> {
        let all = || {
            let transaction = self.connection.unchecked_transaction()?;
            look(&transaction)
        };
        all().map_err(|fault: Fault| fault.at(&self.path))
    }

    /// [`Store::put_feature`], and what belongs to it outside of the store: `also` is done when nothing but the last step of
    /// the transaction can fail any more.
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

    /// Takes back the claims of holders that are gone where that can be done without waiting, and answers how many there were.
    /// For who only wants to look: what is not taken back now is so at the next look.
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

    /// Brings what is booked onto the disk: a power cut must not take back what is done.
    fn synchronise(&self) {
        let all = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            let (written, copied): (i64, i64) = (row.get(1)?, row.get(2)?);
            Ok(written == copied)
        });
        if !matches!(all, Ok(true)) {
            // Somebody reads, or does the same: it stays in the log for now, which can be made safe as well.
            let mut log = self.path.clone().into_os_string();
            log.push("-wal");
            let _ = own::open_to_read(Path::new(&log)).and_then(|log| log.sync_all());
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
        let claim = |scope| {
            claims::claim(&self.connection, scope, holder, lease).map_err(|fault| fault.at(&self.path))
        };
        if let Some(claim) = claim(scope)? {
            return Ok(Some(claim));
        }
        // What costs more than a claim is only done when there is nothing else.
        let scope = self.read(|graph| claims::resolved(graph, scope))?;
        self.recover()?;
        claims::claim(&self.connection, &scope, holder, lease).map_err(|fault| fault.at(&self.path))
    }

    fn renew(&mut self, claim: &Claim, lease: Duration) -> Result<(), GraphError> {
        self.write(|graph| claims::renew(graph, claim, lease))
    }

    fn complete(&mut self, claim: &Claim, done: HowDone<'_>) -> Result<Ended, GraphError> {
        let ended = self.write(|graph| claims::complete(graph, claim, done))?;
        self.synchronise();
        Ok(ended)
    }

    fn fail(&mut self, claim: &Claim, reason: &str) -> Result<Ended, GraphError> {
        self.write(|graph| claims::fail(graph, claim, reason))
    }

    fn release(&mut self, claim: &Claim, why: &str) -> Result<(), GraphError> {
        self.write(|graph| claims::release(graph, claim, why))
    }

    fn mark_unverified(&mut self, claim: &Claim, commit: Option<&str>) -> Result<(), GraphError> {
        self.write(|graph| claims::mark_unverified(graph, claim, commit))
    }

    fn retry(&mut self, claim: &Claim, reason: &str, retries: Retries) -> Result<Ended, GraphError> {
        self.write(|graph| claims::retry(graph, claim, reason, retries))
    }

    fn is_unverified(&self, id: &str) -> Result<bool, GraphError> {
        self.read(|graph| claims::is_unverified(graph, queries::find(graph, id)?))
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
        if self.file.is_none_or(|file| file.is_at(&self.path)) {
            return Ok(());
        }
        let reason = "it was removed or replaced while it was in use".to_owned();
        let is_gone = self.path.symlink_metadata().is_err();
        // What is still open has all of it.
        let advice = if is_gone && self.save(&self.path).is_ok() {
            "a copy is put back; start again"
        } else {
            "look at what is there now, and start again"
        };
        Err(GraphError::Storage { path: self.path.clone(), reason, advice })
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

    fn recover(&mut self) -> Result<usize, GraphError> {
        // Most looks find nothing, and need no right to write.
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
        let id = self.write(|graph| edits::force_done(graph, id, force))?;
        self.synchronise();
        Ok(id)
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
        entries: &mut dyn Iterator<Item = Result<Entry, GraphError>>,
        dry_run: bool,
    ) -> Result<Imported, GraphError> {
        let folder = if self.has_place() { self.path.parent() } else { None };
        let folder = folder.map_or_else(env::temp_dir, Path::to_owned);
        // Nobody has to wait for us while we wait for what is to be read.
        let read = Spool::fill(&folder, entries)?;
        let mut all = || {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let imported = import::import(&transaction, &mut read.entries(&folder))?;
            if dry_run {
                transaction.rollback()?;
            } else {
                transaction.commit()?;
            }
            Ok(imported)
        };
        let imported = all().map_err(|fault: Fault| fault.at(&self.path))?;
        if !dry_run {
            self.synchronise();
        }
        Ok(imported)
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

    fn tree(&self, id: Option<&str>, each: &mut dyn FnMut(Task, Place) -> bool) -> Result<(), GraphError> {
        self.read(|graph| queries::tree(graph, id, each))
    }

    fn graph(&self, each: &mut dyn FnMut(Part<'_>) -> bool) -> Result<(), GraphError> {
        self.read(|graph| queries::graph(graph, each))
    }
}

/// Writes the whole database into the empty file `into`.
fn copy_into(connection: &Connection, into: &Path) -> Fallible<()> {
    // By its bytes: a path need not be UTF-8.
    let into = ToSqlOutput::Borrowed(ValueRef::Text(into.as_os_str().as_bytes()));
    connection.execute("VACUUM INTO ?1", [into])?;
    Ok(())
}

/// The moment as the database has it: milliseconds since 1970.
fn now() -> i64 {
    Utc::now().timestamp_millis()
}

fn moment(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).unwrap_or_default()
}

fn number(status: Status) -> i64 {
    // As many as there are fit.
    Status::ALL.iter().position(|&known| known == status).and_then(|at| i64::try_from(at).ok()).unwrap_or(0)
}

fn status(number: i64) -> Status {
    usize::try_from(number).ok().and_then(|at| Status::ALL.get(at).copied()).unwrap_or(Status::Pending)
}
