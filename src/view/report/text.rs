//! A report on a terminal, or in a pipe.

use std::fmt::Write as _;

use anstream::adapter::strip_str;
use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::{Line, changes, done_of, lines, of_loop, span, sums, to};
use crate::engine::outcome::Ended;
use crate::record::report::{LoopReport, RunReport};
use crate::tell::group::Group;
use crate::tell::words::{figures, proof as proof_of, sign};
use crate::text::count::{self, money};
use crate::text::line::joined;
use crate::text::palette::{FAINT, STRONG};
use crate::text::timestamp;
use crate::text::wrap::wrapped;
use crate::view::cells::{cut, pad, plain};
use crate::view::columns::Columns;

/// Cells of a line: name, end, tasks, changes, commits, time, cost.
const CELLS: usize = 7;
/// The columns in the order in which they are left out: time, commits, changes, cost, tasks.
const LEAST_TELLING: [usize; 5] = [5, 4, 3, 6, 2];
/// The column of its end.
const END: usize = 1;
/// The sign and the blank after it.
const SIGN: usize = 2;
/// The separator of two facts of a line, and the indentation of lines below.
const GAP: &str = "  ";
const INDENT: &str = "    ";
/// A reason on the line gets at least this many cells before columns are left out.
const LEAST_REASON: usize = 20;
/// How many lines of a reason are shown.
const REASON: usize = 3;

/// The command and its start: the first line of `ralph report`.
#[must_use]
pub(crate) fn head(report: &RunReport) -> String {
    let verb = report.verb.as_deref().unwrap_or("a run of another version");
    let began = report.started_at.map(|at| format!(", {}", timestamp::local(&at)));
    let ended = report.ended_at.filter(|_| !report.is_running);
    let ended = ended.map(|at| format!("{}{}", to(report), timestamp::nearby(&at, report_day(report))));
    let running = if report.is_running { ", running" } else { "" };
    format!(
        "{STRONG}ralph {verb}{STRONG:#}{}{}{running}\n",
        began.unwrap_or_default(),
        ended.unwrap_or_default()
    )
}

/// The day of the start, which the end does not repeat.
fn report_day(report: &RunReport) -> chrono::DateTime<chrono::Local> {
    report.started_at.map_or_else(chrono::Local::now, |at| at.with_timezone(&chrono::Local))
}

/// A line for each loop or task with its reason and what to do about it, the total, and the next command. `width` is that of
/// the terminal; without one nothing is broken or left out.
#[must_use]
pub(crate) fn body(report: &RunReport, width: Option<usize>) -> String {
    let mut text = match &*report.loops {
        [one] if one.task_list.is_empty() => single(one, report.next.as_deref(), None, width),
        _ => rows(&lines(report), width, Detail::Reasons),
    };
    for note in notes(report) {
        text += &wrapped(&note, width.unwrap_or(usize::MAX), REASON).join("\n");
        text += "\n";
    }
    text + &sum(report, width) + &next(report.next.as_deref())
}

/// Loops that have ended, below the words of their groups; of those that are over at most `most`.
#[must_use]
pub(crate) fn groups(loops: &[LoopReport], most: usize, width: Option<usize>) -> String {
    let mut text = String::new();
    for group in loops.chunk_by(|one, other| one.group == other.group) {
        let Some(kind) = group.first().and_then(|one| one.group) else { continue };
        let is_over = kind == Group::Over;
        let shown = if is_over { &group[..group.len().min(most)] } else { group };
        let detail = if is_over { Detail::Line } else { Detail::Reasons };
        let lines: Vec<Line<'_>> = shown.iter().map(of_loop).collect();
        let between = if text.is_empty() { "" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{between}{STRONG}{}{STRONG:#}", kind.heading());
        text += &rows(&lines, width, detail);
        if group.len() > shown.len() {
            let _ = writeln!(text, "{INDENT}and {} more", group.len() - shown.len());
        }
    }
    text
}

/// The result of each task, for the end of a run over several; empty if that says no more than its loop.
#[must_use]
pub(crate) fn tasks(report: &RunReport, width: Option<usize>) -> String {
    if !report.loops.iter().any(is_over_tasks) {
        return String::new();
    }
    rows(&lines(report), width, Detail::Reasons) + &sum(report, width) + &next(report.next.as_deref())
}

/// Whether its tasks say more than the loop itself.
fn is_over_tasks(one: &LoopReport) -> bool {
    one.task_list.len() > 1
}

/// The closing of a single loop: what [`body`] has of it, the file with all output of its agents, and the next command. For
/// a run over tasks, [`tasks`] follows, which ends with that.
#[must_use]
pub(crate) fn closing(one: &LoopReport, log: Option<&str>, width: Option<usize>) -> String {
    let next = if is_over_tasks(one) { String::new() } else { next(one.next.as_deref()) };
    single(one, one.next.as_deref(), log, width) + &next
}

/// A loop that has ended while others go on: a line of at most `width` cells, with as much of the reason as fits. Its name
/// takes this many cells.
#[must_use]
pub(crate) fn finished(one: &LoopReport, name: usize, width: usize) -> String {
    let line = of_loop(one);
    // A reason is worth more than the least important figures, a proof is not: its sign has the colour.
    let (reason, least) = if line.end == Ended::Done.word() {
        (line.proof.map(|proof| proof_of(proof).text), 0)
    } else {
        (line.reason.map(str::to_owned), line.reason.map_or(0, |_| LEAST_REASON + GAP.len()))
    };
    let reason = reason.map(|reason| plain(&reason));
    let (room, mut row) = (width.saturating_sub(SIGN), cells(&line));
    let for_facts = room.saturating_sub(least);
    let (style, sign) = sign(line.end, line.proof);
    let facts = |row: &[String; CELLS]| {
        let columns =
            Columns::fitting(std::slice::from_ref(row), &LEAST_TELLING, (0, usize::MAX), Some(for_facts));
        columns.line(row, |column| if column == END { style } else { Style::new() })
    };
    let cells_of = |facts: &str| strip_str(facts).to_string().width();
    // Names are aligned if that takes no room from the rest.
    let spare = for_facts.saturating_sub(cells_of(&facts(&row)));
    row[0] = pad(&row[0], name.min(row[0].width() + spare));
    let facts = facts(&row);
    let reason = reason.map(|reason| beside(&facts, &reason, Some(room))).unwrap_or_default();
    format!("{style}{sign}{style:#} {facts}{reason}\n")
}

/// As much of a text as fits after the facts of a line, with the gap before it; empty if there is no room.
fn beside(facts: &str, text: &str, room: Option<usize>) -> String {
    let taken = strip_str(facts).to_string().width() + GAP.len();
    let left = room.map_or(usize::MAX, |room| room.saturating_sub(taken));
    if left > 0 { format!("{GAP}{}", cut(text, left)) } else { String::new() }
}

/// The line of a loop, and below it the reason of its end, its cost, and where to find more.
/// The next command of the whole is not repeated for it, unless something follows that.
fn single(one: &LoopReport, next: Option<&str>, log: Option<&str>, width: Option<usize>) -> String {
    let line = of_loop(one);
    let is_told = |own: &&str| Some(*own) == next && line.then.is_none();
    let line = Line { next: line.next.filter(|own| !is_told(own)), ..line };
    let log = log.map(|log| format!("log {}", plain(log)));
    rows(&[line], width, Detail::Reasons)
        + &below_it([Some(took(one)), log].into_iter().flatten().map(|fact| (Style::new(), fact)), width)
}

/// `20 iterations, 23 attempts, 2 failed · 12 files · 1.2M tokens in, 34.0k out`
fn took(one: &LoopReport) -> String {
    let mut ran = vec![count::of(one.iterations, "iteration")];
    ran.extend((one.attempts > one.iterations).then(|| count::of(one.attempts, "attempt")));
    ran.extend((one.failed_attempts > 0).then(|| format!("{} failed", one.failed_attempts)));
    let files = one.work.as_ref().and_then(|work| work.files).map(|files| count::of(files, "file"));
    let tokens = count::tokens((one.input_tokens, one.output_tokens));
    figures([Some(ran.join(", ")), files, tokens])
}

/// The contents of each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Only what fits on the line, with what shows that its work is good.
    Line,
    /// The reason of its end, and what to do about it.
    Reasons,
}

fn rows(lines: &[Line<'_>], width: Option<usize>, detail: Detail) -> String {
    let rows: Vec<[String; CELLS]> = lines.iter().map(cells).collect();
    let room = width.map(|width| width.saturating_sub(SIGN));
    let columns = Columns::fitting(&rows, &LEAST_TELLING, (0, usize::MAX), room);
    let mut text = String::new();
    for (line, row) in lines.iter().zip(&rows) {
        let (style, sign) = sign(line.end, line.proof);
        let cells = columns.line(row, |column| if column == END { style } else { Style::new() });
        let proof = line.proof.filter(|_| detail == Detail::Line).map(|proof| plain(&proof_of(proof).text));
        let proof = proof.map(|proof| beside(&cells, &proof, room)).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{style}{sign}{style:#} {cells}{proof}");
        if detail == Detail::Reasons {
            text += &below_it(below(line).into_iter(), width);
        }
    }
    text
}

/// The text below a line.
fn below_it(facts: impl Iterator<Item = (Style, String)>, width: Option<usize>) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(INDENT.len()));
    let mut text = String::new();
    for (style, fact) in facts {
        for part in wrapped(&fact, room, REASON) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{INDENT}{style}{part}{style:#}");
        }
    }
    text
}

/// The total; empty if there is none.
fn sum(report: &RunReport, width: Option<usize>) -> String {
    let lines = sums(report);
    let lines = lines.map(|line| wrapped(&line, width.unwrap_or(usize::MAX), usize::MAX).join("\n") + "\n");
    lines.collect()
}

/// The next command; empty if there is none.
#[must_use]
pub(crate) fn next(next: Option<&str>) -> String {
    next.map(|next| format!("{STRONG}Next:{STRONG:#} {}\n", plain(next))).unwrap_or_default()
}

/// The text below a line: its task's title, the reason of its end, what to do.
fn below(line: &Line<'_>) -> Vec<(Style, String)> {
    let title = line.title.map(|title| (Style::new(), plain(title)));
    let reason = line.why().map(|why| (Style::new(), plain(why)));
    let proof = line.proof.map(proof_of).map(|proof| (proof.kind.style(), plain(&proof.text)));
    let address = line.pull_request.map(|address| (Style::new(), plain(address)));
    let next = match (line.next, line.then) {
        (None, None) => None,
        (None, Some(then)) => Some(plain(then)),
        (Some(next), None) => Some(plain(next)),
        (Some(next), Some(then)) => Some(format!("{}, then {}", plain(next), plain(then))),
    };
    let next = next.map(|next| (FAINT, format!("→ {next}")));
    let waits = line.waits.clone().map(|waits| (Style::new(), waits));
    title.into_iter().chain(proof).chain(reason).chain(waits).chain(address).chain(next).collect()
}

/// The notes, each once, with the names that it is about.
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
