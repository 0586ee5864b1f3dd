//! The server of a graph.

use super::Finding;
use crate::cli::GraphArgs;
use crate::commands::graph_file;
use crate::commands::task::look;
use crate::graph::postgres::{Address, Health, PostgresStore};
use crate::project::Project;

/// Older servers are not tried.
const OLDEST: i64 = 130_000;
/// A larger difference of clocks is worth a word: it makes times in lists wrong, and nothing else.
const CLOCKS: i64 = 5_000;

/// Looks at a server without making anything there.
pub(super) fn check(address: Address, project: &Project) -> Vec<Finding> {
    let shown = address.to_string();
    match PostgresStore::examine(address) {
        Ok(health) => {
            let is_ours = |known: &String| graph_file::may_be_of(project, known);
            let is_anothers = !health.repository.as_ref().is_none_or(is_ours);
            findings(&shown, &health, is_anothers)
        }
        Err(error) => vec![Finding::fail("store", error.to_string(), "then 'ralph doctor --store' again")],
    }
}

/// Looks at the graph in the project's file, if there is one, and reports only what is wrong with it.
pub(super) fn check_file(project: &Project) -> Option<Finding> {
    let args = GraphArgs { ralph_dir: Some(project.graph_dir()), ..GraphArgs::default() };
    let error = project.graph().exists().then(|| look(&args).err())??;
    Some(Finding::fail("store", format!("{error:#}"), "then 'ralph doctor' again"))
}

fn findings(shown: &str, health: &Health, is_anothers: bool) -> Vec<Finding> {
    let version = format!("{}.{}", health.version / 10_000, health.version % 10_000);
    let trip = health.round_trip.as_secs_f64() * 1000.0;
    let about = format!("PostgreSQL {version}, {trip:.1} ms away, at {shown}");
    let server = if health.version < OLDEST {
        Finding::fail("store", about, "update the server: version 13 is the oldest that is tried")
    } else {
        Finding::ok("store", about)
    };
    let rights = match (health.has_graph, health.may_write, &health.newer) {
        (_, _, Some(newer)) => Finding::fail("store graph", format!("it {}", newer.what), &newer.advice),
        _ if is_anothers => Finding::fail(
            "store graph",
            "it has the tasks of another repository",
            "name another schema, as in ?schema=NAME",
        ),
        (true, true, _) => Finding::ok("store graph", "there is one, which this user can write"),
        (false, true, _) => Finding::ok("store graph", "there is none yet: the first verb makes its tables"),
        (_, false, _) => Finding::fail(
            "store graph",
            "this user may not make or write the tables of that schema",
            "grant it to use and create the schema, and to write its tables",
        ),
    };
    let disk = if health.syncs {
        Finding::ok("store disk", "what is acknowledged is on disk")
    } else {
        Finding::warn(
            "store disk",
            "fsync is off: a power cut can lose the graph",
            "set fsync = on in postgresql.conf",
        )
    };
    let standbys = match health.late_standbys {
        Some(0) => None,
        Some(_) => {
            let what = "there are asynchronous standbys: a failover may take back the last seconds; nothing lands twice";
            Some(Finding::warn("store copies", what, "name one of them in synchronous_standby_names"))
        }
        None => {
            let what = "there are standbys, which may be asynchronous: this user may not see that";
            Some(Finding::warn("store copies", what, "grant pg_monitor to it, or ask who runs the server"))
        }
    };
    let clock = (health.clock_ms.abs() > CLOCKS).then(|| {
        let seconds = health.clock_ms / 1000;
        let what =
            format!("the server's clock and this one differ by {seconds} s; only the server's decides");
        Finding::warn("store clock", what, "let both follow a time server")
    });
    let pooler = health.is_pooled.then(|| {
        Finding::ok(
            "store pooler",
            "connections go through a pooler; its session and transaction modes will do",
        )
    });
    [Some(server), Some(rights), Some(disk), standbys, clock, pooler].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::commands::doctor::Health as Found;
    use crate::version::newer;

    #[test]
    fn what_is_wrong_with_a_server_is_said() {
        let good = Health {
            version: 150_006,
            syncs: true,
            late_standbys: Some(0),
            has_graph: true,
            newer: None,
            repository: None,
            may_write: true,
            clock_ms: 3,
            round_trip: Duration::from_micros(1500),
            is_pooled: false,
        };
        let all = findings("postgres://a@h/d", &good, false);
        assert!(all.iter().all(|finding| finding.status == Found::Ok), "{all:?}");
        assert_eq!(all[0].detail, "PostgreSQL 15.6, 1.5 ms away, at postgres://a@h/d");
        for (bad, status, said) in [
            (Health { version: 120_001, ..good.clone() }, Found::Fail, "PostgreSQL 12.1"),
            (Health { syncs: false, ..good.clone() }, Found::Warn, "fsync is off"),
            (Health { late_standbys: Some(1), ..good.clone() }, Found::Warn, "take back the last seconds"),
            (Health { late_standbys: None, ..good.clone() }, Found::Warn, "may be asynchronous"),
            (Health { may_write: false, ..good.clone() }, Found::Fail, "may not make or write"),
            (
                Health { may_write: false, has_graph: false, ..good.clone() },
                Found::Fail,
                "may not make or write",
            ),
            (Health { newer: Some(newer(6, 5, "")), ..good.clone() }, Found::Fail, "by a newer ralph"),
            (Health { is_pooled: true, ..good.clone() }, Found::Ok, "through a pooler"),
            (Health { clock_ms: -61_000, ..good.clone() }, Found::Warn, "differ by -61 s"),
        ] {
            let all = findings("x", &bad, false);
            assert!(all.iter().any(|one| one.status == status && one.detail.contains(said)), "{all:?}");
        }
        let all = findings("x", &good, true);
        assert!(all.iter().any(|one| one.status == Found::Fail && one.detail.contains("another repository")));
    }
}
