//! Displays of workers: status, lists, logs; and the prompt template.

use std::fs;
use std::process::Stdio;

use chrono::{DateTime, Local, Utc};
use ralph::engine::outcome::Status;
use serde_json::{Value, json};

use crate::scratch::{Scratch, finish, wait_for};
use crate::spawned::{STARTED, Workers};

/// The time this many minutes after the start, as users see it.
fn local(minutes: i64) -> String {
    let started: DateTime<Utc> = STARTED.parse().unwrap();
    (started + chrono::Duration::minutes(minutes))
        .with_timezone(&Local)
        .format("%Y-%m-%d %H:%M:%S")
        .to_string()
}

#[test]
fn a_worker_that_runs_has_its_block() {
    let workers = Workers::new();
    let window = workers.spawn("agent", "echo ready; read -r line");
    let monitor =
        workers.monitor("agent", |state| state.setup.done_pattern = Some("All tasks complete".into()));
    let block = format!(
        "Ralph Loop: agent\nStatus: running\nIteration: 7/10 (avg 5m12s/iter, ~16m remaining)\nStarted: {}\n\
         Current iteration started: {}\nConsecutive failures: 0\nTotal failures: 2\nInactivity timeout: 180s\n\
         Done pattern: All tasks complete\nExit reason: (none - still running)\nWorker status: running\n",
        local(0),
        local(60)
    );
    assert_eq!(workers.says("status agent"), block);
    monitor.end();
    let status = workers.says("status agent");
    assert!(
        status.starts_with("Ralph Loop: agent\nStatus: stopped\nIteration: 7/10 (avg 5m12s/iter)\n"),
        "{status}"
    );
    let end = "Exit reason: monitor_disconnected (worker still running)\nWorker status: running\n";
    assert!(status.ends_with(end), "{status}");
    workers.tmux.user(&["kill-pane", "-t", &window.pane]);
    workers.scratch().await_nothing_left();
    wait_for("the end of the wrapper", || {
        let status = workers.says("status agent");
        (status.contains("\nExit reason: monitor_disconnected\n")
            && status.ends_with("\nWorker status: stopped\n"))
        .then_some(())
    });
    assert_eq!(workers.run("status other").code, Some(1));
}

#[test]
fn a_worker_that_has_ended_has_its_block() {
    let workers = Workers::new();
    workers.book("agent", |state| {
        let at = |minutes| STARTED.parse::<DateTime<Utc>>().unwrap() + chrono::Duration::minutes(minutes);
        (state.active, state.status, state.exit_code) = (false, Status::Stopped, Some(0));
        state.exit_reason = Some("max_iterations".into());
        (state.tally.iteration, state.tally.in_attempt) = (10, false);
        state.tally.durations.sum = 0.0;
        (state.last_iteration_ended_at, state.ended_at) = (Some(at(300)), Some(at(300)));
    });
    let status = workers.says("status agent");
    let block = format!(
        "Exit reason: max_iterations\nStarted: {}\nLast iteration ended: {}\nTotal duration: 5h 0m\nWorker status: stopped\n",
        local(0),
        local(300)
    );
    assert!(status.starts_with("Ralph Loop: agent\nStatus: stopped\nIteration: 10/10"), "{status}");
    assert!(status.ends_with(&block), "{status}");
}

#[test]
fn lists_tell_of_workers() {
    let workers = Workers::new();
    let table = |args: &str| -> Vec<Vec<String>> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        workers.says(args).lines().map(words).collect()
    };
    assert_eq!(workers.says("ls"), "no loops on this machine\n");
    assert_eq!(workers.says("ls --format names"), "");
    let window = workers.spawn("agent", "read -r line");
    let _monitor = workers.monitor("agent", |_| {});
    workers.book("other", |state| {
        (state.active, state.status) = (false, Status::Failed);
        state.setup.worker.as_mut().unwrap().tags = vec!["day".into(), "night".into()];
    });
    let rows = table("ls");
    assert_eq!(rows[0][..5], ["NAME", "RALPH_STATUS", "WORKER_STATUS", "ITERATION", "FAILURES"]);
    let row = |name: &str| rows.iter().find(|row| row[0] == name).unwrap()[..5].to_vec();
    assert_eq!(row("agent"), ["agent", "running", "running", "7/10", "2"]);
    assert_eq!(row("other"), ["other", "failed", "stopped", "7/10", "2"]);
    assert_eq!(table("list"), rows);
    assert_eq!(table("list --format table"), rows);
    assert_eq!(workers.says("ls --format names --tag day"), "other\n");
    assert_eq!(workers.says("ls --format names --tag day --tag none"), "");
    assert_eq!(workers.says("ls --format names --status running"), "agent\n");
    assert_eq!(workers.run("ls --status nonsense").code, Some(1));

    let objects: Value =
        serde_json::from_str(&workers.says("ls --format json --tag night --status running")).unwrap();
    let [agent] = objects.as_array().unwrap().as_slice() else { panic!("{objects}") };
    let root = workers.scratch().root();
    for (key, value) in [
        ("name", json!("agent")),
        ("status", json!("running")),
        ("worker_status", json!("running")),
        ("cmd", json!(["agent"])),
        ("cwd", json!(root)),
        ("tags", json!(["night"])),
        ("tmux", json!({ "session": window.name, "window": window.name, "socket": "ralph" })),
        ("worktree", Value::Null),
        ("metadata", json!({ "ralph": true, "ralph_iteration": 7 })),
    ] {
        assert_eq!(agent[key], value, "{key}");
    }
    assert!(agent["started"].is_string() && agent["pid"].is_u64(), "{agent}");
    assert_eq!(workers.says("ls --json"), workers.says("ls --format json"));
}

#[test]
fn a_loop_that_is_no_worker_has_the_same_keys() {
    let scratch = Scratch::new();
    scratch.agent("claude", "exit 0");
    scratch.run("prompt p.md 1");
    let objects: Value = serde_json::from_str(&scratch.run("ls --json").stdout).unwrap();
    for key in ["cmd", "tmux", "worktree", "metadata", "worker_status"] {
        assert!(objects[0].as_object().unwrap()[key].is_null(), "{key}");
    }
    assert_eq!(objects[0]["tags"], json!([]));
    assert!(scratch.run("ls").stdout.starts_with("NAME    STATUS"), "there is no worker");
}

#[test]
fn logs_show_iterations_and_panes() {
    let workers = Workers::new();
    let window = workers.spawn("agent", "seq 100; while read -r line; do echo \"read: $line\"; done");
    workers.tmux.await_line(&window, "100");
    assert!(workers.refuses("logs agent").contains("no iteration log found for worker 'agent'"));
    assert!(workers.refuses("logs nobody").contains("no ralph state found for worker 'nobody'"));
    fs::write(workers.folder("agent").join("iterations.log"), "a\nb\nc\n").unwrap();
    assert_eq!(workers.says("logs agent --lines 2"), "b\nc\n");

    let logs = workers.folder("agent").join("logs");
    fs::create_dir_all(&logs).unwrap();
    fs::write(logs.join("1.log"), "of before\n").unwrap();
    let all = workers.says("logs agent --agent");
    assert!(all.starts_with("of before\n1\n2\n") && all.ends_with("\n100\n"), "{all}");
    assert_eq!(workers.says("logs agent --agent --lines 2"), "99\n100\n");
    assert!(workers.says("logs agent --agent --lines 101").starts_with("of before\n1\n"));

    let file = workers.scratch().outside().join("followed");
    let mut command = workers.scratch().ralph("logs agent --agent --live --lines 1");
    let following = command.stdout(fs::File::create(&file).unwrap()).stderr(Stdio::piped()).spawn().unwrap();
    let shown = || fs::read_to_string(&file).unwrap();
    wait_for("what is there", || (shown() == "100\n").then_some(()));
    for text in ["one", "two"] {
        workers.says(&format!("send agent {text}"));
        wait_for(text, || shown().contains(&format!("\nread: {text}\n")).then_some(()));
    }
    workers.says("kill agent");
    assert_eq!(finish(following).code, Some(0));
    assert_eq!(shown().matches("\nread: one\n").count(), 1, "{}", shown());
}

#[test]
fn the_prompt_to_begin_with_can_be_used_at_once() {
    let scratch = Scratch::new();
    let run = scratch.run("template");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(run.stdout.lines().last(), Some("<promise>COMPLETE</promise>"));
    assert!(!scratch.path("PROMPT.md").exists());
    let made = scratch.run("init PROMPT.md");
    assert_eq!((made.code, made.stdout.as_str()), (Some(0), "created PROMPT.md\n"), "{made:?}");
    assert_eq!(scratch.read("PROMPT.md"), run.stdout);
    let refused = scratch.run("init PROMPT.md");
    let said = "error: PROMPT.md already exists (use --force to overwrite)\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (Some(1), said));
    scratch.write("PROMPT.md", "mine");
    assert_eq!(scratch.run("init PROMPT.md --force").stdout, "created PROMPT.md (overwritten)\n");
    assert_eq!(scratch.read("PROMPT.md"), run.stdout);
}
