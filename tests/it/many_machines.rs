//! Many machines at one graph: workers with clones of their own, a server with the tasks, and a remote between them.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::jobs::{agent, attempts, ended, events, refs};
use crate::postgres_server::PostgresServer;
use crate::run_tasks::{add, log, status};
use crate::scratch::{CLAUDE_RESULT, Scratch, Started, executable, wait_for};

/// A worker on all tasks, with what it needs for quick tests.
pub(crate) const RUN: &str = "run --all --no-verify --proof place --validate ls";

/// A server, a remote, and machines, each with a clone.
pub(crate) struct Fleet {
    pub(crate) server: PostgresServer,
    pub(crate) remote: String,
    pub(crate) machines: Vec<Scratch>,
}

impl Fleet {
    /// So many machines, whose agents do this.
    fn new(count: usize, body: &str) -> Self {
        let server = PostgresServer::start(&[]);
        let address = server.address("work");
        Self::at(server, &address, count, body)
    }

    /// Machines whose graph has another address than the server's.
    pub(crate) fn at(server: PostgresServer, address: &str, count: usize, body: &str) -> Self {
        let mut machines: Vec<Scratch> = Vec::new();
        for number in 0..count {
            let machine = Scratch::new();
            agent(&machine, body);
            let user = machine.outside().join("home/config/ralph");
            fs::create_dir_all(&user).unwrap();
            let settings = format!("[execution]\nstore = \"{address}\"\nlease = \"30s\"\n");
            fs::write(user.join("ralph.toml"), settings).unwrap();
            if number == 0 {
                machine.write("tracked.txt", "one\n");
                machine.write("ralph.toml", "[git]\nprotected_branches = []\n");
                machine.git(&["add", "."]);
                machine.git(&["commit", "--quiet", "--message", "begin"]);
                let remote = machine.outside().join("remote.git");
                machine.git(&[
                    "init",
                    "--quiet",
                    "--bare",
                    "--initial-branch=main",
                    remote.to_str().unwrap(),
                ]);
                machine.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
                machine.git(&["push", "--quiet", "origin", "main"]);
            } else {
                fs::remove_dir_all(machine.root()).unwrap();
                fs::create_dir(machine.root()).unwrap();
                let remote = machines[0].outside().join("remote.git");
                machine.git(&["clone", "--quiet", remote.to_str().unwrap(), "."]);
            }
            machines.push(machine);
        }
        let remote = machines[0].outside().join("remote.git").to_str().unwrap().to_owned();
        Self { server, remote, machines }
    }

    pub(crate) fn start(&self, machine: usize, args: &str) -> Started {
        Started::new(&self.machines[machine], args)
    }

    /// What git says about the remote.
    pub(crate) fn there(&self, args: &[&str]) -> String {
        self.machines[0].git(&[&["--git-dir", &self.remote], args].concat())
    }

    /// Each task is done, and its work is on the branch of the remote, once.
    #[track_caller]
    pub(crate) fn assert_all_landed(&self, ids: &[String]) {
        let files = self.there(&["ls-tree", "--name-only", "main"]);
        let subjects = self.there(&["log", "--format=%s", "main"]);
        for id in ids {
            assert_eq!(status(&self.machines[0], id), "done");
            assert!(files.contains(&format!("work-{id}\n")), "{id}: {files}");
            let is_its = |subject: &&str| *subject == format!("work on {id}");
            assert_eq!(subjects.lines().filter(is_its).count(), 1, "{subjects}");
        }
        assert_eq!(self.there(&["for-each-ref", "--format=%(refname)", "refs/ralph"]), "");
    }

    /// The workers, as `status` shows them from this machine.
    fn workers(&self, machine: usize) -> Vec<Value> {
        let run = self.machines[machine].run("status --json");
        let status: Value =
            serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
        status["fleet"].as_array().unwrap().clone()
    }
}

/// Waits until a file is there.
pub(crate) const UNTIL_GO: &str = "touch \"$HOME/at-work\"; until [ -e \"$HOME/go\" ]; do sleep 0.02; done";

pub(crate) fn home(machine: &Scratch, name: &str) -> std::path::PathBuf {
    machine.outside().join("home").join(name)
}

pub(crate) fn signal(worker: &Started, signal: Signal) {
    let pid = worker.pid().try_into().ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, signal).unwrap();
}

pub(crate) fn until_there(path: &Path) {
    wait_for("an agent at work", || path.exists().then_some(()));
}

#[test]
fn workers_with_their_own_clones_work_through_one_graph_and_each_task_lands_once() {
    let fleet = Fleet::new(3, "work; done_");
    let mut ids: Vec<String> =
        (0..8).map(|number| add(&fleet.machines[0], &format!("task-{number}"))).collect();
    // It has to be built on what another machine has made.
    let last = add(&fleet.machines[1], &format!("last --after {} --after {}", ids[0], ids[7]));
    ids.push(last.clone());
    let runs: Vec<_> =
        (0..3).map(|machine| fleet.start(machine, &format!("{RUN} --jobs {}", machine + 1))).collect();
    for run in runs.into_iter().map(Started::finish) {
        ended(&run, 0);
        assert!(!run.stdout.contains(" landing"), "its report says what others have landed: {run:?}");
    }
    fleet.assert_all_landed(&ids);
    assert_eq!(fleet.machines.iter().map(attempts).sum::<usize>(), ids.len());
    let of_last = fleet
        .machines
        .iter()
        .find_map(|machine| fs::read_to_string(home(machine, &format!("prompt-{last}-1"))).ok());
    assert!(of_last.unwrap().contains(&format!("{}: **task-0**", ids[0])));
    assert!(fleet.workers(0).is_empty(), "all have left");
    // A worker that comes later has the branch, and nothing to do.
    let run = fleet.machines[1].run(RUN);
    ended(&run, 0);
    let tips = fleet.machines[1].git(&["rev-parse", "main", "refs/ralph/landed/main"]);
    let there = fleet.there(&["rev-parse", "main"]);
    assert_eq!(tips, format!("{there}{there}"));
    assert_eq!(refs(&fleet.machines[1], "tasks"), [""; 0]);
}

#[test]
fn what_another_machine_has_landed_meanwhile_is_built_on() {
    // The first agent of the second machine commits nothing, so that its lander has no reason to look at the remote.
    let body =
        format!("if [ -e \"$HOME/waits\" ]; then rm \"$HOME/waits\"; {UNTIL_GO}; else work; fi; done_");
    let fleet = Fleet::new(2, &body);
    let second = &fleet.machines[1];
    add(second, "quiet");
    fs::write(home(second, "waits"), "").unwrap();
    let worker = fleet.start(1, RUN);
    until_there(&home(second, "at-work"));
    let first = add(second, "first");
    ended(&fleet.machines[0].run(&RUN.replace("--all", &first)), 0);
    let last = add(second, &format!("last --after {first}"));
    fs::write(home(second, "go"), "").unwrap();
    ended(&worker.finish(), 0);
    fleet.assert_all_landed(&[first, last]);
}

#[test]
fn what_a_lost_machine_has_pushed_is_gone_on_with_by_another_one() {
    let body = format!("echo half > half-$id; commit half; {UNTIL_GO}; work; done_");
    let fleet = Fleet::new(2, &body);
    let id = add(&fleet.machines[0], "long");
    let lost = fleet.start(0, RUN);
    // At the first renewal, while the agent works.
    wait_for("its commits on the remote, and in the graph", || {
        let shown = fleet.machines[1].run(&format!("task show {id} --json")).stdout;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        (shown["landing"]["standing"] == "kept").then_some(())
    });
    signal(&lost, Signal::KILL);
    assert_eq!(lost.finish().code, None);
    fs::write(home(&fleet.machines[1], "go"), "").unwrap();
    // The lease is over after a while, by the server's clock.
    wait_for("the lease to be over", || {
        let run = fleet.machines[1].run(RUN);
        (run.code == Some(0)).then_some(())
    });
    fleet.assert_all_landed(std::slice::from_ref(&id));
    // The second agent has found what the first one had done.
    assert!(fleet.there(&["log", "--format=%s", "main"]).lines().any(|subject| subject == "half"));
    assert_eq!((attempts(&fleet.machines[0]), attempts(&fleet.machines[1])), (1, 1));
    assert!(
        log(&fleet.machines[1], &id).iter().any(|line| line.contains("is gone")),
        "its claim was taken back"
    );
}

#[test]
fn a_worker_that_was_stopped_for_longer_than_its_lease_books_nothing_and_keeps_its_commits() {
    let body = format!("echo \"of $HOME\" > work-$id; commit; {UNTIL_GO}; done_");
    let fleet = Fleet::new(2, &body);
    let id = add(&fleet.machines[0], "contested");
    let asleep = fleet.start(0, RUN);
    until_there(&home(&fleet.machines[0], "at-work"));
    // Ralph sleeps, and its agent works on, as in a machine that is cut off.
    signal(&asleep, Signal::STOP);
    fs::write(home(&fleet.machines[1], "go"), "").unwrap();
    wait_for("the lease to be over", || (fleet.machines[1].run(RUN).code == Some(0)).then_some(()));
    assert_eq!(status(&fleet.machines[1], &id), "done");
    let landed = fleet.there(&["show", &format!("main:work-{id}")]);
    signal(&asleep, Signal::CONT);
    fs::write(home(&fleet.machines[0], "go"), "").unwrap();
    let run = asleep.finish();
    ended(&run, 0);
    assert!(
        run.stderr.contains("the attempt ends: ") || run.stderr.contains("taken from this run"),
        "{run:?}"
    );
    assert_eq!(fleet.there(&["show", &format!("main:work-{id}")]), landed, "the other one's work stays");
    assert_eq!(status(&fleet.machines[0], &id), "done");
    let kept = refs(&fleet.machines[0], &format!("tasks/{id}"));
    assert_eq!(kept.len(), 1, "what it had committed is kept: {run:?}");
}

#[test]
fn an_agent_is_ended_before_its_lease_is_over_while_the_server_is_away() {
    let fleet = Fleet::new(1, &format!("{UNTIL_GO}; work; done_"));
    let machine = &fleet.machines[0];
    let id = add(machine, "cut-off");
    let worker = fleet.start(0, RUN);
    until_there(&home(machine, "at-work"));
    fleet.server.freeze(true);
    // What was asked last may have been answered just before.
    wait_for("the end of the attempt", || {
        events(machine, "attempt_ended").iter().any(|event| event["status"] == "interrupted").then_some(())
    });
    let waits = || events(machine, "waiting").iter().any(|event| event["reason"] == "store").then_some(());
    wait_for("that it waits for the store", waits);
    fs::write(home(machine, "go"), "").unwrap();
    fleet.server.freeze(false);
    let run = worker.finish();
    ended(&run, 0);
    assert!(run.stderr.contains("its claim could not be renewed"), "{run:?}");
    assert!(run.stderr.contains("waiting for the store"), "{run:?}");
    fleet.assert_all_landed(&[id]);
    assert_eq!(attempts(machine), 2);
}

#[test]
fn sigterm_saves_what_an_agent_has_made_and_gives_its_task_back_in_time() {
    let body = "echo one > one; commit one; echo two > two; trap '' INT TERM; touch \"$HOME/at-work\"; while :; do sleep 0.1; done";
    let fleet = Fleet::new(2, body);
    let id = add(&fleet.machines[0], "long");
    let worker = fleet.start(0, &format!("{RUN} --stop-within 1s"));
    until_there(&home(&fleet.machines[0], "at-work"));
    signal(&worker, Signal::TERM);
    let run = worker.finish();
    ended(&run, 130);
    assert_eq!(status(&fleet.machines[1], &id), "pending", "another one can take it at once");
    let there = fleet.there(&["for-each-ref", "--format=%(refname)", "refs/ralph/tasks"]);
    let files = fleet.there(&["ls-tree", "--name-only", there.trim()]);
    assert!(files.contains("one\n") && files.contains("two\n"), "{files}");
    // The other machine goes on from there.
    agent(&fleet.machines[1], "[ -e one ] && [ -e two ] && work; done_");
    ended(&fleet.machines[1].run(RUN), 0);
    fleet.assert_all_landed(&[id]);
}

#[test]
fn agents_reach_the_graph_through_their_loop_and_have_no_password() {
    let verbs = r#"
ralph=$(grep -o '`[^`]*ralph --store [^ ]*' <<<"$prompt" | head -1 | tr -d '`')
{
    eval "$ralph task show $id"
    eval "$ralph task add part --parent $id"
    eval "$ralph task log $id -m noted"
    eval "$ralph task done $id"; echo "code $?"
    eval "$ralph task import -" </dev/null; echo "code $?"
    echo "store $RALPH_STORE password ${PGPASSWORD-none} file ${PGPASSFILE-none}"
    eval "env -u RALPH_STORE $ralph task tree"
} > "$HOME/said" 2>&1
work; done_"#;
    let fleet = Fleet::new(1, verbs);
    let machine = &fleet.machines[0];
    fleet.server.require_password("geheim");
    let with_password = |args: &str| Scratch::finish(machine.ralph(args).env("PGPASSWORD", "geheim"));
    let id = with_password("task add first").stdout.trim().to_owned();
    let run = with_password(&format!("{RUN} --limit 1"));
    let said = fs::read_to_string(home(machine, "said")).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    assert!(said.contains("first") && said.contains("in_progress"), "{said}");
    assert_eq!(said.matches("is not for agents at work").count(), 2, "{said}");
    assert_eq!(said.matches("code 1").count(), 2, "{said}");
    assert!(said.contains("store loop:/") && said.contains(" password none file none"), "{said}");
    assert!(said.contains("└─ ○ t-"), "{said}");
    let tree = with_password("task tree").stdout;
    assert!(tree.contains("part"), "{tree}");
    let logged = with_password(&format!("task log {id}")).stdout;
    assert!(logged.contains("noted"), "{logged}");
    assert!(!said.contains("geheim"), "{said}");
    for file in machine.snapshot() {
        assert!(!String::from_utf8_lossy(&file.1).contains("geheim"), "{}", file.0.display());
    }
}

#[test]
fn workers_are_seen_and_steered_from_any_machine() {
    let fleet = Fleet::new(3, &format!("{UNTIL_GO}; work; done_"));
    let ids: Vec<String> = (0..4).map(|number| add(&fleet.machines[0], &format!("task-{number}"))).collect();
    let runs = vec![fleet.start(0, RUN), fleet.start(1, RUN)];
    until_there(&home(&fleet.machines[0], "at-work"));
    until_there(&home(&fleet.machines[1], "at-work"));
    let busy = || {
        let workers = fleet.workers(2);
        let tasks = workers.iter().filter(|worker| worker["tasks"].as_array().unwrap().len() == 1).count();
        (tasks == 2).then_some(workers)
    };
    let workers = wait_for("two workers at work", busy);
    let name = workers[0]["name"].as_str().unwrap();
    let shown = fleet.machines[2].run("status");
    assert!(shown.stdout.contains("WORKER") && shown.stdout.contains(name), "{shown:?}");
    let logs = fleet.machines[2].run(&format!("logs {name}"));
    assert!(logs.stdout.contains(workers[0]["logs"].as_str().unwrap()), "{logs:?}");
    let report = fleet.machines[2].run(&format!("report {name}"));
    assert!(report.stdout.contains("'ralph report' there"), "{report:?}");
    let noted = fleet.machines[2].ralph(&format!("note {name}")).arg("mind the gap").output().unwrap();
    assert!(noted.status.success(), "{noted:?}");
    let paused = fleet.machines[2].run("pause --fleet");
    ended(&paused, 0);
    assert_eq!(paused.stdout, "2 workers have it\n");
    for machine in &fleet.machines[..2] {
        fs::write(home(machine, "go"), "").unwrap();
        wait_for("that it holds", || (events(machine, "paused").len() == 1).then_some(()));
    }
    // It has the next task, and with that the note.
    ended(&fleet.machines[2].run(&format!("resume {name}")), 0);
    wait_for("the next task", || (fleet.machines.iter().map(attempts).sum::<usize>() > 2).then_some(()));
    ended(&fleet.machines[2].run("resume --fleet"), 0);
    for run in runs.into_iter().map(Started::finish) {
        ended(&run, 0);
    }
    fleet.assert_all_landed(&ids);
    // Also where none of it was done, once that is here.
    let diff = format!("diff {} --stat", ids[0]);
    fleet.machines[2].git(&["reset", "--quiet", "--hard"]);
    let unknown = fleet.machines[2].run(&diff);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("'git fetch' brings"), "{unknown:?}");
    fleet.machines[2].git(&["fetch", "--quiet"]);
    assert!(fleet.machines[2].run(&diff).stdout.contains(&format!("work-{}", ids[0])));
    let prompts =
        fleet.machines.iter().flat_map(|machine| fs::read_dir(machine.outside().join("home")).unwrap());
    let prompts =
        prompts.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("prompt-"));
    let noted = prompts.filter(|entry| fs::read_to_string(entry.path()).unwrap().contains("mind the gap"));
    assert_eq!(noted.count(), 1, "in the next prompt of that worker");
    let nothing = fleet.machines[2].run("pause --fleet");
    assert!(nothing.code == Some(1) && nothing.stderr.contains("no worker is at work"), "{nothing:?}");
}

#[test]
fn what_all_workers_spend_counts_for_each() {
    let fleet = Fleet::new(3, &format!("result() {{ echo '{CLAUDE_RESULT}'; }}; work; done_"));
    for number in 0..20 {
        add(&fleet.machines[0], &format!("task-{number}"));
    }
    // An attempt costs a cent.
    let runs: Vec<_> =
        (0..3).map(|machine| fleet.start(machine, &format!("{RUN} --max-cost 0.05"))).collect();
    for run in runs.into_iter().map(Started::finish) {
        ended(&run, 0);
    }
    let attempts = fleet.machines.iter().map(attempts).sum::<usize>();
    assert!((5..=8).contains(&attempts), "at most one more for each: {attempts}");
}

#[test]
fn what_cannot_work_is_refused_before_any_agent_starts() {
    let fleet = Fleet::new(2, "work; done_");
    let (machine, other) = (&fleet.machines[0], &fleet.machines[1]);
    let id = add(machine, "first");
    let refused = |machine: &Scratch, code: i32, why: &str| {
        let run = machine.run(RUN);
        ended(&run, code);
        let line = run.stderr.lines().last().unwrap_or_default();
        assert!(line.starts_with("error: ") && line.contains(why), "{run:?}");
        assert_eq!(attempts(machine), 0);
    };
    // A clone without all commits.
    fs::remove_dir_all(other.root()).unwrap();
    fs::create_dir(other.root()).unwrap();
    machine.git(&["commit", "--quiet", "--allow-empty", "--message", "two"]);
    machine.git(&["push", "--quiet", "origin", "main"]);
    other.git(&["clone", "--quiet", "--depth=1", &format!("file://{}", fleet.remote), "."]);
    refused(other, 1, "git fetch --unshallow");
    other.git(&["fetch", "--quiet", "--unshallow"]);
    // No remote.
    other.git(&["remote", "rename", "origin", "gone"]);
    other.git(&["config", "remote.gone.url", "/nowhere"]);
    refused(other, 5, "gone cannot be used");
    other.git(&["remote", "remove", "gone"]);
    refused(other, 1, "git remote add origin URL");
    other.git(&["remote", "add", "origin", &fleet.remote]);
    // The first worker says which repository the graph is of.
    ended(&machine.run(RUN), 0);
    assert_eq!(status(machine, &id), "done");
    fs::remove_dir_all(other.root()).unwrap();
    fs::create_dir(other.root()).unwrap();
    other.git(&["init", "--quiet", "--initial-branch=main"]);
    other.git(&["commit", "--quiet", "--allow-empty", "--message", "another"]);
    other.git(&["remote", "add", "origin", &fleet.remote]);
    refused(other, 1, "has the tasks of another repository");
    // No server.
    let run = Scratch::finish(machine.ralph(RUN).env("RALPH_STORE", "postgres://ralph@%2Fnowhere/x"));
    ended(&run, 5);
    let run = Scratch::finish(machine.ralph(RUN).env("RALPH_LEASE", "5s"));
    assert!(run.code == Some(1) && run.stderr.contains("is shorter than 30 seconds"), "{run:?}");
}

#[test]
fn a_trunk_that_takes_no_pushes_is_left_alone_and_workers_start_from_the_branch_beside_it() {
    let fleet = Fleet::new(2, "work; done_");
    let begun = fleet.there(&["rev-parse", "main"]);
    let hook = "#!/bin/sh\n[ \"$1\" != refs/heads/main ] || { echo 'not this one' >&2; exit 1; }\n";
    executable(&Path::new(&fleet.remote).join("hooks/update"), hook);
    let first = add(&fleet.machines[0], "first");
    ended(&fleet.machines[0].run(RUN), 0);
    let second = add(&fleet.machines[1], &format!("second --after {first}"));
    let run = fleet.machines[1].run(RUN);
    ended(&run, 0);
    assert!(run.stderr.contains("main itself is not pushed, but ralph/landed/main"), "{run:?}");
    assert_eq!(fleet.there(&["rev-parse", "main"]), begun);
    let files = fleet.there(&["ls-tree", "--name-only", "ralph/landed/main"]);
    assert!(files.contains(&format!("work-{first}")) && files.contains(&format!("work-{second}")), "{files}");
}

#[test]
fn a_remote_that_takes_branches_only_gets_the_commits_of_claims_as_branches() {
    let fleet = Fleet::new(2, "work; done_");
    let hook = "#!/bin/sh\ncase $1 in refs/heads/*) ;; *) echo 'branches only' >&2; exit 1;; esac\n";
    executable(&Path::new(&fleet.remote).join("hooks/update"), hook);
    let seen = "#!/bin/sh\ncat >> \"$GIT_DIR/seen\"\n";
    executable(&Path::new(&fleet.remote).join("hooks/post-receive"), seen);
    let ids = [add(&fleet.machines[0], "first"), add(&fleet.machines[0], "second")];
    let runs = vec![fleet.start(0, RUN), fleet.start(1, RUN)];
    for run in runs.into_iter().map(Started::finish) {
        ended(&run, 0);
    }
    fleet.assert_all_landed(&ids);
    let seen = fs::read_to_string(Path::new(&fleet.remote).join("seen")).unwrap();
    assert!(seen.contains(&format!(" refs/heads/ralph/tasks/{}/", ids[0])), "{seen}");
}

#[test]
fn what_could_not_be_booked_is_booked_by_the_next_run_in_that_clone() {
    let fleet = Fleet::new(1, &format!("work; {UNTIL_GO}; done_"));
    let machine = &fleet.machines[0];
    let id = add(machine, "first");
    let worker = fleet.start(0, &format!("{RUN} --max-limit-wait 2s"));
    until_there(&home(machine, "at-work"));
    fs::rename(&fleet.remote, format!("{}.away", fleet.remote)).unwrap();
    fs::write(home(machine, "go"), "").unwrap();
    let run = worker.finish();
    ended(&run, 5);
    assert!(
        run.stdout.contains("origin cannot be used") && run.stdout.contains("is kept here as"),
        "{run:?}"
    );
    let kept = refs(machine, &format!("tasks/{id}"));
    assert_eq!(kept.len(), 1, "{run:?}");
    fs::rename(format!("{}.away", fleet.remote), &fleet.remote).unwrap();
    let run = machine.run(RUN);
    ended(&run, 0);
    fleet.assert_all_landed(&[id]);
}
