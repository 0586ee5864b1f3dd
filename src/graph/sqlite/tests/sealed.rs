//! Another program writes into a database whose tasks are sealed.

use super::*;
use crate::graph::seal::Key;

/// A database in a folder of its own.
struct Sealed {
    folder: tempfile::TempDir,
}

impl Sealed {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("progress.db")
    }

    /// Opens it with the key of this name.
    fn open(&self, key: &str) -> SqliteStore {
        self.try_open(key).unwrap()
    }

    fn try_open(&self, key: &str) -> Result<SqliteStore, GraphError> {
        let mut bytes = [0; 32];
        bytes[..key.len()].copy_from_slice(key.as_bytes());
        SqliteStore::open_sealed(&self.path(), Duration::from_millis(50), Some(Key::of(bytes)))
    }

    fn forge(&self, sql: &str) {
        Connection::open(self.path()).unwrap().execute_batch(sql).unwrap();
    }
}

fn complete(store: &mut SqliteStore, run: &str, id: &str) {
    let claim = store.claim(&Scope::Subtree(id.into()), &us(run), LEASE).unwrap().unwrap();
    assert_eq!(store.complete(&claim, HowDone::default()).unwrap(), Ended::Done);
}

/// What a run finds that ends right after.
fn look(store: &mut SqliteStore) -> Unbooked {
    let found = store.reopen_unbooked("run-1").unwrap();
    store.settle_doubts().unwrap();
    oracle(&store.connection);
    found
}

fn titles(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.title.as_str()).collect()
}

fn id(store: &SqliteStore, title: &str) -> String {
    let id = "SELECT id FROM tasks WHERE title = ?1";
    store.connection.query_row(id, [title], |row| row.get(0)).unwrap()
}

/// A checked graph of a group with a part, a done task and a hard one.
fn looked_at(sealed: &Sealed) -> SqliteStore {
    let mut store = sealed.open("key");
    take(&mut store, "- [ ] group\n  - [ ] part\n- [ ] done\n- [ ] hard\n").unwrap();
    let hard = id(&store, "hard");
    let words = Changes { description: Some("many words".into()), ..Changes::default() };
    store.update(&hard, &words).unwrap();
    let done = id(&store, "done");
    complete(&mut store, "run-1", &done);
    assert_eq!(look(&mut store), Unbooked::default());
    store
}

#[test]
fn a_store_with_a_key_does_what_every_store_has_to() {
    for test in TESTS {
        let sealed = Sealed::new();
        let mut store = sealed.open("key");
        test(&mut store);
        // The write counts as our own.
        store.looked_at = None;
        assert_eq!(store.reopen_unbooked("run-1").unwrap(), Unbooked::default());
    }
}

#[test]
fn no_writing_makes_a_task_done() {
    const DONE: &str = "UPDATE tasks SET work = 2, status = 2, ready = 0, done_by";
    const LOG: &str =
        "DELETE FROM ready WHERE task = 4; INSERT INTO task_logs (task, message, at) SELECT seq, 'done', 0
        FROM tasks;";
    const JOURNAL: &str =
        "INSERT INTO journal (run, iteration, task, title, outcome, duration_secs, input_tokens, output_tokens,
        files, notes, reason, at) SELECT 'run-2', 1, id, title, 0, 1, 0, 0, '[]', '', '', 0 FROM tasks;";
    let other = "(SELECT seal FROM tasks WHERE title = 'done')";
    let foreign = format!("x'{}'", "0123456789".repeat(7) + "ab");
    for forged in [
        format!("{DONE} = '' WHERE title = 'hard'; {LOG}"),
        format!("{DONE} = 'run-2' WHERE title = 'hard'; {LOG} {JOURNAL}"),
        format!("{DONE} = 'run-1' WHERE title = 'hard'; {LOG}"),
        format!("{DONE} = '', seal = NULL WHERE title = 'hard'; {LOG} {JOURNAL}"),
        format!("{DONE} = 'run-1', seal = {other} WHERE title = 'hard'; {LOG}"),
        format!("{DONE} = 'run-2', seal = {foreign} WHERE title = 'hard'; {LOG} {JOURNAL}"),
        "UPDATE tasks SET status = 2, ready = 0 WHERE title = 'hard'".to_owned(),
        "UPDATE tasks SET work = 0, status = 2 WHERE title = 'hard'".to_owned(),
    ] {
        for is_later in [false, true] {
            let sealed = Sealed::new();
            let mut store = looked_at(&sealed);
            sealed.forge(&forged);
            if is_later {
                store = sealed.open("key");
            }
            let found = look(&mut store);
            assert_eq!((titles(&found.reopened), found.missing), (vec!["hard"], 0), "{forged}");
            assert_eq!(found.reopened[0].status, Status::Pending, "{forged}");
            assert!(store.is_unverified(&found.reopened[0].id).unwrap(), "{forged}");
            assert_eq!(look(&mut store), Unbooked::default(), "{forged}");
        }
    }
}

#[test]
fn other_words_are_told_once() {
    let words = "UPDATE descriptions SET text = 'trivial'";
    for (forged, rewritten, missing) in [
        ("UPDATE tasks SET title = 'hard, but trivial' WHERE title = 'hard'", vec!["hard, but trivial"], 0),
        (words, vec!["hard"], 0),
        ("DELETE FROM descriptions", vec!["hard"], 0),
        ("UPDATE tasks SET parent = 1 WHERE title = 'hard'", vec!["hard"], 0),
        ("DELETE FROM tasks WHERE title = 'hard'", vec![], 1),
        (
            "DELETE FROM tasks WHERE title = 'hard'; INSERT INTO tasks (id, title, created_at, updated_at)
            VALUES ('t-999999', 'easy', 0, 0)",
            vec!["easy"],
            1,
        ),
    ] {
        let sealed = Sealed::new();
        let mut store = looked_at(&sealed);
        sealed.forge(forged);
        // A later write by ralph does not seal the change.
        let mut other = sealed.open("key");
        let mut ids = Vec::new();
        let mut each = |task: Task| {
            ids.push(task.id);
            true
        };
        other.list(&Selection::default(), &mut each).unwrap();
        for id in &ids {
            other.log(id, "a word").unwrap();
            other.update(id, &Changes { priority: Some(7), ..Changes::default() }).unwrap();
        }
        other.add(&NewTask { parent: ids.last().cloned(), ..new_task("a part") }).unwrap();
        let found = look(&mut store);
        assert_eq!((titles(&found.rewritten), found.missing), (rewritten, missing), "{forged}");
        assert_eq!(titles(&found.reopened), [""; 0], "{forged}");
        assert_eq!(look(&mut store), Unbooked::default());
        assert_eq!(look(&mut sealed.open("key")), Unbooked::default());
    }
}

/// Four tasks, each of which waits for the one before it; the last one has a high priority.
fn in_a_row(sealed: &Sealed) -> SqliteStore {
    let mut store = sealed.open("key");
    let mut after = Vec::new();
    for (title, priority) in [("first", 0), ("second", 0), ("third", 0), ("last", -5)] {
        after = vec![store.add(&NewTask { after, priority, ..new_task(title) }).unwrap()];
    }
    assert_eq!(look(&mut store), Unbooked::default());
    store
}

fn next(store: &mut SqliteStore) -> String {
    let claim = store.claim(&Scope::All, &us("run-1"), LEASE).unwrap().unwrap();
    store.release(&claim, "").unwrap();
    store.task(&claim.task).unwrap().title
}

#[test]
fn other_priorities_and_dependencies_are_told_once() {
    for (forged, rewritten) in [
        (
            "DELETE FROM dependencies WHERE blocked = 4; UPDATE tasks SET open_blockers = 0, held = 0, ready = 1 WHERE seq = 4",
            vec!["last"],
        ),
        ("DELETE FROM dependencies", vec!["second", "third", "last"]),
        ("INSERT INTO dependencies VALUES (1, 4)", vec!["last"]),
        ("UPDATE dependencies SET blocker = 1 WHERE blocked = 3", vec!["third"]),
        ("UPDATE tasks SET priority = 9 WHERE seq = 1", vec!["first"]),
    ] {
        for is_later in [false, true] {
            let sealed = Sealed::new();
            let mut store = in_a_row(&sealed);
            sealed.forge(forged);
            if is_later {
                store = sealed.open("key");
            }
            assert_eq!(titles(&look(&mut store).rewritten), rewritten, "{forged}");
            assert_eq!(look(&mut store), Unbooked::default(), "{forged}");
        }
    }
    // A change by ralph itself is no doubt.
    let sealed = Sealed::new();
    let (mut store, mut other) = (in_a_row(&sealed), sealed.open("key"));
    let [first, second, third, last] = ["first", "second", "third", "last"].map(|title| id(&store, title));
    other.remove_dependency(&third, &last).unwrap();
    other.add_dependency(&first, &last).unwrap();
    other.update(&second, &Changes { priority: Some(3), ..Changes::default() }).unwrap();
    other.delete(&third, false).unwrap();
    assert_eq!(look(&mut store), Unbooked::default());
}

#[test]
fn states_counts_and_lists_that_another_program_changes_are_computed_anew() {
    for forged in [
        "INSERT INTO ready VALUES (0, -9, 4), (4, -9, 4)",
        "INSERT INTO ready VALUES (0, -9, 4); UPDATE tasks SET ready = 1, held = 0, status = 0 WHERE seq = 4",
        "UPDATE tasks SET open_blockers = 0, held = 0 WHERE seq = 2",
        "UPDATE tasks SET open_blockers = 7 WHERE seq = 2",
        "UPDATE tasks SET children = 1, done_children = 1 WHERE seq = 1",
        "UPDATE tasks SET status = 4 WHERE seq = 1",
        "UPDATE ready SET priority = 7",
        "DELETE FROM ready; UPDATE tasks SET ready = 0",
        "DELETE FROM ready",
    ] {
        let sealed = Sealed::new();
        let mut store = in_a_row(&sealed);
        sealed.forge(forged);
        // Other verbs still work.
        sealed.open("key").recover().unwrap();
        let found = look(&mut store);
        assert_eq!(found, Unbooked { is_recomputed: true, ..Unbooked::default() }, "{forged}");
        assert_eq!(next(&mut store), "first", "{forged}");
        assert_eq!(look(&mut store), Unbooked::default(), "{forged}");
        for title in ["first", "second", "third", "last"] {
            assert_eq!(next(&mut store), title, "{forged}");
            let id = id(&store, title);
            complete(&mut store, "run-1", &id);
        }
        assert_eq!(look(&mut sealed.open("key")), Unbooked::default(), "{forged}");
    }
}

#[test]
fn a_claim_that_another_program_has_made_up_is_taken_back() {
    let sealed = Sealed::new();
    let mut store = in_a_row(&sealed);
    sealed.forge("UPDATE tasks SET status = 1 WHERE seq = 1");
    assert_eq!(sealed.open("key").recover().unwrap(), 1);
    assert_eq!((look(&mut store), next(&mut store).as_str()), (Unbooked::default(), "first"));
}

#[test]
fn what_names_a_task_that_another_program_has_removed_is_taken_back() {
    let sealed = Sealed::new();
    let mut store = looked_at(&sealed);
    let (part, hard) = (id(&store, "part"), id(&store, "hard"));
    store.add_dependency(&part, &hard).unwrap();
    assert_eq!(look(&mut store), Unbooked::default());
    sealed.forge("PRAGMA foreign_keys = OFF; DELETE FROM tasks WHERE title IN ('group')");
    let found = look(&mut store);
    assert_eq!((found.missing, titles(&found.rewritten)), (1, vec![]));
    assert_eq!(store.task(&part).unwrap().parent_id, None);
    sealed.forge("PRAGMA foreign_keys = OFF; DELETE FROM tasks WHERE title IN ('part')");
    assert_eq!(look(&mut store).missing, 1);
    assert_eq!(next(&mut store), "hard");
    assert_eq!(look(&mut store), Unbooked::default());
}

#[test]
fn tasks_that_another_program_lets_wait_for_each_other_are_refused() {
    for circle in [
        "INSERT INTO dependencies VALUES (4, 1)",
        "INSERT INTO dependencies VALUES (2, 2)",
        "UPDATE tasks SET parent = CASE seq WHEN 1 THEN 2 ELSE 1 END WHERE seq < 3",
    ] {
        let sealed = Sealed::new();
        let mut store = in_a_row(&sealed);
        sealed.forge(circle);
        let error = store.reopen_unbooked("run-1").unwrap_err();
        assert!(matches!(&error, GraphError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("a cycle, ") && error.to_string().contains("deps rm"), "{error}");
    }
}

#[test]
fn values_that_no_ralph_writes_are_damage() {
    for forged in [
        "UPDATE tasks SET retry_count = -1",
        "UPDATE tasks SET verification = 700",
        "PRAGMA ignore_check_constraints = ON; UPDATE tasks SET status = 700",
    ] {
        let sealed = Sealed::new();
        let mut store = in_a_row(&sealed);
        sealed.forge(forged);
        let result = store.reopen_unbooked("run-1").and_then(|_| store.task(&id(&store, "first")));
        match result {
            Err(error) => assert!(matches!(error, GraphError::Damaged { .. }), "{forged}: {error}"),
            Ok(task) => assert_eq!(task.status, Status::Pending, "{forged}"),
        }
    }
}

#[test]
fn a_reset_seals_no_other_task() {
    let sealed = Sealed::new();
    let mut store = looked_at(&sealed);
    let changed = |store: &SqliteStore, change: &dyn Fn(&mut SqliteStore)| -> i64 {
        store
            .connection
            .execute_batch("CREATE TEMP TABLE before AS SELECT seq, seal FROM main.tasks")
            .unwrap();
        change(&mut sealed.open("key"));
        let changed =
            "SELECT count(*) FROM tasks JOIN temp.before USING (seq) WHERE tasks.seal IS NOT before.seal";
        let changed = store.connection.query_row(changed, [], |row| row.get(0)).unwrap();
        store.connection.execute_batch("DROP TABLE temp.before").unwrap();
        changed
    };
    let done = id(&store, "done");
    assert_eq!(changed(&store, &|store| drop(store.reset(&done).unwrap())), 1);
    complete(&mut store, "run-1", &done);
    assert_eq!(changed(&store, &|store| drop(store.reset(&done).unwrap())), 1);
    assert_eq!(look(&mut store), Unbooked::default());
}

#[test]
fn counts_of_reopenings_that_another_program_changes_leave_nothing_done_unseen() {
    for forged in
        ["DELETE FROM reopened", "UPDATE reopened SET times = 7", "INSERT INTO reopened VALUES (99, 1)"]
    {
        let sealed = Sealed::new();
        let mut store = looked_at(&sealed);
        let done = id(&store, "done");
        sealed.forge("CREATE TABLE kept AS SELECT * FROM tasks WHERE title = 'done'");
        store.reset(&done).unwrap();
        let hard = id(&store, "hard");
        complete(&mut store, "run-1", &hard);
        assert_eq!(look(&mut store), Unbooked::default());
        // The row in which it was done is restored, without what marks it as older.
        sealed.forge(&format!(
            "{forged}; DELETE FROM tasks WHERE title = 'done'; INSERT INTO tasks SELECT * FROM kept"
        ));
        let found = look(&mut store);
        let mut reopened = titles(&found.reopened);
        reopened.sort_unstable();
        assert_eq!(reopened, ["done", "hard"], "{forged}");
        assert_eq!(look(&mut store), Unbooked::default(), "{forged}");
        assert_eq!(look(&mut sealed.open("key")), Unbooked::default(), "{forged}");
    }
}

#[test]
fn groups_and_features_that_change_places_are_told() {
    let sealed = Sealed::new();
    let mut store = looked_at(&sealed);
    for (name, title) in [("big", "a hard one"), ("small", "a trivial one")] {
        store.put_feature(name, None, None).unwrap();
        store.add(&NewTask { feature: Some(name.into()), ..new_task(title) }).unwrap();
    }
    assert_eq!(look(&mut store), Unbooked::default());
    sealed.forge("UPDATE features SET name = CASE name WHEN 'big' THEN ' ' ELSE 'big' END");
    assert_eq!(titles(&look(&mut store).rewritten), ["a hard one", "a trivial one"]);
    sealed.forge(
        "PRAGMA foreign_keys = OFF; UPDATE tasks SET seq = -1 WHERE title = 'group';
        UPDATE tasks SET seq = 1 WHERE title = 'hard'; UPDATE tasks SET seq = 4 WHERE seq = -1;
        UPDATE tasks SET children = 1 WHERE seq = 1; UPDATE tasks SET children = 0 WHERE seq = 4",
    );
    assert_eq!(titles(&look(&mut store).rewritten), ["hard", "group"]);
}

#[test]
fn a_task_that_another_one_has_replaced_is_missing() {
    let sealed = Sealed::new();
    let mut store = looked_at(&sealed);
    let spare = store.add(&new_task("easy")).unwrap();
    let kept = sealed.folder.path().join("kept.db");
    let attach = format!("ATTACH '{}' AS kept", kept.display());
    sealed.forge(&format!("{attach}; CREATE TABLE kept.one AS SELECT * FROM tasks WHERE title = 'easy'"));
    store.delete(&spare, false).unwrap();
    assert_eq!(look(&mut store), Unbooked::default());
    sealed.forge(&format!(
        "{attach}; DELETE FROM tasks WHERE title = 'hard'; INSERT INTO tasks SELECT * FROM kept.one;
        INSERT INTO ready SELECT 0, priority, seq FROM kept.one"
    ));
    let found = look(&mut store);
    assert_eq!((found.missing, titles(&found.rewritten)), (1, vec![]));
    assert_eq!(look(&mut store), Unbooked::default());
}

#[test]
fn an_index_that_lacks_a_task_is_damaged() {
    let sealed = Sealed::new();
    let mut store = looked_at(&sealed);
    let index = |condition: &str| {
        format!(
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE INDEX tasks_parent ON tasks (parent) \
             WHERE parent IS NOT NULL{condition}' WHERE name = 'tasks_parent'"
        )
    };
    sealed.forge(&index(" AND title <> ''part''"));
    sealed.forge("REINDEX");
    sealed.forge(&index(""));
    let said = store.reopen_unbooked("run-1").unwrap_err().to_string();
    assert!(said.contains("taken rows out of one of its indexes"), "{said}");
}

#[test]
fn new_tasks_of_another_program_are_taken_as_they_are() {
    let sealed = Sealed::new();
    let mut store = looked_at(&sealed);
    SqliteStore::open(&sealed.path(), BUSY_TIMEOUT).unwrap().add(&new_task("without a key")).unwrap();
    assert_eq!(look(&mut store), Unbooked::default());
    sealed.forge("UPDATE tasks SET title = 'other' WHERE title = 'without a key'");
    assert_eq!(titles(&look(&mut store).rewritten), ["other"], "it is sealed since");
}

#[test]
fn a_graph_that_was_kept_without_a_key_is_sealed_by_the_first_run_with_one() {
    let sealed = Sealed::new();
    let mut store = SqliteStore::open(&sealed.path(), BUSY_TIMEOUT).unwrap();
    let [by_hand, forged] = ["by hand", "forged"].map(|title| store.add(&new_task(title)).unwrap());
    store.force_done(&by_hand, false).unwrap();
    store.force_done(&forged, false).unwrap();
    drop(store);
    sealed.forge("DELETE FROM task_logs WHERE task = 2");
    let mut store = sealed.open("key");
    let found = look(&mut store);
    assert_eq!(titles(&found.reopened), ["forged"]);
    assert_eq!(Unbooked { reopened: Vec::new(), ..found }, Unbooked { believed: 1, ..Unbooked::default() });
    // It is reported once only.
    sealed.forge("UPDATE tasks SET seal = NULL; UPDATE sealed SET seal = NULL");
    assert_eq!(titles(&look(&mut store).reopened), ["by hand"]);
}

#[test]
fn a_trigger_in_the_file_is_not_run() {
    let sealed = Sealed::new();
    let mut store = looked_at(&sealed);
    sealed.forge(
        "CREATE TRIGGER evil AFTER UPDATE ON tasks BEGIN
          UPDATE tasks SET work = 2, status = 2, done_by = '' WHERE title = 'hard';
        END;",
    );
    let mut other = sealed.open("key");
    let claim = other.claim(&Scope::All, &us("run-1"), LEASE).unwrap().unwrap();
    other.renew(&claim, LEASE).unwrap();
    other.release(&claim, "").unwrap();
    assert_eq!(look(&mut store), Unbooked::default());
    assert_eq!(store.counts(&Scope::All).unwrap().done, 1);
}

#[test]
fn what_another_key_has_sealed_stands_as_it_was_when_the_run_began() {
    let sealed = Sealed::new();
    drop(looked_at(&sealed));
    let mut moved = sealed.open("another key");
    // It was booked without a journal, so its traces alone do not fit.
    assert_eq!(titles(&look(&mut moved).reopened), ["done"]);
    assert_eq!(look(&mut moved), Unbooked::default());
    sealed.forge("UPDATE tasks SET title = 'easy' WHERE title = 'hard'");
    assert_eq!(titles(&look(&mut moved).rewritten), ["easy"]);
    // A seal of another key is not believed, but the two keys do not put each other in doubt for ever.
    let mut other = sealed.open("key");
    let part = id(&moved, "part");
    complete(&mut other, "run-2", &part);
    assert_eq!(titles(&look(&mut moved).reopened), ["part"]);
    complete(&mut moved, "run-1", &part);
    assert_eq!(look(&mut moved), Unbooked::default());
}

#[test]
fn what_was_kept_without_a_key_is_sealed_by_the_first_run_with_one() {
    let sealed = Sealed::new();
    SqliteStore::open(&sealed.path(), BUSY_TIMEOUT).unwrap().add(&new_task("old")).unwrap();
    let mut store = sealed.open("key");
    let seals = "SELECT count(seal) + (SELECT count(seal) FROM sealed) FROM tasks";
    assert_eq!(store.connection.query_row(seals, [], |row| row.get(0)), Ok(0), "opening it seals nothing");
    assert_eq!(look(&mut store), Unbooked::default());
    sealed.forge("UPDATE tasks SET title = 'easy'");
    assert_eq!(titles(&look(&mut store).rewritten), ["easy"]);
}

#[test]
fn a_verdict_that_was_not_booked_is_known_by_its_seal() {
    let sealed = Sealed::new();
    let mut store = sealed.open("key");
    let id = store.add(&new_task("task")).unwrap();
    let claim = store.claim(&Scope::All, &us("run-1"), LEASE).unwrap().unwrap();
    store.mark_unverified(&claim, Some("c0ffee")).unwrap();
    assert_eq!(store.verified_at(&id).unwrap(), None);
    sealed.forge("UPDATE tasks SET unverified = 2");
    assert_eq!(store.verified_at(&id).unwrap(), None);
    assert_eq!(look(&mut store), Unbooked::default());
    assert!(store.is_unverified(&id).unwrap());
    store.mark_verified(&claim, "c0ffee").unwrap();
    store.release(&claim, "").unwrap();
    assert_eq!(sealed.open("key").verified_at(&id).unwrap().as_deref(), Some("c0ffee"));
    assert_eq!(SqliteStore::open(&sealed.path(), BUSY_TIMEOUT).unwrap().verified_at(&id).unwrap(), None);
    store.reset(&id).unwrap();
    assert_eq!(store.verified_at(&id).unwrap(), None);
}

const FORGED: &str = "UPDATE tasks SET work = 2, status = 2, ready = 0, done_by = '' WHERE title = 'hard';
    INSERT INTO task_logs (task, message, at) SELECT seq, 'done, by hand', 0 FROM tasks WHERE title = 'hard';";

#[test]
fn a_version_that_was_set_back_seals_nothing_and_is_told() {
    const BACK: &str = "ALTER TABLE tasks DROP COLUMN seal; DROP TABLE sealed; PRAGMA user_version = 3;";
    let sealed = Sealed::new();
    let mut store = looked_at(&sealed);
    sealed.forge(&format!("{FORGED} {BACK}"));
    let said = |store: &mut SqliteStore| store.reopen_unbooked("run-1").unwrap_err();
    assert!(said(&mut store).to_string().contains("the version of its schema"), "{}", said(&mut store));
    // As an agent's `ralph task list` opens it.
    let error = sealed.try_open("key").unwrap_err();
    let left = "(version 3 of the schema, known is 9): it is left as it is";
    assert!(error.to_string().contains(left), "{error}");
    let seals = "SELECT count(*) FROM pragma_table_info('tasks') WHERE name = 'seal'";
    assert_eq!(store.connection.query_row(seals, [], |row| row.get(0)), Ok(0), "it is left as it is");
}

#[test]
fn a_changed_application_id_is_told_as_that() {
    let sealed = Sealed::new();
    let mut store = looked_at(&sealed);
    sealed.forge("PRAGMA application_id = 1;");
    let error = store.reopen_unbooked("run-1").unwrap_err();
    assert!(error.to_string().contains("has changed its application id (1)"), "{error}");
}

#[test]
fn a_schema_that_another_program_has_changed_is_told_as_that() {
    let sealed = Sealed::new();
    let mut store = looked_at(&sealed);
    sealed.forge("ALTER TABLE tasks DROP COLUMN seal");
    let error = store.reopen_unbooked("run-1").unwrap_err();
    assert!(matches!(&error, GraphError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("changed its schema (the definition of tasks)"), "{error}");
    let said = store.add(&new_task("late")).unwrap_err().to_string();
    assert!(said.contains("changed its schema (no such column"), "{said}");
}

#[test]
fn the_seal_of_another_graph_or_of_before_a_reset_is_none() {
    let seal = |store: &SqliteStore, title: &str| -> String {
        let seal = "SELECT quote(seal) FROM tasks WHERE title = ?1";
        store.connection.query_row(seal, [title], |row| row.get(0)).unwrap()
    };
    for is_later in [false, true] {
        let (sealed, other) = (Sealed::new(), Sealed::new());
        let mut store = looked_at(&sealed);
        let mut lines = String::new();
        store
            .export(&mut |line| {
                lines.push_str(line);
                lines.push('\n');
                true
            })
            .unwrap();
        let mut copy = other.open("key");
        take(&mut copy, &lines).unwrap();
        copy.force_done(&id(&store, "hard"), false).unwrap();
        assert_eq!(id(&copy, "hard"), id(&store, "hard"));
        let of_other = seal(&copy, "hard");
        sealed.forge(&format!("{FORGED} UPDATE tasks SET seal = {of_other} WHERE title = 'hard'"));
        if is_later {
            store = sealed.open("key");
        }
        assert_eq!(titles(&look(&mut store).reopened), ["hard"]);

        let before = seal(&store, "done");
        let done = id(&store, "done");
        if is_later {
            sealed.open("key").add(&NewTask { parent: Some(done), ..new_task("part of it") }).unwrap();
        } else {
            sealed.open("key").reset(&done).unwrap();
        }
        assert_eq!(look(&mut store), Unbooked::default(), "what we open again ourselves is no doubt");
        sealed.forge(&format!(
            "UPDATE tasks SET work = 2, status = 2, ready = 0, done_by = 'run-1', seal = {before} WHERE title = 'done'"
        ));
        if is_later {
            store = sealed.open("key");
        }
        assert_eq!(titles(&look(&mut store).reopened), ["done"]);
    }
}

#[test]
fn a_tally_that_another_program_has_changed_makes_no_traces_believed() {
    for tally in [
        "UPDATE sealed SET tasks = 7",
        "UPDATE sealed SET changes = 7",
        "UPDATE sealed SET reopenings = 7",
        // Another last byte than the one there is.
        "UPDATE sealed SET seal = CAST(substr(seal, 1, 35) || CASE substr(seal, 36) WHEN x'00' THEN x'01' ELSE x'00' END AS BLOB)",
        "UPDATE sealed SET graph = 'other'",
        "UPDATE sealed SET graph = NULL",
        "DELETE FROM sealed",
    ] {
        let sealed = Sealed::new();
        drop(looked_at(&sealed));
        sealed.forge(&format!("{FORGED} {tally}"));
        let mut store = sealed.open("key");
        let found = look(&mut store);
        assert!(titles(&found.reopened).contains(&"hard"), "{tally}");
        assert!(found.is_uncounted && found.believed == 0, "{tally}");
        assert_eq!(look(&mut store), Unbooked::default(), "{tally}");
        assert_eq!(look(&mut sealed.open("key")), Unbooked::default(), "{tally}");
    }
}

#[test]
fn two_runs_with_two_keys_do_not_share_a_graph() {
    let sealed = Sealed::new();
    let mut store = looked_at(&sealed);
    look(&mut sealed.open("another key"));
    let error = store.reopen_unbooked("run-1").unwrap_err().to_string();
    assert!(error.contains("a ralph with another key has begun a run over it"), "{error}");
}

#[test]
fn an_older_tally_is_not_put_back_unseen() {
    for is_reset in [false, true] {
        let sealed = Sealed::new();
        let mut store = looked_at(&sealed);
        sealed.forge("CREATE TABLE kept AS SELECT * FROM sealed");
        let mut other = sealed.open("key");
        if is_reset {
            other.reset(&id(&store, "done")).unwrap();
        } else {
            other.add(&new_task("harder")).unwrap();
        }
        assert_eq!(look(&mut store), Unbooked::default());
        sealed.forge(
            "DELETE FROM tasks WHERE title = 'harder'; DELETE FROM ready WHERE task NOT IN (SELECT seq FROM tasks);
            DELETE FROM sealed; INSERT INTO sealed SELECT * FROM kept",
        );
        let error = store.reopen_unbooked("run-1").unwrap_err();
        assert!(matches!(error, GraphError::Damaged { .. }), "{error}");
    }
}

#[test]
fn what_is_in_doubt_is_answered_by_every_store_until_a_run_that_reported_it_has_ended() {
    for (forged, rewritten, missing, is_uncounted) in [
        ("UPDATE tasks SET title = 'trivial' WHERE title = 'hard'", vec!["trivial"], 0, false),
        ("DELETE FROM tasks WHERE title = 'hard'", vec![], 1, false),
        ("UPDATE sealed SET tasks = 7", vec![], 0, true),
    ] {
        let sealed = Sealed::new();
        let mut store = looked_at(&sealed);
        let found = |store: &mut SqliteStore| {
            let found = store.reopen_unbooked("run-1").unwrap();
            (
                found.rewritten.iter().map(|task| task.title.clone()).collect::<Vec<_>>(),
                found.missing,
                found.is_uncounted,
            )
        };
        let doubt = (rewritten.into_iter().map(str::to_owned).collect::<Vec<_>>(), missing, is_uncounted);
        let nothing = (Vec::new(), 0, false);
        sealed.forge("CREATE TABLE kept AS SELECT * FROM sealed");
        sealed.forge(forged);
        assert_eq!(found(&mut store), doubt, "{forged}");
        assert_eq!(found(&mut store), nothing, "it was answered");
        // The run is killed.
        drop(store);
        for _ in 0..2 {
            assert_eq!(found(&mut sealed.open("key")), doubt, "{forged}");
        }
        // Removing the mark as well is detected.
        sealed.forge("UPDATE tasks SET doubted = 0; UPDATE sealed SET missing = 0, uncounted = 0");
        assert_ne!(found(&mut sealed.open("key")), nothing, "{forged}");
        let mut store = sealed.open("key");
        assert_ne!(found(&mut store), nothing, "{forged}");
        store.settle_doubts().unwrap();
        assert_eq!(found(&mut store), nothing, "{forged}");
        assert_eq!(found(&mut sealed.open("key")), nothing, "{forged}");
    }
}

#[test]
fn a_failure_that_another_program_has_written_is_opened_again() {
    for forged in [
        "UPDATE tasks SET work = 3, status = 4",
        "UPDATE tasks SET work = 3, status = 4, ready = 0, seal = NULL",
    ] {
        let sealed = Sealed::new();
        let mut store = looked_at(&sealed);
        let failed = id(&store, "part");
        store.force_fail(&failed, "too hard").unwrap();
        assert_eq!(look(&mut store), Unbooked::default(), "a person may");
        sealed.forge(&format!("{forged} WHERE title = 'hard'"));
        let found = look(&mut store);
        assert_eq!(titles(&found.given_up), ["hard"], "{forged}");
        assert_eq!(found.given_up[0].status, Status::Pending, "{forged}");
        assert!(!store.is_unverified(&found.given_up[0].id).unwrap(), "{forged}");
        assert_eq!(store.task(&failed).unwrap().status, Status::Failed, "{forged}");
        assert_eq!(look(&mut store), Unbooked::default(), "{forged}");
    }
}
