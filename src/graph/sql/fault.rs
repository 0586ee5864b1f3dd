//! Errors inside an operation, and the advice for the user.

use std::io::{self, ErrorKind};
use std::path::Path;

use rusqlite::ErrorCode;

use crate::files::room::Room;
use crate::files::way_to_write;
use crate::graph::error::GraphError;

/// An error inside an operation.
#[derive(Debug)]
pub(in crate::graph) enum Fault {
    /// The operation is refused.
    Graph(GraphError),
    /// The database fails.
    Sqlite(rusqlite::Error),
    /// The server fails, or the connection to it.
    Server(tokio_postgres::Error),
    /// The server does not answer.
    Silent,
    /// The connection was lost while a transaction was being committed: it is there as a whole, or not at all.
    Unsure,
    /// The server cannot be used, for this reason.
    Refused(String),
    /// The database is torn.
    Torn(String),
    /// It has what no ralph writes.
    Strange(String),
    /// A file beside the database.
    File(io::Error),
}

/// The advice for a full disk.
const FREE_SPACE: &str = "free some space on that disk";
/// The space in bytes that the files beside a database need.
const BESIDE: u64 = 128 << 10;

/// Whether the disk of `path` has no space for the files beside a database.
fn is_full(path: &Path) -> bool {
    path.parent().and_then(Room::of).is_some_and(|room| room.free < BESIDE)
}

pub(in crate::graph) type Fallible<T> = Result<T, Fault>;

impl From<GraphError> for Fault {
    fn from(error: GraphError) -> Self {
        Self::Graph(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl Fault {
    /// The user's error, with the path of the database.
    pub(in crate::graph) fn at(self, path: &Path) -> GraphError {
        let error = match self {
            Self::Graph(error) => return error,
            Self::File(error) => {
                let advice = match error.kind() {
                    ErrorKind::IsADirectory | ErrorKind::InvalidInput => {
                        let (what, advice) = (error.to_string(), "move away what is there");
                        return GraphError::Damaged { path: path.to_owned(), what, advice };
                    }
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem => {
                        way_to_write(&error)
                    }
                    _ => "move away what is there, or fix the permissions of its folder",
                };
                return GraphError::Storage { path: path.to_owned(), reason: error.to_string(), advice };
            }
            Self::Torn(reason) => return torn(path, &reason),
            Self::Strange(reason) | Self::Refused(reason) => return strange(path, &reason),
            Self::Server(error) => return strange(path, &error.to_string()),
            Self::Silent | Self::Unsure => return strange(path, "no answer"),
            Self::Sqlite(error) => error,
        };
        let (path, reason, code) = match error {
            // Otherwise the message would have the statement and no code.
            rusqlite::Error::SqlInputError { error, msg, .. } => (path.to_owned(), msg, Some(error.code)),
            error => (path.to_owned(), error.to_string(), error.sqlite_error_code()),
        };
        let advice = match code {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "another program has locked it: end that, and try again"
            }
            Some(ErrorCode::DiskFull) => FREE_SPACE,
            // On a full disk `SQLite` cannot create the files beside a database, and reports only this code.
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen)
                if is_full(&path) =>
            {
                FREE_SPACE
            }
            Some(ErrorCode::SystemIoFailure) => "the disk may be full: free some space, or check it",
            Some(ErrorCode::NotADatabase) => {
                let (what, advice) = ("is no database".to_owned(), "move it away".into());
                return GraphError::Foreign { path, what, advice };
            }
            Some(ErrorCode::DatabaseCorrupt) => {
                return torn(&path, &reason);
            }
            // Our own statements are right, so the tables are not ours.
            Some(ErrorCode::Unknown) => {
                let what = format!("another program has changed its schema ({reason})");
                return GraphError::damaged(&path, &what);
            }
            // These are right for everything that ralph writes, so a row was changed or removed.
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) | None => {
                return strange(&path, &reason);
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                "fix the permissions of the file and its folder"
            }
            _ => "check that file and its disk",
        };
        GraphError::Storage { path, reason, advice }
    }
}

fn torn(path: &Path, reason: &str) -> GraphError {
    let advice = "move it away with its -wal file, and save what is left with 'sqlite3 FILE .recover'";
    GraphError::Foreign { path: path.to_owned(), what: format!("is torn ({reason})"), advice: advice.into() }
}

fn strange(path: &Path, reason: &str) -> GraphError {
    GraphError::damaged(path, &format!("another program has written what no ralph writes ({reason})"))
}
