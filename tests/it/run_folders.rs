//! Folders of runs as loops leave them, with events that a test cannot make a real loop write: of many branches, or
//! hostile ones.

use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use serde_json::{Value, json};

use crate::scratch::Scratch;

/// The events log of one loop.
pub(crate) struct Log {
    name: String,
    lines: String,
    /// Seconds since the run began.
    pub(crate) now: i64,
    iterations: u64,
    attempts: u64,
}

/// A moment so many seconds after the runs of these tests began.
pub(crate) fn at(seconds: i64) -> String {
    let begin = DateTime::parse_from_rfc3339("2026-01-30T22:00:00.000+00:00").unwrap();
    (begin + TimeDelta::seconds(seconds)).to_rfc3339()
}

impl Log {
    pub(crate) fn new(name: &str) -> Self {
        let mut log =
            Self { name: name.to_owned(), lines: String::new(), now: 0, iterations: 0, attempts: 0 };
        log.event("loop_started", &json!({ "max_iterations": 20, "max_retries": 3, "project": "/p" }));
        log
    }

    /// Adds an event with these fields.
    pub(crate) fn event(&mut self, name: &str, own: &Value) -> &mut Self {
        let common = json!({
            "agent": "claude", "at": at(self.now), "loop": self.name, "mode": "build", "run": "r-1", "v": 1,
        });
        let (common, own) = (common.to_string(), own.to_string());
        let own = if own == "{}" { own } else { own.replacen('{', ",", 1) };
        let own = own.trim_start_matches('{');
        let common = &common[..common.len() - 1];
        self.lines.extend([common, ",\"event\":\"", name, "\"", own, "\n"]);
        self
    }

    /// Adds a line as it is.
    pub(crate) fn raw(&mut self, line: &str) -> &mut Self {
        self.lines += line;
        self
    }

    /// What was added.
    pub(crate) fn lines(&self) -> &str {
        &self.lines
    }

    /// Begins an attempt; without `retry` at the next iteration.
    pub(crate) fn begin(&mut self, retry: u64, head: Option<&str>) -> &mut Self {
        self.iterations += u64::from(retry == 0);
        self.attempts += 1;
        let iteration = self.iterations;
        self.event("attempt_started", &json!({ "head": head, "iteration": iteration, "retry": retry }))
    }

    /// Ends it after so many seconds; a failure has a message.
    pub(crate) fn end(
        &mut self,
        seconds: i64,
        status: &str,
        failure: Option<&str>,
        head: Option<&str>,
    ) -> &mut Self {
        self.now += seconds;
        let failure = failure.map(|message| json!({ "class": "other", "kind": "exit", "message": message }));
        let usage = json!({
            "cost_usd": Duration::from_secs(seconds.unsigned_abs()).as_secs_f64() / 300.0, "input_tokens": seconds.unsigned_abs() * 900,
            "output_tokens": seconds.unsigned_abs() * 40, "model": "opus", "session_id": "s",
        });
        self.event(
            "attempt_ended",
            &json!({
                "balance": null, "changed": true, "complete": status == "success", "duration_s": seconds,
                "exit_code": i32::from(failure.is_some()), "failure": failure, "head": head,
                "iteration": self.iterations, "replan": false, "retry": 0, "signal": null, "skipped_lines": 0,
                "status": status, "usage": usage,
            }),
        )
    }

    /// Ends the loop.
    pub(crate) fn over(&mut self, end: &str, code: u8, detail: Option<&str>) -> &mut Self {
        let reason = if code == 0 { "complete" } else { "failed" };
        self.event(
            "loop_ended",
            &json!({
                "attempts": self.attempts, "cost_usd": null, "detail": detail, "duration_s": self.now, "end": end,
                "exit_code": code, "exit_reason": reason, "failed": 0, "failed_iterations": 0, "input_tokens": 0,
                "iterations": self.iterations, "output_tokens": 0, "status": "stopped", "succeeded": 0,
            }),
        )
    }

    /// Writes it as the log of a branch in a run; as that of the run's only loop where `folder` is empty.
    pub(crate) fn write(&self, scratch: &Scratch, run: &str, folder: &str) {
        let path = format!(".ralph/runs/{run}/{folder}/session-20260130-220000.events.jsonl");
        scratch.write(&path, &self.lines);
    }
}

/// What `run.json` has of a run that has ended.
pub(crate) fn start(scratch: &Scratch, run: &str, verb: &str) {
    let start = json!({
        "v": 1, "run": run, "verb": verb, "started_at": at(0), "argv": ["ralph"], "cwd": "/p",
        "process": { "pid": 1, "start_ticks": 1, "boot_id": "b", "pid_namespace": 1 },
    });
    scratch.write(&format!(".ralph/runs/{run}/run.json"), start.to_string());
}

/// The result of a branch: name, result, exit code, pull request, notes.
pub(crate) type Branch<'a> = (&'a str, &'a str, Option<u8>, Option<&'a str>, &'a [&'a str]);

/// What `end.json` has of a build of branches.
pub(crate) fn build_end(scratch: &Scratch, run: &str, branches: &[Branch<'_>]) {
    let branches = branches.iter().map(|(branch, result, code, pull_request, notes)| {
        json!({
            "branch": branch, "commits": null, "cost_usd": null, "detail": null, "duration_s": null,
            "exit_code": code, "exit_reason": null, "failed": null, "iterations": null, "notes": notes,
            "pull_request": pull_request, "result": result, "waiting_for": null,
        })
    });
    let end = json!({
        "agent": "claude", "at": at(36_000), "loop": "loop build", "mode": "build", "run": run, "v": 1,
        "event": "build_ended", "branches": branches.collect::<Vec<Value>>(), "exit_code": 4,
    });
    scratch.write(&format!(".ralph/runs/{run}/end.json"), end.to_string() + "\n");
}
