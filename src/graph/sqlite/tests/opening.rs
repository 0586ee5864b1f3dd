//! Opening a database: new, ours, older, of another program, torn, locked, on a full disk.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::graph::Status::{Blocked, Done, Failed, Pending};
use crate::graph::store::{JournalQuery, Words};

#[test]
fn a_database_is_ours_alone_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    let id = open(&path).unwrap().add(&new_task("a")).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let store = open(&path).unwrap();
    assert_eq!(store.task(&id).unwrap().title, "a");
    for (pragma, value) in [("journal_mode", "wal"), ("synchronous", "1"), ("foreign_keys", "1")] {
        let real = store.connection.pragma_query_value(None, pragma, |row| {
            let value: rusqlite::types::Value = row.get(0)?;
            Ok(match value {
                rusqlite::types::Value::Text(text) => text,
                other => format!("{other:?}").replace("Integer(", "").replace(')', ""),
            })
        });
        assert_eq!(real.unwrap(), value, "{pragma}");
    }
}

#[test]
fn what_is_not_ours_is_named_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    drop(open(&at("ours")).unwrap());
    let newer = Connection::open(at("ours")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    Connection::open(at("others")).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    fs::write(at("empty"), "").unwrap();
    fs::write(at("text"), "no database\n".repeat(1000)).unwrap();
    symlink("text", at("link")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    for (name, what) in [
        (
            "ours",
            "was written by a newer ralph (version 99 of its format, this one knows 9): it is left as it is: use that ralph or a later one",
        ),
        ("empty", "another program has truncated it: it is empty: restore a backup of it, or move it away"),
        ("others", "is the database of another program: it is left as it is: move it away"),
        ("text", "is no database: it is left as it is: move it away"),
        ("link", "it is a symbolic link, not a file: move away what is there"),
        ("folder", "it is a folder, not a file: move away what is there"),
    ] {
        let before = fs::read(at(name)).unwrap_or_default();
        let said = open(&at(name)).unwrap_err().to_string();
        assert!(said.contains(what), "{said}");
        assert_eq!(fs::read(at(name)).unwrap_or_default(), before);
    }
}

#[test]
fn a_torn_database_is_named_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    let mut store = open(&path).unwrap();
    for number in 0..200 {
        store.add(&new_task(&format!("{number}"))).unwrap();
    }
    drop(store);
    let mut torn = fs::read(&path).unwrap();
    let end = torn.len();
    torn[4096..end].fill(0x5a);
    fs::write(&path, &torn).unwrap();
    let said = open(&path).and_then(|mut store| store.add(&new_task("b"))).unwrap_err().to_string();
    assert!(said.contains("is torn (") && said.contains("it is left as it is"), "{said}");
}

#[test]
fn another_version_of_our_schema_is_refused_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    for version in [0, 3, 4] {
        drop(open(&path).unwrap());
        Connection::open(&path).unwrap().pragma_update(None, "user_version", version).unwrap();
        let before = fs::read(&path).unwrap();
        let said = open(&path).unwrap_err().to_string();
        let what =
            format!("another program has changed the version of its schema ({version}, known is 9): restore");
        assert!(said.contains(&what), "{said}");
        assert_eq!(fs::read(&path).unwrap(), before);
        fs::remove_file(&path).unwrap();
    }
}

/// A database as a version of the earlier program left it.
fn older(path: &Path, version: i64, cycle: bool) {
    let old = Connection::open(path).unwrap();
    old.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON;
        CREATE TABLE features (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, spec_path TEXT, plan_path TEXT,
          status TEXT NOT NULL DEFAULT 'draft', created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
        CREATE TABLE tasks (id TEXT PRIMARY KEY, parent_id TEXT, title TEXT NOT NULL, description TEXT,
          status TEXT NOT NULL DEFAULT 'pending', priority INTEGER DEFAULT 0, created_at TEXT NOT NULL,
          updated_at TEXT NOT NULL, claimed_by TEXT, feature_id TEXT REFERENCES features (id), task_type TEXT DEFAULT 'feature',
          retry_count INTEGER DEFAULT 0, max_retries INTEGER DEFAULT 3, verification_status TEXT,
          FOREIGN KEY (parent_id) REFERENCES tasks (id) ON DELETE CASCADE);
        CREATE TABLE dependencies (blocker_id TEXT NOT NULL REFERENCES tasks (id), blocked_id TEXT NOT NULL REFERENCES
          tasks (id), PRIMARY KEY (blocker_id, blocked_id));
        CREATE TABLE task_logs (id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL REFERENCES tasks (id),
          message TEXT NOT NULL, timestamp TEXT NOT NULL);
        CREATE TABLE journal (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, iteration INTEGER, task_id TEXT,
          feature_id TEXT, outcome TEXT NOT NULL DEFAULT 'done', model TEXT, duration_secs REAL, cost_usd REAL,
          files_modified TEXT, notes TEXT, created_at TEXT);
        CREATE VIRTUAL TABLE journal_fts USING fts5 (notes, content = 'journal', content_rowid = 'id');
        CREATE TRIGGER journal_ai AFTER INSERT ON journal BEGIN
          INSERT INTO journal_fts (rowid, notes) VALUES (new.id, new.notes); END;
        INSERT INTO features VALUES ('f-123abc', 'export', '.ralph/features/export/spec.md', NULL, 'running',
          '2026-01-02T03:04:05.678901234+00:00', '2026-01-02 03:04:05');
        INSERT INTO tasks (id, parent_id, title, description, status, priority, created_at, updated_at, claimed_by, feature_id,
          retry_count, verification_status) VALUES
          ('t-aaaaaa', NULL, 'Top', 'All of it', 'pending', 0, '2026-01-02T03:04:05.5+00:00', '2026-01-02T03:04:06Z', NULL,
            'f-123abc', 0, NULL),
          ('t-bbbbbb', 't-aaaaaa', 'First', '', 'done', 0, '2026-01-02T03:04:06Z', 'never', NULL, 'f-123abc', 0, 'passed'),
          ('t-cccccc', 't-aaaaaa', 'Two'||char(10)||'lines', NULL, 'in_progress', 5000000, '2026-01-02T03:04:07Z',
            '2026-01-02T03:04:07Z', 'agent-0badcafe', 'f-123abc', 2, NULL),
          ('t-dddddd', NULL, 'Waits', '', 'blocked', 0, '2026-01-02T03:04:08Z', '2026-01-02T03:04:08Z', NULL, NULL, 0, NULL),
          ('t-eeeeee', NULL, 'Gone', '', 'failed', 0, '2026-01-02T03:04:09Z', '2026-01-02T03:04:09Z', NULL, NULL, 0, NULL);
        INSERT INTO dependencies VALUES ('t-cccccc', 't-dddddd');
        INSERT INTO task_logs (task_id, message, timestamp) VALUES ('t-eeeeee', 'no way', '2026-01-02T03:04:09Z');
        INSERT INTO journal (run_id, task_id, outcome, cost_usd, files_modified, notes) VALUES
          ('run-12345678', 't-bbbbbb', 'retried', 1, json_array('lib.rs'), 'it is in lib.rs');",
    )
    .unwrap();
    if version > 3 {
        old.execute_batch("CREATE INDEX tasks_parent ON tasks (parent_id)").unwrap();
    }
    if version > 4 {
        old.execute_batch("CREATE TABLE model_overrides (id INTEGER PRIMARY KEY, model TEXT)").unwrap();
    }
    if cycle {
        old.execute_batch("INSERT INTO dependencies VALUES ('t-dddddd', 't-cccccc')").unwrap();
    }
    old.pragma_update(None, "user_version", version).unwrap();
}

#[test]
fn a_graph_of_the_older_program_is_taken_over_and_a_copy_kept() {
    for version in 3..=5 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress.db");
        older(&path, version, false);
        let copy = dir.path().join("progress.db.older");
        let mut store = open(&path).unwrap();
        assert_eq!(store.taken_over(), Some(copy.as_path()));
        oracle(&store.connection);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);

        let task = |id: &str| store.details(id).unwrap();
        let statuses =
            ["a", "b", "c", "d", "e"].map(|digit| task(&format!("t-{}", digit.repeat(6))).task.status);
        assert_eq!(statuses, [Pending, Done, Pending, Blocked, Failed]);
        let (top, first, two) = (task("t-aaaaaa"), task("t-bbbbbb").task, task("t-cccccc"));
        assert_eq!((top.task.description.as_str(), top.children.len()), ("All of it", 2));
        assert_eq!(top.task.created_at.to_rfc3339(), "2026-01-02T03:04:05.500+00:00");
        assert_eq!(
            (first.verification_status, first.parent_id.as_deref()),
            (Verification::Passed, Some("t-aaaaaa"))
        );
        assert_eq!(
            (two.task.title.as_str(), two.task.priority, two.task.retry_count),
            ("Two lines", 1_000_000, 2)
        );
        assert_eq!(
            two.log[0].message,
            "released: agent-0badcafe, which had claimed it, was of an older program"
        );
        assert_eq!(task("t-dddddd").blockers, ["t-cccccc"]);
        assert_eq!(task("t-eeeeee").log[0].message, "no way");
        let feature = store.feature("export").unwrap();
        assert_eq!((feature.id.as_str(), feature.tasks.total), ("f-123abc", 3));
        assert_eq!(
            (feature.spec_path.as_deref(), feature.plan_path),
            (Some("features/export/spec.md"), None)
        );
        assert_eq!(feature.created_at.to_rfc3339(), "2026-01-02T03:04:05.679+00:00");

        let tables: i64 = store
            .connection
            .query_row(
                "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'older%' OR name = 'model_overrides'",
                [],
                |row| row.get(0),
            )
            .unwrap();
        let words = JournalQuery { words: Some(Words::All("lib.rs".into())), ..JournalQuery::default() };
        let mut notes = Vec::new();
        store
            .journal(&words, &mut |entry| {
                notes.push((entry.title, entry.outcome.word(), entry.files_modified.join(" "), entry.notes));
                true
            })
            .unwrap();
        assert_eq!(
            (tables, notes),
            (0, vec![("First".to_owned(), "retried", "lib.rs".to_owned(), "it is in lib.rs".to_owned())])
        );
        let before = Connection::open(&copy).unwrap();
        let kept: (i64, i64) = before
            .query_row(
                "SELECT count(*), (SELECT user_version FROM pragma_user_version) FROM tasks",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        assert_eq!(kept, (5, version));
        store.add(&new_task("new")).unwrap();
        drop(store);
        assert_eq!(open(&path).unwrap().taken_over(), None, "once");
    }
}

#[test]
fn what_was_taken_over_can_be_given_away() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    older(&path, 4, false);
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "UPDATE tasks SET title = ' '||char(10) WHERE id = 't-aaaaaa';
        UPDATE tasks SET title = 'a'||char(27)||'[2Jb', description = 'c'||char(7)||char(10), max_retries = 9000000000000
          WHERE id = 't-bbbbbb';
        UPDATE tasks SET title = CAST(x'ff61' AS TEXT), description = printf('%.*c', 1500000, 'x') WHERE id = 't-eeeeee';
        UPDATE task_logs SET message = 'd'||char(27);
        INSERT INTO task_logs (task_id, message, timestamp) VALUES ('t-eeeeee', '', '');
        INSERT INTO tasks (id, parent_id, title, created_at, updated_at) VALUES ('TASK 1', 't-aaaaaa', 'e', '', '');
        INSERT INTO dependencies VALUES ('TASK 1', 't-dddddd');
        INSERT INTO features VALUES ('f-1', '../../etc', 'spec.md', 'plan.md', 'draft', '', ''),
          ('f-000002', '', NULL, NULL, 'draft', '', ''), ('f-000003', 'a/b', 'spec.md', NULL, 'draft', '', ''),
          ('f-000004', 'a-b', NULL, NULL, 'draft', '', '');",
    )
    .unwrap();
    drop(old);
    let mut store = open(&path).unwrap();
    let text = export(&store);
    let mut copy = SqliteStore::nowhere().unwrap();
    take(&mut copy, &text).unwrap();
    assert_eq!(export(&copy), text);
    oracle(&store.connection);
    let title = |id: &str| store.task(id).unwrap().title;
    assert_eq!(["t-aaaaaa", "t-bbbbbb", "t-eeeeee"].map(title), ["(untitled)", "a [2Jb", "\u{fffd}a"]);
    assert_eq!(store.task("t-eeeeee").unwrap().description.len(), 1 << 20);
    let blockers = store.details("t-dddddd").unwrap().blockers;
    let logs = blockers.iter().map(|id| store.logs(id).unwrap().remove(0).message);
    assert!(logs.into_iter().any(|log| log == "the older program called it 'TASK 1'"), "{blockers:?}");
    let features: Vec<(String, Option<String>)> =
        store.features().unwrap().into_iter().map(|feature| (feature.name, feature.spec_path)).collect();
    let named = |name: &str, path: Option<&str>| (name.to_owned(), path.map(str::to_owned));
    for expected in [
        named("etc", None),
        named("feature", None),
        named("a-b-2", Some("features/a/b/spec.md")),
        named("a-b", None),
    ] {
        assert!(features.contains(&expected), "{features:?}");
    }
    store.add(&new_task("new")).unwrap();
}

#[test]
fn what_of_the_older_program_cannot_be_taken_over_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    for (version, what) in
        [(3, "cannot be taken over: a cycle, "), (2, "of another program"), (6, "of another program")]
    {
        let _ = fs::remove_file(&path);
        older(&path, version, true);
        let tasks = |query: &str| -> String {
            Connection::open(&path).unwrap().query_row(query, [], |row| row.get(0)).unwrap()
        };
        let all = "SELECT group_concat(id || status || title) || (SELECT user_version FROM pragma_user_version) FROM tasks";
        let before = tasks(all);
        let said = open(&path).unwrap_err().to_string();
        assert!(said.contains(what) && said.contains("it is left as it is"), "{said}");
        assert_eq!(tasks(all), before);
        let files: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(files, ["progress.db"]);
    }
}

#[test]
fn many_open_the_same_database_at_once() {
    for round in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress.db");
        let is_older = round % 2 == 1;
        if is_older {
            older(&path, 3, false);
        }
        let begin = std::sync::Barrier::new(4);
        let taken_over: usize = std::thread::scope(|scope| {
            let openers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        begin.wait();
                        let mut store = SqliteStore::open(&path, BUSY_TIMEOUT).unwrap();
                        store.add(&new_task("a")).unwrap();
                        usize::from(store.taken_over().is_some())
                    })
                })
                .collect();
            openers.into_iter().map(|opener| opener.join().unwrap()).sum()
        });
        assert_eq!(taken_over, usize::from(is_older));
        // The files beside it may stay: of two connections that close together, neither is the last one.
        let beside = |name: &str| name.ends_with("-wal") || name.ends_with("-shm");
        let files = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let files = files.filter(|name| !beside(name.to_str().unwrap())).count();
        assert_eq!(files, 1 + usize::from(is_older), "one copy");
        let mut count = 0;
        let mut each = |_: Task| {
            count += 1;
            true
        };
        open(&path).unwrap().list(&Selection::default(), &mut each).unwrap();
        assert_eq!(count, if is_older { 9 } else { 4 });
    }
}

#[test]
fn a_locked_database_is_told_in_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    let mut store = open(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let said = store.add(&new_task("a")).unwrap_err().to_string();
    assert!(
        said.ends_with("database is locked: another program has locked it: end that, and try again"),
        "{said}"
    );
    other.execute_batch("ROLLBACK").unwrap();
    store.add(&new_task("a")).unwrap();
}

#[test]
fn a_full_disk_is_not_taken_for_permissions() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
        let said = Fault::File(kind.into()).at(Path::new("/x/progress.db")).to_string();
        assert!(
            said.starts_with("/x/progress.db: ") && said.ends_with(": free some space on that disk"),
            "{said}"
        );
    }
    let said = Fault::File(io::ErrorKind::PermissionDenied.into()).at(Path::new("/x")).to_string();
    assert!(said.ends_with("fix the permissions of its folder"), "{said}");
}

#[test]
fn a_full_disk_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir.path().join("progress.db")).unwrap();
    store.add(&new_task("a")).unwrap();
    let pages: i64 = store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    // The pragma returns the limit that it has set.
    let limit = format!("PRAGMA max_page_count = {pages}");
    store.connection.query_row(&limit, [], |_| Ok(())).unwrap();
    let large = NewTask { description: "x".repeat(1 << 20), ..new_task("b") };
    let said = store.add(&large).unwrap_err().to_string();
    assert!(said.ends_with("free some space on that disk"), "{said}");
    let mut titles = Vec::new();
    let mut each = |task: Task| {
        titles.push(task.title);
        true
    };
    store.list(&Selection::default(), &mut each).unwrap();
    assert_eq!(titles, ["a"]);
    oracle(&store.connection);
}
