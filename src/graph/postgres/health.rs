//! What a server is like, for who wants to keep a graph there.

use std::time::{Duration, Instant};

use chrono::Utc;

use super::PostgresStore;
use super::connection::{CLOCK, Connection};
use crate::graph::error::GraphError;
use crate::graph::postgres::Address;
use crate::graph::postgres::schema::VERSION;
use crate::graph::sql::store::Database as _;
use crate::graph::sql::values::values;
use crate::graph::sql::{Fallible, Sql, first};
use crate::version::{self, Newer};

/// What a server is like.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub struct Health {
    /// Its version, such as 150006.
    pub version: i64,
    /// It writes what it acknowledges to disk first.
    pub syncs: bool,
    /// How many standbys get what is written only afterwards; `None`: this user may not see that.
    pub late_standbys: Option<i64>,
    /// Whether there is a graph in the schema.
    pub has_graph: bool,
    /// The message about it if a newer ralph has made its tables.
    pub(crate) newer: Option<Newer>,
    /// The first commit of the repository that it is of, once a run has worked on it.
    pub repository: Option<String>,
    /// Whether this user may make the schema and tables in it, and read and write those that there are.
    pub may_write: bool,
    /// How far its clock is ahead of this machine's, in milliseconds.
    pub clock_ms: i64,
    /// How long a question takes.
    pub round_trip: Duration,
    /// Whether a pooler is in between.
    pub is_pooled: bool,
}

impl PostgresStore {
    /// Looks at a server, and makes nothing there.
    ///
    /// # Errors
    /// If it cannot be reached, or not be written to.
    pub fn examine(address: Address) -> Result<Health, GraphError> {
        let store = Self::at(address);
        let health = store.read(|graph| health(graph, &store.address.schema))?;
        let is_direct = store.connection.borrow().as_ref().is_some_and(Connection::is_direct);
        Ok(Health { is_pooled: !is_direct, ..health })
    }
}

fn health(graph: &dyn Sql, schema: &str) -> Fallible<Health> {
    let began = Instant::now();
    let theirs: i64 = graph.one(&format!("SELECT {CLOCK}"), &[], first)?;
    let round_trip = began.elapsed();
    // It was read in the middle of that.
    let half = i64::try_from(round_trip.as_millis() / 2).unwrap_or_default();
    let clock_ms = theirs - (Utc::now().timestamp_millis() - half);
    let server =
        "SELECT CAST(current_setting('server_version_num') AS BIGINT), current_setting('fsync') = 'on'";
    let (version, syncs) = graph.one(server, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // Who may not see them sees only that they are there.
    let late = "SELECT CASE WHEN bool_or(sync_state IS NULL) THEN NULL ELSE count(*) FILTER (WHERE sync_state = 'async') END
        FROM pg_stat_replication";
    let in_schema = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = ?1),
        EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ?1 AND relname = 'meta')";
    let (has_schema, has_graph): (bool, bool) =
        graph.one(in_schema, values![schema], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let may_make: bool = if has_schema {
        graph.one(
            "SELECT has_schema_privilege(?1, 'USAGE') AND has_schema_privilege(?1, 'CREATE')",
            values![schema],
            first,
        )?
    } else {
        graph.one("SELECT has_database_privilege(current_database(), 'CREATE')", &[], first)?
    };
    let may_write = "SELECT coalesce(bool_and(has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
            AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')), true)
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ?1 AND c.relkind = 'r'";
    let may_use =
        !has_schema || graph.one("SELECT has_schema_privilege(?1, 'USAGE')", values![schema], first)?;
    let may_write = (has_graph || may_make) && may_use && graph.one(may_write, values![schema], first)?;
    let about = "SELECT version, repository FROM meta";
    let (of_tables, repository): (i64, Option<String>) = if has_graph && may_write {
        graph.one(about, &[], |row| Ok((row.get(0)?, row.get(1)?)))?
    } else {
        Default::default()
    };
    Ok(Health {
        version,
        syncs,
        newer: (of_tables > VERSION).then(|| version::newer(of_tables, VERSION, "")),
        repository,
        late_standbys: graph.one(late, &[], first)?,
        has_graph,
        may_write,
        clock_ms,
        round_trip,
        is_pooled: false,
    })
}
