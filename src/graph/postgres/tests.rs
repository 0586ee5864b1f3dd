#[path = "../../../tests/it/postgres_server.rs"]
mod postgres_server;

mod histories;
mod proxy;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use postgres_server::PostgresServer;
use proxy::{Way, What, proxy};

use super::*;
use crate::graph::sql::rebuild;
use crate::graph::suite::{LEASE, RETRIES, TESTS, us};
use crate::graph::{Claim, Ended, HowDone, NewTask, Scope, Selection, Store as _, Task};

fn open(server: &PostgresServer, schema: &str) -> PostgresStore {
    PostgresStore::create(Address::read(&server.address(schema)).unwrap()).unwrap()
}

#[test]
fn the_store_does_what_every_store_has_to() {
    let server = PostgresServer::start(&[]);
    for (number, test) in TESTS.iter().enumerate() {
        test(&mut open(&server, &format!("test_{number}")));
    }
}

/// A number below `most`, after the state of a generator.
fn chance(state: &mut u64, most: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap() % most
}

/// One step of a worker, or of a person beside it. Refusals are part of the game, failures of the server are not.
fn step(store: &mut PostgresStore, state: &mut u64, held: &mut Vec<Claim>) {
    let mut ids = Vec::new();
    let mut each = |task: Task| {
        ids.push(task.id);
        true
    };
    store.list(&Selection::default(), &mut each).unwrap();
    let one = |state: &mut u64| ids[chance(state, ids.len())].clone();
    let done = match chance(state, 10) {
        0 => {
            let parent = (chance(state, 3) == 0).then(|| one(state));
            store.add(&NewTask { title: "task".into(), parent, ..NewTask::default() }).map(drop)
        }
        1 => store.add_dependency(&one(state), &one(state)),
        2 => store.reset(&one(state)).map(drop),
        3 => store.delete(&one(state), false).map(drop),
        4..=6 => {
            let holder = us("worker");
            store.claim(&Scope::All, &holder, LEASE).map(|claim| held.extend(claim))
        }
        _ if held.is_empty() => Ok(()),
        _ => {
            let claim = held.swap_remove(chance(state, held.len()));
            match chance(state, 5) {
                0 => store.fail(&claim, "no").map(drop),
                1 => store.retry(&claim, "again", RETRIES).map(drop),
                2 => store.release(&claim, ""),
                _ => store.complete(&claim, HowDone::default()).map(drop),
            }
        }
    };
    if let Err(error) = done {
        assert!(!matches!(error, GraphError::Server { .. } | GraphError::Refused { .. }), "{error}");
    }
}

#[test]
fn whoever_writes_at_once_leaves_a_sound_graph() {
    let server = PostgresServer::start(&[]);
    let mut first = open(&server, "many");
    for number in 0..20 {
        first.add(&NewTask { title: format!("task {number}"), ..NewTask::default() }).unwrap();
    }
    thread::scope(|scope| {
        for worker in 0..8 {
            let server = &server;
            scope.spawn(move || {
                let (mut store, mut state, mut held) = (open(server, "many"), worker, Vec::new());
                for _ in 0..60 {
                    step(&mut store, &mut state, &mut held);
                }
            });
        }
    });
    let name = |seq: i64| Ok(seq.to_string());
    let is_sound = first.read(|graph| rebuild::is_up_to_date(graph, &name));
    assert!(is_sound.unwrap(), "states, counts and lists follow from the tasks");
}

#[test]
fn each_task_is_claimed_once() {
    let server = PostgresServer::start(&[]);
    let mut first = open(&server, "once");
    for number in 0..100 {
        first.add(&NewTask { title: format!("task {number}"), ..NewTask::default() }).unwrap();
    }
    let claimed: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut store = open(&server, "once");
                    let mut claimed = Vec::new();
                    while let Some(claim) = store.claim(&Scope::All, &us("worker"), LEASE).unwrap() {
                        assert_eq!(store.complete(&claim, HowDone::default()).unwrap(), Ended::Done);
                        claimed.push(claim.task);
                    }
                    claimed
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let different: HashSet<&String> = claimed.iter().collect();
    assert_eq!((claimed.len(), different.len()), (100, 100));
    assert_eq!(first.counts(&Scope::All).unwrap().done, 100);
}

#[test]
fn a_claim_that_is_renewed_while_it_is_taken_back_is_left_alone() {
    let server = PostgresServer::start(&[]);
    let [mut store, beside] = [(); 2].map(|()| open(&server, "meanwhile"));
    let id = store.add(&NewTask { title: "task".into(), ..NewTask::default() }).unwrap();
    store.claim(&Scope::All, &us("gone"), LEASE).unwrap().unwrap();
    server.sql("UPDATE meanwhile.tasks SET lease_until = 0");
    let (locked, is_locked) = mpsc::channel();
    let recovered = thread::scope(|scope| {
        let store = &mut store;
        let recovers = scope.spawn(move || {
            is_locked.recv().unwrap();
            store.recover().unwrap()
        });
        // Its worker is late, after another one has seen that it is.
        let renews = |graph: &dyn Sql| {
            graph.execute("UPDATE tasks SET lease_until = 9000000000000000", &[])?;
            assert!(graph.exists("SELECT 1 FROM tasks", &[])?);
            locked.send(()).unwrap();
            let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
            while server.sql(waits) != "1\n" {}
            Ok(())
        };
        beside.transact(For::Report, COMMIT, &renews).unwrap();
        recovers.join().unwrap()
    });
    assert_eq!(recovered, 0);
    assert_eq!(store.task(&id).unwrap().status.word(), "in_progress");
}

#[test]
fn a_server_that_is_away_is_an_error_and_comes_back() {
    let server = PostgresServer::start(&[]);
    let mut store = open(&server, "away");
    let id = store.add(&NewTask { title: "task".into(), ..NewTask::default() }).unwrap();
    // It has ended all its connections, as when it starts anew.
    let other = open(&server, "away");
    other
        .read(|graph| {
            graph.each(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'ralph'",
                &[],
                &mut |_| Ok(true),
            )
        })
        .unwrap();
    assert_eq!(store.task(&id).unwrap().title, "task", "it connects again");
    drop(server);
    let error = store.task(&id).unwrap_err().to_string();
    assert!(error.contains("check that it runs and can be reached"), "{error}");
}

#[test]
fn whatever_happens_to_a_connection_its_operation_is_known_and_written_once() {
    let server = PostgresServer::start(&[]);
    let all = [What::Cut, What::Freeze, What::HalfClose, What::Delay];
    let all = all.into_iter().flat_map(|what| [(Way::Request, what), (Way::Answer, what)]);
    thread::scope(|scope| {
        for (number, (way, what)) in all.enumerate() {
            let (server, schema) = (&server, format!("happens_{number}"));
            scope.spawn(move || happens_once(server, &schema, (way, what)));
        }
    });
}

/// Adds a task and claims it, while this happens to the connection at the first, and again at the second.
fn happens_once(server: &PostgresServer, schema: &str, what: (Way, What)) {
    let mut beside = open(server, schema);
    let due = Arc::new(AtomicBool::new(true));
    let is_due = Arc::clone(&due);
    let port =
        proxy(server, move |commits| (commits && is_due.swap(false, Ordering::SeqCst)).then_some(what));
    let address = format!("postgres://ralph@127.0.0.1:{port}/postgres?schema={schema}");
    let mut store = PostgresStore::create(Address::read(&address).unwrap()).unwrap();
    let id = store.add(&NewTask { title: "task".into(), ..NewTask::default() }).unwrap();
    assert!(!due.swap(true, Ordering::SeqCst), "{what:?}");
    assert_eq!(beside.task(&id).unwrap().title, "task");
    assert_eq!(beside.counts(&Scope::All).unwrap().total, 1, "{what:?}");
    let claim = store.claim(&Scope::All, &us("worker"), LEASE).unwrap().unwrap();
    assert!(!due.swap(true, Ordering::SeqCst), "{what:?}");
    assert_eq!((&claim.task, claim.fence), (&id, 1), "{what:?}");
    assert_eq!(beside.claim(&Scope::All, &us("other"), LEASE).unwrap(), None);
    assert_eq!(store.complete(&claim, HowDone::default()).unwrap(), Ended::Done, "{what:?}");
    assert_eq!(beside.counts(&Scope::All).unwrap().done, 1, "{what:?}");
}

/// Says that a worker has ended, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_server_that_is_killed_again_and_again_loses_no_booking_and_makes_none_twice() {
    const TASKS: usize = 400;
    // What a server has written that is killed, the kernel still has: without fsync it starts again at once on a busy disk, too.
    let mut server = PostgresServer::start(&[]);
    let mut first = open(&server, "killed");
    for number in 0..TASKS {
        first.add(&NewTask { title: format!("task {number}"), ..NewTask::default() }).unwrap();
    }
    let address = server.address("killed");
    let (booked, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let work = || {
        let _over = Over(&is_over);
        // As the workers of a run: how long a server takes to start again is its own matter.
        let patience = Arc::new(Patience::of(Duration::from_mins(5)));
        let mut store = PostgresStore::at(Address::read(&address).unwrap()).patient(patience);
        while let Some(claim) = store.claim(&Scope::All, &us("worker"), LEASE).unwrap() {
            assert_eq!(store.complete(&claim, HowDone::default()).unwrap(), Ended::Done);
            booked.lock().unwrap().push(claim);
        }
    };
    let mut crashes = 0;
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(work);
        }
        // Each time when some more are booked.
        while crashes < 8 && !is_over.load(Ordering::SeqCst) {
            let next = (crashes + 1) * TASKS / 10;
            while booked.lock().unwrap().len() < next && !is_over.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(2));
            }
            server.crash();
            crashes += 1;
        }
    });
    assert_eq!(crashes, 8);
    let booked = booked.into_inner().unwrap();
    let tasks: HashSet<&String> = booked.iter().map(|claim| &claim.task).collect();
    assert_eq!((booked.len(), tasks.len()), (TASKS, TASKS), "each is booked once");
    assert!(booked.iter().all(|claim| claim.fence == 1), "each was claimed once");
    assert_eq!(first.counts(&Scope::All).unwrap().done, u64::try_from(TASKS).unwrap());
    assert!(booked.iter().all(|claim| first.logs(&claim.task).unwrap().len() == 1));
}

/// The tables of a schema as the first version had them, with so many tasks.
fn of_first_version(server: &PostgresServer, schema: &str, tasks: usize) {
    let tables = schema::tables().replace(&schema::later(1), "");
    server.sql(&format!("CREATE SCHEMA \"{schema}\"; SET search_path TO \"{schema}\"; {tables}"));
    let mut store = PostgresStore::at(Address::read(&server.address(schema)).unwrap());
    for number in 0..tasks {
        store.add(&NewTask { title: format!("task {number}"), ..NewTask::default() }).unwrap();
    }
}

#[test]
fn tables_are_brought_up_to_date_while_workers_of_the_version_before_go_on() {
    const TASKS: usize = 200;
    let server = PostgresServer::start(&[]);
    of_first_version(&server, "older", TASKS);
    let version = || server.sql("SELECT version FROM older.meta");
    assert_eq!(version(), "1\n");
    let booked = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                // It does not look at the version, as one that has begun before.
                let mut store = PostgresStore::at(Address::read(&server.address("older")).unwrap());
                while let Some(claim) = store.claim(&Scope::All, &us("worker"), LEASE).unwrap() {
                    assert_eq!(store.complete(&claim, HowDone::default()).unwrap(), Ended::Done);
                    *booked.lock().unwrap() += 1;
                }
            });
        }
        while *booked.lock().unwrap() < TASKS / 4 {
            thread::sleep(Duration::from_millis(1));
        }
        // Several that come at once: one of them does it.
        for _ in 0..3 {
            scope.spawn(|| open(&server, "older"));
        }
    });
    assert_eq!(version(), format!("{}\n", schema::VERSION));
    assert_eq!(*booked.lock().unwrap(), TASKS);
    let store = open(&server, "older");
    assert_eq!(store.counts(&Scope::All).unwrap().done, u64::try_from(TASKS).unwrap());
    server.sql("UPDATE older.meta SET version = 99");
    let refused = PostgresStore::open(Address::read(&server.address("older")).unwrap()).unwrap_err();
    assert!(refused.to_string().contains("was written by a newer ralph"), "{refused}");
}
