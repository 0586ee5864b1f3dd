//! What can be wrong with a graph of tasks from outside: each time one clear line, exit code 1, and nothing has changed.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};

use crate::policies::beside;
use crate::run_tasks::{GOOD, add, ends, status, tasks};
use crate::scratch::{Scratch, Started, finish, wait_for};
use crate::task_verbs::Graph;

/// Runs it with what is at the graph's path, and answers what was said.
fn refused(graph: &Graph, args: &[&str]) -> String {
    let path = graph.0.path(".ralph/progress.db");
    let before = fs::read(&path).unwrap_or_default();
    let run = graph.run(args);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{args:?}: {run:?}");
    assert!(run.stderr.starts_with("error: ") && run.stderr.lines().count() == 1, "{run:?}");
    assert_eq!(fs::read(&path).unwrap_or_default(), before, "{args:?}");
    run.stderr
}

fn checklist(count: usize) -> String {
    let items: Vec<String> = (0..count).map(|number| format!("- [ ] task {number}")).collect();
    items.join("\n")
}

#[test]
fn what_is_not_our_database_is_named_and_kept() {
    let graph = Graph::new();
    let path = graph.0.path(".ralph/progress.db");
    graph.add(&["a"]);
    let all: [&[&str]; 4] = [&["list"], &["add", "b"], &["export"], &["import", "p.md"]];
    let check = |what: &str| {
        for args in all {
            let said = refused(&graph, args);
            assert!(said.contains(what) && said.contains(".ralph/progress.db"), "{args:?}: {said}");
        }
    };
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    check(
        "was written by a newer ralph (version 99 of its format, this one knows 9): it is left as it is: use that ralph",
    );
    fs::write(&path, "").unwrap();
    check("another program has truncated it: it is empty: restore a backup of it, or move it away");
    fs::write(&path, "no database\n".repeat(1000)).unwrap();
    check("is no database: it is left as it is: move it away");
    let _ = fs::remove_file(&path);
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE notes (text)").unwrap();
    check("is the database of another program: it is left as it is: move it away");
    fs::remove_file(&path).unwrap();
    symlink("somewhere", &path).unwrap();
    check("it is a symbolic link, not a file: move away what is there");
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let run = graph.run(&["list"]);
    assert!(run.stderr.contains("it is a FIFO, not a file"), "{run:?}");
}

#[test]
fn a_torn_database_is_named_and_kept() {
    let graph = Graph::new();
    graph.0.write("TODO.md", checklist(500));
    graph.good(&["import", "TODO.md"]);
    let path = graph.0.path(".ralph/progress.db");
    let mut torn = fs::read(&path).unwrap();
    torn[4096..].fill(0x5a);
    fs::write(&path, &torn).unwrap();
    for args in [&["list"] as &[&str], &["add", "b"]] {
        let said = refused(&graph, args);
        assert!(said.contains("is torn (") && said.contains("sqlite3 FILE .recover"), "{said}");
    }
}

#[test]
fn a_database_of_the_older_program_is_taken_over() {
    let graph = Graph::new();
    let path = graph.0.path(".ralph/progress.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "CREATE TABLE features (id TEXT PRIMARY KEY, name TEXT UNIQUE, spec_path TEXT, plan_path TEXT, status TEXT,
          created_at TEXT, updated_at TEXT);
        CREATE TABLE tasks (id TEXT PRIMARY KEY, parent_id TEXT, title TEXT, description TEXT, status TEXT, priority INTEGER,
          created_at TEXT, updated_at TEXT, claimed_by TEXT, feature_id TEXT, task_type TEXT, retry_count INTEGER,
          max_retries INTEGER, verification_status TEXT);
        CREATE TABLE dependencies (blocker_id TEXT, blocked_id TEXT);
        CREATE TABLE task_logs (id INTEGER PRIMARY KEY, task_id TEXT, message TEXT, timestamp TEXT);
        INSERT INTO tasks (id, title, status, created_at) VALUES ('t-abcdef', 'Kept', 'pending', '2026-01-02T03:04:05Z');
        PRAGMA user_version = 4;",
    )
    .unwrap();
    drop(old);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let before = graph.0.snapshot();
    assert!(graph.good(&["list"]).contains("t-abcdef  pending        0  Kept"));
    assert_eq!(graph.0.snapshot(), before, "a look changes nothing");
    let run = graph.run(&["update", "t-abcdef", "--priority", "1"]);
    assert!(run.code == Some(0) && run.stdout.contains("t-abcdef  pending        1  Kept"), "{run:?}");
    let said = "taken over from an older program; ";
    assert!(run.stderr.contains(said) && run.stderr.lines().count() == 1, "{run:?}");
    for name in ["progress.db", "progress.db.older"] {
        let mode = fs::metadata(graph.0.path(&format!(".ralph/{name}"))).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(!graph.0.git(&["status", "--porcelain", "--untracked-files=all"]).contains("progress.db"));
    graph.good(&["done", "t-abcdef"]);
}

#[test]
fn an_import_that_is_refused_leaves_no_graph_behind() {
    let graph = Graph::new();
    graph.0.write("two.md", "- [ ] a\n- [ ] a\n");
    let before = graph.0.snapshot();
    for args in [&["import", "two.md"] as &[&str], &["import", "none.md"], &["import", "p.md"]] {
        refused(&graph, args);
        assert_eq!(graph.0.snapshot(), before, "{args:?}");
    }
}

#[test]
fn a_full_disk_changes_nothing() {
    let graph = Graph::new();
    graph.add(&["a"]);
    graph.0.write("TODO.md", checklist(20_000));
    let before = graph.everything();
    let ralph = env!("CARGO_BIN_EXE_ralph");
    // No file may grow beyond this many KiB; the signal that goes with it is off.
    for (limit, args, place) in [(1, "add b", "/.ralph/progress.db: "), (300, "import TODO.md", "/.ralph: ")]
    {
        let mut shell = graph.0.command("bash");
        shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {limit}; exec '{ralph}' task {args}")]);
        let run = finish(shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.lines().count()), (Some(1), "", 1), "{run:?}");
        assert!(run.stderr.contains(place) && run.stderr.contains("free some space"), "{run:?}");
        assert_eq!(graph.everything(), before, "{args}");
    }
    graph.add(&["b"]);
}

#[test]
fn a_trial_of_an_import_waits_for_who_writes() {
    let graph = Graph::new();
    graph.add(&["a"]);
    graph.0.write("TODO.md", checklist(3));
    let other = Connection::open(graph.0.path(".ralph/progress.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE tasks SET priority = 1").unwrap();
    let mut command = graph.0.ralph("task import TODO.md --dry-run");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It has read the file, and waits.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it waits");
    other.execute_batch("COMMIT").unwrap();
    let run = finish(child);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(graph.good(&["list"]).lines().count(), 1);
}

/// The one wait of thirty seconds: that it is so long, and then ends, is what is tested.
#[test]
fn a_database_that_stays_locked_is_told_after_the_timeout() {
    let graph = Graph::new();
    let id = graph.add(&["a"]);
    let before = graph.everything();
    let other = Connection::open(graph.0.path(".ralph/progress.db")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert!(graph.good(&["list"]).starts_with(&id), "who only looks does not wait");
    let run = graph.run(&["add", "b"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert!(
        run.stderr.ends_with("database is locked: another program has locked it: end that, and try again\n"),
        "{run:?}"
    );
    assert!(run.elapsed.as_secs() >= 29, "{run:?}");
    drop(other);
    assert_eq!(graph.everything(), before);
    graph.add(&["b"]);
}

/// Holds the graph as a program does that hangs.
fn hold(scratch: &Scratch) -> Connection {
    let other = Connection::open(scratch.path(".ralph/progress.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

#[test]
fn a_graph_that_does_not_answer_holds_up_no_ctrl_c() {
    let waits = "touch ../began; [ $n != 1 ] || until [ -e ../go ]; do sleep 0.02; done";
    let scratch = tasks(&format!("{waits}; {GOOD}"));
    let id = add(&scratch, "first");

    // One ends the wait for a task.
    let held = hold(&scratch);
    let run = Started::new(&scratch, "run --all");
    wait_for("the loop", || scratch.read_if_there(".ralph/state.toml").contains("running").then_some(()));
    scratch.ask_to_stop(run.pid(), Signal::INT);
    let run = run.finish();
    assert_eq!(run.code, Some(130), "{run:?}");
    assert!(run.elapsed.as_secs() < 20 && !beside(&scratch, "began").exists(), "{run:?}");
    drop(held);

    // The second one ends the wait for what is to be booked, and the agent before it.
    let run = Started::new(&scratch, "run --all");
    wait_for("the agent", || beside(&scratch, "began").exists().then_some(()));
    let held = hold(&scratch);
    scratch.ask_to_stop(run.pid(), Signal::INT);
    scratch.ask_to_stop(run.pid(), Signal::INT);
    let run = run.finish();
    assert_eq!(run.code, Some(130), "{run:?}");
    assert!(run.stderr.contains("the graph of tasks did not answer"), "{run:?}");
    assert!(run.elapsed.as_secs() < 20, "{run:?}");
    drop(held);

    // Nothing is lost by it.
    let run = scratch.run("run --all");
    ends(&scratch, &run, 0, "complete");
    assert_eq!(status(&scratch, &id), "done");
}

#[test]
fn an_import_that_is_cut_off_changes_nothing() {
    let graph = Graph::new();
    graph.add(&["a"]);
    let before = graph.everything();
    for signal in [Signal::INT, Signal::KILL] {
        let mut import = graph.0.ralph("task import -");
        let mut import =
            import.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = import.stdin.take().unwrap();
        // More than pipes and buffers hold: most of it has been read when this returns.
        for number in 0..20_000 {
            writeln!(stdin, "{{\"id\":\"bd-{number}\",\"title\":\"One of many\",\"status\":\"open\"}}")
                .unwrap();
        }
        kill_process(Pid::from_child(&import), signal).unwrap();
        let status = import.wait().unwrap();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status:?}");
        assert_eq!(graph.everything(), before);
    }
    let scratch = Scratch::new();
    let mut import = scratch.ralph("task import -");
    let mut import = import.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = import.stdin.take().unwrap();
    for number in 0..20_000 {
        writeln!(stdin, "{{\"id\":\"bd-{number}\",\"title\":\"One of many\",\"status\":\"open\"}}").unwrap();
    }
    import.kill().unwrap();
    import.wait().unwrap();
    assert!(!scratch.path(".ralph/progress.db").exists(), "it was to be a new one");
}

#[test]
fn tasks_that_another_program_has_made_parts_of_themselves_are_shown() {
    let graph = Graph::new();
    let [root, top] = ["root", "top"].map(|title| graph.add(&[title]));
    let part = graph.add(&["part", "--parent", &top]);
    let below = graph.add(&["below", "--parent", &part]);
    let database = Connection::open(graph.0.path(".ralph/progress.db")).unwrap();
    let circle = "UPDATE tasks SET parent = (SELECT seq FROM tasks WHERE id = ?1) WHERE id = ?2";
    database.execute(circle, [&part, &top]).unwrap();
    let run = graph.run(&["tree"]);
    assert!(run.code == Some(0) && run.stderr.contains(&format!("{top} is a part of itself")), "{run:?}");
    assert!(run.stderr.contains("ralph task export"), "{run:?}");
    for verb in ["tree", "list", "graph"] {
        let shown = graph.run(&[verb]).stdout;
        for id in [&root, &top, &part, &below] {
            assert!(shown.contains(id.as_str()), "{verb}: {id} is missing: {shown}");
        }
    }
    let shown = run.stdout.lines().count();
    assert_eq!(shown, 4, "each once: {run:?}");
    assert_eq!(graph.run(&["tree", &top]).stdout.lines().count(), 3);
}
