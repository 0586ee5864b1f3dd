//! What a claim costs in graphs of a thousand and of a million tasks, compared with the update of a row by its key in the same
//! database, in alternating rounds; how long the import takes, and how much memory. How long `ralph task import` takes, quiet and beside
//! another process in the same graph, compared with rows that SQL alone inserts. Prints verdicts for `scripts/bench`; with `--quick`
//! it only shows that it runs.

use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use ralph::graph::sqlite::{BUSY_TIMEOUT, SqliteStore};
use ralph::graph::{Holder, NewTask, Scope, Store, import};
use rusqlite::Connection;

/// So many tasks depend on each other and on nothing else.
const BLOCK: u64 = 100;
/// In each block the first is the whole, these are parts of it, and the others are parts of these.
const MIDDLES: u64 = 10;
/// So many claims, then so many updates.
const BATCH: u64 = 10;
const LEASE: Duration = Duration::from_mins(5);

/// The first argument of the process beside an import, then the path of the graph.
const BESIDE: &str = "--beside";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, beside, path] = &*arguments
        && beside == BESIDE
    {
        work_beside(Path::new(path));
    }
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let (sizes, rounds) = if quick { ([1_000, 2_000], BATCH) } else { ([1_000, 1_000_000], 500) };
    let mut good = true;
    let mut judge = |what: &str, value: f64, unit: &str, most: f64| {
        let fits = value <= most;
        let word = if quick {
            "-"
        } else if fits {
            "ok"
        } else {
            "MISSED"
        };
        println!("{word:7} {what:48} {value:.2} {unit} (at most {most})");
        good &= fits || quick;
    };
    let mut medians: Vec<[Duration; 3]> = Vec::new();
    for size in sizes {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
        let ralph_dir = folder.path().join(".ralph");
        std::fs::create_dir(&ralph_dir).expect("a folder");
        let path = ralph_dir.join("progress.db");
        let mut store = SqliteStore::open(&path, BUSY_TIMEOUT).expect("a new graph");
        let begun = Instant::now();
        let mut items = import::read(Graph::new(size), &|_| true).expect("a graph that can be read");
        let imported = store.import(&mut items, false).expect("a graph that can be imported");
        assert_eq!(imported.added as u64, size);
        judge(&format!("import of {size} tasks"), begun.elapsed().as_secs_f64(), "s", 60.0);
        judge("  memory, at its most", peak_memory(), "MB", 60.0);
        let first = median((0..5).map(|_| first_line(&ralph_dir)).collect());
        judge("  first line of 'task list --ready --all'", first.as_secs_f64() * 1e3, "ms", 50.0);
        let (claims, update) = claims(&mut store, &path, size, rounds);
        for (what, claim) in ["whole graph", "a feature", "a subtree"].into_iter().zip(claims) {
            let what = format!("  claim, {what}: {claim:.1?}, update {update:.1?}");
            judge(&what, claim.as_secs_f64() / update.as_secs_f64(), "times an update", 3.0);
        }
        let took = cycle(&mut store, &path, size);
        judge("  a cycle over all tasks is refused", took.as_secs_f64(), "s", 30.0);
        judge("  memory, at its most", peak_memory(), "MB", 60.0);
        medians.push(claims);
    }
    for (at, what) in ["whole graph", "a feature", "a subtree"].into_iter().enumerate() {
        let growth = medians[1][at].as_secs_f64() / medians[0][at].as_secs_f64();
        judge(&format!("claim in {} to {} tasks, {what}", sizes[1], sizes[0]), growth, "times", 2.0);
    }
    let size = if quick { 1_000 } else { 100_000 };
    let rows = rows_alone(size);
    for (what, is_beside) in [("quiet", false), ("beside claims", true)] {
        let took = import_by_verb(size, is_beside);
        judge(&format!("'task import' of {size} tasks, {what}"), took.as_secs_f64(), "s", 10.0);
        let what = format!("  the same, to rows by SQL alone ({rows:.1?})");
        judge(&what, took.as_secs_f64() / rows.as_secs_f64(), "times", 10.0);
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A new graph in a folder of its own.
fn new_graph() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let path = folder.path().join(".ralph/progress.db");
    std::fs::create_dir(folder.path().join(".ralph")).expect("a folder");
    let mut store = SqliteStore::open(&path, BUSY_TIMEOUT).expect("a new graph");
    store.add(&NewTask { title: "there before".into(), ..NewTask::default() }).expect("a task");
    (folder, path)
}

/// Until the rows of as many tasks and their dependencies are on the disk, by SQL alone.
fn rows_alone(size: u64) -> Duration {
    let (_folder, path) = new_graph();
    let mut plain = Connection::open(&path).expect("the same database");
    plain.execute_batch("PRAGMA synchronous = FULL; PRAGMA cache_size = -6144").expect("settings");
    let begun = Instant::now();
    let all = plain.transaction().expect("a transaction");
    let task = "INSERT INTO tasks (id, parent, title, created_at, updated_at) VALUES (?1, ?2, ?3, 0, 0)";
    let mut task = all.prepare(task).expect("SQL");
    let wait = "INSERT INTO dependencies (blocker, blocked) VALUES (?1, ?2)";
    let mut wait = all.prepare(wait).expect("SQL");
    for number in 0..size {
        let seq = |number: u64| number + 2;
        let parent = Graph::parent(number).map(seq);
        task.execute((id(number), parent, format!("Task number {number} of many"))).expect("a row");
        for before in Graph::blockers(number) {
            wait.execute([seq(before), seq(number)]).expect("a row");
        }
    }
    drop((task, wait));
    all.commit().expect("a commit");
    begun.elapsed()
}

/// Until `ralph task import` has taken in so many tasks, with seals.
fn import_by_verb(size: u64, is_beside: bool) -> Duration {
    let (folder, path) = new_graph();
    let file = folder.path().join("tasks.jsonl");
    io::copy(&mut Graph::new(size), &mut std::fs::File::create(&file).expect("a file")).expect("an export");
    let beside = is_beside.then(|| {
        let this = std::env::current_exe().expect("this program");
        let mut child =
            Command::new(this).arg(BESIDE).arg(&path).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("its first claim");
        Beside(child)
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
    command.args(["task", "import", "tasks.jsonl", "--ralph-dir", ".ralph"]).current_dir(folder.path());
    command.env("XDG_STATE_HOME", folder.path().join("state")).stdout(Stdio::null());
    let begun = Instant::now();
    assert!(command.status().expect("ralph starts").success());
    let took = begun.elapsed();
    drop(beside);
    let store = SqliteStore::open(&path, BUSY_TIMEOUT).expect("the graph");
    assert_eq!(store.counts(&Scope::All).expect("counts").total, size + 1);
    took
}

/// Claims, releases and counts for ever. Says so once, after the first claim.
fn work_beside(path: &Path) -> ! {
    let mut store = SqliteStore::open(path, BUSY_TIMEOUT).expect("the graph");
    let holder = Holder::of_self("run-beside").expect("we are alive");
    let mut is_first = true;
    loop {
        let claim = store.claim(&Scope::All, &holder, LEASE).expect("a claim").expect("something is ready");
        store.release(&claim, "bench").expect("a release");
        store.counts(&Scope::All).expect("counts");
        if std::mem::take(&mut is_first) {
            println!("claimed");
        }
    }
}

/// A process that ends with this.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Medians of claims in each scope, and of updates by key.
fn claims(store: &mut SqliteStore, path: &Path, size: u64, rounds: u64) -> ([Duration; 3], Duration) {
    let holder = Holder::of_self("run-bench").expect("we are alive");
    let plain = Connection::open(path).expect("the same database");
    plain.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -6144").expect("settings");
    let mut update =
        plain.prepare("UPDATE tasks SET updated_at = updated_at + 1 WHERE seq = ?1").expect("SQL");
    let (mut times, mut updates): ([Vec<Duration>; 3], Vec<Duration>) = Default::default();
    for round in 0..rounds / BATCH {
        let far = round * 7919 % (size / BLOCK);
        let scopes = [Scope::All, Scope::Feature(format!("f{}", far % 10)), Scope::Subtree(id(far * BLOCK))];
        for (scope, times) in scopes.iter().zip(&mut times) {
            // What another connection has written has to be read again: each of them gets a few turns.
            for _ in 0..BATCH {
                let begun = Instant::now();
                let claim = store.claim(scope, &holder, LEASE).expect("a claim").expect("something is ready");
                times.push(begun.elapsed());
                store.release(&claim, "bench").expect("a release");
            }
            for turn in 0..BATCH {
                let begun = Instant::now();
                update.execute([(round * BATCH + turn) * 104_729 % size + 1]).expect("an update");
                updates.push(begun.elapsed());
            }
        }
    }
    (times.map(median), median(updates))
}

/// Until a dependency of the first task on the last is refused, where every block waits for the one before.
fn cycle(store: &mut SqliteStore, path: &Path, size: u64) -> Duration {
    let plain = Connection::open(path).expect("the same database");
    let wait =
        "INSERT INTO dependencies SELECT seq, seq + ?1 FROM tasks WHERE seq % ?1 = 1 AND seq + ?1 <= ?2";
    plain.execute(wait, [BLOCK, size]).expect("SQL");
    let begun = Instant::now();
    let refused = store.add_dependency(&id(size - BLOCK), &id(0)).expect_err("a cycle");
    let took = begun.elapsed();
    assert!(refused.to_string().contains("that is a cycle"), "{refused}");
    took
}

/// Until the ready tasks can be read.
fn first_line(ralph_dir: &Path) -> Duration {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
    command.args(["task", "list", "--ready", "--all", "--ralph-dir"]).arg(ralph_dir).stdout(Stdio::piped());
    let begun = Instant::now();
    let mut child = command.spawn().expect("ralph starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let took = begun.elapsed();
    let _ = child.wait();
    assert!(line.starts_with("t-"), "{line}");
    took
}

fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(f64::INFINITY) / 1024.0
}

fn id(number: u64) -> String {
    format!("t-{number:06x}")
}

/// An export of a graph, made while it is read.
struct Graph {
    size: u64,
    next: u64,
    open: io::Cursor<Vec<u8>>,
}

impl Graph {
    fn new(size: u64) -> Self {
        Self { size, next: 0, open: io::Cursor::new((import::header() + "\n").into_bytes()) }
    }

    fn parent(number: u64) -> Option<u64> {
        let (block, place) = (number / BLOCK * BLOCK, number % BLOCK);
        match place {
            0 => None,
            middle if middle <= MIDDLES => Some(block),
            part => Some(block + 1 + part % MIDDLES),
        }
    }

    /// A part waits for the two or three before it, so that there are more than two dependencies for each task.
    fn blockers(number: u64) -> impl Iterator<Item = u64> {
        let before = (1..=2 + number % 2).filter(move |before| number % BLOCK > MIDDLES + before);
        before.map(move |before| number - before)
    }

    fn line(number: u64) -> String {
        let parent = Self::parent(number).map_or("null".to_owned(), |parent| format!("\"{}\"", id(parent)));
        let blockers: Vec<String> =
            Self::blockers(number).map(|before| format!("\"{}\"", id(before))).collect();
        let blockers = blockers.join(",");
        format!(
            "{{\"id\":\"{}\",\"parent_id\":{parent},\"feature\":\"f{}\",\"title\":\"Task number {number} of many\",\"status\":\"pending\",\"priority\":0,\"created_at\":\"2026-01-01T00:00:00Z\",\"updated_at\":\"2026-01-01T00:00:00Z\",\"retry_count\":0,\"max_retries\":3,\"blockers\":[{blockers}]}}\n",
            id(number),
            number / BLOCK % 10
        )
    }
}

impl Read for Graph {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.open.position() == self.open.get_ref().len() as u64 && self.next < self.size {
            self.open = io::Cursor::new(Self::line(self.next).into_bytes());
            self.next += 1;
        }
        self.open.read(buffer)
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
