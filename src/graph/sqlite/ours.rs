//! Whether this user's ralph wrote a database. This is checked before anything is written: opening a WAL database
//! already creates files beside it.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::seals::{self, SEAL_OF_NUMBER};
use super::{Fallible, SqliteStore};
use crate::graph::seal::Key;

impl SqliteStore {
    /// Whether the database at `path` has a number of tasks sealed with this key. Writes nothing, and does not read
    /// the WAL. `false` also if it cannot be read.
    #[must_use]
    pub fn is_sealed_with(path: &Path, key: Key) -> bool {
        let is_sealed = || -> Fallible<bool> {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_URI
                | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(unchanging(path), flags)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            seals::teach(&connection, &Arc::new(key))?;
            let query = format!("SELECT EXISTS (SELECT 1 FROM sealed WHERE seal IS {SEAL_OF_NUMBER})");
            Ok(connection.query_row(&query, [], |row| row.get(0))?)
        };
        is_sealed().unwrap_or(false)
    }
}

/// The URI of a file that `SQLite` treats as immutable: no locks, no files beside it.
fn unchanging(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        // Writing to a String cannot fail.
        let _ = match byte {
            b'/' | b'.' | b'-' | b'_' => write!(uri, "{}", char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => write!(uri, "{}", char::from(*byte)),
            byte => write!(uri, "%{byte:02X}"),
        };
    }
    uri + "?mode=ro&immutable=1"
}
