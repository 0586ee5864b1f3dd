//! The task store of one machine: an `SQLite` database.

mod files;
mod older;
mod open;
mod ours;
mod schema;
mod seals;
#[cfg(test)]
mod tests;
mod unbooked;

use std::cell::{Cell, OnceCell};
use std::collections::HashSet;
use std::env;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::Utc;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, TransactionBehavior, params_from_iter};

use super::error::GraphError;
use super::sql::store::{Database, Write};
use super::sql::values::{Row, Value};
use super::sql::{Dialect, Fallible, Fault, Later, Sql, claims, edits, features, nonce, queries};
use super::store::{Store as _, Unbooked};
use crate::files::own;

use files::Files;
use seals::Seals;

pub use open::BUSY_TIMEOUT;
pub(super) use schema::TABLES;

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
    fn change<T>(&mut self, change: impl FnOnce(&Connection) -> Fallible<T>) -> Result<T, GraphError> {
        self.is_in_place()?;
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

    /// Runs `look` on one state of the database.
    fn look<T>(&self, look: impl FnOnce(&Connection) -> Fallible<T>) -> Result<T, GraphError> {
        let all = || {
            let transaction = self.connection.unchecked_transaction()?;
            look(&transaction)
        };
        let seen = all();
        self.checked(seen)
    }

    /// A number that changes whenever another connection writes.
    fn data_version(&self) -> Result<i64, GraphError> {
        self.look(|graph| Ok(graph.pragma_query_value(None, "data_version", |row| row.get(0))?))
    }

    /// The result of an operation, if the files are still in place.
    fn checked<T>(&self, done: Fallible<T>) -> Result<T, GraphError> {
        self.is_in_place()?;
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

    /// [`Store::put_feature`](super::Store::put_feature) with a step outside the store: `also` runs when only the commit can still fail.
    pub fn put_feature_with(
        &mut self,
        name: &str,
        spec: Option<&str>,
        plan: Option<&str>,
        also: impl FnOnce() -> Result<(), GraphError>,
    ) -> Result<(), GraphError> {
        self.change(|graph| {
            features::put(graph, name, spec, plan)?;
            Ok(also()?)
        })
    }

    /// Makes every task that has parts and only a title a group.
    pub fn group_by_titles(&mut self) -> Result<(), GraphError> {
        self.change(|graph| edits::group_by_titles(graph))
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

impl Database for SqliteStore {
    fn write<T>(&mut self, how: Write, change: impl Fn(&dyn Sql) -> Fallible<T>) -> Result<T, GraphError> {
        if !how.lasts {
            return self.change(|graph| change(graph));
        }
        let synchronous =
            |store: &Self, how| store.connection.pragma_update(None, "synchronous", how).map_err(Fault::from);
        synchronous(self, "FULL").map_err(|fault| fault.at(&self.path))?;
        let written = self.change(|graph| change(graph));
        synchronous(self, "NORMAL").map_err(|fault| fault.at(&self.path))?;
        written
    }

    fn peek<T>(&self, look: impl Fn(&dyn Sql, &str) -> Fallible<T>) -> Result<T, GraphError> {
        self.read(|graph| look(graph, ""))
    }

    fn touch<T>(&mut self, write: impl Fn(&dyn Sql, &str) -> Fallible<T>) -> Result<T, GraphError> {
        self.write(Write { is_shape: false, lasts: false }, |graph| write(graph, ""))
    }

    fn take<T>(&mut self, change: impl Fn(&dyn Sql, &str, bool) -> Fallible<T>) -> Result<T, GraphError> {
        self.is_in_place()?;
        self.checked(nonce().and_then(|nonce| change(&self.connection, &nonce, false)))
    }

    fn try_out<T>(&mut self, change: &dyn Fn(&dyn Sql) -> Fallible<T>) -> Result<T, GraphError> {
        self.is_in_place()?;
        let mut all = || {
            // Waits for a writer before it begins.
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = change(&*transaction)?;
            transaction.rollback()?;
            Ok(value)
        };
        let tried = all();
        self.checked(tried)
    }

    fn read<T>(&self, look: impl Fn(&dyn Sql) -> Fallible<T>) -> Result<T, GraphError> {
        self.look(|graph| look(graph))
    }

    fn read_through<T>(
        &self,
        _: &Cell<bool>,
        mut look: impl FnMut(&dyn Sql) -> Fallible<T>,
    ) -> Result<T, GraphError> {
        self.look(|graph| look(graph))
    }

    fn scratch(&self) -> PathBuf {
        let folder = if self.has_place() { self.path.parent() } else { None };
        folder.map_or_else(env::temp_dir, Path::to_owned)
    }

    fn has_booked(&mut self, id: &str, is_done: bool) {
        if is_done {
            self.booked.insert(id.to_owned());
        } else {
            self.booked.remove(id);
        }
    }

    fn is_in_place(&self) -> Result<(), GraphError> {
        let Some(files) = &self.files else { return Ok(()) };
        let Some(path) = files.lost() else { return Ok(()) };
        let (path, advice) = self.lost.get_or_init(|| (path.to_owned(), self.rescue(files))).clone();
        Err(GraphError::Lost { path, advice })
    }

    fn verified_commit(&self, id: &str) -> Result<Option<String>, GraphError> {
        if self.seals.is_none() {
            return Ok(None);
        }
        self.look(|graph| {
            let seq = queries::find(graph, id)?;
            // Only a seal shows that ralph wrote it.
            if seals::is_sealed(graph, seq)? { claims::verified_at(graph, seq) } else { Ok(None) }
        })
    }

    fn check(&mut self, run: &str) -> Result<Unbooked, GraphError> {
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
        let sound = self.look(|graph| {
            let doubts = look(graph, seals.as_ref())?;
            Ok(if doubts.is_empty() { Some((doubts.untold(graph, &told)?, known(graph)?)) } else { None })
        })?;
        let (found, (seen, debt)) = match sound {
            Some(sound) => sound,
            None => self.change(|graph| {
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

    fn settle_checked(&mut self) -> Result<(), GraphError> {
        let told = self.seals.as_mut().map(|seals| std::mem::take(&mut seals.told)).unwrap_or_default();
        if told == seals::Debt::default() {
            return Ok(());
        }
        self.change(|graph| seals::settle(graph, &told))
    }

    fn is_as_checked(&self) -> Result<bool, GraphError> {
        Ok(self.looked_at == Some(self.data_version()?))
    }
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

/// How `SQLite` differs from other databases.
static DIALECT: Dialect = Dialect {
    // It would not keep to the order of the list otherwise.
    in_order: "CROSS JOIN",
    // One writes at a time.
    for_claim: "",
    for_booking: "",
    counts_processes: true,
    has_word_table: true,
    like: "LIKE",
    clock: "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)",
    // An earlier ralph refuses a graph of a later version, and does not mind this table.
    issues: Some(Later {
        exists: "SELECT 1 FROM sqlite_schema WHERE name = 'ralph_issues'",
        create: "CREATE TABLE IF NOT EXISTS ralph_issues
            (origin TEXT PRIMARY KEY, address TEXT NOT NULL, priority INTEGER) STRICT, WITHOUT ROWID",
    }),
};

impl Sql for Connection {
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Fallible<()> {
        self.count(sql, values).map(drop)
    }

    fn count(&self, sql: &str, values: &[Value<'_>]) -> Fallible<usize> {
        Ok(self.prepare_cached(sql)?.execute(params_from_iter(values))?)
    }

    fn each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Fallible<bool>,
    ) -> Fallible<()> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            if !each(row)? {
                break;
            }
        }
        Ok(())
    }

    fn now(&self) -> Fallible<i64> {
        Ok(now())
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl Row for rusqlite::Row<'_> {
    fn int(&self, at: usize) -> Fallible<Option<i64>> {
        Ok(self.get(at)?)
    }

    fn real(&self, at: usize) -> Fallible<Option<f64>> {
        Ok(self.get(at)?)
    }

    fn text(&self, at: usize) -> Fallible<Option<String>> {
        Ok(self.get(at)?)
    }
}
