//! What a claim costs in graphs of a thousand and of a million tasks, compared with the update of a row by its key in the same
//! database, in alternating rounds; how long the import takes, and how much memory. Prints verdicts for `scripts/bench`; with
//! `--quick` it only shows that it runs.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use ralph::graph::sqlite::{BUSY_TIMEOUT, SqliteStore};
use ralph::graph::{Holder, Scope, Store, import};
use rusqlite::Connection;

/// So many tasks depend on each other and on nothing else.
const BLOCK: u64 = 100;
/// In each block the first is the whole, these are parts of it, and the others are parts of these.
const MIDDLES: u64 = 10;
/// So many claims, then so many updates.
const BATCH: u64 = 10;
const LEASE: Duration = Duration::from_mins(5);

fn main() -> ExitCode {
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
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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

/// Until somebody can read what is ready.
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

    /// A part waits for the two or three before it, so that there are more than two dependencies for each task.
    fn line(number: u64) -> String {
        let (block, place) = (number / BLOCK * BLOCK, number % BLOCK);
        let parent = match place {
            0 => None,
            middle if middle <= MIDDLES => Some(block),
            part => Some(block + 1 + part % MIDDLES),
        };
        let parent = parent.map_or("null".to_owned(), |parent| format!("\"{}\"", id(parent)));
        let mut blockers = String::new();
        for before in 1..=2 + number % 2 {
            if place > MIDDLES + before {
                let _ = write!(blockers, "{}\"{}\"", if before > 1 { "," } else { "" }, id(number - before));
            }
        }
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
