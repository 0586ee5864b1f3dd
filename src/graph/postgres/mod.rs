//! The task store of many machines: a `PostgreSQL` database.
//!
//! The server's clock alone says whether a claim or a lead still holds (rule 1 of many machines). A booking locks the rows that it reads, the tasks above its
//! own from the top; what changes the shape of the graph goes alone.

mod address;
mod connection;
mod direct;
mod faults;
mod fleet;
mod health;
mod password;
mod schema;
mod secure;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::env;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

pub use address::Address;
use connection::{CLOCK, Connection, LIMIT};
use faults::{advice, has_left, is_away, is_full, is_noted, is_passing, reason};
pub use fleet::{Asked, Heard, Said, Worker};
pub use health::Health;
pub use password::PASSWORDS;

use super::error::GraphError;
use super::landing::Standing;
use super::patience::Patience;
use super::sql::store::{Database, Write};
use super::sql::values::values;
use super::sql::{Fallible, Fault, Sql, first, nonce};
use super::store::Unbooked;
use crate::text::jitter;
use crate::version::newer;

/// How often an operation is tried again that another one was in the way of, and the first pause before that.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(20);
/// How long one that has no connection left is tried at first.
const FULL: Duration = Duration::from_secs(4);
/// The first pause before a server that is away is tried again.
const AWAY: Duration = Duration::from_millis(200);
/// What each transaction says for itself, so that a pooler may give it any connection. The locks are those of one schema.
const SETTINGS: &str = "SET LOCAL statement_timeout = 10000; SET LOCAL lock_timeout = 5000; SET LOCAL jit = off; SET LOCAL search_path TO ";
/// What one that writes says besides: a machine that is cut off in the middle of it holds the others up no longer.
const WRITES: &str = "SET LOCAL synchronous_commit = on;
    SET LOCAL idle_in_transaction_session_timeout = 20000;";
/// What one that takes a task says besides: the first of a list is read by its index, in a graph that has just been imported, too,
/// whose statistics are not there yet. And little memory: the server makes a table as large as that may be for each claim, and fills it
/// with zeros.
const TAKES: &str =
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off;
    SET LOCAL enable_mergejoin = off; SET LOCAL work_mem = '64kB';";
/// What one that changes tasks which exist says besides: it finds them by their keys, also where plans were made while there were few.
const BOOKS: &str = "SET LOCAL enable_seqscan = off;";
/// What is written is on disk, and on synchronous standbys, however long that takes: the client has a limit of its own.
const COMMIT: &str = "SET LOCAL statement_timeout = 0; COMMIT";
const ROLLBACK: &str = "ROLLBACK";
/// So many notes of operations are forgotten at once.
const FORGOTTEN: i64 = 20_000;
/// How long the nonce of an operation, and a worker that is not heard of any more, are kept, in milliseconds.
const KEPT: i64 = 24 * 60 * 60 * 1000;

/// A graph of tasks in a `PostgreSQL` database.
pub struct PostgresStore {
    address: Address,
    /// `None`: it has to be made anew.
    connection: RefCell<Option<Connection>>,
    /// It was connected once.
    was_there: Cell<bool>,
    /// How long it is waited for while it is away; `None`: a moment.
    patience: Option<Arc<Patience>>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What a transaction is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    /// Reading one state.
    Look,
    /// Reading one state, once.
    Show,
    /// Changing tasks that exist.
    Booking,
    /// Taking one of many tasks, if there is one. What is taken has the nonce of the operation, so that it is noted nowhere else.
    Taking,
    /// Changing which tasks there are, and what waits for what.
    Shape,
    /// What a worker says of itself, which may be said again.
    Report,
    /// Making the tables.
    Tables,
}

impl PostgresStore {
    /// Connects to a server, and opens the graph there; `None`: there is none.
    ///
    /// # Errors
    /// If the server does not answer, refuses, or has a graph of a newer ralph there.
    pub fn open(address: Address) -> Result<Option<Self>, GraphError> {
        Self::opened(address, false).map(|(store, is_there)| is_there.then_some(store))
    }

    /// Connects to a server, and makes the tables of the graph if there are none.
    ///
    /// # Errors
    /// If the server does not answer, refuses, or has a graph of a newer ralph there.
    pub fn create(address: Address) -> Result<Self, GraphError> {
        Self::opened(address, true).map(|(store, _)| store)
    }

    /// With whether there is a graph.
    fn opened(address: Address, makes: bool) -> Result<(Self, bool), GraphError> {
        let store = Self::at(address);
        let schema = &store.address.schema;
        let (version, forgets) = store.read(|graph| {
            let version = version(graph, schema)?;
            let are_old =
                "SELECT 1 FROM answers WHERE at < ?1 UNION ALL SELECT 1 FROM workers WHERE seen < ?1 LIMIT 1";
            let is_ours = version == Some(schema::VERSION);
            let forgets = is_ours && graph.exists(are_old, values![graph.now()? - KEPT])?;
            Ok((version, forgets))
        })?;
        if version.is_none() && !makes {
            return Ok((store, false));
        }
        if version.is_none_or(|version| version < schema::VERSION) {
            store.transact(For::Tables, COMMIT, &|graph| store.make_tables(graph))?;
        }
        if let Some(version) = version.filter(|version| *version > schema::VERSION) {
            let reason = format!("schema {schema}: {}", newer(version, schema::VERSION, ""));
            return Err(store.error(Fault::Refused(reason)));
        }
        if forgets {
            // Who may only read cannot do that.
            let _ = store.tidy();
        }
        Ok((store, true))
    }

    /// The store there, which connects when it is asked something. Its tables have to be there.
    #[must_use]
    pub fn at(address: Address) -> Self {
        Self { address, connection: RefCell::default(), was_there: Cell::default(), patience: None }
    }

    /// The store, where a server that goes away later is waited for.
    #[must_use]
    pub fn patient(self, patience: Arc<Patience>) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// Notes that the graph is of the repository with this first commit, or checks that it is.
    ///
    /// # Errors
    /// If it is of another one.
    pub fn require_repository(&self, first_commit: &str) -> Result<(), GraphError> {
        let known: Option<String> = self.transact(For::Booking, COMMIT, &|graph| {
            graph
                .execute("UPDATE meta SET repository = ?1 WHERE repository IS NULL", values![first_commit])?;
            Ok(graph.maybe("SELECT repository FROM meta", &[], first)?.flatten())
        })?;
        if known.as_deref() == Some(first_commit) {
            return Ok(());
        }
        Err(self.of_another(&known.unwrap_or_default()))
    }

    /// The error about a graph of the repository with this first commit, where this is another one.
    #[must_use]
    pub fn of_another(&self, known: &str) -> GraphError {
        self.error(Fault::Refused(format!(
            "schema {} has the tasks of another repository, whose first commit is {known:.10}: name another schema, as in ?schema=NAME",
            self.address.schema
        )))
    }

    /// The first commit of the repository that the graph is of, once a run has worked on it.
    ///
    /// # Errors
    /// If the server fails.
    pub fn repository(&self) -> Result<Option<String>, GraphError> {
        self.peek(|graph, tables| {
            Ok(graph.maybe(&format!("SELECT repository FROM {tables}meta"), &[], first)?.flatten())
        })
    }

    /// The task that has landed on a trunk last, and as which commit.
    ///
    /// # Errors
    /// If the server fails.
    pub fn landed_last(&self, trunk: &str) -> Result<Option<(String, String)>, GraphError> {
        let landed = Standing::Landed.number();
        self.peek(|graph, tables| {
            let query = format!(
                "SELECT t.id, l.landed FROM {tables}landings l JOIN {tables}tasks t ON t.seq = l.task
                WHERE l.standing = ?1 AND l.trunk = ?2 AND l.landed IS NOT NULL ORDER BY l.since DESC LIMIT 1"
            );
            graph.maybe(&query, values![landed, trunk], |row| Ok((row.get(0)?, row.get(1)?)))
        })
    }

    fn make_tables(&self, graph: &dyn Sql) -> Fallible<()> {
        let schema = &self.address.schema;
        // Another process may have made them meanwhile.
        let version = version(graph, schema)?;
        let connection = self.connection.borrow();
        let connection = connection.as_ref().ok_or(Fault::Silent)?;
        if let Some(version) = version {
            if version >= schema::VERSION {
                return Ok(());
            }
            return connection.batch(&schema::later(version)).map(drop);
        }
        // One that is there may be of a user who may make no schema.
        if !graph.exists("SELECT 1 FROM pg_namespace WHERE nspname = ?1", values![schema])? {
            connection.batch(&format!("CREATE SCHEMA \"{schema}\""))?;
        }
        connection.batch(&schema::tables()).map(drop)
    }

    /// Removes some of the notes of what was written so long ago that no process asks for it, and the workers of then.
    ///
    /// # Errors
    /// If the server fails.
    pub fn tidy(&self) -> Result<(), GraphError> {
        self.transact(For::Report, COMMIT, &|graph| {
            let before = graph.now()? - KEPT;
            let old = "DELETE FROM answers WHERE nonce IN (SELECT nonce FROM answers WHERE at < ?1 LIMIT ?2)";
            graph.execute(old, values![before, FORGOTTEN])?;
            graph.execute("DELETE FROM workers WHERE seen < ?1", values![before])
        })
    }

    fn nonce(&self) -> Result<String, GraphError> {
        nonce().map_err(|fault| self.error(fault))
    }

    fn transact<T>(
        &self,
        what: For,
        end: &'static str,
        change: &dyn Fn(&dyn Sql) -> Fallible<T>,
    ) -> Result<T, GraphError> {
        self.transact_as(&self.nonce()?, what, end, change)
    }

    /// Runs `change` in a transaction; again, where another one was in its way, or the connection was lost before it began. An answer
    /// that was lost is asked for (rule 3): what was written leaves its nonce in the same transaction.
    fn transact_as<T>(
        &self,
        nonce: &str,
        what: For,
        end: &'static str,
        change: &dyn Fn(&dyn Sql) -> Fallible<T>,
    ) -> Result<T, GraphError> {
        let (mut tries, mut unsure) = (Tries::of(self), None);
        loop {
            let fault = match self.once(what, end, Some(nonce), change) {
                Attempt::Done(value) => {
                    tries.are_heard();
                    return Ok(value);
                }
                Attempt::Failed(Fault::Server(error)) if unsure.is_some() && is_noted(&error) => {
                    return unsure.and_then(|(value, _)| value).ok_or_else(|| self.error(Fault::Unsure));
                }
                // What was lost before was not written: the nonce was free.
                Attempt::Failed(Fault::Graph(error)) => {
                    tries.are_heard();
                    return Err(error);
                }
                Attempt::Unsure(value) => {
                    unsure = Some((value, Instant::now()));
                    Fault::Unsure
                }
                Attempt::Failed(fault) => fault,
            };
            let goes_on = match &unsure {
                Some((_, since)) => since.elapsed() < LIMIT,
                None => tries.may_again(&fault),
            };
            if goes_on {
                tries.pause();
            } else if !tries.wait(&fault) {
                return Err(self.error(if unsure.is_some() { Fault::Unsure } else { fault }));
            }
        }
    }

    /// Looks at the graph; again, where that was in vain and may be done again.
    fn look<T>(&self, mut once: impl FnMut() -> (Attempt<T>, bool)) -> Result<T, GraphError> {
        let mut tries = Tries::of(self);
        loop {
            let (fault, may_again) = match once() {
                (Attempt::Done(value), _) => {
                    tries.are_heard();
                    return Ok(value);
                }
                (Attempt::Failed(fault), may_again) => (fault, may_again),
                (Attempt::Unsure(_), may_again) => (Fault::Unsure, may_again),
            };
            if may_again && tries.may_again(&fault) {
                tries.pause();
            } else if !may_again || !tries.wait(&fault) {
                return Err(self.error(fault));
            }
        }
    }

    /// Runs one statement, which may be run again, as a transaction of its own: in one round trip.
    fn alone<T>(&self, statement: &dyn Fn(&dyn Sql, &str) -> Fallible<T>) -> Result<T, GraphError> {
        let tables = format!("\"{}\".", self.address.schema);
        self.look(|| (self.at_once(statement, &tables), true))
    }

    fn at_once<T>(&self, statement: &dyn Fn(&dyn Sql, &str) -> Fallible<T>, tables: &str) -> Attempt<T> {
        let mut connection = self.connection.borrow_mut();
        let known = match connection.take().filter(|known| !known.is_closed()) {
            Some(known) => known,
            None => match self.connect() {
                Ok(new) => new,
                Err(fault) => return Attempt::Failed(fault),
            },
        };
        known.start();
        let done = statement(&known, tables);
        // After any other fault it is not known what comes through it.
        if matches!(done, Ok(_) | Err(Fault::Graph(_))) {
            *connection = Some(known);
        }
        done.map_or_else(Attempt::Failed, Attempt::Done)
    }

    /// Runs `change` in one transaction.
    fn once<T>(
        &self,
        what: For,
        end: &'static str,
        nonce: Option<&str>,
        change: impl FnOnce(&dyn Sql) -> Fallible<T>,
    ) -> Attempt<T> {
        if let Err(fault) = self.begin(what, end, nonce) {
            self.take_back();
            return Attempt::Failed(fault);
        }
        let done = {
            let connection = self.connection.borrow();
            let Some(connection) = connection.as_ref() else { return Attempt::Failed(Fault::Silent) };
            let ended = match change(connection) {
                Ok(value) => match connection.end() {
                    Ok(()) => Ok(value),
                    Err(fault) => Err((fault, Some(value))),
                },
                Err(fault) => Err((fault, None)),
            };
            match ended {
                Ok(value) => Attempt::Done(value),
                // Without an answer, what was taken is found by its nonce when it is asked for again.
                Err((Fault::Silent, value)) if end == COMMIT && connection.has_ended() => {
                    Attempt::Unsure(value)
                }
                Err((Fault::Server(error), Some(value))) if end == COMMIT && has_left(&error) => {
                    Attempt::Unsure(Some(value))
                }
                Err((fault, _)) => Attempt::Failed(fault),
            }
        };
        if !matches!(done, Attempt::Done(_)) {
            self.take_back();
        }
        done
    }

    /// Begins a transaction, on a new connection where the last one was lost.
    fn begin(&self, what: For, end: &'static str, nonce: Option<&str>) -> Fallible<()> {
        let schema = &self.address.schema;
        let mode = match what {
            For::Look | For::Show => "REPEATABLE READ READ ONLY",
            _ => "READ COMMITTED READ WRITE",
        };
        let writes = if matches!(what, For::Look | For::Show) { "" } else { WRITES };
        let takes = match what {
            For::Taking => TAKES,
            For::Booking => BOOKS,
            _ => "",
        };
        let lock = match what {
            For::Look | For::Show | For::Report => None,
            For::Booking | For::Taking => Some("pg_advisory_xact_lock_shared"),
            For::Shape | For::Tables => Some("pg_advisory_xact_lock"),
        };
        let lock = lock.map(|lock| format!("{lock}(hashtext('ralph {schema}')), ")).unwrap_or_default();
        // If the transaction of a lost answer is not over yet, this waits for it.
        let (note, wait) = match (what, nonce) {
            (For::Booking | For::Shape, Some(nonce)) => {
                (format!("INSERT INTO answers (nonce, at) VALUES ('{nonce}', {CLOCK});"), String::new())
            }
            (For::Taking, Some(nonce)) => {
                (String::new(), format!("pg_advisory_xact_lock(hashtextextended('{nonce}', 0)), "))
            }
            _ => Default::default(),
        };
        let begin = format!(
            "BEGIN ISOLATION LEVEL {mode}; {SETTINGS} \"{schema}\"; {writes} {takes} {note} SELECT {lock} {wait} {CLOCK}"
        );
        let mut connection = self.connection.borrow_mut();
        if let Some(known) = connection.as_ref().filter(|known| !known.is_closed()) {
            known.start();
            // What is shown is not shown again: there it is known first that it has begun.
            let sent = known.begin(begin.clone(), end);
            match if what == For::Show { sent.and_then(|()| known.settle()) } else { sent } {
                // It was quiet for long, and is gone: nothing has begun.
                Err(Fault::Server(error)) if has_left(&error) => {}
                answer => return answer,
            }
        }
        *connection = None;
        let new = self.connect()?;
        new.start();
        let answer = new.begin(begin, end);
        *connection = Some(new);
        answer
    }

    /// Connects; a server that was there before may begin anew, and one that is full may have room in a moment: that is waited for
    /// here where it is not anyway.
    fn connect(&self) -> Fallible<Connection> {
        let (began, mut pause) = (Instant::now(), AWAY);
        let waits = |fault: &Fault| match self.patience {
            Some(_) => false,
            None if self.was_there.get() => is_away(fault) && began.elapsed() < LIMIT,
            None => is_full(fault) && began.elapsed() < FULL,
        };
        loop {
            match Connection::open(&self.address) {
                Err(fault) if waits(&fault) => {
                    thread::sleep(jitter::around(pause));
                    pause *= 2;
                }
                opened => {
                    self.was_there.set(self.was_there.get() || opened.is_ok());
                    return opened;
                }
            }
        }
    }

    /// Takes a transaction back. If that cannot be said, the connection is given up, which does it, too.
    fn take_back(&self) {
        let mut connection = self.connection.borrow_mut();
        let is_over =
            connection.as_ref().is_some_and(|known| !known.is_closed() && known.batch(ROLLBACK).is_ok());
        if !is_over {
            *connection = None;
        }
    }

    /// The user's error.
    fn error(&self, fault: Fault) -> GraphError {
        let (server, passes) = (self.address.to_string(), is_away(&fault) || is_passing(&fault));
        let (is_full, reason) = (is_full(&fault), reason(&fault));
        let advice = match fault {
            Fault::Graph(error) => return error,
            Fault::Refused(_) => return GraphError::Refused { server, reason },
            Fault::Silent => "check that it runs and can be reached",
            Fault::Unsure => "look whether it is there before you do it again",
            Fault::Torn(_) | Fault::Strange(_) => "restore a backup of that schema, or use another one",
            Fault::File(_) | Fault::Sqlite(_) => "try again",
            Fault::Server(_) if is_full => return GraphError::ServerFull { server, reason },
            Fault::Server(error) => advice(&error),
        };
        GraphError::Server { server, reason, advice, passes }
    }
}

/// How often one operation was tried, and how long it has waited for the server.
struct Tries<'a> {
    patience: Option<&'a Patience>,
    /// Since when, and how often, since the server was waited for last.
    since: Instant,
    count: u32,
    waits: u32,
}

impl<'a> Tries<'a> {
    fn of(store: &'a PostgresStore) -> Self {
        Self { patience: store.patience.as_deref(), since: Instant::now(), count: 0, waits: 0 }
    }

    /// Whether a fault passes by itself, and was not met too often.
    fn may_again(&self, fault: &Fault) -> bool {
        is_passing(fault) && self.count < TRIES && self.since.elapsed() < LIMIT
    }

    /// The server has answered.
    fn are_heard(&self) {
        if let Some(patience) = self.patience {
            patience.ends();
        }
    }

    /// Waits a moment before the next one.
    fn pause(&mut self) {
        self.count += 1;
        thread::sleep(jitter::around(PAUSE * (1 << self.count.min(5))));
    }

    /// Waits a while where the server is away; returns whether to ask it again.
    fn wait(&mut self, fault: &Fault) -> bool {
        let Some(patience) = self.patience.filter(|_| is_away(fault)) else { return false };
        let goes_on = patience.wait(&mut self.waits, &reason(fault), &AtomicBool::new(false));
        if goes_on {
            // What is in the way after the wait is a matter of its own.
            (self.count, self.since) = (0, Instant::now());
        }
        goes_on
    }
}

/// If the server was not there, the operation has failed.
impl Drop for Tries<'_> {
    fn drop(&mut self) {
        if let Some(patience) = self.patience {
            patience.gives_up();
        }
    }
}

/// What has come of an attempt to run an operation.
enum Attempt<T> {
    /// It is written, or was only looked at.
    Done(T),
    /// It is written, with this answer if that is known, or not at all: whether it is was lost.
    Unsure(Option<T>),
    /// It is not written.
    Failed(Fault),
}

/// The version of the tables in a schema; `None`: there are none.
fn version(graph: &dyn Sql, schema: &str) -> Fallible<Option<i64>> {
    let is_there = "SELECT 1 FROM information_schema.tables WHERE table_schema = ?1 AND table_name = 'meta'";
    if !graph.exists(is_there, values![schema])? {
        return Ok(None);
    }
    let version = graph.maybe("SELECT version FROM meta", &[], first)?;
    version.map(Some).ok_or_else(|| Fault::Strange("its table meta is empty".to_owned()))
}

impl Database for PostgresStore {
    fn write<T>(&mut self, how: Write, change: impl Fn(&dyn Sql) -> Fallible<T>) -> Result<T, GraphError> {
        self.transact(if how.is_shape { For::Shape } else { For::Booking }, COMMIT, &change)
    }

    fn peek<T>(&self, look: impl Fn(&dyn Sql, &str) -> Fallible<T>) -> Result<T, GraphError> {
        self.alone(&look)
    }

    fn touch<T>(&mut self, write: impl Fn(&dyn Sql, &str) -> Fallible<T>) -> Result<T, GraphError> {
        self.alone(&write)
    }

    fn take<T>(&mut self, change: impl Fn(&dyn Sql, &str, bool) -> Fallible<T>) -> Result<T, GraphError> {
        let (nonce, was_asked) = (self.nonce()?, Cell::new(false));
        self.transact_as(&nonce, For::Taking, COMMIT, &|graph| change(graph, &nonce, was_asked.replace(true)))
    }

    fn try_out<T>(&mut self, change: &dyn Fn(&dyn Sql) -> Fallible<T>) -> Result<T, GraphError> {
        self.transact(For::Shape, ROLLBACK, change)
    }

    fn read<T>(&self, look: impl Fn(&dyn Sql) -> Fallible<T>) -> Result<T, GraphError> {
        self.look(|| (self.once(For::Look, ROLLBACK, None, &look), true))
    }

    fn read_through<T>(
        &self,
        shown: &Cell<bool>,
        mut look: impl FnMut(&dyn Sql) -> Fallible<T>,
    ) -> Result<T, GraphError> {
        self.look(|| (self.once(For::Show, ROLLBACK, None, &mut look), !shown.get()))
    }

    fn scratch(&self) -> PathBuf {
        env::temp_dir()
    }

    fn has_booked(&mut self, _: &str, _: bool) {}

    fn is_in_place(&self) -> Result<(), GraphError> {
        Ok(())
    }

    fn verified_commit(&self, id: &str) -> Result<Option<String>, GraphError> {
        self.read(|graph| super::sql::claims::verified_at(graph, super::sql::queries::find(graph, id)?))
    }

    fn check(&mut self, _: &str) -> Result<Unbooked, GraphError> {
        Ok(Unbooked::default())
    }

    fn settle_checked(&mut self) -> Result<(), GraphError> {
        Ok(())
    }

    fn is_as_checked(&self) -> Result<bool, GraphError> {
        Ok(true)
    }
}
