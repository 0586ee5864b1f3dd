//! Imports into a graph that has changed since the first import.

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
        // A changed title is no reason either.
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
fn a_long_circle_is_shown_in_a_line() {
    let ids: Vec<String> = (0..100_u32).map(|number| format!("t-{number:06x}")).collect();
    let line = |at: usize, after: &str| {
        format!("{{\"id\":\"{}\",\"title\":\"T{at}\",\"blockers\":[{after}]}}\n", ids[at])
    };
    let chain = |first: &str| -> String {
        let rest = (1..100).map(|at| line(at, &format!("\"{}\"", ids[at - 1])));
        format!("{}\n{}{}", import::header(), line(0, first), rest.collect::<String>())
    };
    let mut store = SqliteStore::nowhere().unwrap();
    let said = take(&mut store, &chain(&format!("\"{}\"", ids[99]))).unwrap_err().to_string();
    assert!(
        said.starts_with("a cycle, T") && said.contains(" → (89 more) → T") && said.contains(" (line "),
        "{said}"
    );
    take(&mut store, &chain("")).unwrap();
    let said = store.add_dependency(&ids[99], &ids[0]).unwrap_err().to_string();
    let path =
        "t-000000 → t-000001 → t-000002 → t-000003 → t-000004 → t-000005 → (89 more) → t-00005f → t-000060";
    assert!(said.contains(path) && said.contains("t-000063 → t-000000: leave"), "{said}");
}

#[test]
fn a_file_gives_nothing_new_to_wait_for_to_what_is_claimed_or_done() {
    let told = |id: &str, after: &str| format!(r#"{{"id":"{id}","title":"{id}","dependsOn":[{after}]}}"#);
    let prd = |after: &str| format!("{{\"userStories\":[\n{},\n{}]}}", told("A", ""), told("B", after));
    let mut store = SqliteStore::nowhere().unwrap();
    take(&mut store, &prd("")).unwrap();
    let b = ids(&store)["B"].clone();
    let claim = store.claim(&Scope::Subtree(b.clone()), &us("run-1"), LEASE).unwrap().unwrap();
    for state in ["in_progress", "done"] {
        let said = take(&mut store, &prd("\"A\"")).unwrap_err().to_string();
        assert_eq!(
            said,
            format!("line 3: {b} is {state} and cannot become blocked: 'ralph task reset' it first")
        );
        let _ = store.complete(&claim, HowDone::default());
    }
    store.reset(&b).unwrap();
    take(&mut store, &prd("\"A\"")).unwrap();
    store.force_done(&b, true).unwrap();
    assert_eq!(take(&mut store, &prd("\"A\"")).unwrap().unchanged, 2, "it waited for that before");
}

#[test]
fn a_tick_is_booked_and_an_export_takes_no_reset_back() {
    let mut store = SqliteStore::nowhere().unwrap();
    take(&mut store, "- [ ] a\n").unwrap();
    let id = ids(&store)["a"].clone();
    take(&mut store, "- [x] a\n").unwrap();
    assert_eq!(store.task(&id).unwrap().status, Status::Done);
    let log = store.logs(&id).unwrap();
    assert_eq!(log.iter().map(|line| line.message.as_str()).collect::<Vec<_>>(), ["done, by an import"]);
    let old = export(&store);
    store.reset(&id).unwrap();
    assert_eq!(take(&mut store, &old).unwrap().unchanged, 1);
    assert_eq!(store.task(&id).unwrap().status, Status::Pending);
    take(&mut store, "- [x] a\n").unwrap();
    assert_eq!(store.task(&id).unwrap().status, Status::Done, "whoever ticks it means it");
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

#[test]
fn what_only_moves_or_waits_is_updated_too() {
    let mut store = SqliteStore::nowhere().unwrap();
    let task = |id: &str, rest: &str| format!("{{\"id\":\"t-00000{id}\",\"title\":\"{id}\"{rest}}}\n");
    let mut imported = |rest: [&str; 3]| {
        let lines: String = ["1", "2", "3"].into_iter().zip(rest).map(|(id, rest)| task(id, rest)).collect();
        // Written as other JSON programs write it.
        let text = format!("{{ \"ralph_tasks\": 1 }}\n{lines}");
        let Imported { added, updated, unchanged, .. } = take(&mut store, &text).unwrap();
        (added, updated, unchanged)
    };
    assert_eq!(imported(["", "", ""]), (3, 0, 0));
    let moved = [r#","parent_id":"t-000002""#, "", r#","blockers":["t-000002"]"#];
    assert_eq!(imported(moved), (0, 2, 1));
    assert_eq!(imported(moved), (0, 0, 3));
}
