//! What happens to workers where the remote, or the graph on the server, is not what it should be.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::jobs::{attempts, ended, events, refs};
use crate::many_machines::{Fleet, RUN, UNTIL_GO, home, signal, until_there};
use crate::postgres_server::PostgresServer;
use crate::run_tasks::{add, status};
use crate::scratch::{Scratch, executable, wait_for};

fn fleet(count: usize, body: &str) -> Fleet {
    let server = PostgresServer::start(&[]);
    let address = server.address("work");
    Fleet::at(server, &address, count, body)
}

/// Lets the remote take nothing more.
fn refuse(remote: &str) -> PathBuf {
    let hook = Path::new(remote).join("hooks/pre-receive");
    executable(&hook, "#!/bin/sh\necho 'closed for the night' >&2; exit 1\n");
    hook
}

#[test]
fn a_remote_that_takes_nothing_ends_with_1_before_an_agent_starts() {
    let fleet = fleet(1, "work; done_");
    let machine = &fleet.machines[0];
    let id = add(machine, "first");
    let hook = refuse(&fleet.remote);
    let run = machine.run(RUN);
    ended(&run, 1);
    assert!(run.stderr.contains("does not take") && run.stderr.contains("let this user push"), "{run:?}");
    assert_eq!(attempts(machine), 0);
    fs::remove_file(hook).unwrap();
    ended(&machine.run(RUN), 0);
    fleet.assert_all_landed(&[id]);
}

#[test]
fn a_remote_that_takes_nothing_any_more_ends_with_1_and_the_work_is_kept() {
    let fleet = fleet(1, &format!("work; {UNTIL_GO}; done_"));
    let machine = &fleet.machines[0];
    let id = add(machine, "first");
    let worker = fleet.start(0, RUN);
    until_there(&home(machine, "at-work"));
    let hook = refuse(&fleet.remote);
    fs::write(home(machine, "go"), "").unwrap();
    let run = worker.finish();
    ended(&run, 1);
    assert!(
        run.stdout.contains("the store or the remote refuses") && run.stdout.contains("is kept here as"),
        "{run:?}"
    );
    fs::remove_file(hook).unwrap();
    ended(&machine.run(RUN), 0);
    fleet.assert_all_landed(&[id]);
}

#[test]
fn a_graph_that_somebody_has_spoiled_ends_with_1() {
    let fleet = fleet(1, "work; done_");
    let machine = &fleet.machines[0];
    let id = add(machine, "first");
    fleet.server.sql(&format!("UPDATE work.tasks SET id = '../../x' WHERE id = '{id}'"));
    let run = machine.run(RUN);
    ended(&run, 1);
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(said.contains("what no ralph writes (the id of a task: ../../x)"), "{run:?}");
    assert_eq!(attempts(machine), 0);
}

#[test]
fn a_worker_that_is_cancelled_waits_for_no_remote_that_is_away() {
    for how in ["cancel", "cancel --now"] {
        let fleet = fleet(1, &format!("work; {UNTIL_GO}; done_"));
        let machine = &fleet.machines[0];
        let id = add(machine, "first");
        let worker = fleet.start(0, RUN);
        until_there(&home(machine, "at-work"));
        fs::rename(&fleet.remote, format!("{}.away", fleet.remote)).unwrap();
        fs::write(home(machine, "go"), "").unwrap();
        let waits = || {
            let all = events(machine, "waiting");
            let one = all.into_iter().find(|event| event["reason"] == "remote")?;
            Some(one["why"].as_str().unwrap_or_default().to_owned())
        };
        let why = wait_for("that it waits for the remote", waits);
        assert!(why.contains("remote.git"), "{why}");
        ended(&machine.run(how), 0);
        let run = worker.finish();
        ended(&run, 0);
        assert!(run.stdout.contains("is kept here as"), "{how}: {run:?}");
        fs::rename(format!("{}.away", fleet.remote), &fleet.remote).unwrap();
        ended(&machine.run(RUN), 0);
        fleet.assert_all_landed(&[id]);
    }
}

#[test]
fn commits_that_a_remote_has_dropped_are_not_pushed_again() {
    let fleet = fleet(2, "work; done_");
    let machine = &fleet.machines[0];
    let begun = fleet.there(&["rev-parse", "main"]);
    let id = add(machine, "first");
    ended(&machine.run(RUN), 0);
    let landed = fleet.there(&["rev-parse", "main"]);
    fleet.there(&["update-ref", "refs/heads/main", begun.trim()]);

    let second = add(machine, "second");
    let run = machine.run(RUN);
    ended(&run, 1);
    assert!(run.stderr.contains("rewritten on the remote") && run.stderr.contains("--onto main"), "{run:?}");
    assert_eq!(fleet.there(&["rev-parse", "main"]), begun);
    // A new clone does not know it, but the graph does.
    let run = fleet.machines[1].run(&RUN.replace("--all", &second));
    ended(&run, 0);
    assert!(run.stderr.contains(&format!("ralph task reset {id}")), "{run:?}");

    // It is taken as it is.
    let run = machine.run(&format!("{RUN} --onto main"));
    ended(&run, 0);
    let there = fleet.there(&["log", "--format=%s", "main"]);
    assert!(!there.contains(&format!("work on {id}")) && there.contains(&second), "{there}");
    assert_eq!(machine.git(&["rev-parse", "main"]), fleet.there(&["rev-parse", "main"]));
    assert!(!machine.path(&format!("work-{id}")).exists());
    let kept = refs(machine, "keep");
    assert!(kept.iter().any(|kept| machine.git(&["rev-parse", kept]) == landed), "{kept:?}");
    ended(&machine.run(&format!("task reset {id}")), 0);
    ended(&machine.run(RUN), 0);
    fleet.assert_all_landed(&[id, second]);
}

#[test]
fn the_graph_of_another_repository_is_not_changed() {
    let fleet = fleet(1, "work; done_");
    let machine = &fleet.machines[0];
    let id = add(machine, "first");
    ended(&machine.run(RUN), 0);
    let other = Scratch::new();
    other.write("tracked.txt", "another\n");
    other.git(&["add", "."]);
    other.git(&["commit", "--quiet", "--message", "another"]);
    let with_store =
        |args: &str| Scratch::finish(other.ralph(args).env("RALPH_STORE", fleet.server.address("work")));
    for args in ["task add foreign", &format!("task reset {id}")] {
        let run = with_store(args);
        ended(&run, 1);
        assert!(run.stderr.contains("has the tasks of another repository"), "{run:?}");
    }
    assert!(with_store("task list --all").stdout.contains(&id), "who looks may look");
    let doctor = with_store("doctor");
    assert!(doctor.stdout.contains("another repository"), "{doctor:?}");
    assert_eq!(status(machine, &id), "done");
    fleet.server.sql("UPDATE work.meta SET version = 99");
    assert!(machine.run("doctor").stdout.contains("by a newer ralph"));
}

/// The protected trunk is not pushed, but the branch beside it.
fn protect(fleet: &Fleet) {
    fleet.machines[0].write("ralph.toml", "");
    fleet.machines[0].git(&["commit", "--quiet", "--all", "--message", "protected"]);
    fleet.machines[0].git(&["push", "--quiet", "origin", "main"]);
    for machine in &fleet.machines[1..] {
        machine.git(&["pull", "--quiet", "--ff-only", "origin", "main"]);
    }
}

#[test]
fn a_trunk_that_is_rewound_while_a_gate_runs_stays_so() {
    let fleet = fleet(1, "work; done_");
    let machine = &fleet.machines[0];
    let begun = fleet.there(&["rev-parse", "main"]);
    let gate = home(machine, "gate");
    let command = format!("touch {0}; until [ -e {0}-go ]; do sleep 0.02; done", gate.display());
    machine
        .write("ralph.toml", format!("[git]\nprotected_branches = []\n[landing]\ncommand = \"{command}\"\n"));
    machine.git(&["commit", "--quiet", "--all", "--message", "dropped"]);
    machine.git(&["push", "--quiet", "origin", "main"]);
    add(machine, "first");
    ended(&machine.run("trust"), 0);
    let worker = fleet.start(0, RUN);
    until_there(&gate);
    fleet.there(&["update-ref", "refs/heads/main", begun.trim()]);
    fs::write(home(machine, "gate-go"), "").unwrap();
    let run = worker.finish();
    ended(&run, 1);
    assert!(run.stdout.contains("rewritten on the remote"), "{run:?}");
    assert_eq!(fleet.there(&["rev-parse", "main"]), begun);
}

#[test]
fn a_trunk_that_is_gone_from_the_remote_comes_back_only_when_that_is_said() {
    let fleet = fleet(1, "work; done_");
    let machine = &fleet.machines[0];
    let mut ids = vec![add(machine, "first")];
    ended(&machine.run(RUN), 0);
    fleet.there(&["update-ref", "-d", "refs/heads/main"]);
    ids.push(add(machine, "second"));
    let run = machine.run(RUN);
    ended(&run, 1);
    assert!(run.stderr.contains("main is gone from origin") && run.stderr.contains("--onto main"), "{run:?}");
    ended(&machine.run(&format!("{RUN} --onto main")), 0);
    fleet.assert_all_landed(&ids);
}

#[test]
fn what_an_agent_has_pushed_itself_is_booked_and_leaves_no_ref() {
    let fleet = fleet(1, "work; git push -q origin HEAD:main; done_");
    let id = add(&fleet.machines[0], "first");
    ended(&fleet.machines[0].run(RUN), 0);
    fleet.assert_all_landed(&[id]);
}

#[test]
fn a_remote_that_lets_nothing_be_removed_is_told_once() {
    let fleet = fleet(1, "work; done_");
    let machine = &fleet.machines[0];
    add(machine, "first");
    add(machine, "second");
    let hook = "#!/bin/sh\nwhile read _ new _; do case $new in *[!0]*) ;; *) echo 'no removals' >&2; exit 1; esac; done\n";
    executable(&Path::new(&fleet.remote).join("hooks/pre-receive"), hook);
    let run = machine.run(RUN);
    ended(&run, 0);
    let told = "origin keeps the refs of what has landed, as it lets nothing be removed: ";
    assert_eq!(run.stderr.matches(told).count(), 1, "{run:?}");
}

#[test]
fn hooks_that_speak_of_blocks_refuse_and_are_not_waited_for() {
    let fleet = fleet(1, "work; done_");
    let machine = &fleet.machines[0];
    add(machine, "first");
    let hook = Path::new(&fleet.remote).join("hooks/pre-receive");
    executable(&hook, "#!/bin/sh\necho 'error: pushes are blocked: failed to lock in' >&2; exit 1\n");
    let run = machine.run(RUN);
    ended(&run, 1);
    assert!(run.stderr.contains("pushes are blocked"), "{run:?}");
    assert_eq!(attempts(machine), 0);
}

#[test]
fn a_branch_in_the_way_of_ours_is_told_before_an_agent_starts() {
    let fleet = fleet(1, "work; done_");
    let machine = &fleet.machines[0];
    protect(&fleet);
    add(machine, "first");
    fleet.there(&["branch", "ralph", "main"]);
    let run = machine.run(RUN);
    ended(&run, 1);
    assert!(
        run.stderr.contains("it has a branch ralph, so that ralph/landed/main cannot be made"),
        "{run:?}"
    );
    assert_eq!(attempts(machine), 0);
    fleet.there(&["branch", "-m", "ralph", "other"]);
    ended(&machine.run(RUN), 0);
}

#[test]
fn what_was_squashed_into_the_trunk_is_gone_on_from() {
    let fleet = fleet(2, "work; done_");
    protect(&fleet);
    let (machine, other) = (&fleet.machines[0], &fleet.machines[1]);
    let first = add(machine, "first");
    ended(&machine.run(RUN), 0);
    // A person merges the pull request, and its branch is removed.
    other.git(&["fetch", "--quiet"]);
    other.git(&["merge", "--quiet", "--squash", "origin/ralph/landed/main"]);
    other.git(&["commit", "--quiet", "--message", "squashed"]);
    other.git(&["push", "--quiet", "origin", "main", ":ralph/landed/main"]);
    for (number, machine) in [machine, other].into_iter().enumerate() {
        let id = add(machine, &format!("more-{number}"));
        let run = machine.run(RUN);
        ended(&run, 0);
        assert_eq!(status(machine, &id), "done");
        let files = fleet.there(&["ls-tree", "--name-only", "ralph/landed/main"]);
        for id in [&first, &id] {
            assert!(files.contains(&format!("work-{id}\n")), "{files}");
        }
    }
    let subjects = fleet.there(&["log", "--format=%s", "ralph/landed/main"]);
    assert!(!subjects.contains(&format!("work on {first}")), "{subjects}");
}

#[test]
fn what_could_not_be_pushed_is_not_verified_by_another_machine() {
    let fleet = fleet(2, &format!("work; {UNTIL_GO}; done_"));
    let machine = &fleet.machines[0];
    let id = add(machine, "first");
    let worker = fleet.start(0, &format!("{RUN} --stop-within 1s"));
    until_there(&home(machine, "at-work"));
    let hook = Path::new(&fleet.remote).join("hooks/pre-receive");
    let pushed = home(machine, "pushed");
    executable(&hook, &format!("#!/bin/sh\ntouch {}; sleep 20; exit 1\n", pushed.display()));
    fs::write(home(machine, "go"), "").unwrap();
    until_there(&pushed);
    signal(&worker, Signal::TERM);
    ended(&worker.finish(), 130);
    let row = fleet.server.sql("SELECT unverified, done_at_commit IS NULL FROM work.tasks");
    assert_eq!(row.trim(), "0|t", "{row}");
    fs::remove_file(hook).unwrap();
    fs::write(home(&fleet.machines[1], "go"), "").unwrap();
    let run = fleet.machines[1].run(RUN);
    ended(&run, 0);
    assert!(!run.stderr.contains("verifies"), "{run:?}");
    fleet.assert_all_landed(&[id]);
}
