//! The runs of a project, one line each.

use anstyle::Style;
use chrono::{DateTime, FixedOffset};
#[cfg(test)]
use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::validation::{Evidence, Standing};
use crate::record::report::{LoopReport, RunReport};
use crate::tell::words::{self, sign};
use crate::text::count::money;
use crate::text::timestamp;
use crate::view::cells::plain;
use crate::view::columns::Table;

/// Cells of a line: id, when, what, ends, iterations, commits, cost, proof.
const CELLS: usize = 8;
/// The column of the ends.
const ENDS: usize = 3;
/// The column that is cut, and its least width.
const PROOF: (usize, usize) = (7, 12);
/// The columns in the order in which they are left out: commits, iterations, cost, when, proof.
const LEAST_TELLING: [usize; 5] = [5, 4, 6, 1, PROOF.0];
/// Lengths of an id's beginnings: the second in which the run began (in UTC), the millisecond, and all but the process.
const IDS: [usize; 3] = [15, 18, 24];

/// A table of runs, newest first. If the terminal is too narrow, the least important columns are left out. `known` are the ids
/// of all runs, including those that are not shown.
#[must_use]
pub(crate) fn table(reports: &[RunReport], known: &[String], width: Option<usize>) -> String {
    if reports.is_empty() {
        return String::new();
    }
    let table = Table {
        heads: ["RUN", "STARTED", "COMMAND", "ENDED", "ITERATIONS", "COMMITS", "COST", "PROOF"],
        coloured: ENDS,
        least_telling: &LEAST_TELLING,
        gives: PROOF,
    };
    let rows = reports.iter().map(|report| (cells(report, id(known, &report.run)), style(report)));
    table.text(rows, width, ENDS).0
}

/// The shortest beginning of a run's id that no other run has.
fn id<'a>(known: &[String], run: &'a str) -> &'a str {
    let mut heads = IDS.iter().filter_map(|&length| run.get(..length));
    let is_alone = |head: &&str| known.iter().filter(|other| other.starts_with(head)).count() <= 1;
    heads.find(is_alone).unwrap_or(run)
}

/// The colour of the end that needs most attention.
fn style(report: &RunReport) -> Style {
    let sign = |one: &LoopReport| sign(&one.end, one.proof.as_ref());
    let worst = report.loops.iter().map(sign).find(|(_, sign)| !["✓", "·"].contains(sign));
    worst.or_else(|| report.loops.first().map(sign)).unwrap_or_default().0
}

fn cells(report: &RunReport, id: &str) -> [String; CELLS] {
    let sum =
        |of: fn(&LoopReport) -> Option<u64>| report.loops.iter().filter_map(of).fold(0, u64::saturating_add);
    let commits = sum(|one| one.work.as_ref()?.commits);
    [
        plain(id),
        report.started_at.map(|at| timestamp::minute(&at)).unwrap_or_default(),
        plain(report.verb.as_deref().unwrap_or("-")),
        ends(report),
        sum(|one| Some(one.iterations)).to_string(),
        if commits > 0 { commits.to_string() } else { String::new() },
        money(cost(report)).unwrap_or_default(),
        proof(report),
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
        _ => super::ends(report.loops.iter().map(|one| &*one.end)).join(", "),
    }
}

/// `proven: npm test`; of several loops `2 proven, 1 unchecked`.
fn proof(report: &RunReport) -> String {
    match &*report.loops {
        [one] => one.proof.as_ref().map(|proof| plain(&words::proof(proof).text)).unwrap_or_default(),
        loops => {
            let all = || loops.iter().filter_map(|one| Some(one.proof.as_ref()?.standing));
            let count = |standing: Standing| (standing, all().filter(|one| *one == standing).count());
            let counts =
                [Standing::Proven, Standing::Passed, Standing::Unchecked, Standing::Refuted].map(count);
            let known = counts.iter().filter(|(_, count)| *count > 0);
            known
                .map(|(standing, count)| format!("{count} {}", standing.word()))
                .collect::<Vec<_>>()
                .join(", ")
        }
    }
}

/// A run of `ralph history --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct HistoryRun {
    /// The format's version.
    v: u32,
    /// Unique id of the run, the name of its folder.
    run: String,
    /// The words of the command line that start such loops, as in `loop build`; null if unknown.
    verb: Option<String>,
    /// The command line; empty if unknown.
    argv: Vec<String>,
    /// When it began; null if unknown.
    started_at: Option<DateTime<FixedOffset>>,
    /// When it ended, or when something last happened.
    ended_at: Option<DateTime<FixedOffset>>,
    /// Whether its process runs.
    is_running: bool,
    /// Its loops.
    loops: Vec<HistoryLoop>,
    /// Begun in this run.
    iterations: u64,
    /// Begun in this run.
    attempts: u64,
    /// Commits of this run, as far as git has them.
    commits: u64,
    /// Added lines.
    insertions: u64,
    /// Removed lines.
    deletions: u64,
    /// In US dollars; null if no agent reported it.
    cost_usd: Option<f64>,
    /// Cached ones included.
    input_tokens: u64,
    /// Reasoning included.
    output_tokens: u64,
    /// Where its logs are.
    folder: String,
}

/// One loop of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
struct HistoryLoop {
    /// Its name.
    name: String,
    /// How it ended in one word, or `running`, `killed`, `queued` (its turn has not come).
    end: String,
    /// What shows that its work is good; null if nothing is said of it.
    proof: Option<Evidence>,
}

/// The output of `ralph history --json`: the runs, newest first.
#[cfg(test)]
#[derive(JsonSchema)]
#[schemars(title = "A history of ralph, version 1", extend("$id" = "ralph-history-1"))]
#[expect(dead_code, reason = "only its schema is wanted")]
pub(crate) struct History(Vec<HistoryRun>);

impl From<&RunReport> for HistoryRun {
    fn from(report: &RunReport) -> Self {
        let sum = |of: fn(&LoopReport) -> Option<u64>| {
            report.loops.iter().filter_map(of).fold(0, u64::saturating_add)
        };
        let named = |one: &LoopReport| HistoryLoop {
            name: one.name.clone(),
            end: one.end.clone(),
            proof: one.proof.clone(),
        };
        Self {
            v: report.v,
            run: report.run.clone(),
            verb: report.verb.clone(),
            argv: report.argv.clone(),
            started_at: report.started_at,
            ended_at: report.ended_at,
            is_running: report.is_running,
            loops: report.loops.iter().map(named).collect(),
            iterations: sum(|one| Some(one.iterations)),
            attempts: sum(|one| Some(one.attempts)),
            commits: sum(|one| one.work.as_ref()?.commits),
            insertions: sum(|one| one.work.as_ref()?.insertions),
            deletions: sum(|one| one.work.as_ref()?.deletions),
            cost_usd: cost(report),
            input_tokens: sum(|one| Some(one.input_tokens)),
            output_tokens: sum(|one| Some(one.output_tokens)),
            folder: report.folder.to_string_lossy().into_owned(),
        }
    }
}
