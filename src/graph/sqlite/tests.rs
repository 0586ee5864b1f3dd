mod histories;
mod imports;
mod opening;
mod places;
mod sealed;
mod unbooked;

use std::collections::{BTreeSet, HashMap};

use super::*;
use crate::graph::sql;
use crate::graph::sql::settle::Work;
use crate::graph::suite::{LEASE, TESTS, us};
use crate::graph::transitions::{self, Facts};
use crate::graph::{
    Changes, Claim, Ended, HowDone, Imported, NewTask, Part, Scope, Selection, Status, Task, TreePosition,
    Verification, import,
};

#[test]
fn the_store_does_what_every_store_has_to() {
    for test in TESTS {
        test(&mut SqliteStore::nowhere().unwrap());
    }
}

fn open(path: &Path) -> Result<SqliteStore, GraphError> {
    SqliteStore::open(path, Duration::from_millis(50))
}

fn new_task(title: &str) -> NewTask {
    NewTask { title: title.into(), ..NewTask::default() }
}

fn take(store: &mut SqliteStore, text: &str) -> Result<Imported, GraphError> {
    store.import(&mut import::read(text.as_bytes(), &|_| true)?, false)
}

#[test]
fn an_import_is_whole_or_nothing_and_changes_nothing_twice() {
    let mut store = SqliteStore::nowhere().unwrap();
    let told =
        |id: &str, after: &str| format!(r#"{{"id":"{id}","title":"Story {id}","dependsOn":[{after}]}}"#);
    let prd =
        |stories: &[String]| format!("{{\"branchName\":\"b\",\"userStories\":[\n{}]}}", stories.join(",\n"));
    for (stories, what) in [
        (vec![told("A", ""), told("B", "\"C\"")], "line 3: no task 'C'"),
        (vec![told("A", ""), told("A", "")], "line 3: 'A' is there twice, first in line 2"),
        (
            vec![told("A", "\"B\""), told("B", "\"A\"")],
            "a cycle, Story A (line 2) → Story B (line 3) → Story A (line 2): leave",
        ),
        (vec![told("A", "\"A\"")], "a cycle, Story A (line 2) → Story A (line 2): leave"),
        (
            vec![told("A", ""), "{\"id\":\"B\"}".into()],
            "line 3, column 10: no prd.json: the key 'title' is missing",
        ),
    ] {
        let said = take(&mut store, &prd(&stories)).unwrap_err().to_string();
        assert!(said.contains(what), "{said}");
        assert!(derived(&store.connection).is_empty());
    }
    let good = prd(&[told("A", "\"B\""), told("B", "")]);
    assert_eq!(
        take(&mut store, &good).unwrap(),
        Imported { added: 2, updated: 0, unchanged: 0, left_deleted: 0 }
    );
    oracle(&store.connection);
    let before = derived(&store.connection);
    assert_eq!(
        take(&mut store, &good).unwrap(),
        Imported { added: 0, updated: 0, unchanged: 2, left_deleted: 0 }
    );
    assert_eq!(derived(&store.connection), before);

    let changed = good.replace("Story B\"", "Story C\",\"passes\":true,\"priority\":7");
    assert_eq!(
        take(&mut store, &changed).unwrap(),
        Imported { added: 0, updated: 1, unchanged: 1, left_deleted: 0 }
    );
    oracle(&store.connection);
    let ready = Selection { ready: true, ..Selection::default() };
    let mut titles = Vec::new();
    store
        .list(&ready, &mut |task| {
            titles.push(task.title);
            true
        })
        .unwrap();
    assert_eq!(titles, ["Story A"], "what it waited for is done");
    let a = store.claim(&Scope::All, &us("run-1"), LEASE).unwrap().unwrap();
    store.fail(&a, "x").unwrap();
    let ticked = changed.replace("Story A\"", "Story A\",\"passes\":true");
    assert_eq!(
        take(&mut store, &ticked).unwrap().updated,
        1,
        "what somebody has ticked is done, also after a failure"
    );
    assert_eq!(store.task(&a.task).unwrap().status, Status::Done);
    oracle(&store.connection);
    // A task that was done here stays done, and one that the file no longer has stays.
    assert_eq!(take(&mut store, &good).unwrap().updated, 1);
    assert_eq!(take(&mut store, &prd(&[told("B", "")])).unwrap().unchanged, 1);
    assert_eq!(derived(&store.connection).len(), 2);
    oracle(&store.connection);
}

#[test]
fn a_dry_run_only_tells() {
    let mut store = SqliteStore::nowhere().unwrap();
    let mut items = import::read("- [ ] a\n".as_bytes(), &|_| true).unwrap();
    assert_eq!(store.import(&mut items, true).unwrap().added, 1);
    assert!(derived(&store.connection).is_empty());
}

#[test]
fn what_is_exported_comes_back() {
    let mut store = SqliteStore::nowhere().unwrap();
    take(&mut store, "- [ ] a\n  - [x] b\n  - [ ] c\n- [ ] d\n").unwrap();
    let ids: Vec<String> = {
        let mut ids = Vec::new();
        store
            .list(&Selection::default(), &mut |task| {
                ids.push(task.id);
                true
            })
            .unwrap();
        ids
    };
    store.add_dependency(&ids[0], &ids[3]).unwrap();
    store.force_fail(&ids[2], "no way").unwrap();
    store.claim(&Scope::All, &us("run-1"), LEASE).unwrap();
    store.put_feature("empty", None, None).unwrap();
    store.put_feature("a b", Some("features/a b/spec.md"), Some("features/a b/plan.md")).unwrap();
    let feature = Changes { feature: Some("a b".into()), ..Changes::default() };
    store.update(&ids[3], &feature).unwrap();
    let text = export(&store);
    let mut copy = SqliteStore::nowhere().unwrap();
    assert_eq!(take(&mut copy, &text).unwrap().added, 4);
    assert_eq!(export(&copy), text);
    assert_eq!(copy.features().unwrap(), store.features().unwrap());
    // The ids in the other file are kept, too.
    assert_eq!(take(&mut copy, "- [ ] a\n  - [x] b\n  - [ ] c\n- [ ] d\n").unwrap().unchanged, 4);
    assert_eq!(derived(&copy.connection), derived(&store.connection));
    assert_eq!(
        take(&mut copy, &text).unwrap(),
        Imported { added: 0, updated: 0, unchanged: 4, left_deleted: 0 }
    );
}

fn export(store: &SqliteStore) -> String {
    let mut lines = Vec::new();
    let mut each = |line: &str| {
        lines.push(line.to_owned());
        true
    };
    store.export(&mut each).unwrap();
    lines.join("\n")
}

#[test]
fn an_export_of_elsewhere_is_looked_at() {
    let task = r#"{"id":"t-1234567","parent_id":null,"feature":null,"title":"a","status":"done","priority":0,"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z","retry_count":0,"max_retries":3,"verification_status":"passed"}"#;
    let feature = r#"{"id":"f-123456","name":"x","spec_path":"features/x/spec.md","plan_path":null,"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}"#;
    let mut store = SqliteStore::nowhere().unwrap();
    for (line, slip, what) in [
        (task, ("t-1234567", "t-12345"), "line 2: 't-12345' is no id"),
        (task, ("t-1234567", "t-12345G"), "line 2: 't-12345G' is no id"),
        (task, ("null,\"feature", "\"t-999999\",\"feature"), "line 2: no task 't-999999'"),
        (
            task,
            ("\"done\"", "\"dune\""),
            "line 2, column 77: no task of an export: 'status' is 'dune': there belongs one of",
        ),
        (task, (":0,", ":1000001,"), "line 2: priority 1000001"),
        (
            task,
            (
                "\"passed\"",
                "\"passed\",\"log\":[{\"message\":\"\\u001b\",\"timestamp\":\"2026-01-01T00:00:00Z\"}]",
            ),
            "line 2: a line of the log has a control character",
        ),
        (feature, ("\"x\"", "\"../x\""), "line 2: feature '../x'"),
        (feature, ("features/x/", "../../"), "line 2: '../../spec.md' is no path below"),
        (feature, ("f-123456", "x"), "line 2: 'x' is no id"),
    ] {
        assert!(line.contains(slip.0));
        let text = format!("{}\n{}\n", import::header(), line.replace(slip.0, slip.1));
        let said = take(&mut store, &text).unwrap_err().to_string();
        assert!(said.starts_with(what) && !said.contains('\n'), "{said}");
        assert_eq!(export(&store), import::header());
    }
    take(&mut store, &format!("{}\n{feature}\n{task}\n", import::header())).unwrap();
    let shown = store.task("t-1234567").unwrap();
    assert_eq!((shown.status, shown.verification_status), (Status::Done, Verification::Passed));
    assert_eq!(shown.updated_at, shown.created_at);
    assert_eq!(store.feature("x").unwrap().id, "f-123456");
    take(&mut store, &format!("{}\n{{\"id\":\"t-abcdef\",\"title\":\"by hand\"}}\n", import::header()))
        .unwrap();
    let by_hand = store.task("t-abcdef").unwrap();
    assert_eq!((by_hand.status, by_hand.max_retries), (Status::Pending, 3));
}

#[test]
fn a_whole_graph_is_one_state_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    let (mut store, mut other) = (open(&path).unwrap(), open(&path).unwrap());
    store.add(&new_task("a")).unwrap();
    let mut titles = Vec::new();
    let mut edges = 0;
    let mut each = |part: Part<'_>| {
        match part {
            Part::Task(task) => {
                titles.push(task.title.clone());
                other.add(&NewTask { after: vec![task.id.clone()], ..new_task("b") }).unwrap();
            }
            Part::Dependency { .. } => edges += 1,
        }
        true
    };
    store.graph(&mut each).unwrap();
    assert_eq!((titles, edges), (vec!["a".to_owned()], 0));
}

#[test]
fn eight_claimers_share_the_work() {
    const TASKS: usize = 400;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress.db");
    let mut store = SqliteStore::open(&path, BUSY_TIMEOUT).unwrap();
    for number in 0..TASKS {
        store.add(&new_task(&number.to_string())).unwrap();
    }
    let claimed: Vec<String> = std::thread::scope(|scope| {
        let claimers: Vec<_> = (0..8)
            .map(|number| {
                let path = &path;
                scope.spawn(move || {
                    let mut store = SqliteStore::open(path, BUSY_TIMEOUT).unwrap();
                    let (holder, mut mine) = (us(&format!("run-{number}")), Vec::new());
                    while let Some(claim) = store.claim(&Scope::All, &holder, LEASE).unwrap() {
                        mine.push(claim.task.clone());
                        assert_eq!(store.complete(&claim, HowDone::default()).unwrap(), Ended::Done);
                    }
                    mine
                })
            })
            .collect();
        claimers.into_iter().flat_map(|claimer| claimer.join().unwrap()).collect()
    });
    assert_eq!(claimed.len(), TASKS);
    assert_eq!(claimed.iter().collect::<BTreeSet<_>>().len(), TASKS);
    oracle(&store.connection);
}

/// The values of a task that are not derived.
struct Base {
    parent: Option<i64>,
    work: Work,
    claimed: bool,
}

/// Recomputes all derived values and compares them with the stored ones.
fn oracle(graph: &Connection) {
    let mut bases = HashMap::new();
    let mut statement = graph.prepare("SELECT seq, parent, work, holder IS NOT NULL FROM tasks").unwrap();
    let rows = statement
        .query_map([], |row| {
            let work = Work::of(row.get(2)?);
            Ok((row.get::<_, i64>(0)?, Base { parent: row.get(1)?, work, claimed: row.get(3)? }))
        })
        .unwrap();
    bases.extend(rows.map(Result::unwrap));
    let mut edges = graph.prepare("SELECT blocker, blocked FROM dependencies").unwrap();
    let edges = edges.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let edges: Vec<(i64, i64)> = edges.map(Result::unwrap).collect();

    let mut expected: HashMap<i64, (Status, bool)> = HashMap::new();
    for &seq in bases.keys() {
        settled(&bases, &edges, seq, &mut expected, 0);
    }
    let mut ready = BTreeSet::new();
    let query = "SELECT seq, status, held, ready, priority, feature, retry_count <= max_retries, run IS NOT NULL FROM tasks";
    let mut statement = graph.prepare(query).unwrap();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let seq: i64 = row.get(0).unwrap();
        let (status, held) = expected[&seq];
        assert_eq!(sql::status(row.get(1).unwrap()).unwrap(), status);
        assert_eq!(row.get::<_, bool>(2).unwrap(), held);
        let base = &bases[&seq];
        let children = bases.values().filter(|other| other.parent == Some(seq)).count();
        let parent = base.parent.map(|parent| expected[&parent].0);
        let count = |what: Status| {
            let all =
                bases.iter().filter(|(child, other)| other.parent == Some(seq) && expected[child].0 == what);
            i64::try_from(all.count()).unwrap()
        };
        let facts = Facts {
            claimed: false,
            has_work: base.work.0.is_some(),
            own: base.work.own(),
            held,
            children: i64::try_from(children).unwrap(),
            done: count(Status::Done),
            failed: count(Status::Failed),
        };
        // A claimed task stays in the list.
        let is_ready = transitions::is_ready(transitions::status(&facts), facts.open_parts(), parent);
        assert_eq!(
            transitions::own(&facts),
            base.work.own(),
            "what was done before an open part counts no more"
        );
        assert_eq!(row.get::<_, bool>(3).unwrap(), is_ready);
        assert!(row.get::<_, bool>(6).unwrap(), "too many retries");
        assert_eq!(row.get::<_, bool>(7).unwrap(), status == Status::InProgress);
        if is_ready {
            let priority: i64 = row.get(4).unwrap();
            ready.insert((0, priority, seq));
            ready.extend(row.get::<_, Option<i64>>(5).unwrap().map(|feature| (-feature, priority, seq)));
            let mut above = Some(seq);
            while let Some(parent) = above {
                ready.insert((parent, priority, seq));
                above = bases[&parent].parent;
            }
        }
    }
    let mut listed = graph.prepare("SELECT scope, priority, task FROM ready").unwrap();
    let listed = listed.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    assert_eq!(listed.map(Result::unwrap).collect::<BTreeSet<(i64, i64, i64)>>(), ready);
}

/// The state of a task and whether it is held, by the rules alone. A cycle if it is deeper than there are tasks.
fn settled(
    bases: &HashMap<i64, Base>,
    edges: &[(i64, i64)],
    seq: i64,
    known: &mut HashMap<i64, (Status, bool)>,
    depth: usize,
) -> Status {
    assert!(depth <= bases.len() * 2, "a circle");
    if let Some((status, _)) = known.get(&seq) {
        return *status;
    }
    let base = &bases[&seq];
    let held = is_held(bases, edges, seq, known, depth);
    let children: Vec<Status> = bases
        .iter()
        .filter(|(_, other)| other.parent == Some(seq))
        .map(|(&child, _)| settled(bases, edges, child, known, depth + 1))
        .collect();
    let count =
        |what: Status| i64::try_from(children.iter().filter(|&&child| child == what).count()).unwrap();
    let status = transitions::status(&Facts {
        claimed: base.claimed,
        has_work: base.work.0.is_some(),
        own: base.work.own(),
        held,
        children: i64::try_from(children.len()).unwrap(),
        done: count(Status::Done),
        failed: count(Status::Failed),
    });
    known.insert(seq, (status, held));
    status
}

fn is_held(
    bases: &HashMap<i64, Base>,
    edges: &[(i64, i64)],
    seq: i64,
    known: &mut HashMap<i64, (Status, bool)>,
    depth: usize,
) -> bool {
    assert!(depth <= bases.len() * 2, "a circle");
    let waits = edges
        .iter()
        .filter(|(_, blocked)| *blocked == seq)
        .any(|&(blocker, _)| settled(bases, edges, blocker, known, depth + 1) != Status::Done);
    waits || bases[&seq].parent.is_some_and(|parent| is_held(bases, edges, parent, known, depth + 1))
}

/// All derived values as stored.
fn derived(graph: &Connection) -> Vec<[i64; 8]> {
    let query =
        "SELECT seq, status, children, done_children, failed_children, open_blockers, held, ready FROM tasks";
    let mut statement = graph.prepare(query).unwrap();
    let rows = statement.query_map([], |row| {
        let mut all = [0; 8];
        for (at, value) in all.iter_mut().enumerate() {
            *value = row.get(at)?;
        }
        Ok(all)
    });
    rows.unwrap().map(Result::unwrap).collect()
}
