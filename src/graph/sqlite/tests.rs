use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use proptest::prelude::*;

use super::open::{APPLICATION_ID, MIGRATIONS};
use super::*;
use crate::graph::Verification;
use crate::graph::import;
use crate::graph::suite::{LEASE, TESTS, us};
use crate::graph::transitions::{self, Facts, Own};

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
    fs::write(at("text"), "no database\n".repeat(1000)).unwrap();
    symlink("text", at("link")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    for (name, what) in [
        (
            "ours",
            "was written by a newer ralph (version 99, known is 1): it is left as it is: use that ralph",
        ),
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
fn every_older_version_is_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    for from in 0..=MIGRATIONS.len() {
        let path = dir.path().join(format!("{from}.db"));
        let old = Connection::open(&path).unwrap();
        for step in &MIGRATIONS[..from] {
            old.execute_batch(step).unwrap();
        }
        if from > 0 {
            old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        }
        old.pragma_update(None, "user_version", i64::try_from(from).unwrap()).unwrap();
        drop(old);
        open(&path).unwrap().add(&new_task("a")).unwrap();
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
fn a_full_disk_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir.path().join("progress.db")).unwrap();
    store.add(&new_task("a")).unwrap();
    let pages: i64 = store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    // Answers the limit it has set.
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

fn take(store: &mut SqliteStore, text: &str) -> Result<Imported, GraphError> {
    store.import(&mut import::read(text.as_bytes(), &|_| true)?, false)
}

#[test]
fn an_import_is_whole_or_nothing_and_changes_nothing_twice() {
    let mut store = SqliteStore::nowhere().unwrap();
    let story =
        |id: &str, after: &str| format!(r#"{{"id":"{id}","title":"Story {id}","dependsOn":[{after}]}}"#);
    let prd =
        |stories: &[String]| format!("{{\"branchName\":\"b\",\"userStories\":[\n{}]}}", stories.join(",\n"));
    for (stories, what) in [
        (vec![story("A", ""), story("B", "\"C\"")], "line 3: no task 'C'"),
        (vec![story("A", ""), story("A", "")], "line 3: 'A' is there twice, first in line 2"),
        (vec![story("A", "\"B\""), story("B", "\"A\"")], "a cycle, Story A → Story B → Story A"),
        (vec![story("A", "\"A\"")], "a cycle, Story A → Story A"),
        (vec![story("A", ""), "{\"id\":\"B\"}".into()], "line 3: no prd.json: missing field `title`"),
    ] {
        let said = take(&mut store, &prd(&stories)).unwrap_err().to_string();
        assert!(said.contains(what), "{said}");
        assert!(derived(&store.connection).is_empty());
    }
    let good = prd(&[story("A", "\"B\""), story("B", "")]);
    assert_eq!(take(&mut store, &good).unwrap(), Imported { added: 2, updated: 0, unchanged: 0 });
    oracle(&store.connection);
    let before = derived(&store.connection);
    assert_eq!(take(&mut store, &good).unwrap(), Imported { added: 0, updated: 0, unchanged: 2 });
    assert_eq!(derived(&store.connection), before);

    let changed = good.replace("Story B\"", "Story C\",\"passes\":true,\"priority\":7");
    assert_eq!(take(&mut store, &changed).unwrap(), Imported { added: 0, updated: 1, unchanged: 1 });
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
    // What is done here stays done, and what is gone from the file stays.
    assert_eq!(take(&mut store, &good).unwrap().updated, 1);
    assert_eq!(take(&mut store, &prd(&[story("B", "")])).unwrap().unchanged, 1);
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
    // What another file calls them is known there, too.
    assert_eq!(take(&mut copy, "- [ ] a\n  - [x] b\n  - [ ] c\n- [ ] d\n").unwrap().unchanged, 4);
    assert_eq!(derived(&copy.connection), derived(&store.connection));
    assert_eq!(take(&mut copy, &text).unwrap(), Imported { added: 0, updated: 0, unchanged: 4 });
}

fn export(store: &SqliteStore) -> String {
    let mut lines = vec![import::header()];
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
        (task, ("\"done\"", "\"dune\""), "line 2: unknown variant `dune`"),
        (task, (":0,", ":1000001,"), "line 2: priority 1000001"),
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
                        assert_eq!(store.complete(&claim).unwrap(), Ended::Done);
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

/// What of a task is no consequence of anything.
struct Base {
    parent: Option<i64>,
    own: Own,
    claimed: bool,
}

/// Computes everything that follows from the graph anew, and compares it with what is kept.
fn oracle(graph: &Connection) {
    let mut bases = HashMap::new();
    let mut statement = graph.prepare("SELECT seq, parent, status, holder IS NOT NULL FROM tasks").unwrap();
    let rows = statement
        .query_map([], |row| {
            let own = Own::of(super::status(row.get(2)?));
            Ok((row.get::<_, i64>(0)?, Base { parent: row.get(1)?, own, claimed: row.get(3)? }))
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
        assert_eq!(super::status(row.get(1).unwrap()), status);
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
            own: base.own,
            held,
            children: i64::try_from(children).unwrap(),
            done: count(Status::Done),
            failed: count(Status::Failed),
        };
        // What is claimed stays among them.
        let is_ready = transitions::is_ready(transitions::status(&facts), facts.children, parent);
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

/// The state of a task and whether it is held, by the rules alone. Deeper than there are tasks, there is a circle.
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
        own: base.own,
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

/// Everything that follows from the graph, as it is kept.
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

/// What a random history is made of; numbers choose among what is there.
#[derive(Debug, Clone)]
enum Command {
    Add {
        parent: Option<usize>,
        after: Option<usize>,
        feature: Option<usize>,
        priority: i64,
    },
    Depend(usize, usize),
    Free(usize, usize),
    Claim {
        claimer: usize,
        below: Option<usize>,
        of_feature: bool,
        alive: bool,
    },
    Book {
        claimer: usize,
        how: usize,
    },
    Recover,
    ByHand {
        task: usize,
        how: usize,
    },
    Delete {
        task: usize,
        recursive: bool,
    },
    Prioritise(usize, i64),
    /// To a feature, or out of all of them.
    Move {
        task: usize,
        feature: usize,
    },
    DeleteFeature,
}

/// The features of a history: one that stays, and one that may go.
const FEATURES: [&str; 2] = ["stays", "goes"];

fn command() -> impl Strategy<Value = Command> {
    let any = 0..64_usize;
    let maybe = || proptest::option::of(0..64_usize);
    prop_oneof![
        6 => (maybe(), maybe(), proptest::option::of(0..2_usize), -2..3_i64)
            .prop_map(|(parent, after, feature, priority)| Command::Add { parent, after, feature, priority }),
        3 => (any.clone(), any.clone()).prop_map(|(a, b)| Command::Depend(a, b)),
        1 => (any.clone(), any.clone()).prop_map(|(a, b)| Command::Free(a, b)),
        5 => (0..3_usize, maybe(), proptest::bool::weighted(0.3), proptest::bool::weighted(0.9)).prop_map(
            |(claimer, below, of_feature, alive)| Command::Claim { claimer, below, of_feature, alive }),
        5 => (0..3_usize, 0..6_usize).prop_map(|(claimer, how)| Command::Book { claimer, how }),
        1 => Just(Command::Recover),
        3 => (any.clone(), 0..3_usize).prop_map(|(task, how)| Command::ByHand { task, how }),
        1 => (any.clone(), proptest::bool::ANY).prop_map(|(task, recursive)| Command::Delete { task, recursive }),
        1 => (any.clone(), -2..3_i64).prop_map(|(task, priority)| Command::Prioritise(task, priority)),
        1 => (any, 0..3_usize).prop_map(|(task, feature)| Command::Move { task, feature }),
        1 => Just(Command::DeleteFeature),
    ]
}

/// A graph with the claims that its claimers believe to have.
struct History {
    store: SqliteStore,
    ids: Vec<String>,
    claims: [Vec<Claim>; 3],
}

impl History {
    fn id(&self, number: usize) -> String {
        self.ids.get(number % self.ids.len().max(1)).cloned().unwrap_or_default()
    }

    fn all(&self, status: Status) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let selection = Selection { status: Some(status), ..Selection::default() };
        let mut each = |task: Task| all.insert(task.id);
        self.store.list(&selection, &mut each).unwrap();
        all
    }

    /// Does what is asked; that it may be refused is part of the history.
    fn run(&mut self, command: &Command) {
        let before = self.all(Status::Done);
        match *command {
            Command::Add { parent, after, feature, priority } => {
                let feature = feature.map(|at| FEATURES[at].to_owned());
                let (parent, after) = (parent.map(|at| self.id(at)), after.map(|at| self.id(at)));
                let max_retries = Some(1);
                let after = after.into_iter().collect();
                let task = NewTask { parent, after, feature, priority, max_retries, ..new_task("x") };
                self.ids.extend(self.store.add(&task).ok());
            }
            Command::Depend(a, b) => drop(self.store.add_dependency(&self.id(a), &self.id(b))),
            Command::Free(a, b) => drop(self.store.remove_dependency(&self.id(a), &self.id(b))),
            Command::Claim { claimer, below, of_feature, alive } => {
                let mut holder = us(&format!("run-{claimer}"));
                holder.process.start_ticks += u64::from(!alive);
                let scope = match below {
                    Some(_) if of_feature => Scope::Feature(FEATURES[0].into()),
                    Some(at) => Scope::Subtree(self.id(at)),
                    None => Scope::All,
                };
                self.claims[claimer].extend(self.store.claim(&scope, &holder, LEASE).ok().flatten());
            }
            Command::Book { claimer, how } => self.book(claimer, how),
            Command::Recover => drop(self.store.recover().unwrap()),
            Command::ByHand { task, how } => {
                let id = self.id(task);
                let _ = match how {
                    0 => self.store.force_done(&id, true),
                    1 => self.store.force_fail(&id, "x"),
                    _ => self.store.reset(&id),
                };
            }
            Command::Delete { task, recursive } => {
                let id = self.id(task);
                let _ = self.store.delete(&id, recursive);
                self.ids.retain(|id| self.store.task(id).is_ok());
            }
            Command::Prioritise(task, priority) => {
                let changes = Changes { priority: Some(priority), ..Changes::default() };
                let _ = self.store.update(&self.id(task), &changes);
            }
            Command::Move { task, feature } => {
                let feature = Some((*FEATURES.get(feature).unwrap_or(&"")).to_owned());
                let _ = self.store.update(&self.id(task), &Changes { feature, ..Changes::default() });
            }
            Command::DeleteFeature => drop(self.store.delete_feature(FEATURES[1])),
        }
        let may_reopen = matches!(command, Command::Add { .. } | Command::ByHand { how: 2, .. });
        let gone = |id: &String| !self.ids.contains(id);
        let after = self.all(Status::Done);
        assert!(may_reopen || before.iter().all(|id| after.contains(id) || gone(id)), "done stays done");
    }

    /// A claim is booked once: who has lost it changes nothing.
    fn book(&mut self, claimer: usize, how: usize) {
        let Some(claim) = self.claims[claimer].pop() else { return };
        let details = self.store.details(&claim.task).ok();
        let store = &mut self.store;
        let lost = match how {
            0 | 1 => store.complete(&claim).is_err(),
            2 => store.fail(&claim, "x").is_err(),
            3 => store.retry(&claim, "x").is_err(),
            4 => store.release(&claim, "x").is_err(),
            _ => store.renew(&claim, LEASE).is_err(),
        };
        if lost {
            assert_eq!(store.details(&claim.task).ok(), details);
        } else {
            let was = details.unwrap().task;
            assert_eq!((was.status, was.claimed_by), (Status::InProgress, Some(format!("run-{claimer}"))));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_history_breaks_the_rules(commands in proptest::collection::vec(command(), 1..80)) {
        let claims = [Vec::new(), Vec::new(), Vec::new()];
        let mut history = History { store: SqliteStore::nowhere().unwrap(), ids: Vec::new(), claims };
        for name in FEATURES {
            history.store.put_feature(name, Some("spec.md"), None).unwrap();
        }
        for command in &commands {
            history.run(command);
            oracle(&history.store.connection);
        }
        let graph = &history.store.connection;
        let before = derived(graph);
        rebuild::rebuild(graph).unwrap();
        prop_assert_eq!(derived(graph), before, "at once the same comes out");

        // Nothing is lost on the way to another database but claims, which are held by processes.
        for id in history.all(Status::InProgress) {
            history.store.reset(&id).unwrap();
        }
        let mut copy = SqliteStore::nowhere().unwrap();
        let text = export(&history.store);
        take(&mut copy, &text).unwrap();
        prop_assert_eq!(export(&copy), text);
        oracle(&copy.connection);
    }
}
