//! Opens a database: creates a new one, migrates one of the earlier program, and refuses any other.

use std::borrow::Cow;
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
use super::{Fallible, Fault, SqliteStore, copy_into, keep_copy, older, schema};
use crate::files::own;
use crate::graph::error::GraphError;
use crate::graph::seal::Key;
use crate::version::{self, Newer};

/// How long an operation waits for other programs.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// The application id in the header: `RALP`.
pub(super) const APPLICATION_ID: i64 = 0x5241_4c50;
/// The version of the schema in the header. A database with another version is refused.
const VERSION: i64 = 9;
/// The page cache in KiB: a little more than what is read repeatedly.
const CACHE: i64 = 6 * 1024;
/// The pause before the journal mode is tried again.
const TICK: Duration = Duration::from_millis(5);

impl SqliteStore {
    /// Opens the database at `path`, and creates it if there is none. One of the earlier program is migrated, see
    /// [`SqliteStore::taken_over`].
    ///
    /// Without seals: with a key, use [`SqliteStore::open_sealed`].
    pub fn open(path: &Path, busy_timeout: Duration) -> Result<Self, GraphError> {
        Self::open_sealed(path, busy_timeout, None)
    }

    /// [`SqliteStore::open`] with a key that seals what this store writes.
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

    /// An empty graph without a file, for verbs that only read, or that may not need one.
    pub fn nowhere() -> Result<Self, GraphError> {
        Self::nowhere_sealed(None)
    }

    /// [`SqliteStore::nowhere`] with a key that seals what this store writes.
    pub fn nowhere_sealed(key: Option<Key>) -> Result<Self, GraphError> {
        let seals = key.map(Seals::of);
        // Large temporary data goes into an unnamed file.
        let path = env::temp_dir();
        let open = || {
            let mut connection = Connection::open("")?;
            set_up(&mut connection, &path, Origin::Empty, seals.as_ref())?;
            Ok(connection)
        };
        let connection = open().map_err(|fault: Fault| fault.at(&path))?;
        Ok(Self::of(connection, path, None, seals, None))
    }

    /// Saves a graph that has no file to `path`, where no file exists.
    pub fn save(&self, path: &Path) -> Result<(), GraphError> {
        let copy = |into: &Path| {
            copy_into(&self.connection, into)?;
            // A copy is not in WAL mode. Opening it once changes that for all later readers.
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

    /// Whether it is in a file; otherwise only [`SqliteStore::save`] keeps it.
    #[must_use]
    pub fn has_place(&self) -> bool {
        self.files.is_some()
    }

    /// The copy of the earlier program's database, if this one was just migrated from it.
    #[must_use]
    pub fn taken_over(&self) -> Option<&Path> {
        self.taken_over.as_deref()
    }
}

/// Creates a database, all of it or nothing, so that an empty file is never ours.
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

/// Another program replaced the files while they were opened.
fn replaced(path: &Path) -> GraphError {
    GraphError::Lost { path: path.to_owned(), advice: "nothing was written: try again".to_owned() }
}

/// The origin of a database, before any change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Ours,
    /// It is empty.
    Empty,
    /// The earlier program made it.
    Older,
}

/// Brings a database to our schema. Returns the path of the copy if it was migrated.
fn set_up(
    connection: &mut Connection,
    path: &Path,
    origin: Origin,
    seals: Option<&Seals>,
) -> Fallible<Option<PathBuf>> {
    // The file is not trusted: its schema must not call our functions.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    seals.map_or(Ok(()), |seals| seals::teach(connection, &seals.key))?;
    connection.set_prepared_statement_cache_capacity(64);
    // Otherwise `SQLite` compiles a statement again for other values if an index is partial.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.execute_batch(&format!(
        "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -{CACHE}; PRAGMA foreign_keys = OFF"
    ))?;
    // Another process may have created it first. To read it, `SQLite` creates the files beside it.
    let is_ours = header(connection)?.0 == APPLICATION_ID;
    let copy = match origin {
        _ if is_ours => None,
        Origin::Older => take_over(connection, path, seals.is_some())?,
        Origin::Ours | Origin::Empty => {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another process may have been first.
            if header(&transaction)?.0 != APPLICATION_ID {
                transaction.execute_batch(TABLES)?;
                sign(transaction, seals.is_some())?;
            }
            None
        }
    };
    connection.execute_batch("PRAGMA foreign_keys = ON")?;
    // Only triggers of this connection run from here on: triggers in the file could change what we write.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    seals.map_or(Ok(()), |_| seals::watch(connection))?;
    Ok(copy)
}

/// Migrates a database of the earlier program, after keeping a copy, in one transaction.
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
    // Another process was first, or nothing changed: the copy is not needed.
    fs::remove_file(&copy)?;
    taken.map(|_| None)
}

/// Writes our application id and ends the transaction. Migrated tasks are not sealed: an agent can write such a
/// database and call ralph. A run verifies them first.
fn sign(transaction: Transaction<'_>, has_key: bool) -> Fallible<()> {
    if has_key {
        seals::seal_empty(&transaction)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(transaction.commit()?)
}

/// Refuses a database whose schema version another program has changed.
pub(super) fn require_version(connection: &Connection, path: &Path) -> Fallible<()> {
    let what = match header(connection)? {
        (APPLICATION_ID, VERSION) => return Ok(()),
        (APPLICATION_ID, version) => {
            format!("another program has changed the version of its schema ({version}, known is {VERSION})")
        }
        (id, _) => format!("another program has changed its application id ({id})"),
    };
    Err(GraphError::damaged(path, &what).into())
}

/// The application id and the schema version.
fn header(connection: &Connection) -> Fallible<(i64, i64)> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get(0));
    Ok((pragma("application_id")?, pragma("user_version")?))
}

/// Refuses a database of another program.
fn origin(connection: &Connection, path: &Path) -> Fallible<Origin> {
    let foreign =
        |what: String, advice: Cow<'static, str>| GraphError::Foreign { path: path.to_owned(), what, advice };
    // One transaction: another process may be migrating it.
    let connection = connection.unchecked_transaction()?;
    let (application, user_version) = header(&connection)?;
    if application == APPLICATION_ID {
        if user_version > VERSION {
            let Newer { what, advice } = version::newer(user_version, VERSION, "");
            return Err(foreign(what, advice.into()).into());
        }
        // If it has our tables, another program has lowered the version.
        if user_version < VERSION && schema::require(&connection, path).is_err() {
            let what = format!(
                "was written by an earlier ralph, and is not taken over (version {user_version} of the schema, known is {VERSION})"
            );
            let advice = "export its tasks with that ralph ('ralph task export'), move it away with its -wal and -shm files, and \
                          import them";
            return Err(foreign(what, advice.into()).into());
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
    Err(foreign("is the database of another program".into(), "move it away".into()).into())
}

/// Sets WAL mode; returns whether the file system supports it. Two processes that do this together get an error at
/// once, whatever the busy timeout.
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
