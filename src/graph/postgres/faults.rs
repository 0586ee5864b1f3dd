//! What the server, or the connection to it, says where something fails: whether that may pass, and what to do.

use std::{io, iter};

use tokio_postgres::error::SqlState;

use crate::graph::sql::Fault;

/// Whether the server, or a pooler, has ended the connection, so that nothing of the transaction is there, unless it was being
/// committed.
pub(super) fn has_left(error: &tokio_postgres::Error) -> bool {
    let leaving = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::IDLE_SESSION_TIMEOUT,
    ];
    // Class 08: a pooler says so where its server is gone.
    error.is_closed()
        || error.code().is_some_and(|code| leaving.contains(code) || code.code().starts_with("08"))
}

/// Whether the server cannot be reached, or not be used, for a time.
pub(super) fn is_away(fault: &Fault) -> bool {
    match fault {
        Fault::Silent | Fault::Unsure => true,
        Fault::Server(error) => {
            let passing = [
                SqlState::READ_ONLY_SQL_TRANSACTION,
                // A large change of the graph, by us or by hand, takes long; or the server has much to do.
                SqlState::LOCK_NOT_AVAILABLE,
                SqlState::QUERY_CANCELED,
            ];
            // Class 53: it has no connection, disk or memory left.
            let passes = |code: &SqlState| passing.contains(code) || code.code().starts_with("53");
            has_left(error) || error.code().map_or_else(|| io_fault(error).is_some_and(is_plain), passes)
        }
        _ => false,
    }
}

/// Whether the server has no connection left.
pub(super) fn is_full(fault: &Fault) -> bool {
    // The second is what pgbouncer says.
    let is_full = |error: &tokio_postgres::Error| {
        error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS)
            || error
                .as_db_error()
                .is_some_and(|error| error.message().contains("no more connections allowed"))
    };
    matches!(fault, Fault::Server(error) if is_full(error))
}

/// What the connection has failed with, if it has.
fn io_fault(error: &tokio_postgres::Error) -> Option<&io::Error> {
    let mut causes = iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.find_map(|cause| cause.downcast_ref())
}

/// Whether it is of the network, and not of what is encrypted on it.
fn is_plain(fault: &io::Error) -> bool {
    fault.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_none()
}

/// Whether the server's certificate is not believed.
fn is_untrusted(error: &tokio_postgres::Error) -> bool {
    let inner = io_fault(error).and_then(|fault| fault.get_ref()?.downcast_ref());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}

/// Whether the nonce of an operation is there: it was written before.
pub(super) fn is_noted(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|error| error.constraint() == Some("answers_pkey"))
}

/// Whether a fault passes by itself: other transactions were in the way, or the server has begun anew.
pub(super) fn is_passing(fault: &Fault) -> bool {
    let Fault::Server(error) = fault else { return false };
    if has_left(error) {
        return true;
    }
    let passing =
        [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE, SqlState::LOCK_NOT_AVAILABLE];
    error.code().is_some_and(|code| passing.contains(code))
}

/// What is wrong.
pub(super) fn reason(fault: &Fault) -> String {
    match fault {
        Fault::Graph(error) => error.to_string(),
        Fault::Refused(reason) => reason.clone(),
        Fault::Silent => "it does not answer".to_owned(),
        Fault::Unsure => "the connection was lost while it was being written".to_owned(),
        Fault::Torn(what) | Fault::Strange(what) => {
            format!("another program has written what no ralph writes ({what})")
        }
        Fault::File(error) => error.to_string(),
        Fault::Sqlite(error) => error.to_string(),
        Fault::Server(error) => said(error),
    }
}

/// What the server, or the connection to it, says.
fn said(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

pub(super) fn advice(error: &tokio_postgres::Error) -> &'static str {
    match error.code() {
        Some(code)
            if *code == SqlState::INVALID_PASSWORD
                || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
        {
            "give the right user, and the password with PGPASSWORD or in ~/.pgpass"
        }
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => "make that database, with 'createdb'",
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => "let this user use and create that schema",
        Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            "name the server that can be written to"
        }
        Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => {
            "something else changes the graph for long: try again"
        }
        Some(code) if *code == SqlState::QUERY_CANCELED => "the server has much to do: try again",
        Some(code) if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::INVALID_SCHEMA_NAME => {
            "that schema, or a table of it, is gone, or this user may not use it: grant it, or restore a backup"
        }
        Some(code) if *code == SqlState::DISK_FULL => "free some space on the server's disk",
        Some(_) => "see the server's log",
        None if is_untrusted(error) => {
            "name the host that its certificate is for, and its authority with sslrootcert=FILE"
        }
        None if said(error).contains("does not allow writes") => "name the server that can be written to",
        None if said(error).contains("does not support TLS") => {
            "turn ssl on there, or give sslmode=disable for a connection that is not encrypted"
        }
        None if said(error).contains("error deserializing") => {
            "another program has changed that table: restore a backup of that schema, or use another one"
        }
        None if said(error).contains("password missing") => "give it with PGPASSWORD or in ~/.pgpass",
        None => "check that it runs and can be reached",
    }
}
