//! The fold over logs, including torn and foreign ones.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::engine::fact::TaskCounts;
use crate::tell::words::KILLED;

/// A run with one loop, by its events log.
struct Run {
    folder: TempDir,
    lines: String,
}

fn line(seconds: u32, event: &str, own: &Value) -> String {
    let at = format!("2026-01-31T10:{:02}:{:02}.000+00:00", seconds / 60, seconds % 60);
    let common =
        json!({ "agent": "claude", "at": at, "loop": "build", "mode": "build", "run": "r-1", "v": 1 });
    let (common, own) = (common.to_string(), own.to_string().replacen('{', ",", 1));
    let own = if own == ",}" { "}".to_owned() } else { own };
    format!("{},\"event\":\"{event}\"{own}\n", &common[..common.len() - 1])
}

impl Run {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), lines: String::new() }.add(
            0,
            "loop_started",
            &json!({ "max_iterations": 9, "max_retries": 3, "project": "/p" }),
        )
    }

    fn add(mut self, seconds: u32, event: &str, own: &Value) -> Self {
        self.lines += &line(seconds, event, own);
        self
    }

    fn raw(mut self, text: &str) -> Self {
        self.lines += text;
        self
    }

    fn begin(self, seconds: u32, iteration: u64, retry: u32, head: &str) -> Self {
        self.add(seconds, "attempt_started", &json!({ "head": head, "iteration": iteration, "retry": retry }))
    }

    fn end(self, seconds: u32, status: &str, failure: Option<&str>, head: &str) -> Self {
        let failure = failure.map(|message| json!({ "class": "other", "kind": "exit", "message": message }));
        let usage = json!({ "cost_usd": 0.5, "input_tokens": 100, "output_tokens": 10, "model": null, "session_id": null });
        let ended = json!({
            "balance": null, "changed": null, "complete": false, "duration_s": 10.0, "exit_code": 0, "failure": failure,
            "head": head, "iteration": 1, "replan": false, "retry": 0, "signal": null, "skipped_lines": 0,
            "status": status, "usage": usage,
        });
        self.add(seconds, "attempt_ended", &ended)
    }

    fn over(self, seconds: u32, end: &str, reason: &str, code: u8, detail: Option<&str>) -> Self {
        let ended = json!({
            "attempts": 1, "cost_usd": 0.5, "detail": detail, "duration_s": f64::from(seconds), "end": end,
            "exit_code": code, "exit_reason": reason, "failed": 0, "failed_iterations": 0, "input_tokens": 0,
            "iterations": 1, "output_tokens": 0, "status": "stopped", "succeeded": 1,
        });
        self.add(seconds, "loop_ended", &ended)
    }

    /// The report and its folder.
    fn read(self) -> (RunReport, TempDir) {
        fs::write(self.folder.path().join("session-1.events.jsonl"), self.lines).unwrap();
        (RunReport::read(self.folder.path()).unwrap(), self.folder)
    }

    fn report(self) -> LoopReport {
        self.read().0.loops.remove(0)
    }
}

#[test]
fn a_loop_is_what_its_lines_tell() {
    let report = Run::new()
        .begin(1, 1, 0, "a")
        .add(2, "agent_known", &json!({ "model": "opus", "session_id": null }))
        .add(3, "tool", &json!({ "input": "x", "name": "bash" }))
        .add(3, "tool", &json!({ "input": "y", "name": "bash" }))
        .add(4, "text_delta", &json!({ "text": "It is " }))
        .add(4, "text_delta", &json!({ "text": "built.\n" }))
        .end(11, "success", None, "b")
        .add(12, "validated", &json!({ "ok": true, "output": "1 passed\n" }))
        .over(13, "done", "complete", 0, None)
        .report();
    assert_eq!((&*report.name, &*report.end, report.model.as_deref()), ("build", "done", Some("opus")));
    assert_eq!((report.iterations, report.attempts, report.failed_attempts), (1, 1, 0));
    assert_eq!((report.cost_usd, report.input_tokens, report.output_tokens), (Some(0.5), 100, 10));
    assert_eq!(report.tools, BTreeMap::from([("bash".to_owned(), 2)]));
    assert_eq!((report.reason, report.unreadable_lines), (None, 0));
    let work = report.work.unwrap();
    assert_eq!((work.from.as_deref(), &*work.to, work.commits), (Some("a"), "b", None));
    let iteration = &report.iteration_list[0];
    let attempt = &iteration.attempts[0];
    assert_eq!((attempt.said.as_deref(), attempt.tool_calls), (Some("It is built."), 2));
    assert_eq!(
        iteration.validation,
        Some(ValidationReport { by: None, ok: true, undecided: false, output: "1 passed".to_owned() })
    );
}

#[test]
fn what_was_said_before_a_tool_was_called_is_not_the_last_word() {
    let report = Run::new()
        .begin(1, 1, 0, "a")
        .add(2, "text", &json!({ "text": "I begin." }))
        .add(3, "tool", &json!({ "input": "x", "name": "bash" }))
        .end(4, "success", None, "a")
        .begin(5, 2, 0, "a")
        .add(6, "text", &json!({ "text": format!("begin{}", "é".repeat(5_000)) }))
        .end(7, "success", None, "a")
        .report();
    assert_eq!(report.iteration_list[0].attempts[0].said, None);
    let said = report.iteration_list[1].attempts[0].said.as_deref().unwrap();
    assert!(said.starts_with("…é") && said.chars().count() == 2_001, "{said}");
    assert_eq!(report.work, None, "HEAD is what it was");
}

#[test]
fn retries_belong_to_their_iteration_and_the_last_failure_is_the_reason() {
    let report = Run::new()
        .begin(1, 1, 0, "a")
        .end(2, "agent-failure", Some("first"), "a")
        .add(3, "retrying", &json!({ "max_retries": 3, "pause_s": 1.0, "reason": "x", "retry": 1 }))
        .begin(4, 1, 1, "a")
        .end(5, "timeout", Some("second\nline"), "a")
        .over(6, "failed", "failed", 4, None)
        .report();
    assert_eq!((report.iterations, report.attempts, report.failed_attempts), (1, 2, 2));
    let retries: Vec<u32> = report.iteration_list[0].attempts.iter().map(|one| one.retry).collect();
    assert_eq!(retries, [0, 1]);
    assert_eq!(report.reason.as_deref(), Some("second line"));
}

#[test]
fn an_outage_that_is_waited_for_is_no_failure() {
    let mut run = Run::new().begin(1, 1, 0, "a").end(2, "agent-failure", Some("overloaded"), "a");
    run.lines = run.lines.replace("\"usage\"", "\"waited_for\":true,\"usage\"");
    assert_eq!(run.report().failed_attempts, 0);
}

#[test]
fn a_limit_is_a_wait_and_no_failure() {
    let until = "2026-01-31T10:05:00+00:00";
    let report = Run::new()
        .begin(1, 1, 0, "a")
        .end(2, "usage-limit", Some("limit"), "a")
        .add(3, "waiting", &json!({ "reason": "usage_limit", "until": until }))
        .begin(60, 1, 0, "a")
        .end(70, "success", None, "a")
        .add(71, "paused", &json!({}))
        .add(80, "resumed", &json!({}))
        .add(81, "queued", &json!({}))
        .add(82, "waiting", &json!({ "reason": "a word of later", "until": until }))
        .report();
    assert_eq!(report.failed_attempts, 0);
    let waits: Vec<(&str, i64, bool)> = report
        .waits
        .iter()
        .map(|wait| {
            (&*wait.what, (wait.to.unwrap_or(wait.from) - wait.from).num_seconds(), wait.until.is_some())
        })
        .collect();
    assert_eq!(
        waits,
        [("usage_limit", 57, true), ("paused", 9, false), ("queued", 0, false), ("a word of later", 0, true)]
    );
}

#[test]
fn a_loop_without_its_end_was_killed() {
    let killed =
        Run::new().begin(1, 1, 0, "a").end(20, "agent-failure", Some("why"), "b").begin(30, 2, 0, "b");
    let report = killed.report();
    assert_eq!((&*report.end, report.exit_code, report.exit_reason), ("killed", None, None));
    assert!((report.duration_s - 30.0).abs() < 1e-9, "{}", report.duration_s);
    assert_eq!(report.reason.as_deref(), Some(KILLED));
    assert_eq!(report.work.map(|work| work.to).as_deref(), Some("b"));
    assert_eq!(report.iteration_list[1].attempts[0].status, None);
}

#[test]
fn an_unproven_end_quotes_the_validation() {
    let report = Run::new()
        .begin(1, 1, 0, "a")
        .end(2, "complete-unproven", None, "a")
        .add(3, "validated", &json!({ "ok": false, "output": "a\n\nb\nc\nd\n" }))
        .over(4, "unproven", "complete_unproven", 4, None)
        .report();
    assert_eq!(report.reason.as_deref(), Some("a b c d"));
}

#[test]
fn tasks_are_told_in_the_order_in_which_they_were_met() {
    let task = |id: &str| json!({ "feature": null, "id": id, "model": null, "title": format!("Title {id}") });
    let tasks = |done: u64| json!({ "done": done, "failed": 0, "total": 2 });
    let started = |id: &str, done| json!({ "task": task(id), "tasks": tasks(done), "verifies": false });
    let ended = |id: &str, outcome: &str, reason: &str, done| json!({ "outcome": outcome, "reason": reason, "task": task(id), "tasks": tasks(done) });
    let report = Run::new()
        .add(1, "task_started", &started("t-2", 0))
        .begin(2, 1, 0, "a")
        .end(3, "success", None, "b")
        .add(4, "task_ended", &ended("t-2", "retried", "not\nyet", 0))
        .add(5, "task_started", &started("t-2", 0))
        .begin(6, 2, 0, "b")
        .end(7, "success", None, "c")
        .add(8, "task_ended", &ended("t-2", "done", "", 1))
        .add(9, "task_started", &started("t-1", 1))
        .begin(10, 3, 0, "c")
        .report();
    assert_eq!(report.tasks, Some(TaskCounts { done: 1, failed: 0, total: 2 }));
    let [first, second] = &report.task_list[..] else { panic!("{:?}", report.task_list) };
    assert_eq!((&*first.id, first.iterations, first.outcome.as_deref()), ("t-2", 2, Some("done")));
    assert_eq!((&first.reason, first.cost_usd), (&None, Some(1.0)));
    let work = first.work.as_ref().unwrap();
    assert_eq!((work.from.as_deref(), &*work.to), (Some("a"), "c"));
    assert_eq!((&*second.id, second.outcome.as_deref()), ("t-1", None));
    assert_eq!(report.iteration_list[1].task.as_deref(), Some("t-2"));
}

#[test]
fn lines_that_cannot_be_read_are_counted_and_harm_nothing() {
    let newer = line(2, "loop_started", &json!({})).replace("\"v\":1", "\"v\":99");
    let report = Run::new()
        .raw("\n[]\nnoise\n\u{0}\u{1f980}\n")
        .raw(&newer)
        .begin(3, 1, 0, "a")
        .add(4, "an_event_of_later", &json!({ "x": 1 }))
        .raw("{\"event\":\"text\",\"text\":\"\\ud800\"}\n")
        .raw(&line(5, "text", &json!({ "text": "of a later version" })).replace("\"v\":1", "\"v\":2"))
        .add(5, "text", &json!({ "text": "whole" }))
        .end(6, "a-status-of-later", None, "a")
        .raw("{\"agent\":\"cla")
        .report();
    assert_eq!(report.attempts, 1);
    let attempt = &report.iteration_list[0].attempts[0];
    assert_eq!(
        (attempt.status.as_deref(), attempt.said.as_deref()),
        (Some("a-status-of-later"), Some("whole"))
    );
    assert!((7..=9).contains(&report.unreadable_lines), "{}", report.unreadable_lines);
}

#[test]
fn a_clock_that_was_set_back_is_no_negative_time() {
    let report = Run::new().begin(600, 1, 0, "a").begin(1, 2, 0, "a").add(0, "paused", &json!({})).report();
    assert!(report.duration_s >= 0.0, "{}", report.duration_s);
}

#[test]
fn a_run_without_anything_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let report = RunReport::read(folder.path()).unwrap();
    assert_eq!((report.loops.len(), report.verb, report.is_running), (0, None, false));
    assert_eq!(RunReport::read(&folder.path().join("gone")).unwrap().loops.len(), 0);
    fs::write(folder.path().join("session-1.events.jsonl"), "").unwrap();
    fs::write(folder.path().join("run.json"), "{").unwrap();
    fs::write(folder.path().join("end.json"), "\u{0}").unwrap();
    let report = RunReport::read(folder.path()).unwrap();
    assert_eq!(report.loops.len(), 1);
    assert_eq!((&*report.loops[0].end, report.loops[0].iterations), ("killed", 0));
}

#[test]
fn branches_are_in_the_order_of_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        let text =
            line(0, "loop_started", &json!({ "max_iterations": 1, "max_retries": 0, "project": "/p" }));
        let text = text.replace("\"loop\":\"build\"", &format!("\"loop\":\"{name}\""));
        fs::write(folder.path().join(name).join("session-1.events.jsonl"), text).unwrap();
    }
    let branch = |name: &str, result: &str, code: Option<u8>, waiting: Option<&str>, notes: &[&str]| {
        json!({
            "branch": name, "commits": null, "cost_usd": null, "detail": null, "duration_s": null, "exit_code": code,
            "exit_reason": null, "failed": null, "iterations": null, "notes": notes, "pull_request": null,
            "result": result, "waiting_for": waiting,
        })
    };
    let branches = json!({ "exit_code": 4, "branches": [
        branch("b", "done", Some(0), None, &["a note"]),
        branch("earlier", "done", None, None, &[]),
        branch("a", "failed", Some(4), None, &[]),
        branch("broken", "failed", None, None, &["no work tree"]),
        branch("later", "waiting", None, Some("a"), &[]),
    ] });
    fs::write(folder.path().join("end.json"), line(9, "build_ended", &branches)).unwrap();
    let report = RunReport::read(folder.path()).unwrap();
    let told: Vec<(&str, &str, Option<&str>)> =
        report.loops.iter().map(|one| (&*one.name, &*one.end, one.reason.as_deref())).collect();
    assert_eq!(
        told,
        [
            ("b", "killed", Some(KILLED)),
            ("a", "killed", Some(KILLED)),
            ("broken", "error", Some("no work tree")),
            ("later", "queued", Some("waits for a")),
        ]
    );
    assert_eq!(report.loops[0].notes, ["a note"]);
}

#[test]
fn only_the_report_of_a_run_that_has_ended_is_kept() {
    let run =
        Run::new().begin(1, 1, 0, "a").end(2, "success", None, "b").over(3, "done", "complete", 0, None);
    let (report, folder) = run.read();
    report.keep();
    assert_eq!(RunReport::kept(folder.path()), None, "it may go on");
    fs::write(folder.path().join("end.json"), line(3, "queued", &json!({}))).unwrap();
    report.keep();
    let kept = RunReport::kept(folder.path()).unwrap();
    assert_eq!((kept.loops[0].attempts, kept.loops[0].iteration_list.len()), (1, 0));
    let summary = folder.path().join(SUMMARY);
    let newer = fs::read_to_string(&summary).unwrap().replacen("\"v\":1", "\"v\":2", 1);
    fs::write(&summary, newer).unwrap();
    assert_eq!(RunReport::kept(folder.path()), None, "it is of a later version");
    fs::write(&summary, "{").unwrap();
    assert_eq!(RunReport::kept(folder.path()), None);
}

#[test]
fn what_the_agents_cost_that_look_at_the_work_counts() {
    let spent =
        |cost: f64, input: u64| json!({ "cost_usd": cost, "input_tokens": input, "output_tokens": 0 });
    let ended = |spent: &Value| {
        json!({
            "balance": null, "changed": null, "complete": false, "duration_s": 10.0, "exit_code": 0, "failure": null,
            "head": "a", "iteration": 1, "replan": false, "retry": 0, "signal": null, "skipped_lines": 0, "spent": spent,
            "status": "success", "usage": { "cost_usd": 0.5, "input_tokens": 100, "output_tokens": 10 },
        })
    };
    let task = json!({ "feature": null, "id": "t-1", "model": "m", "title": "t" });
    let counts = json!({ "done": 0, "failed": 0, "total": 1 });
    // It continues a run that had spent two dollars.
    let run = Run { folder: tempfile::tempdir().unwrap(), lines: String::new() }
        .add(
            0,
            "loop_started",
            &json!({ "max_iterations": 9, "max_retries": 3, "project": "/p", "spent": spent(2.0, 40) }),
        )
        .add(0, "task_started", &json!({ "task": task, "tasks": counts, "verifies": false }))
        .begin(0, 1, 0, "a")
        .add(1, "attempt_ended", &ended(&spent(3.5, 1040)))
        .begin(2, 2, 0, "a")
        .add(3, "attempt_ended", &ended(&spent(4.0, 1140)));
    let (report, _folder) = run.read();
    let one = &report.loops[0];
    assert_eq!((one.cost_usd, one.input_tokens, one.output_tokens), (Some(2.0), 1100, 20));
    assert_eq!(one.task_list[0].cost_usd, Some(2.0));
    let own: Vec<_> = one.iteration_list.iter().map(|iteration| iteration.attempts[0].cost_usd).collect();
    assert_eq!(own, [Some(0.5); 2], "an attempt is what its agent has cost");
}
