//! Opens a database: a new one is made, one of the older program is taken over, and what is not ours is left alone.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::files::Files;
use super::schema::TABLES;
use super::seals::{self, Seals};
use super::{Fallible, Fault, SqliteStore, copy_into, keep_copy, older};
use crate::files::own;
use crate::graph::error::GraphError;
use crate::graph::seal::Key;

/// How long an operation waits for other programs.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Whose database it is, in its header: `RALP`.
pub(super) const APPLICATION_ID: i64 = 0x5241_4c50;
/// The version of the schema, in the header as well. A database with another one is refused.
const VERSION: i64 = 6;
/// A little more than what is read of a database over and over, in KiB.
const CACHE: i64 = 6 * 1024;
/// How long to wait until a look at who sets the journal's mode is worth it again.
const TICK: Duration = Duration::from_millis(5);

impl SqliteStore {
    /// Opens the database at `path`, and makes it where nothing is there. One of an older program is taken over, see
    /// [`SqliteStore::taken_over`].
    ///
    /// Nothing is sealed: where a key is at hand, [`SqliteStore::open_sealed`].
    pub fn open(path: &Path, busy_timeout: Duration) -> Result<Self, GraphError> {
        Self::open_sealed(path, busy_timeout, None)
    }

    /// [`SqliteStore::open`], and what is written through it is sealed with this key, if there is one.
    pub fn open_sealed(path: &Path, busy_timeout: Duration, key: Option<Key>) -> Result<Self, GraphError> {
        let seals = key.map(Seals::of);
        let open = || {
            make(path, seals.as_ref())?;
            let files = Files::of(path)?;
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let mut connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(busy_timeout)?;
            let origin = origin(&connection, path)?;
            let is_wal = set_wal(&connection, busy_timeout)?;
            let taken_over = set_up(&mut connection, path, origin, seals.as_ref())?;
            let files = if is_wal { files.with_files_beside().map_err(|_| replaced(path))? } else { files };
            if files.lost().is_some() {
                return Err(replaced(path).into());
            }
            Ok((connection, files, taken_over))
        };
        let (connection, files, taken_over) = open().map_err(|fault: Fault| fault.at(path))?;
        Ok(Self::of(connection, path.to_owned(), Some(files), seals, taken_over))
    }

    fn of(
        connection: Connection,
        path: PathBuf,
        files: Option<Files>,
        seals: Option<Seals>,
        taken_over: Option<PathBuf>,
    ) -> Self {
        let (booked, lost) = (HashSet::new(), OnceCell::new());
        Self { connection, path, files, seals, booked, looked_at: None, lost, taken_over }
    }

    /// A graph that is empty and has no place, for verbs that only look, or do not know yet whether there will be one.
    pub fn nowhere() -> Result<Self, GraphError> {
        Self::nowhere_sealed(None)
    }

    /// [`SqliteStore::nowhere`], and what is written through it is sealed with this key, if there is one.
    pub fn nowhere_sealed(key: Option<Key>) -> Result<Self, GraphError> {
        let seals = key.map(Seals::of);
        // What does not fit into memory goes into a file without a name.
        let path = env::temp_dir();
        let open = || {
            let mut connection = Connection::open("")?;
            set_up(&mut connection, &path, Origin::Empty, seals.as_ref())?;
            Ok(connection)
        };
        let connection = open().map_err(|fault: Fault| fault.at(&path))?;
        Ok(Self::of(connection, path, None, seals, None))
    }

    /// Gives a graph that has no place one, where nothing is.
    pub fn save(&self, path: &Path) -> Result<(), GraphError> {
        let copy = |into: &Path| {
            copy_into(&self.connection, into)?;
            // A copy has no WAL: opening it changes that, and nobody else has to.
            Self::open(into, BUSY_TIMEOUT).map(drop)?;
            Ok(())
        };
        own::create_filled(path, copy).map_err(|fault| match fault {
            Fault::File(error) if error.kind() == ErrorKind::AlreadyExists => {
                GraphError::BadValue("another process has made a graph meanwhile: try again".into())
            }
            fault => fault.at(path),
        })
    }

    /// Whether it is in a file, or has to be [saved](SqliteStore::save) to stay.
    #[must_use]
    pub fn has_place(&self) -> bool {
        self.files.is_some()
    }

    /// The copy that was kept of an older program's database, if this one was made of it just now.
    #[must_use]
    pub fn taken_over(&self) -> Option<&Path> {
        self.taken_over.as_deref()
    }
}

/// Makes a database where nothing is: all of it or none, so that an empty file is never ours.
fn make(path: &Path, seals: Option<&Seals>) -> Fallible<()> {
    let fill = |into: &Path| {
        let mut connection = Connection::open_with_flags(into, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        set_up(&mut connection, into, Origin::Empty, seals).map(drop)
    };
    if own::ensure(path, fill)?.len() == 0 {
        return Err(GraphError::damaged(path, "another program has truncated it: it is empty").into());
    }
    Ok(())
}

/// Another program has put other files in its place while it was opened.
fn replaced(path: &Path) -> GraphError {
    GraphError::Lost { path: path.to_owned(), advice: "nothing was written: try again".to_owned() }
}

/// What a database is, before anything is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Ours,
    /// Nothing is in it.
    Empty,
    /// Of the program that was here before.
    Older,
}

/// Brings a database to our schema. Answers where the copy is that was kept of another one.
fn set_up(
    connection: &mut Connection,
    path: &Path,
    origin: Origin,
    seals: Option<&Seals>,
) -> Fallible<Option<PathBuf>> {
    // The file is not to be trusted: nothing in it may call our functions.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    seals.map_or(Ok(()), |seals| seals::teach(connection, &seals.key))?;
    connection.set_prepared_statement_cache_capacity(64);
    // Else a statement that is run again with other values is compiled anew where an index is partial.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.execute_batch(&format!(
        "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -{CACHE}; PRAGMA foreign_keys = OFF"
    ))?;
    // Also where another process was faster. To read it, `SQLite` makes the files beside the database.
    let is_ours = header(connection)?.0 == APPLICATION_ID;
    let copy = match origin {
        _ if is_ours => None,
        Origin::Older => take_over(connection, path, seals.is_some())?,
        Origin::Ours | Origin::Empty => {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another process may have been faster.
            if header(&transaction)?.0 != APPLICATION_ID {
                transaction.execute_batch(TABLES)?;
                sign(transaction, seals.is_some())?;
            }
            None
        }
    };
    connection.execute_batch("PRAGMA foreign_keys = ON")?;
    // Only those of the connection itself from here on: what another program leaves in the file would change what we write.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    seals.map_or(Ok(()), |_| seals::watch(connection))?;
    Ok(copy)
}

/// Makes a database of an older program ours. A copy is kept first; the rest is one transaction.
fn take_over(connection: &mut Connection, path: &Path, has_key: bool) -> Fallible<Option<PathBuf>> {
    let copy = keep_copy(connection, path, ".older")?;
    let mut taken = || {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if header(&transaction)?.0 == APPLICATION_ID {
            return Ok(false);
        }
        older::take_over(&transaction, path)?;
        sign(transaction, has_key)?;
        Ok(true)
    };
    let taken: Fallible<bool> = taken();
    if matches!(taken, Ok(true)) {
        return Ok(Some(copy));
    }
    // Another process was faster, or it stays as it is: one copy too many.
    fs::remove_file(&copy)?;
    taken.map(|_| None)
}

/// Writes into the header whose database it is, and ends the transaction. Tasks that were taken over are not sealed: an agent can
/// write such a database and call ralph. A run looks at them first.
fn sign(transaction: Transaction<'_>, has_key: bool) -> Fallible<()> {
    if has_key {
        seals::seal_empty(&transaction)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(transaction.commit()?)
}

/// Refuses a database whose schema is not ours any more: another program has set its version back, or forward.
pub(super) fn require_version(connection: &Connection, path: &Path) -> Fallible<()> {
    match header(connection)? {
        (APPLICATION_ID, VERSION) => Ok(()),
        (_, version) => {
            let what = format!(
                "another program has changed the version of its schema ({version}, known is {VERSION})"
            );
            Err(GraphError::damaged(path, &what).into())
        }
    }
}

/// Whose database it is, and of which version.
fn header(connection: &Connection) -> Fallible<(i64, i64)> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get(0));
    Ok((pragma("application_id")?, pragma("user_version")?))
}

/// Refuses what is not ours to change.
fn origin(connection: &Connection, path: &Path) -> Fallible<Origin> {
    let foreign = |what: String, advice| GraphError::Foreign { path: path.to_owned(), what, advice };
    // One state of it: another process may be just about to make it ours.
    let connection = connection.unchecked_transaction()?;
    let (application, user_version) = header(&connection)?;
    if application == APPLICATION_ID {
        if user_version > VERSION {
            let what = format!("was written by a newer ralph (version {user_version}, known is {VERSION})");
            return Err(foreign(what, "use that ralph").into());
        }
        return require_version(&connection, path).map(|()| Origin::Ours);
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application == 0 && user_version == 0 && tables == 0 {
        return Ok(Origin::Empty);
    }
    if application == 0 && older::is_one(&connection, user_version)? {
        return Ok(Origin::Older);
    }
    Err(foreign("is the database of another program".into(), "move it away").into())
}

/// Answers whether the file system can do that. Two processes that do this at once are told so at once, whatever the time-out.
fn set_wal(connection: &Connection, patience: Duration) -> Fallible<bool> {
    let begun = Instant::now();
    loop {
        let mode: rusqlite::Result<String> =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0));
        match mode {
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && begun.elapsed() < patience =>
            {
                std::thread::sleep(TICK);
            }
            result => return Ok(result? == "wal"),
        }
    }
}
