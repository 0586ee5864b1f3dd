//! What happens to workers when their server does not do what it should.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::jobs::{attempts, ended, events};
use crate::many_machines::{Fleet, RUN, UNTIL_GO, home, signal, until_there};
use crate::postgres_server::PostgresServer;
use crate::run_tasks::add;
use crate::scratch::{Scratch, Started, executable, wait_for};

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
    fleet
        .server
        .sql("ALTER TABLE work.tasks ADD COLUMN colour TEXT; UPDATE work.meta SET version = version + 90");
    let newer = machine.run(RUN);
    assert!(
        newer.code == Some(1) && newer.stderr.contains("was written by a newer ralph (version "),
        "{newer:?}"
    );
    go(&fleet);
    ended(&worker.finish(), 0);
    fleet.server.sql("UPDATE work.meta SET version = version - 90");
    fleet.assert_all_landed(&ids);
    assert_eq!(attempts(machine), 2);
}

#[test]
fn rights_that_are_revoked_end_a_worker_with_its_work_kept() {
    let login = "ALTER ROLE limited NOLOGIN; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'limited'";
    for (revoke, grant, why) in [
        (
            "REVOKE UPDATE ON ALL TABLES IN SCHEMA work FROM limited",
            "GRANT UPDATE ON ALL TABLES IN SCHEMA work TO limited",
            "permission denied",
        ),
        (login, "ALTER ROLE limited LOGIN", "not permitted to log in"),
    ] {
        let fleet = fleet();
        let machine = &fleet.machines[0];
        fleet.server.sql("CREATE USER limited; GRANT CREATE ON DATABASE postgres TO limited");
        let id = Scratch::finish(&mut limited(&fleet, "task add first")).stdout.trim().to_owned();
        let said = machine.outside().join("said");
        let worker = Started::into(&said, &mut limited(&fleet, RUN));
        until_there(&home(machine, "at-work"));
        fleet.server.sql(revoke);
        go(&fleet);
        let run = worker.finish();
        ended(&run, 1);
        assert!(run.stdout.contains(why), "{run:?}: {}", fs::read_to_string(&said).unwrap());
        assert!(run.stdout.contains(&format!("is kept here as refs/ralph/tasks/{id}/1-")), "{run:?}");
        fleet.server.sql(grant);
        let again = Scratch::finish(&mut limited(&fleet, RUN));
        ended(&again, 0);
        // Its commits were kept, and what it said was not booked.
        assert!(again.stderr.contains("what an earlier run has left here"), "{again:?}");
        fleet.assert_all_landed(&[id]);
        assert!(events(machine, "waiting").is_empty(), "what is refused is not waited for");
    }
}

/// What a worker may take for its end beside the time of its attempt, and what a busy machine may add.
const LEAVING: Duration = Duration::from_secs(10);
const BUSY: Duration = Duration::from_secs(4);

/// Sends SIGTERM to a worker, whose attempt has a second then.
#[track_caller]
fn ends_in_time(worker: Started) {
    let began = Instant::now();
    signal(&worker, Signal::TERM);
    let run = worker.finish();
    let took = began.elapsed();
    ended(&run, 130);
    assert!(took < Duration::from_secs(1) + LEAVING + BUSY, "{took:?}: {run:?}");
}

#[test]
fn sigterm_ends_a_worker_in_time_while_its_agent_does_not_listen_and_nothing_answers() {
    let server = PostgresServer::start(&[]);
    let address = server.address("work");
    let body = "work; trap '' INT TERM; touch \"$HOME/at-work\"; while :; do sleep 0.1; done";
    let fleet = Fleet::at(server, &address, 1, body);
    add(&fleet.machines[0], "first");
    let worker = fleet.start(0, &format!("{RUN} --stop-within 1s"));
    until_there(&home(&fleet.machines[0], "at-work"));
    executable(&Path::new(&fleet.remote).join("hooks/update"), "#!/bin/sh\nexec sleep 300\n");
    fleet.server.freeze(true);
    ends_in_time(worker);
    fleet.server.freeze(false);
    // The push that was given up may still be there.
    let kept = crate::jobs::refs(&fleet.machines[0], "tasks");
    assert_eq!(kept.len(), 1, "its commits are kept");
}

#[test]
fn sigterm_ends_a_worker_in_time_while_a_gate_runs_and_the_store_is_away() {
    let server = PostgresServer::start(&[]);
    let address = server.address("work");
    let fleet = Fleet::at(server, &address, 1, "work; done_");
    let machine = &fleet.machines[0];
    let ids = [add(machine, "first"), add(machine, "second")];
    machine.git(&["commit", "--quiet", "--allow-empty", "--message", "what a person has committed"]);
    machine.write(
        "ralph.toml",
        "[git]\nprotected_branches = []\n[landing]\ncommand = \"touch $HOME/at-gate; sleep 300\"\n",
    );
    let worker = fleet.start(0, &format!("{RUN} --stop-within 1s"));
    until_there(&home(machine, "at-gate"));
    fleet.server.freeze(true);
    ends_in_time(worker);
    fleet.server.freeze(false);
    machine.write("ralph.toml", "[git]\nprotected_branches = []\n");
    wait_for("the leases to be over", || (machine.run(RUN).code == Some(0)).then_some(()));
    fleet.assert_all_landed(&ids);
}

#[test]
fn one_ctrl_c_ends_a_worker_that_waits_for_a_server_that_is_away() {
    let mut fleet = fleet();
    add(&fleet.machines[0], "first");
    let said = fleet.machines[0].outside().join("said");
    let worker = Started::into(&said, &mut fleet.machines[0].ralph(RUN));
    until_there(&home(&fleet.machines[0], "at-work"));
    fleet.server.kill();
    go(&fleet);
    wait_for("that it waits", || {
        fs::read_to_string(&said).unwrap().contains("waiting for the store").then_some(())
    });
    let began = Instant::now();
    signal(&worker, Signal::INT);
    let run = worker.finish();
    assert_eq!(run.code, Some(130), "{run:?}");
    assert!(began.elapsed() < LEAVING, "{:?}: {run:?}", began.elapsed());
}

#[test]
fn sigterm_ends_a_worker_that_waits_for_others_or_for_a_connection() {
    let fleet = fleet();
    let machine = &fleet.machines[0];
    fleet.server.sql("CREATE USER limited; GRANT CREATE ON DATABASE postgres TO limited");
    Scratch::finish(&mut limited(&fleet, "task add first"));
    let first = fleet.start(0, RUN);
    until_there(&home(machine, "at-work"));
    fleet.server.sql("ALTER USER limited CONNECTION LIMIT 0");
    let said = machine.outside().join("said");
    let second = Started::into(&said, &mut limited(&fleet, RUN));
    wait_for("that it waits", || {
        fs::read_to_string(&said).unwrap().contains("waiting for the store").then_some(())
    });
    ends_in_time(second);
    go(&fleet);
    ended(&first.finish(), 0);
}
