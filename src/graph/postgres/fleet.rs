//! The workers of a graph: what each is at, what all have spent, and what they are asked to do.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{CLOCK, COMMIT, For, PostgresStore};
use crate::graph::error::GraphError;
use crate::graph::sql::store::Database as _;
use crate::graph::sql::values::values;
use crate::graph::sql::{Fallible, Sql, first, moment};
use crate::memory::knowledge::Knowledge;

/// One run on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// The id of its run.
    pub run: String,
    /// The name of its machine.
    pub machine: String,
    /// When it began.
    pub since: DateTime<Utc>,
    /// When it was heard of last.
    pub seen: DateTime<Utc>,
    /// How long ago that was, and how long it has worked, by the server's clock.
    pub ago: (Duration, Duration),
    /// Whether it was not long ago.
    pub is_heard: bool,
    /// The ids of the tasks that its agents are at.
    pub tasks: Vec<String>,
    /// The folder of its logs, on its machine.
    pub logs: String,
}

impl Worker {
    /// Its name on the command line.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.machine, self.run)
    }
}

/// What a worker says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said<'a> {
    /// The id of its run.
    pub run: &'a str,
    /// The name of its machine.
    pub machine: &'a str,
    /// The ids of the tasks that its agents are at.
    pub tasks: &'a [String],
    /// The folder of its logs.
    pub logs: &'a str,
    /// The login of its agents.
    pub login: &'a str,
    /// Until when the usage limit of that is known to last.
    pub closed_until: Option<DateTime<Utc>>,
    /// What it has spent since it began: US dollars and tokens.
    pub spent: (f64, u64),
    /// How much of that it has said.
    pub told: (f64, u64),
    /// What its agents have found out.
    pub found: &'a [Knowledge],
    /// The number after which it does not know what others have found out.
    pub known: i64,
    /// The number of the last request that it has heard.
    pub heard: i64,
}

/// What a worker hears.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heard {
    /// What it is asked to do, with numbers and as JSON, the oldest first. It comes again until the worker says that it has it.
    pub asks: Vec<(i64, String)>,
    /// What all workers have ever spent: US dollars and tokens.
    pub spent: (f64, u64),
    /// Until when the usage limit of its login lasts, as far as any worker knows.
    pub closed_until: Option<DateTime<Utc>>,
    /// What agents of others have found out, with numbers.
    pub found: Vec<(i64, Knowledge)>,
}

/// Something that a worker is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The worker's name.
    pub worker: String,
    number: i64,
}

impl PostgresStore {
    /// Says what a worker is at, and hears what it is asked to do. The same may be said again.
    ///
    /// # Errors
    /// If the server fails.
    pub fn report(&self, said: &Said<'_>) -> Result<Heard, GraphError> {
        self.transact(For::Report, COMMIT, &|graph| report(graph, said))
    }

    /// Whether a worker is asked to do something.
    ///
    /// # Errors
    /// If the server fails.
    pub fn is_asked(&self, run: &str) -> Result<bool, GraphError> {
        self.peek(|graph, tables| {
            graph.exists(&format!("SELECT 1 FROM {tables}asks WHERE run = ?1"), values![run])
        })
    }

    /// A worker has ended.
    ///
    /// # Errors
    /// If the server fails.
    pub fn leave(&self, run: &str) -> Result<(), GraphError> {
        self.transact(For::Report, COMMIT, &|graph| {
            graph.execute("DELETE FROM workers WHERE run = ?1", values![run]).map(drop)
        })
    }

    /// The workers that have not ended; those that were not heard of for longer than this, in milliseconds, may be gone.
    ///
    /// # Errors
    /// If the server fails.
    pub fn workers(&self, silent_ms: i64) -> Result<Vec<Worker>, GraphError> {
        self.read(|graph| {
            let query = "SELECT run, machine, since, seen, tasks, logs FROM workers ORDER BY since, run";
            let now = graph.now()?;
            let ago =
                |at: i64| Duration::from_millis(u64::try_from(now.saturating_sub(at)).unwrap_or_default());
            graph.all(query, &[], |row| {
                let (since, seen): (i64, i64) = (row.get(2)?, row.get(3)?);
                Ok(Worker {
                    run: row.get(0)?,
                    machine: row.get(1)?,
                    since: moment(since),
                    seen: moment(seen),
                    ago: (ago(seen), ago(since)),
                    is_heard: seen >= now.saturating_sub(silent_ms),
                    tasks: serde_json::from_str(&row.get::<String>(4)?).unwrap_or_default(),
                    logs: row.get(5)?,
                })
            })
        })
    }

    /// What agents of all workers have found out, the oldest first.
    ///
    /// # Errors
    /// If the server fails.
    pub fn knowledge(&self) -> Result<Vec<Knowledge>, GraphError> {
        let found = self.read(|graph| found_since(graph, "", 0))?;
        Ok(found.into_iter().map(|(_, one)| one).collect())
    }

    /// Asks a worker to do something; `None`: it has ended.
    ///
    /// # Errors
    /// If the server fails.
    pub fn ask(&self, worker: &Worker, request: &str) -> Result<Option<Asked>, GraphError> {
        let number = self.transact(For::Booking, COMMIT, &|graph| {
            let insert =
                "INSERT INTO asks (run, request) SELECT run, ?2 FROM workers WHERE run = ?1 RETURNING seq";
            graph.maybe(insert, values![worker.run, request], first)
        })?;
        Ok(number.map(|number| Asked { worker: worker.name(), number }))
    }

    /// Those of these that no worker has heard yet.
    ///
    /// # Errors
    /// If the server fails.
    pub fn unheard(&self, asked: Vec<Asked>) -> Result<Vec<Asked>, GraphError> {
        let left: Vec<i64> = self.read(|graph| graph.all("SELECT seq FROM asks", &[], first))?;
        Ok(asked.into_iter().filter(|one| left.contains(&one.number)).collect())
    }
}

fn report(graph: &dyn Sql, said: &Said<'_>) -> Fallible<Heard> {
    let tasks = serde_json::to_string(said.tasks).unwrap_or_default();
    let tokens = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    // One that was removed meanwhile, as it was silent for long, goes on from what it has said.
    let put = format!(
        "INSERT INTO workers (run, machine, since, seen, tasks, logs, spent_usd, spent_tokens)
        VALUES (?1, ?2, {CLOCK}, {CLOCK}, ?3, ?4, ?5, ?6) ON CONFLICT (run) DO UPDATE SET seen = {CLOCK}, tasks = ?3"
    );
    let (dollars, told) = (said.told.0, tokens(said.told.1));
    graph.execute(&put, values![said.run, said.machine, tasks, said.logs, dollars, told])?;
    if said.heard > 0 {
        graph.execute("DELETE FROM asks WHERE run = ?1 AND seq <= ?2", values![said.run, said.heard])?;
    }
    if let Some(until) = said.closed_until {
        let put = "INSERT INTO limits (login, until) VALUES (?1, ?2)
            ON CONFLICT (login) DO UPDATE SET until = greatest(limits.until, ?2)";
        graph.execute(put, values![said.login, until.timestamp_millis()])?;
    }
    // What is said above counts already.
    let query = format!(
        "SELECT w.spent_usd, w.spent_tokens, m.spent_usd, m.spent_tokens,
        (SELECT until FROM limits WHERE login = ?2 AND until > {CLOCK}) FROM workers w, meta m WHERE run = ?1"
    );
    let (was, mut spent, closed_until): ((f64, i64), (f64, i64), Option<i64>) =
        graph.one(&query, values![said.run, said.login], |row| {
            Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, row.get(3)?), row.get(4)?))
        })?;
    let more = ((said.spent.0 - was.0).max(0.0), (tokens(said.spent.1) - was.1).max(0));
    if more > (0.0, 0) {
        let add = "UPDATE meta SET spent_usd = spent_usd + ?1, spent_tokens = spent_tokens + ?2
            RETURNING spent_usd, spent_tokens";
        spent = graph.one(add, values![more.0, more.1], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let add =
            "UPDATE workers SET spent_usd = spent_usd + ?2, spent_tokens = spent_tokens + ?3 WHERE run = ?1";
        graph.execute(add, values![said.run, more.0, more.1])?;
    }
    for one in said.found {
        let text = serde_json::to_string(one).unwrap_or_default();
        let put = "INSERT INTO knowledge (run, found) SELECT ?1, ?2
            WHERE NOT EXISTS (SELECT 1 FROM knowledge WHERE run = ?1 AND found = ?2)";
        graph.execute(put, values![said.run, text])?;
    }
    let asks = "SELECT seq, request FROM asks WHERE run = ?1 ORDER BY seq";
    let asks = graph.all(asks, values![said.run], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let found = found_since(graph, said.run, said.known)?;
    let spent = (spent.0, u64::try_from(spent.1).unwrap_or_default());
    Ok(Heard { asks, spent, closed_until: closed_until.map(moment), found })
}

/// What agents of other runs have found out from this number on.
fn found_since(graph: &dyn Sql, but_run: &str, number: i64) -> Fallible<Vec<(i64, Knowledge)>> {
    graph.last();
    let query = "SELECT seq, found FROM knowledge WHERE seq > ?1 AND run <> ?2 ORDER BY seq";
    let rows: Vec<(i64, String)> =
        graph.all(query, values![number, but_run], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // Another program may have written one that is none.
    let read = |(number, text): (i64, String)| Some((number, serde_json::from_str(&text).ok()?));
    Ok(rows.into_iter().filter_map(read).collect())
}
