//! Reports that tests make, and the renders of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::{DateTime, FixedOffset, TimeDelta};

use super::*;
use crate::record::report::{AttemptReport, IterationReport, VERSION};

/// So many seconds after midnight of a certain day.
pub(super) fn at(seconds: i64) -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339("2026-01-31T00:00:00+00:00").unwrap() + TimeDelta::seconds(seconds)
}

pub(super) fn attempt(from: i64, duration_s: f64, status: &str) -> AttemptReport {
    AttemptReport {
        retry: 0,
        started_at: at(from),
        status: Some(status.to_owned()),
        failure: None,
        duration_s: Some(duration_s),
        cost_usd: None,
        input_tokens: None,
        output_tokens: None,
        tool_calls: 0,
        head_before: None,
        head_after: None,
        said: None,
    }
}

pub(super) fn iteration(number: u64, attempts: Vec<AttemptReport>) -> IterationReport {
    IterationReport { number, task: None, attempts, validation: None }
}

/// A loop that is done and did nothing else.
pub(super) fn loop_named(name: &str) -> LoopReport {
    LoopReport {
        name: name.to_owned(),
        run: "r".to_owned(),
        mode: "build".to_owned(),
        agent: "script".to_owned(),
        model: None,
        end: "done".to_owned(),
        exit_reason: Some("complete".to_owned()),
        exit_code: Some(0),
        reason: None,
        started_at: Some(at(0)),
        ended_at: Some(at(0)),
        duration_s: 0.0,
        iterations: 0,
        attempts: 0,
        failed_attempts: 0,
        cost_usd: None,
        input_tokens: 0,
        output_tokens: 0,
        work: None,
        tasks: None,
        task_list: Vec::new(),
        tools: BTreeMap::new(),
        waits: Vec::new(),
        pull_request: None,
        next: None,
        notes: Vec::new(),
        iteration_list: Vec::new(),
        commit_list: Vec::new(),
        unreadable_lines: 0,
        folder: PathBuf::new(),
    }
}

pub(super) fn report_of(loops: Vec<LoopReport>) -> RunReport {
    RunReport {
        v: VERSION,
        run: "20260131T000000000000000-1".to_owned(),
        verb: Some("build".to_owned()),
        argv: Vec::new(),
        started_at: Some(at(0)),
        ended_at: Some(at(3_600)),
        is_running: false,
        next: None,
        loops,
        folder: PathBuf::new(),
    }
}
