//! `--store`: a graph on a `PostgreSQL` server, for verbs that people use.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::jobs::{ended, jobs};
use crate::postgres_server::PostgresServer;
use crate::run_tasks::add;
use crate::scratch::{Run, Scratch};

fn on(scratch: &Scratch, address: &str, args: &str) -> Run {
    Scratch::finish(scratch.ralph(args).env("RALPH_STORE", address))
}

fn said(run: &Run) -> String {
    assert_eq!(run.code, Some(0), "{run:?}");
    run.stdout.trim().to_owned()
}

#[test]
fn a_graph_moves_to_a_server_and_back() {
    let server = PostgresServer::start(&[]);
    let (scratch, elsewhere) = (Scratch::new(), Scratch::new());
    let address = server.address("work");
    said(&scratch.run("feature add export"));
    let first = said(&scratch.run("task add first --feature export --description words"));
    let second = said(&scratch.run(&format!("task add second --after {first} --priority 3 --max-retries 7")));
    said(&scratch.run(&format!("task log {first} -m noted")));
    said(&scratch.run(&format!("task done {first}")));
    let exported = said(&scratch.run("task export"));

    let file = scratch.outside().join("graph.jsonl");
    fs::write(&file, &exported).unwrap();
    let import = format!("task import {} --store {address}", file.display());
    assert_eq!(said(&scratch.run(&import)), "2 added, 0 updated, 0 unchanged");
    assert_eq!(said(&scratch.run(&import)), "0 added, 0 updated, 2 unchanged");
    assert_eq!(said(&on(&scratch, &address, "task export")), exported);
    // Who is elsewhere sees it, and changes it.
    assert!(said(&on(&elsewhere, &address, "task list --ready --all")).contains(&second));
    let third = said(&on(&elsewhere, &address, &format!("task add third --parent {second}")));
    said(&on(&elsewhere, &address, &format!("task update {third} --title fourth")));
    assert!(said(&on(&scratch, &address, "task tree")).contains("fourth"));
    assert!(said(&on(&scratch, &address, "feature list")).contains("1 of 1 done  export"));
    assert!(said(&on(&scratch, &address, &format!("task log {first}"))).contains("noted"));
    // The file of the project is another graph, and nothing was made elsewhere.
    assert!(!said(&scratch.run("task tree")).contains("fourth"));
    assert!(!elsewhere.path(".ralph/progress.db").exists());

    let back = scratch.outside().join("back.jsonl");
    fs::write(&back, said(&on(&scratch, &address, "task export"))).unwrap();
    assert_eq!(
        said(&elsewhere.run(&format!("task import {}", back.display()))),
        "3 added, 0 updated, 0 unchanged"
    );
    assert_eq!(said(&elsewhere.run("task export")), fs::read_to_string(&back).unwrap());
}

#[test]
fn a_wrong_address_is_refused_in_a_line_and_no_password_is_repeated() {
    let server = PostgresServer::start(&[]);
    let scratch = Scratch::new();
    let good = server.address("work");
    for (address, words) in [
        ("mysql://a@h/d".to_owned(), "--store: 'mysql' is no store"),
        ("postgres://ann:s3cret@h/d".to_owned(), "--store: it has a password"),
        (good.replace("/postgres?", "/nowhere?"), "make that database, with 'createdb'"),
        (good.replace("ralph@", "nobody@"), "give the right user"),
        ("postgres://a@127.0.0.1:1/d".to_owned(), "check that it runs and can be reached"),
        ("postgres://a@%2Fno%2Ffolder/d".to_owned(), "check that it runs and can be reached"),
    ] {
        let run = scratch.run(&format!("task add words --store {address}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
        assert!(run.stderr.contains(words) && !run.stderr.contains("s3cret"), "{run:?}");
        assert_eq!(run.stderr.trim().lines().count(), 1, "{run:?}");
    }
}

#[test]
fn a_password_comes_from_the_environment_or_a_file_of_the_users_own() {
    let server = PostgresServer::start(&["password_encryption=scram-sha-256"]);
    server.require_password("s3cret");
    let scratch = Scratch::new();
    let address = server.address("work");
    let run = on(&scratch, &address, "task list");
    assert!(run.code == Some(1) && run.stderr.contains("ralph"), "{run:?}");
    let mut command = scratch.ralph("task list");
    said(&Scratch::finish(command.env("RALPH_STORE", &address).env("PGPASSWORD", "s3cret")));
    let mut command = scratch.ralph("task list");
    let wrong = Scratch::finish(command.env("RALPH_STORE", &address).env("PGPASSWORD", "other"));
    assert!(wrong.code == Some(1) && wrong.stderr.contains("PGPASSWORD or in ~/.pgpass"), "{wrong:?}");
    let file = scratch.home().join(".pgpass");
    fs::write(&file, "*:*:other:ralph:no\n*:*:postgres:ralph:s3cret\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let open = on(&scratch, &address, "task list");
    assert!(open.code == Some(1) && open.stderr.contains("chmod 600"), "{open:?}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    said(&on(&scratch, &address, "task list"));
}

#[test]
fn the_doctor_looks_at_a_server_and_makes_nothing_there() {
    let server = PostgresServer::start(&[]);
    let scratch = Scratch::new();
    let address = server.address("work");
    let shown = |scratch: &Scratch| scratch.run(&format!("doctor --store {address}")).stdout;
    let text = shown(&scratch);
    assert!(text.contains("PostgreSQL") && text.contains("there is none yet"), "{text}");
    assert!(text.contains("fsync is off"), "{text}");
    assert!(shown(&scratch).contains("there is none yet"), "nothing was made");
    said(&scratch.run(&format!("task add words --store {address}")));
    assert!(shown(&scratch).contains("there is one, which this user can write"));
    let away = scratch.run("doctor --store postgres://a@127.0.0.1:1/d");
    assert!(away.code == Some(1) && away.stdout.contains("✗ store"), "{away:?}");
}

/// An authority, and a certificate of it for this host with its key, as PEM.
fn certified(host: &str) -> (String, String, String) {
    let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec![host.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    (authority_pem, server.pem(), key.serialize_pem())
}

#[test]
fn a_servers_certificate_is_checked() {
    let (authority, certificate, key) = certified("localhost");
    let (server, port) = PostgresServer::start_secure(&certificate, &key);
    let scratch = Scratch::new();
    let (right, wrong) = (scratch.outside().join("ca.pem"), scratch.outside().join("other.pem"));
    fs::write(&right, authority).unwrap();
    fs::write(&wrong, certified("localhost").0).unwrap();
    let address =
        |host: &str, more: &str| format!("postgres://ralph@{host}:{port}/postgres?sslmode=verify-full{more}");
    let by = |file: &std::path::Path| format!("&sslrootcert={}", file.display());
    said(&on(&scratch, &address("localhost", &by(&right)), "task add words"));
    // The platform's own authorities, of which this is one then.
    let mut command = scratch.ralph("task list --all");
    command.env("SSL_CERT_FILE", &right).env("RALPH_STORE", address("localhost", ""));
    assert!(said(&Scratch::finish(&mut command)).contains("words"));
    for (bad, words) in [
        (address("localhost", ""), "UnknownIssuer"),
        (address("localhost", &by(&wrong)), "name the host that its certificate is for"),
        (address("127.0.0.1", &by(&right)), "name the host that its certificate is for"),
        (address("localhost", "&sslrootcert=/no/file"), "sslrootcert /no/file"),
    ] {
        let run = on(&scratch, &bad, "task list");
        assert!(run.code == Some(1) && run.stderr.contains(words), "{bad}: {run:?}");
    }
    drop(server);
}

#[test]
fn a_server_that_is_frozen_is_given_up() {
    let server = PostgresServer::start(&[]);
    let scratch = Scratch::new();
    let address = format!("{}&connect_timeout=1", server.address("work"));
    said(&on(&scratch, &address, "task add words"));
    server.freeze(true);
    let run = on(&scratch, &address, "task list --all");
    server.freeze(false);
    assert!(run.code == Some(1) && run.stderr.contains("it does not answer"), "{run:?}");
    assert!(said(&on(&scratch, &address, "task list --all")).contains("words"));
}

#[test]
fn what_was_worked_on_moves_with_what_has_landed_and_with_the_journal() {
    let server = PostgresServer::start(&[]);
    let scratch = jobs("work; done_");
    let ids = [add(&scratch, "first"), add(&scratch, "second --max-retries 5")];
    ended(&scratch.run("run --all --no-verify --proof place --validate ls --jobs 2"), 0);
    let exported = said(&scratch.run("task export"));
    assert_eq!(exported.matches("\"standing\":\"landed\"").count(), 2, "{exported}");
    assert_eq!(exported.matches("\"run_id\"").count(), 2, "{exported}");
    assert_eq!(exported.matches("\"retries_given\":true").count(), 1, "{exported}");
    let file = scratch.outside().join("graph.jsonl");
    fs::write(&file, &exported).unwrap();
    let address = server.address("moved");
    let import = format!("task import {}", file.display());
    assert_eq!(said(&on(&scratch, &address, &import)), "2 added, 0 updated, 0 unchanged");
    assert_eq!(said(&on(&scratch, &address, &import)), "0 added, 0 updated, 2 unchanged");
    assert_eq!(said(&on(&scratch, &address, "task export")), exported);
    assert_eq!(said(&on(&scratch, &address, "journal --json")), said(&scratch.run("journal --json")));
    let shown = said(&on(&scratch, &address, &format!("task show {}", ids[0])));
    assert!(shown.contains("landing    landed on main, "), "{shown}");
    // And back, into a project of its own.
    let elsewhere = Scratch::new();
    assert_eq!(said(&elsewhere.run(&import)), "2 added, 0 updated, 0 unchanged");
    assert_eq!(said(&elsewhere.run("task export")), exported);
}

#[test]
fn reading_makes_no_graph_and_says_that_there_is_none() {
    let server = PostgresServer::start(&[]);
    let scratch = Scratch::new();
    let address = server.address("typo");
    for verb in
        ["task list", "task export", "journal", "knowledge list", "status", "task import --dry-run /dev/null"]
    {
        let run = on(&scratch, &address, verb);
        assert!(run.stderr.contains("there is no graph there yet"), "{verb}: {run:?}");
    }
    assert_eq!(server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'typo'"), "0\n");
    said(&on(&scratch, &address, "task add words"));
    assert!(said(&on(&scratch, &address, "task list --all")).contains("words"));
    server.sql("DELETE FROM typo.meta");
    let run = on(&scratch, &address, "task list");
    assert!(run.code == Some(1) && run.stderr.contains("its table meta is empty"), "{run:?}");
}
