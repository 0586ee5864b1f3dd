//! Claims of real processes. No verb claims yet: the claimers are this test program, started again for one of its tests.

use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ralph::graph::sqlite::{BUSY_TIMEOUT, SqliteStore};
use ralph::graph::{Ended, Holder, HowDone, NewTask, Scope, Store as _};

use rusqlite::Connection;

use crate::scratch::Scratch;

/// The graph of a claimer that another test has started.
const GRAPH: &str = "RALPH_TEST_GRAPH";
/// It is to wait with its first claim until its stdin ends.
const WAITS: &str = "RALPH_TEST_WAITS";

#[test]
fn a_claimer_takes_what_there_is_and_finishes_it() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, most) = match env::var_os(GRAPH) {
        Some(graph) => (PathBuf::from(graph), usize::MAX),
        None => (folder.path().join("progress.db"), 3),
    };
    let mut store = SqliteStore::open(&graph, BUSY_TIMEOUT).unwrap();
    if most == 3 {
        add_tasks(&mut store, most);
    }
    let holder = Holder::of_self("run-of-a-test").unwrap();
    let mut count = 0;
    while let Some(claim) = store.claim(&Scope::All, &holder, Duration::from_mins(5)).unwrap() {
        println!("\nclaimed {}", claim.task);
        if env::var_os(WAITS).is_some() {
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        assert_eq!(store.complete(&claim, HowDone::default()).unwrap(), Ended::Done);
        count += 1;
    }
    assert!(count == most || most > 3, "{count}");
}

fn add_tasks(store: &mut SqliteStore, count: usize) {
    for number in 0..count {
        store.add(&NewTask { title: number.to_string(), ..NewTask::default() }).unwrap();
    }
}

fn claimer(graph: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "task_claims::a_claimer_takes_what_there_is_and_finishes_it", "--nocapture"]);
    command.env(GRAPH, graph).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The next id that it says to have claimed.
fn claimed(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Option<String> {
    lines.find_map(|line| Some(line.unwrap().strip_prefix("claimed ")?.to_owned()))
}

#[test]
fn eight_processes_share_the_work() {
    const TASKS: usize = 200;
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("progress.db");
    add_tasks(&mut SqliteStore::open(&graph, BUSY_TIMEOUT).unwrap(), TASKS);
    let claimers: Vec<Child> = (0..8).map(|_| claimer(&graph).spawn().unwrap()).collect();
    let mut all = Vec::new();
    for claimer in claimers {
        let output = claimer.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let mut lines = output.stdout.lines();
        all.extend(std::iter::from_fn(|| claimed(&mut lines)));
    }
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (TASKS, TASKS));
}

#[test]
fn what_a_killed_process_had_claimed_is_given_back_at_the_next_look() {
    let scratch = Scratch::new();
    let id = scratch.run("task add a").stdout.trim_end().to_owned();
    let mut child = claimer(&scratch.path(".ralph/progress.db")).env(WAITS, "1").spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(claimed(&mut lines).as_ref(), Some(&id));

    let show = || -> serde_json::Value {
        serde_json::from_str(&scratch.run(&format!("task show {id} --json")).stdout).unwrap()
    };
    assert_eq!(
        (show()["status"].as_str(), show()["claimed_by"].as_str()),
        (Some("in_progress"), Some("run-of-a-test"))
    );
    for (args, what) in
        [("done", "'ralph cancel' ends the run, --force"), ("delete", "'ralph cancel' ends the run")]
    {
        let run = scratch.run(&format!("task {args} {id}"));
        assert_eq!(run.code, Some(1));
        assert!(
            run.stderr.starts_with(&format!("error: {id} is in_progress, claimed by run-of-a-test: {what}")),
            "{run:?}"
        );
    }

    child.kill().unwrap();
    child.wait().unwrap();
    let writer = Connection::open(scratch.path(".ralph/progress.db")).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    for verb in ["task list", "task tree", "task graph", "task export", "feature list"] {
        let look = scratch.run(verb);
        assert_eq!((look.code, look.stderr.as_str()), (Some(0), ""), "{verb}: {look:?}");
        assert!(look.elapsed.as_secs() < 10, "who only looks waits for nobody: {look:?}");
    }
    drop(writer);
    let look = scratch.run("task list --ready");
    assert!(look.stdout.starts_with(&id), "{look:?}");
    assert_eq!(look.stderr, "1 task of runs that are gone can be claimed again\n");
    let shown = show();
    assert_eq!((shown["status"].as_str(), shown["claimed_by"].as_str()), (Some("pending"), None));
    assert_eq!(shown["log"][0]["message"], "released: run-of-a-test, which had claimed it, is gone");
    assert_eq!(shown["log"].as_array().unwrap().len(), 1, "once");
    assert_eq!(scratch.run(&format!("task done {id}")).code, Some(0));
}
