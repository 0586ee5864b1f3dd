//! One connection to a server, and the statements of one transaction on it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::error::Error;
use std::future::{Future, poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use futures_util::TryStreamExt as _;
use futures_util::future::join;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::types::{BorrowToSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, NoTls, RowStream, SimpleQueryMessage, Statement};

use super::address::Address;
use super::direct::is_direct;
use super::{password, secure};
use crate::graph::sql::values::{Row, Value};
use crate::graph::sql::{Dialect, Fallible, Fault, Sql};

/// How long a statement may take: a server or a pooler that is frozen acknowledges what is sent and never answers.
pub(super) const LIMIT: Duration = Duration::from_secs(15);
/// How often a connection that is quiet is tried.
const KEPT_ALIVE: Duration = Duration::from_secs(10);

/// How `PostgreSQL` differs from other databases.
static DIALECT: Dialect = Dialect {
    in_order: "JOIN",
    for_claim: "FOR UPDATE OF listed SKIP LOCKED",
    for_booking: "FOR UPDATE OF t",
    counts_processes: false,
    has_word_table: false,
    like: "ILIKE",
    clock: CLOCK,
    issues: None,
};

/// The server's time, in milliseconds since 1970.
pub(super) const CLOCK: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
/// So many statements are sent before their answers are read.
const UNREAD: usize = 64;

/// So many statements have names at most.
const MOST_KEPT: usize = 200;

/// Statements by their texts and the kinds of their values.
type Kept = HashMap<(String, Vec<Type>), Statement>;

/// A statement that is sent; the answer of the one that begins a transaction has the server's time.
type Sent = Pin<Box<dyn Future<Output = Result<Option<String>, tokio_postgres::Error>> + Send>>;

/// A connection. It is driven only while an operation waits for it.
pub(super) struct Connection {
    client: Arc<Client>,
    /// Statements whose answers are read with that of the next one.
    sent: RefCell<Vec<Sent>>,
    /// Declared last: what it drives is dropped before it.
    runtime: Driver,
    /// When the current statement has to be over.
    deadline: Cell<Instant>,
    /// The server's time when the current transaction began, in milliseconds since 1970; `None`: it has not answered yet.
    now: Cell<Option<i64>>,
    /// What ends the current transaction; `None`: it was sent.
    end: Cell<Option<&'static str>>,
    /// Whether that is sent with the next statement.
    ends: Cell<bool>,
    /// The statements that the server keeps the plans of; `None`: a pooler may give every transaction another process, which knows
    /// none of them.
    kept: Option<RefCell<Kept>>,
}

/// Drives a connection. It waits for none of its threads when it is dropped: one may look up a host's name for long.
struct Driver(Option<Runtime>);

impl Driver {
    fn block_on<T>(&self, asked: impl Future<Output = Fallible<T>>) -> Fallible<T> {
        self.0.as_ref().map_or(Err(Fault::Silent), |runtime| runtime.block_on(asked))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Connection {
    /// Connects to the first host of the address that takes it, and can be written to.
    ///
    /// # Errors
    /// What the last one has said.
    pub(super) fn open(address: &Address) -> Fallible<Self> {
        let runtime = Driver(Some(Builder::new_current_thread().enable_all().build()?));
        let mut last = Fault::Silent;
        for (host, port) in &address.hosts {
            let password = password::find(address, host, *port).map_err(Fault::Refused)?;
            let is_secure = address.is_secure && !host.starts_with('/');
            let config = config(address, (host, *port), password.as_deref(), is_secure);
            match runtime.block_on(connect(&config, address, is_secure)) {
                Ok((client, is_direct)) => {
                    let deadline = Cell::new(Instant::now() + LIMIT);
                    let (client, sent) = (Arc::new(client), RefCell::default());
                    let (now, end, ends) = Default::default();
                    let kept = is_direct.then(RefCell::default);
                    return Ok(Self { client, sent, runtime, deadline, now, end, ends, kept });
                }
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    /// Whether nothing can be asked through it any more.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Whether no pooler is in between.
    pub(super) fn is_direct(&self) -> bool {
        self.kept.is_some()
    }

    /// The next statement has all the time that one may take.
    pub(super) fn start(&self) {
        self.deadline.set(Instant::now() + LIMIT);
    }

    /// Runs statements that take no values.
    pub(super) fn batch(&self, sql: &str) -> Fallible<()> {
        self.wait(self.client.batch_execute(sql))
    }

    /// Begins a transaction with statements. The last column of the last one has to be the server's time. That it has begun shows
    /// with the next statement.
    pub(super) fn begin(&self, sql: String, end: &'static str) -> Fallible<()> {
        self.now.set(None);
        self.end.set(Some(end));
        self.ends.set(false);
        let client = Arc::clone(&self.client);
        self.send(async move {
            let said = client.simple_query(&sql).await?;
            Ok(said.iter().rev().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(row.len() - 1).map(str::to_owned),
                _ => None,
            }))
        })
    }

    /// Ends the transaction, unless that was sent with its last statement.
    pub(super) fn end(&self) -> Fallible<()> {
        self.end.take().map_or(Ok(()), |end| self.batch(end))
    }

    /// Whether what ends the transaction was sent.
    pub(super) fn has_ended(&self) -> bool {
        self.end.get().is_none()
    }

    /// Waits for the answers of all that is sent.
    pub(super) fn settle(&self) -> Fallible<()> {
        self.wait(ready(Ok(())))
    }

    /// Sends a statement. If it fails, so do all that follow in its transaction, and the next one that is waited for says why.
    fn send(
        &self,
        asked: impl Future<Output = Result<Option<String>, tokio_postgres::Error>> + Send + 'static,
    ) -> Fallible<()> {
        let mut asked: Sent = Box::pin(asked);
        // It takes its place in the order when it is polled first.
        let polled = poll_fn(|context| Poll::Ready(Ok(asked.as_mut().poll(context))));
        if let Poll::Ready(answer) = self.runtime.block_on(polled)? {
            return Ok(answer.map(drop)?);
        }
        self.sent.borrow_mut().push(asked);
        if self.sent.borrow().len() < UNREAD { Ok(()) } else { self.settle() }
    }

    fn wait<T>(&self, asked: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Fallible<T> {
        let left = self.deadline.get().saturating_duration_since(Instant::now());
        let sent = self.sent.take();
        let before = async {
            for one in sent {
                if let Some(now) = one.await? {
                    self.now.set(now.parse().ok());
                }
            }
            Ok::<_, tokio_postgres::Error>(())
        };
        let both = async { timeout(left, join(before, asked)).await.map_err(|_| Fault::Silent) };
        let (before, answer) = self.runtime.block_on(both)?;
        // What answers is not away, however much there is to ask.
        self.start();
        before?;
        Ok(answer?)
    }

    /// A statement with a name, whose plan the server keeps; `None`: it is to be sent without one, so that a pooler may give every
    /// transaction another connection.
    fn kept(&self, sql: &str, values: &[Value<'_>]) -> Fallible<Option<Statement>> {
        let Some(kept) = &self.kept else { return Ok(None) };
        let kinds: Vec<Type> = values.iter().map(|value| kind(*value)).collect();
        let key = (sql.to_owned(), kinds);
        if let Some(known) = kept.borrow().get(&key) {
            return Ok(Some(known.clone()));
        }
        if kept.borrow().len() >= MOST_KEPT {
            return Ok(None);
        }
        let statement = self.wait(self.client.prepare_typed(sql, &key.1))?;
        kept.borrow_mut().insert(key, statement.clone());
        Ok(Some(statement))
    }

    /// The rows of a statement, and how many it has changed.
    fn ask(&self, sql: &str, values: &[Value<'_>]) -> Fallible<(Vec<tokio_postgres::Row>, u64)> {
        let sql = sql.replace('?', "$");
        let kept = self.kept(&sql, values)?;
        let asked = async {
            let stream =
                query(&self.client, &sql, kept, values.iter().map(|value| (value, kind(*value)))).await?;
            let mut stream = pin!(stream);
            let mut rows = Vec::new();
            while let Some(row) = stream.try_next().await? {
                rows.push(row);
            }
            Ok((rows, stream.rows_affected().unwrap_or_default()))
        };
        let end = if self.ends.get() { self.end.take() } else { None };
        let Some(end) = end else { return self.wait(asked) };
        let ended = self.client.batch_execute(end);
        self.wait(async {
            let (answer, ended) = join(asked, ended).await;
            let answer = answer?;
            ended.map(|()| answer)
        })
    }
}

/// Sends a statement, by its name if the server keeps it.
async fn query<P: BorrowToSql>(
    client: &Client,
    sql: &str,
    kept: Option<Statement>,
    typed: impl ExactSizeIterator<Item = (P, Type)>,
) -> Result<RowStream, tokio_postgres::Error> {
    match kept {
        Some(statement) => client.query_raw(&statement, typed.map(|(value, _)| value)).await,
        None => client.query_typed_raw(sql, typed).await,
    }
}

/// With whether no pooler is in between.
async fn connect(config: &Config, address: &Address, is_secure: bool) -> Fallible<(Client, bool)> {
    let limit = address.connect_timeout;
    let client = async {
        let client = if is_secure {
            let secure = secure::connector(address.authorities.as_deref()).map_err(Fault::Refused)?;
            let (client, connection) = config.connect(secure).await?;
            tokio::spawn(connection);
            client
        } else {
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            client
        };
        let is_direct = is_direct(&client).await?;
        Ok((client, is_direct))
    };
    timeout(limit, client).await.unwrap_or(Err(Fault::Silent))
}

fn config(address: &Address, (host, port): (&str, u16), password: Option<&str>, is_secure: bool) -> Config {
    let mut config = Config::new();
    config.user(&address.user).dbname(&address.database).host(host).port(port);
    config.application_name("ralph").connect_timeout(address.connect_timeout);
    config.keepalives_idle(KEPT_ALIVE).tcp_user_timeout(LIMIT);
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    let mode = if is_secure {
        tokio_postgres::config::SslMode::Require
    } else {
        tokio_postgres::config::SslMode::Disable
    };
    config.ssl_mode(mode);
    if let Some(password) = password {
        config.password(password);
    }
    config
}

fn kind(value: Value<'_>) -> Type {
    match value {
        // What it is compared with, or becomes, says what it is.
        Value::Null => Type::UNKNOWN,
        Value::Int(_) => Type::INT8,
        Value::Real(_) => Type::FLOAT8,
        Value::Text(_) => Type::TEXT,
    }
}

fn owned(value: Value<'_>) -> Box<dyn ToSql + Sync + Send> {
    match value {
        // Of any type: the server says what it becomes.
        Value::Null => Box::new(Value::Null),
        Value::Int(number) => Box::new(number),
        Value::Real(number) => Box::new(number),
        Value::Text(text) => Box::new(text.to_owned()),
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) => number.to_sql(kind, out),
            Self::Real(number) => number.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl Sql for Connection {
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Fallible<()> {
        let (client, sql) = (Arc::clone(&self.client), sql.replace('?', "$"));
        let kept = self.kept(&sql, values)?;
        let typed: Vec<_> = values.iter().map(|value| (owned(*value), kind(*value))).collect();
        self.send(async move {
            let mut stream = pin!(query(&client, &sql, kept, typed.into_iter()).await?);
            while stream.try_next().await?.is_some() {}
            Ok(None)
        })
    }

    fn count(&self, sql: &str, values: &[Value<'_>]) -> Fallible<usize> {
        let (_, changed) = self.ask(sql, values)?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Fallible<bool>,
    ) -> Fallible<()> {
        // All at once: `each` may ask for more.
        for row in self.ask(sql, values)?.0 {
            if !each(&row)? {
                break;
            }
        }
        Ok(())
    }

    fn last(&self) {
        self.ends.set(true);
    }

    fn now(&self) -> Fallible<i64> {
        if self.now.get().is_none() {
            self.settle()?;
        }
        self.now.get().ok_or_else(|| Fault::Strange("the server tells no time".to_owned()))
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }
}

impl Row for tokio_postgres::Row {
    fn int(&self, at: usize) -> Fallible<Option<i64>> {
        let kind = self.columns().get(at).map(tokio_postgres::Column::type_);
        Ok(match kind {
            Some(&Type::BOOL) => self.try_get::<_, Option<bool>>(at)?.map(i64::from),
            Some(&Type::INT4) => self.try_get::<_, Option<i32>>(at)?.map(i64::from),
            _ => self.try_get(at)?,
        })
    }

    fn real(&self, at: usize) -> Fallible<Option<f64>> {
        Ok(self.try_get(at)?)
    }

    fn text(&self, at: usize) -> Fallible<Option<String>> {
        Ok(self.try_get(at)?)
    }
}
