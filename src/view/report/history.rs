//! The runs of a project, one line each.

use anstyle::Style;
use serde_json::{Value, json};

use super::{money, sign};
use crate::record::report::{LoopReport, RunReport};
use crate::text::palette::FAINT;
use crate::text::timestamp;
use crate::view::cells::plain;
use crate::view::columns::Columns;

/// Cells of a line: id, when, what, ends, iterations, commits, cost.
const CELLS: usize = 7;
/// The column of the ends.
const ENDS: usize = 3;
/// In the order in which they are left out: commits, iterations, cost, when.
const LEAST_TELLING: [usize; 4] = [5, 4, 6, 1];
/// Beginnings of an id: the second in which the run began (in UTC), the millisecond, and all but the process.
const IDS: [usize; 3] = [15, 18, 24];

/// A table of runs, newest first. Where the terminal is too narrow the least telling columns are left out.
#[must_use]
pub(crate) fn table(reports: &[RunReport], width: Option<usize>) -> String {
    if reports.is_empty() {
        return String::new();
    }
    let mut rows =
        vec![["RUN", "STARTED", "COMMAND", "ENDED", "ITERATIONS", "COMMITS", "COST"].map(str::to_owned)];
    rows.extend(reports.iter().map(|report| cells(report, &ids(reports, report))));
    for column in 0..CELLS {
        if rows[1..].iter().all(|row| row[column].is_empty()) {
            rows[0][column].clear();
        }
    }
    let columns = Columns::fitting(&rows, &LEAST_TELLING, (ENDS, usize::MAX), width);
    let mut text = columns.line(&rows[0], |_| FAINT) + "\n";
    for (row, report) in rows[1..].iter().zip(reports) {
        text += &columns.line(row, |column| if column == ENDS { style(report) } else { Style::new() });
        text += "\n";
    }
    text
}

/// As much of the id of a run as no other one has.
fn ids(reports: &[RunReport], report: &RunReport) -> String {
    let mut heads = IDS.iter().filter_map(|&length| report.run.get(..length));
    let is_alone = |head: &&str| reports.iter().filter(|other| other.run.starts_with(head)).count() == 1;
    heads.find(is_alone).unwrap_or(&report.run).to_owned()
}

/// The colour of the end that wants most attention.
fn style(report: &RunReport) -> Style {
    let worst = report.loops.iter().map(|one| sign(&one.end)).find(|(_, sign)| !["✓", "·"].contains(sign));
    worst.or_else(|| report.loops.first().map(|one| sign(&one.end))).unwrap_or_default().0
}

fn cells(report: &RunReport, id: &str) -> [String; CELLS] {
    let sum = |of: fn(&LoopReport) -> Option<u64>| report.loops.iter().filter_map(of).sum::<u64>();
    let commits = sum(|one| one.work.as_ref()?.commits);
    [
        plain(id),
        report.started_at.map(|at| timestamp::minute(&at)).unwrap_or_default(),
        plain(report.verb.as_deref().unwrap_or("-")),
        ends(report),
        sum(|one| Some(one.iterations)).to_string(),
        if commits > 0 { commits.to_string() } else { String::new() },
        money(cost(report)).unwrap_or_default(),
    ]
}

fn cost(report: &RunReport) -> Option<f64> {
    let costs: Vec<f64> = report.loops.iter().filter_map(|one| one.cost_usd).collect();
    (!costs.is_empty()).then(|| costs.iter().sum())
}

/// `done`; of several loops `3 done, 1 failed`.
fn ends(report: &RunReport) -> String {
    match &*report.loops {
        [] if report.is_running => "running".to_owned(),
        [] => "killed".to_owned(),
        [one] => plain(&one.end),
        _ => super::ends(report.loops.iter().map(|one| &*one.end)),
    }
}

/// The object of `ralph history --json`.
#[must_use]
pub(crate) fn json_of(report: &RunReport) -> Value {
    let sum = |of: fn(&LoopReport) -> Option<u64>| report.loops.iter().filter_map(of).sum::<u64>();
    let loops: Vec<Value> =
        report.loops.iter().map(|one| json!({ "name": one.name, "end": one.end })).collect();
    json!({
        "v": report.v,
        "run": report.run,
        "verb": report.verb,
        "argv": report.argv,
        "started_at": report.started_at,
        "ended_at": report.ended_at,
        "is_running": report.is_running,
        "loops": loops,
        "iterations": sum(|one| Some(one.iterations)),
        "attempts": sum(|one| Some(one.attempts)),
        "commits": sum(|one| one.work.as_ref()?.commits),
        "insertions": sum(|one| one.work.as_ref()?.insertions),
        "deletions": sum(|one| one.work.as_ref()?.deletions),
        "cost_usd": cost(report),
        "input_tokens": sum(|one| Some(one.input_tokens)),
        "output_tokens": sum(|one| Some(one.output_tokens)),
        "folder": report.folder.to_string_lossy(),
    })
}
