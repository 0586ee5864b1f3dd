//! Other programs and the files of the graph: a program that only reads has no effect, and a removed or replaced file
//! ends a run before anything is lost.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;

use crate::policies::{attempts, beside};
use crate::run_tasks::{GOOD, add, ends, status, tasks};
use crate::scratch::{Scratch, finish};

/// An agent that says which task it has, for runs that are at work at the same time.
const NAMES_ITS_TASK: &str = r#"
id=$(sed -n 's/^## Your task: //p')
echo "$id" >> "$HOME/worked"
printf '{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"<task-done>%s</task-done>"}]},"parent_tool_use_id":null}\n' "$id"
printf '{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":0.02,"usage":{"input_tokens":10,"output_tokens":5}}\n'
"#;
/// Opens the database, reads and closes it repeatedly; its `SQLite` library is another one than ours.
const PYTHON: &str = "import sqlite3, sys\nfor _ in range(int(sys.argv[2])):\n  db = sqlite3.connect(sys.argv[1], timeout=30)\n  db.execute('select count(*) from tasks').fetchone()\n  db.close()";

/// The process that runs here, as a run's state file names it, and its locks of these files.
fn locks(all: &str, pid: u32, file: &Path) -> usize {
    let inode = fs::metadata(file).unwrap().ino().to_string();
    let is_its = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[1] == "POSIX" && words[4] == pid.to_string() && words[5].rsplit(':').next() == Some(&inode)
    };
    all.lines().filter(is_its).count()
}

#[test]
fn two_runs_and_two_hundred_looks_lose_nothing() {
    const TASKS: usize = 12;
    let scratch = Scratch::new();
    scratch.agent("claude", NAMES_ITS_TASK);
    scratch.write("tracked.txt", "one\n");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "--message", "begin"]);
    scratch.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    let mut ids: BTreeSet<String> = (0..TASKS).map(|number| add(&scratch, &number.to_string())).collect();
    let database = scratch.path(".ralph/progress.db");
    let start = |folder: &Path| {
        let mut run = scratch.ralph("run --all --no-verify");
        run.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let runs = [start(&scratch.root()), start(&beside(&scratch, "side"))];
    let mut python = Command::new("python3");
    let python = python.args(["-c", PYTHON]).arg(&database).arg("100").spawn().unwrap();
    for look in 0..100 {
        let looked = Command::new("sqlite3")
            .args(["-cmd", ".timeout 30000"])
            .arg(&database)
            .arg("select count(*) from tasks")
            .output()
            .unwrap();
        assert!(looked.status.success(), "{looked:?}");
        if look % 10 == 0 {
            ids.insert(add(&scratch, &format!("late-{look}")));
        }
    }
    assert!(python.wait_with_output().unwrap().status.success());
    for run in runs {
        let run = finish(run);
        // A task that came between the last look and the end is said to be open; the next run has it.
        let is_late = run.code == Some(4) && run.stderr.contains("tasks were added or opened again");
        assert!(is_late || matches!(run.code, Some(0 | 3)), "{run:?}");
    }
    // What came after both had ended.
    let run = scratch.run("run --all --no-verify");
    assert_eq!(run.code, Some(0), "{run:?}");
    let worked = fs::read_to_string(scratch.home().join("worked")).unwrap();
    assert_eq!(worked.lines().map(str::to_owned).collect::<BTreeSet<_>>(), ids);
    assert_eq!(worked.lines().count(), ids.len(), "one agent for each task");
    let graph = Connection::open(&database).unwrap();
    let sound: String = graph.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    let done: usize =
        graph.query_row("SELECT count(*) FROM tasks WHERE status = 2", [], |row| row.get(0)).unwrap();
    assert_eq!((sound.as_str(), done), ("ok", ids.len()));
}

#[test]
fn a_run_keeps_its_locks_whoever_looks() {
    let scratch = tasks(&format!(
        "db=.ralph/progress.db; sqlite3 $db 'select 1' > ../seen; python3 -c \"$PYTHON\" $db 3; cp $db ../copy
        $RALPH task add late > ../late; cat /proc/locks > ../locks; cat .ralph/lock > ../lock
        stat -c %i $db-wal > ../wal; {GOOD}"
    ));
    add(&scratch, "task");
    let mut run = scratch.ralph("run --all --no-verify --limit 1");
    run.env("RALPH", env!("CARGO_BIN_EXE_ralph")).env("PYTHON", PYTHON);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = run.id();
    let run = finish(run);
    assert_eq!(run.code, Some(0), "{run:?}");
    let all = fs::read_to_string(beside(&scratch, "locks")).unwrap();
    assert!(locks(&all, pid, &scratch.path(".ralph/progress.db")) > 0, "{all}");
    assert!(fs::read_to_string(beside(&scratch, "wal")).is_ok_and(|inode| !inode.trim().is_empty()));
    let late = fs::read_to_string(beside(&scratch, "late")).unwrap();
    assert_eq!(status(&scratch, late.trim()), "pending");
}

#[test]
fn a_replaced_or_removed_graph_ends_the_run_and_is_kept() {
    for (what, lost) in [
        ("cp $db ../x && mv ../x $db", "progress.db"),
        ("rm $db-wal", "progress.db-wal"),
        ("rm $db-shm", "progress.db-shm"),
    ] {
        let scratch =
            tasks(&format!("db=.ralph/progress.db; $RALPH task add late > ../late; {what}; {GOOD}"));
        let id = add(&scratch, "task");
        let mut run = scratch.ralph("run --all --no-verify");
        let run = Scratch::finish(run.env("RALPH", env!("CARGO_BIN_EXE_ralph")));
        ends(&scratch, &run, 5, "graph_lost");
        let said = format!(
            "{lost}: it was removed or replaced while it was in use: all that was written is kept in "
        );
        assert!(run.stderr.contains(&said) && run.stderr.contains("progress.db.kept: "), "{what}: {run:?}");
        assert_eq!(attempts(&scratch), 1, "{what}");
        // Its copy has what was written before; no later booking was lost.
        let kept = scratch.path(".ralph/progress.db.kept");
        assert!(!scratch.path(".ralph/progress.db.kept-2").exists());
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(scratch.path(&format!(".ralph/progress.db{end}")));
        }
        fs::rename(kept, scratch.path(".ralph/progress.db")).unwrap();
        let late = fs::read_to_string(beside(&scratch, "late")).unwrap();
        assert_eq!(
            (status(&scratch, &id), status(&scratch, late.trim())),
            ("pending".into(), "pending".into())
        );
        assert!(!scratch.git(&["status", "--porcelain"]).contains(".kept"));
    }
}

#[test]
fn a_graph_that_was_truncated_starts_no_run() {
    let scratch = tasks(GOOD);
    add(&scratch, "task");
    add(&scratch, "other");
    assert_eq!(scratch.run("run --all --no-verify --once").code, Some(0));
    fs::write(scratch.path(".ralph/progress.db"), "").unwrap();
    let before = scratch.read(".ralph/state.toml");
    for args in ["run --all", "resume tasks --max-iterations 9", "feature create export brief"] {
        let run = scratch.run(args);
        assert_eq!(run.code, Some(5), "{args}: {run:?}");
        assert!(run.stderr.contains("progress.db: another program has truncated it: it is empty"), "{run:?}");
        assert_eq!(scratch.read(".ralph/state.toml"), before, "{args}");
    }
    assert_eq!(fs::metadata(scratch.path(".ralph/progress.db")).unwrap().len(), 0);
}

#[test]
fn a_graph_of_an_earlier_ralph_is_called_so_and_left_as_it_is() {
    let scratch = tasks(GOOD);
    add(&scratch, "task");
    let path = scratch.path(".ralph/progress.db");
    let earlier = "ALTER TABLE tasks DROP COLUMN doubted; PRAGMA user_version = 5";
    Connection::open(&path).unwrap().execute_batch(earlier).unwrap();
    for args in ["run --all", "task list", "task add more"] {
        let run = scratch.run(args);
        assert!(run.code != Some(0) && !run.stderr.contains("another program"), "{args}: {run:?}");
        let said = "progress.db was written by an earlier ralph, and is not taken over (version 5 of the schema, known is 9): it is \
                    left as it is: export its tasks with that ralph ('ralph task export')";
        assert!(run.stderr.contains(said), "{args}: {run:?}");
    }
    assert_eq!(attempts(&scratch), 0);
}

#[test]
fn a_graph_with_another_schema_starts_no_run() {
    for (change, what) in [
        ("ALTER TABLE tasks DROP COLUMN seal", "changed its schema ("),
        ("DROP TABLE sealed", "changed its schema ("),
        ("PRAGMA user_version = 3", "changed the version of its schema (3, known is 9)"),
        (
            "ALTER TABLE tasks RENAME TO others; CREATE VIEW tasks AS SELECT * FROM others",
            "changed its schema (",
        ),
        ("DROP INDEX tasks_parent", "changed its schema (the definition of tasks_parent)"),
        ("DROP INDEX dependencies_blocked", "changed its schema (the definition of dependencies_blocked)"),
        ("CREATE UNIQUE INDEX one ON tasks (priority, title)", "changed its schema (the definition of one)"),
    ] {
        let scratch = tasks(GOOD);
        add(&scratch, "task");
        Connection::open(scratch.path(".ralph/progress.db")).unwrap().execute_batch(change).unwrap();
        let run = scratch.run("run --all");
        assert_eq!((run.code, attempts(&scratch)), (Some(5), 0), "{change}: {run:?}");
        let said = format!("progress.db: another program has {what}");
        assert!(run.stderr.contains(&said) && !run.stderr.contains("SELECT"), "{change}: {run:?}");
    }
}

#[test]
fn an_index_that_disagrees_with_its_table_is_damage() {
    let scratch = tasks(GOOD);
    for name in ["a", "b", "c"] {
        add(&scratch, name);
    }
    let swap = "PRAGMA writable_schema = ON; INSERT INTO dependencies VALUES (1, 3); \
                UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'tasks_parent') \
                WHERE name = 'dependencies_blocked'";
    Connection::open(scratch.path(".ralph/progress.db")).unwrap().execute_batch(swap).unwrap();
    let run = scratch.run("run --all");
    assert_eq!((run.code, attempts(&scratch)), (Some(5), 0), "{run:?}");
    assert!(run.stderr.contains("progress.db is torn ("), "{run:?}");
}

/// Makes of the bytes of a database what is left there.
type Damage = fn(Vec<u8>) -> Vec<u8>;

#[test]
fn what_is_no_graph_of_ours_starts_no_run_and_is_kept() {
    let whole = |scratch: &Scratch| {
        let path = scratch.path(".ralph/progress.db");
        let graph = Connection::open(&path).unwrap();
        graph.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE").unwrap();
        drop(graph);
        let bytes = fs::read(&path).unwrap();
        (path, bytes)
    };
    let cases: [(Damage, &str); 5] = [
        (|bytes| bytes[..bytes.len() / 2].to_vec(), "progress.db is torn ("),
        (|bytes| bytes[..100].to_vec(), "progress.db is "),
        (|_| "no database\n".repeat(1000).into_bytes(), "progress.db is no database"),
        // The application's id in the header.
        (|bytes| [&bytes[..68], b"ELSE", &bytes[72..]].concat(), "is the database of another program"),
        // All pages but the schema's.
        (|bytes| [&bytes[..4096], &vec![0x5a; bytes.len() - 4096]].concat(), "progress.db is torn ("),
    ];
    for (damage, what) in cases {
        let scratch = tasks(GOOD);
        for number in 0..50 {
            add(&scratch, &format!("task{number}"));
        }
        let (path, bytes) = whole(&scratch);
        let torn = damage(bytes);
        fs::write(&path, &torn).unwrap();
        let run = scratch.run("run --all");
        assert_eq!((run.code, attempts(&scratch)), (Some(5), 0), "{what}: {run:?}");
        assert!(run.stderr.contains(what), "{what}: {run:?}");
        assert_eq!(fs::read(&path).unwrap(), torn, "{what}");
    }
    let scratch = tasks(GOOD);
    add(&scratch, "task");
    let path = scratch.path(".ralph/progress.db");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let run = scratch.run("run --all");
    assert_eq!((run.code, attempts(&scratch)), (Some(5), 0), "{run:?}");
    assert!(
        run.stderr.contains("progress.db: it is a folder, not a file: move away what is there"),
        "{run:?}"
    );
}
