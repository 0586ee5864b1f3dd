//! A report on a terminal, or where a terminal's lines go.

use std::fmt::Write as _;

use anstyle::Style;

use super::{Line, changes, done_of, lines, money, sign, span, total};
use crate::record::report::RunReport;
use crate::text::count;
use crate::text::line::joined;
use crate::text::palette::{FAINT, STRONG};
use crate::text::timestamp;
use crate::text::wrap::wrapped;
use crate::view::cells::plain;
use crate::view::columns::Columns;

/// Cells of a line: name, end, tasks, changes, commits, time, cost.
const CELLS: usize = 7;
/// In the order in which they are left out: time, commits, changes, cost, tasks.
const LEAST_TELLING: [usize; 5] = [5, 4, 3, 6, 2];
/// The column of how it ended.
const END: usize = 1;
/// The sign and the blank behind it.
const SIGN: usize = 2;
/// So many lines of a reason are shown.
const REASON: usize = 3;

/// What was started, and when: the first line of `ralph report`.
#[must_use]
pub(crate) fn head(report: &RunReport) -> String {
    let verb = report.verb.as_deref().unwrap_or("a run of another version");
    let began = report.started_at.map(|at| format!(", {}", timestamp::local(&at)));
    let ended = report.ended_at.filter(|_| !report.is_running);
    let ended = ended.map(|at| format!(" to {}", timestamp::nearby(&at, report_day(report))));
    let running = if report.is_running { ", running" } else { "" };
    format!(
        "{STRONG}ralph {verb}{STRONG:#}{}{}{running}\n",
        began.unwrap_or_default(),
        ended.unwrap_or_default()
    )
}

/// The day on which it began, so that its end need not repeat it.
fn report_day(report: &RunReport) -> chrono::DateTime<chrono::Local> {
    report.started_at.map_or_else(chrono::Local::now, |at| at.with_timezone(&chrono::Local))
}

/// A line for each loop or task with its reason and what to do about it, the total, and the next command. `width` is the
/// terminal's; without one nothing is broken or left out.
#[must_use]
pub(crate) fn body(report: &RunReport, width: Option<usize>) -> String {
    let mut text = rows(report, width, Detail::Reasons);
    for note in notes(report) {
        text += &wrapped(&note, width.unwrap_or(usize::MAX), REASON).join("\n");
        text += "\n";
    }
    text + &sum(report, width) + &next(report)
}

/// The same in short: a line for each, the total, and the next command.
#[must_use]
pub(crate) fn short(report: &RunReport, width: Option<usize>) -> String {
    rows(report, width, Detail::None) + &sum(report, width) + &next(report)
}

/// What became of each task, for the end of a run over several; empty where that says no more than its loop.
#[must_use]
pub(crate) fn tasks(report: &RunReport, width: Option<usize>) -> String {
    let is_of_many = report.loops.iter().map(|one| one.task_list.len()).sum::<usize>() > 1;
    if is_of_many { rows(report, width, Detail::Reasons) + &sum(report, width) } else { String::new() }
}

/// What is told of each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// No more than fits on it.
    None,
    /// Why it ended so, and what to do about it.
    Reasons,
}

fn rows(report: &RunReport, width: Option<usize>, detail: Detail) -> String {
    let lines = lines(report);
    let rows: Vec<[String; CELLS]> = lines.iter().map(cells).collect();
    let room = width.map(|width| width.saturating_sub(SIGN));
    let columns = Columns::fitting(&rows, &LEAST_TELLING, (0, usize::MAX), room);
    let mut text = String::new();
    for (line, row) in lines.iter().zip(&rows) {
        let (style, sign) = sign(line.end);
        let cells = columns.line(row, |column| if column == END { style } else { Style::new() });
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{style}{sign}{style:#} {cells}");
        let below = if detail == Detail::Reasons { below(line) } else { Vec::new() };
        for (style, below) in below {
            let room = width.map_or(usize::MAX, |width| width.saturating_sub(SIGN + 2));
            for part in wrapped(&below, room, REASON) {
                let _ = writeln!(text, "    {style}{part}{style:#}");
            }
        }
    }
    text
}

/// The total; empty where there is none.
fn sum(report: &RunReport, width: Option<usize>) -> String {
    let total =
        total(report).map(|total| wrapped(&total, width.unwrap_or(usize::MAX), usize::MAX).join("\n"));
    total.map(|total| total + "\n").unwrap_or_default()
}

/// The next command; empty where there is none.
fn next(report: &RunReport) -> String {
    let next = report.next.as_ref();
    next.map(|next| format!("{STRONG}Next:{STRONG:#} {}\n", plain(next))).unwrap_or_default()
}

/// What stands below a line: its task's title, why it ended so, what to do.
fn below(line: &Line<'_>) -> Vec<(Style, String)> {
    let title = line.title.map(|title| (Style::new(), plain(title)));
    let is_done = line.end == "done";
    let says_more = |why: &&str| (!is_done || line.title.is_none()) && *why != line.end;
    let reason = line.reason.filter(says_more).map(|why| (Style::new(), plain(why)));
    let address = line.pull_request.map(|address| (Style::new(), plain(address)));
    let next = line.next.map(|next| (FAINT, format!("→ {}", plain(next))));
    title.into_iter().chain(reason).chain(address).chain(next).collect()
}

/// What was not done besides, each note once, with the names that it is about.
pub(super) fn notes(report: &RunReport) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in &report.loops {
        for note in one.notes.iter().filter(|note| one.reason.as_ref() != Some(note)) {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, names)) => names.push(&one.name),
                None => notes.push((note, vec![&one.name])),
            }
        }
    }
    notes.into_iter().map(|(note, names)| plain(&format!("{}: {note}", names.join(", ")))).collect()
}

fn cells(line: &Line<'_>) -> [String; CELLS] {
    let commits = line.work.and_then(|work| work.commits).map(|commits| count::of(commits, "commit"));
    [
        plain(&joined(line.name, " ")),
        plain(line.end),
        line.tasks.map(done_of).unwrap_or_default(),
        line.work.and_then(changes).unwrap_or_default(),
        commits.unwrap_or_default(),
        if line.duration_s > 0.0 { span(line.duration_s) } else { String::new() },
        money(line.cost_usd).unwrap_or_default(),
    ]
}
