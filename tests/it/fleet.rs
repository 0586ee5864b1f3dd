//! Many machines with more between them than a server: standbys that take over, and poolers. `scripts/test --fleet` runs these.

use std::fs;
use std::path::Path;

use crate::jobs::{attempts, ended, refs};
use crate::many_machines::{Fleet, RUN, UNTIL_GO, home, until_there};
use crate::postgres_server::{Pooler, PostgresServer};
use crate::run_tasks::{add, status};
use crate::scratch::{Started, executable, wait_for};

/// A server with a standby, and machines that know both. The remote holds each push of the branch until a file is there.
fn with_standby(machines: usize, body: &str) -> (Fleet, PostgresServer) {
    let server = PostgresServer::start(&[]);
    let standby = server.standby();
    let address = format!("postgres://ralph@{},{}/postgres?schema=work", server.host(), standby.host());
    let fleet = Fleet::at(server, &address, machines, body);
    let hook = "#!/bin/sh\n[ \"$1\" = refs/heads/main ] || exit 0\ntouch held\nuntil [ -e open ]; do sleep 0.02; done\n";
    executable(&Path::new(&fleet.remote).join("hooks/update"), hook);
    (fleet, standby)
}

/// Waits until the first two tasks are handed in, and the standby has that and no more: then they land, and that is booked.
fn land_without_standby(fleet: &Fleet, standby: &PostgresServer, ids: &[String]) {
    let remote = Path::new(&fleet.remote);
    until_there(&remote.join("held"));
    for id in &ids[..2] {
        wait_for("what is handed in", || (status(&fleet.machines[0], id) == "landing").then_some(()));
    }
    until_there(&home(&fleet.machines[0], "at-work"));
    wait_for("the standby", || standby.has_all_of(&fleet.server).then_some(()));
    fleet.server.send_no_more();
    fs::write(remote.join("open"), "").unwrap();
    for id in &ids[..2] {
        wait_for("what has landed", || (status(&fleet.machines[0], id) == "done").then_some(()));
    }
}

/// Does its work where it is not done yet; the third one waits.
fn body() -> String {
    format!("[ $title != task-2 ] || {{ {UNTIL_GO}; }}; [ -e work-$id ] || work; done_")
}

fn tasks(fleet: &Fleet, count: usize) -> Vec<String> {
    (0..count).map(|number| add(&fleet.machines[0], &format!("task-{number}"))).collect()
}

#[test]
#[ignore = "run by scripts/test --fleet"]
fn a_worker_goes_on_with_the_standby_that_takes_over_and_books_again_what_has_landed() {
    let (mut fleet, standby) = with_standby(1, &body());
    let ids = tasks(&fleet, 4);
    let worker = fleet.start(0, RUN);
    land_without_standby(&fleet, &standby, &ids);
    fleet.server.kill();
    let landing = "SELECT count(*) FROM work.landings WHERE standing = 1";
    assert_eq!(standby.sql(landing), "2\n", "the standby does not know that they have landed");
    standby.promote();
    let machine = &fleet.machines[0];
    fs::write(home(machine, "go"), "").unwrap();
    let run = worker.finish();
    ended(&run, 0);
    fleet.assert_all_landed(&ids);
    assert_eq!(attempts(machine), 4, "nothing is done twice: {run:?}");
}

#[test]
#[ignore = "run by scripts/test --fleet"]
fn what_a_failover_has_forgotten_lands_once_whoever_comes_later() {
    let (mut fleet, standby) = with_standby(2, &body());
    let ids = tasks(&fleet, 4);
    let worker = fleet.start(0, RUN);
    land_without_standby(&fleet, &standby, &ids);
    fs::write(home(&fleet.machines[0], "go"), "").unwrap();
    ended(&worker.finish(), 0);
    let landed = fleet.there(&["rev-parse", "main"]);
    fleet.server.kill();
    standby.promote();
    // The third one is at work, after what the standby knows, and the last one has not begun.
    assert_eq!(
        ids.iter().map(|id| status(&fleet.machines[1], id)).collect::<Vec<_>>(),
        ["landing", "landing", "in_progress", "pending"]
    );
    fs::write(home(&fleet.machines[1], "go"), "").unwrap();
    wait_for("the lease of the third one to be over", || {
        (fleet.machines[1].run(RUN).code == Some(0)).then_some(())
    });
    fleet.assert_all_landed(&ids);
    assert_eq!(fleet.there(&["rev-parse", "main"]), landed, "all of it was there");
    assert_eq!(attempts(&fleet.machines[1]), 2);
    assert_eq!(refs(&fleet.machines[1], "tasks"), [""; 0]);
}

#[test]
#[ignore = "run by scripts/test --fleet"]
fn workers_share_few_connections_of_a_pooler_in_transaction_mode() {
    let server = PostgresServer::start(&[]);
    let pooler = Pooler::start(&server, 2);
    let fleet = Fleet::at(server, &pooler.address("work"), 3, "work; done_");
    let ids = tasks(&fleet, 12);
    let runs: Vec<_> = (0..3).map(|machine| fleet.start(machine, &format!("{RUN} --jobs 2"))).collect();
    for run in runs.into_iter().map(Started::finish) {
        ended(&run, 0);
    }
    fleet.assert_all_landed(&ids);
    assert_eq!(fleet.machines.iter().map(attempts).sum::<usize>(), ids.len());
    let doctor = fleet.machines[0].run("doctor");
    assert!(doctor.stdout.contains("go through a pooler"), "{doctor:?}");
    let direct = fleet.machines[0].run(&format!("doctor --store {}", fleet.server.address("work")));
    assert!(direct.stdout.contains("PostgreSQL") && !direct.stdout.contains("pooler"), "{direct:?}");
}
