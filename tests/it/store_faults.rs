//! What happens to workers when their server does not do what it should.

use std::fs;
use std::process::Command;

use crate::jobs::{attempts, ended, events};
use crate::many_machines::{Fleet, RUN, UNTIL_GO, home, until_there};
use crate::postgres_server::PostgresServer;
use crate::run_tasks::add;
use crate::scratch::{Scratch, Started, wait_for};

/// A machine, whose agent waits for a file.
fn fleet() -> Fleet {
    let server = PostgresServer::start(&[]);
    let address = server.address("work");
    Fleet::at(server, &address, 1, &format!("{UNTIL_GO}; work; done_"))
}

fn go(fleet: &Fleet) {
    fs::write(home(&fleet.machines[0], "go"), "").unwrap();
}

/// Ralph with this graph as a user of the database who may only do what was granted.
fn limited(fleet: &Fleet, args: &str) -> Command {
    let mut command = fleet.machines[0].ralph(args);
    command.env("RALPH_STORE", fleet.server.address("work").replace("ralph@", "limited@"));
    command
}

#[test]
fn a_server_without_a_connection_left_is_waited_for_and_verbs_say_so() {
    let fleet = fleet();
    let machine = &fleet.machines[0];
    let connections = |most: i32| fleet.server.sql(&format!("ALTER USER limited CONNECTION LIMIT {most}"));
    fleet.server.sql("CREATE USER limited; GRANT CREATE ON DATABASE postgres TO limited");
    let id = Scratch::finish(&mut limited(&fleet, "task add first")).stdout.trim().to_owned();
    connections(0);
    let verb = Scratch::finish(&mut limited(&fleet, "task list"));
    assert!(verb.code == Some(1) && verb.stderr.contains("let the server have more connections"), "{verb:?}");
    let said = machine.outside().join("said");
    let worker = Started::into(&said, &mut limited(&fleet, RUN));
    let said = || fs::read_to_string(&said).unwrap();
    wait_for("that it waits", || said().contains("waiting for the store").then_some(()));
    connections(-1);
    until_there(&home(machine, "at-work"));
    // And in the middle of it.
    connections(0);
    fleet.server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'limited'");
    go(&fleet);
    let waits = || events(machine, "waiting").iter().any(|event| event["reason"] == "store").then_some(());
    wait_for("that it waits again", waits);
    connections(-1);
    ended(&worker.finish(), 0);
    assert!(said().contains("too many connections"), "{}", said());
    fleet.assert_all_landed(&[id]);
    assert_eq!(attempts(machine), 1);
}

#[test]
fn a_worker_goes_on_while_its_tables_become_those_of_a_newer_version() {
    let fleet = fleet();
    let machine = &fleet.machines[0];
    let ids = [add(machine, "first"), add(machine, "second")];
    let worker = fleet.start(0, RUN);
    until_there(&home(machine, "at-work"));
    fleet.server.sql("ALTER TABLE work.tasks ADD COLUMN colour TEXT; UPDATE work.meta SET version = 99");
    let newer = machine.run(RUN);
    assert!(
        newer.code == Some(1) && newer.stderr.contains("is of a newer ralph: update this one"),
        "{newer:?}"
    );
    go(&fleet);
    ended(&worker.finish(), 0);
    fleet.server.sql("UPDATE work.meta SET version = 3");
    fleet.assert_all_landed(&ids);
    assert_eq!(attempts(machine), 2);
}

#[test]
fn rights_that_are_revoked_end_a_worker_with_its_work_kept() {
    let fleet = fleet();
    let machine = &fleet.machines[0];
    fleet.server.sql("CREATE USER limited; GRANT CREATE ON DATABASE postgres TO limited");
    let id = Scratch::finish(&mut limited(&fleet, "task add first")).stdout.trim().to_owned();
    let said = machine.outside().join("said");
    let worker = Started::into(&said, &mut limited(&fleet, RUN));
    until_there(&home(machine, "at-work"));
    fleet.server.sql("REVOKE UPDATE ON ALL TABLES IN SCHEMA work FROM limited");
    go(&fleet);
    let run = worker.finish();
    ended(&run, 5);
    assert!(run.stdout.contains("permission denied"), "{run:?}: {}", fs::read_to_string(&said).unwrap());
    fleet.server.sql("GRANT UPDATE ON ALL TABLES IN SCHEMA work TO limited");
    let again = Scratch::finish(&mut limited(&fleet, RUN));
    ended(&again, 0);
    // Its commits were kept, and what it said was not booked.
    assert!(again.stderr.contains("what an earlier run has left here"), "{again:?}");
    fleet.assert_all_landed(&[id]);
    assert!(events(machine, "waiting").is_empty(), "what is refused is not waited for");
}
