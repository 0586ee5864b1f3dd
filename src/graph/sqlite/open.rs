//! Opens a database: a new one is made, an older one is brought up to date, and what is not ours is left alone.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::{Fallible, Fault, SqliteStore};
use crate::files::own;
use crate::graph::error::GraphError;

/// How long an operation waits for other programs.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Whose database it is, in its header: `RALP`.
pub(super) const APPLICATION_ID: i64 = 0x5241_4c50;
/// What leads from one version of the schema to the next. Never changed, only added to.
pub(super) const MIGRATIONS: [&str; 1] = [include_str!("schema/1.sql")];
/// A little more than what is read of a database over and over, in KiB.
const CACHE: i64 = 8 * 1024;
/// How long to wait until a look at who sets the journal's mode is worth it again.
const TICK: Duration = Duration::from_millis(5);

impl SqliteStore {
    /// Opens the database at `path`, and makes it where nothing is there.
    pub fn open(path: &Path, busy_timeout: Duration) -> Result<Self, GraphError> {
        own::create_empty(path).map_err(|reason| GraphError::Storage {
            path: path.to_owned(),
            reason: reason.to_string(),
            advice: "move away what is there, or mend the permissions of its folder",
        })?;
        let open = || {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let mut connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(busy_timeout)?;
            check(&connection, path)?;
            set_wal(&connection, busy_timeout)?;
            set_up(&mut connection)?;
            Ok(connection)
        };
        let connection = open().map_err(|fault: Fault| fault.at(path))?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// A graph that is empty and nowhere, for verbs that only look.
    pub fn nowhere() -> Result<Self, GraphError> {
        let open = || {
            let mut connection = Connection::open_in_memory()?;
            set_up(&mut connection)?;
            Ok(connection)
        };
        let connection = open().map_err(|fault: Fault| fault.at(Path::new("memory")))?;
        Ok(Self { connection, path: "memory".into() })
    }
}

fn set_up(connection: &mut Connection) -> Fallible<()> {
    connection.set_prepared_statement_cache_capacity(64);
    connection.execute_batch(&format!(
        "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -{CACHE};"
    ))?;
    if header(connection)? == (APPLICATION_ID, version()) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let (_, from) = header(&transaction)?;
    for step in MIGRATIONS.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", version())?;
    Ok(transaction.commit()?)
}

/// The version of the schema that this program writes.
fn version() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Whose database it is, and of which version.
fn header(connection: &Connection) -> Fallible<(i64, i64)> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get(0));
    Ok((pragma("application_id")?, pragma("user_version")?))
}

/// Refuses what is not ours to change.
fn check(connection: &Connection, path: &Path) -> Fallible<()> {
    let foreign = |what: String, advice| GraphError::Foreign { path: path.to_owned(), what, advice };
    let (application, user_version) = header(connection)?;
    if application == APPLICATION_ID {
        return match user_version {
            newer if newer > version() => {
                let what = format!("was written by a newer ralph (version {newer}, known is {})", version());
                Err(foreign(what, "use that ralph").into())
            }
            _ => Ok(()),
        };
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application == 0 && user_version == 0 && tables == 0 {
        return Ok(());
    }
    Err(foreign("is the database of another program".into(), "move it away").into())
}

/// Two processes that do this at once are told so at once, whatever the time-out.
fn set_wal(connection: &Connection, patience: Duration) -> Fallible<()> {
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
            result => return Ok(result.map(drop)?),
        }
    }
}
