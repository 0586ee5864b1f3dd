//! What a file may change in a graph that goes on living meanwhile.

use super::*;

/// The ids of all tasks by their titles.
fn ids(store: &SqliteStore) -> HashMap<String, String> {
    let mut ids = HashMap::new();
    let mut each = |task: Task| ids.insert(task.title, task.id).is_none();
    store.list(&Selection::default(), &mut each).unwrap();
    ids
}

#[test]
fn a_file_that_says_nothing_of_a_description_leaves_it() {
    let by_hand = format!("{}\n{{\"id\":\"t-abcdef\",\"title\":\"a\"}}\n", import::header());
    let plan = "## Branch: b\nGoal: The goal\n- [ ] a\n";
    let prd = r#"{"userStories":[{"id":"1","title":"a"}]}"#;
    let beads = "{\"id\":\"bd-1\",\"title\":\"a\",\"status\":\"open\"}\n";
    for text in ["- [ ] a\n", plan, prd, beads, &by_hand] {
        let mut store = SqliteStore::nowhere().unwrap();
        take(&mut store, text).unwrap();
        let id = &ids(&store)["a"];
        let changes = Changes { description: Some("By hand".into()), ..Changes::default() };
        store.update(id, &changes).unwrap();
        assert_eq!(take(&mut store, text).unwrap().updated, 0, "{text}");
        // Another title alone is no reason either.
        take(&mut store, &text.replace("\"a\"", "\"b\"")).unwrap();
        assert_eq!(store.task(id).unwrap().description, "By hand", "{text}");
        let whole = export(&store).replace("By hand", "");
        take(&mut store, &whole).unwrap();
        assert_eq!(store.task(id).unwrap().description, "", "an export says that there is none");
    }
}

#[test]
fn others_write_while_an_import_still_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    let (mut store, mut other) = (open(&path).unwrap(), open(&path).unwrap());
    let mut entries = import::read("- [ ] a\n- [ ] b\n".as_bytes(), &|_| true).unwrap();
    let mut slow = std::iter::from_fn(|| {
        other.add(&new_task("meanwhile")).unwrap();
        entries.next()
    });
    assert_eq!(store.import(&mut slow, false).unwrap().added, 2);
    assert_eq!(derived(&store.connection).len(), 5);
    assert!(store.has_place() && !SqliteStore::nowhere().unwrap().has_place());
}

#[test]
fn what_another_file_calls_a_task_is_no_number_of_one() {
    let mut store = SqliteStore::nowhere().unwrap();
    let lines = [
        r#"{"id":"t-aaaaaa","title":"a","origin":"2"}"#,
        r#"{"id":"t-bbbbbb","title":"b","origin":"1","blockers":["t-aaaaaa","t-aaaaaa"]}"#,
        r#"{"id":"t-cccccc","title":"c","parent_id":"t-aaaaaa"}"#,
    ];
    take(&mut store, &format!("{}\n{}\n", import::header(), lines.join("\n"))).unwrap();
    assert_eq!(store.details("t-bbbbbb").unwrap().blockers, ["t-aaaaaa"]);
    assert_eq!(store.details("t-aaaaaa").unwrap().children, ["t-cccccc"]);
    oracle(&store.connection);
}
