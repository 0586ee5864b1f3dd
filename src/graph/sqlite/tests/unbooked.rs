//! States that another program wrote into the database.

use super::*;
use crate::graph::JournalQuery;
use crate::memory::journal::{Became, JournalEntry};

fn entry(run: &str, task: &str) -> JournalEntry {
    JournalEntry {
        run_id: run.into(),
        iteration: 1,
        task_id: task.into(),
        title: "x".into(),
        feature: None,
        outcome: Became::Done,
        model: None,
        duration_secs: 1.0,
        cost_usd: None,
        input_tokens: 0,
        output_tokens: 0,
        files_modified: Vec::new(),
        notes: String::new(),
        reason: String::new(),
        created_at: Utc::now(),
    }
}

fn complete(store: &mut SqliteStore, run: &str, id: &str) {
    let claim = store.claim(&Scope::Subtree(id.into()), &us(run), LEASE).unwrap().unwrap();
    let done = HowDone { attempt: Some(&entry(run, id)), ..HowDone::default() };
    assert_eq!(store.complete(&claim, done).unwrap(), Ended::Done);
}

#[test]
fn what_is_done_is_in_the_journal_or_not_done() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    let mut store = open(&path).unwrap();
    let id = store.add(&new_task("task")).unwrap();
    let claim = store.claim(&Scope::All, &us("run-1"), LEASE).unwrap().unwrap();
    let sql = |sql: &str| Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    sql("ALTER TABLE journal RENAME TO kept");
    let attempt = entry("run-1", &id);
    let done = HowDone { attempt: Some(&attempt), ..HowDone::default() };
    assert!(store.complete(&claim, done).is_err());
    assert_eq!(store.task(&id).unwrap().status, Status::InProgress);
    sql("ALTER TABLE kept RENAME TO journal; PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = replace(sql, '\"journal\"', 'journal')");
    assert_eq!(store.complete(&claim, done).unwrap(), Ended::Done);
    drop(store);
    assert_eq!(open(&path).unwrap().reopen_unbooked("run-2").unwrap(), Unbooked::default());
}

#[test]
fn what_was_booked_stays_done() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    let (mut ours, mut others) = (open(&path).unwrap(), open(&path).unwrap());
    take(&mut ours, "- [x] ticked\n- [x] group\n  - [x] part\n").unwrap();
    let [mine, theirs, by_hand] =
        ["mine", "theirs", "by hand"].map(|title| ours.add(&new_task(title)).unwrap());
    complete(&mut ours, "run-1", &mine);
    complete(&mut others, "run-2", &theirs);
    others.force_done(&by_hand, false).unwrap();
    others.log(&by_hand, "what a person says").unwrap();
    assert_eq!(ours.reopen_unbooked("run-1").unwrap(), Unbooked::default());
    assert_eq!(ours.reopen_unbooked("run-1").unwrap(), Unbooked::default());
    let mut copy = SqliteStore::nowhere().unwrap();
    take(&mut copy, &export(&ours)).unwrap();
    assert_eq!(ours.counts(&Scope::All).unwrap(), copy.counts(&Scope::All).unwrap());
}

#[test]
fn an_unbooked_task_is_open_again_and_unverified() {
    const AS_BOOKED: &str = "work = 2, status = 2, ready = 0, done_by";
    const LOG: &str = "INSERT INTO task_logs (task, message, at) SELECT seq, 'done', 0 FROM tasks;";
    for forged in [
        "UPDATE tasks SET status = 2 WHERE title = 'hard';".to_owned(),
        "UPDATE tasks SET status = 2, ready = 0; DELETE FROM ready;".to_owned(),
        "UPDATE tasks SET work = 2 WHERE title = 'hard';".to_owned(),
        "UPDATE tasks SET work = 0, status = 2 WHERE title = 'hard';".to_owned(),
        format!("UPDATE tasks SET {AS_BOOKED} = '' WHERE title = 'hard';"),
        // Its own run has not booked that, and another run's journal does not have it.
        format!("UPDATE tasks SET {AS_BOOKED} = 'run-1' WHERE title = 'hard'; {LOG}"),
        format!("UPDATE tasks SET {AS_BOOKED} = 'run-2' WHERE title = 'hard'; {LOG}"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress.db");
        let mut store = open(&path).unwrap();
        let hard = store.add(&new_task("hard")).unwrap();
        let done = store.add(&new_task("done")).unwrap();
        complete(&mut store, "run-1", &done);
        assert_eq!(store.reopen_unbooked("run-1").unwrap(), Unbooked::default());
        let claim = store.claim(&Scope::All, &us("run-1"), LEASE).unwrap().unwrap();
        Connection::open(&path).unwrap().execute_batch(&forged).unwrap();
        let reopened = store.reopen_unbooked("run-1").unwrap().reopened;
        assert_eq!(reopened.iter().map(|task| &task.id).collect::<Vec<_>>(), [&hard], "{forged}");
        assert_eq!(store.task(&hard).unwrap().status, Status::Pending, "{forged}");
        assert!(store.is_unverified(&hard).unwrap());
        assert!(store.complete(&claim, HowDone::default()).is_err(), "the claim went with it: {forged}");
        oracle(&store.connection);
        complete(&mut store, "run-1", &hard);
        assert_eq!(store.reopen_unbooked("run-1").unwrap(), Unbooked::default());
        let mut entries = 0;
        let mut each = |_| {
            entries += 1;
            true
        };
        store.journal(&JournalQuery::default(), &mut each).unwrap();
        assert_eq!(entries, 2);
    }
}

#[test]
fn a_group_is_done_when_its_parts_are() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    let mut store = open(&path).unwrap();
    take(&mut store, "- [ ] group\n  - [ ] part\n- [ ] other\n").unwrap();
    let forged = "UPDATE tasks SET status = 2, done_children = children WHERE title = 'group'";
    Connection::open(&path).unwrap().execute_batch(forged).unwrap();
    let recomputed = Unbooked { is_recomputed: true, ..Unbooked::default() };
    assert_eq!(store.reopen_unbooked("run-1").unwrap(), recomputed);
    oracle(&store.connection);
}

#[test]
fn a_task_that_another_program_made_a_part_of_itself_is_an_error_and_no_endless_way() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    let mut store = open(&path).unwrap();
    let [a, b] = ["a", "b"].map(|title| store.add(&new_task(title)).unwrap());
    let circle = "UPDATE tasks SET parent = 3 - seq";
    Connection::open(&path).unwrap().execute_batch(circle).unwrap();
    let part = NewTask { parent: Some(a.clone()), ..new_task("part") };
    let errors = [
        store.unresolved(&Scope::All, 9).unwrap_err(),
        store.with_above(&a).unwrap_err(),
        store.add(&part).unwrap_err(),
        store.force_done(&b, true).unwrap_err(),
        store.delete(&b, true).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("a task is a part of itself"), "{error}");
    }
    for from in [None, Some(&*a)] {
        let mut shown = Vec::new();
        let mut show = |task: Task, place: TreePosition| {
            shown.push((task.id, place.depth));
            true
        };
        store.tree(from, &mut show).unwrap();
        assert_eq!(shown, [(a.clone(), 0), (b.clone(), 1)], "each once");
    }
    assert_eq!(store.counts(&Scope::Subtree(a)).unwrap().total, 2);
}
