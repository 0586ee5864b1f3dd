//! A report on a terminal, or where a terminal's lines go.

use std::fmt::Write as _;

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::{Line, changes, done_of, lines, money, sign, span, total};
use crate::record::report::RunReport;
use crate::text::count;
use crate::text::line::joined;
use crate::text::palette::{FAINT, STRONG};
use crate::text::timestamp;
use crate::text::wrap::wrapped;
use crate::view::cells::{cut, pad, plain};

/// Cells of a line: name, end, tasks, changes, commits, time, cost.
const CELLS: usize = 7;
/// In the order in which they are left out: time, commits, changes, cost, tasks.
const LEAST_TELLING: [usize; 5] = [5, 4, 3, 6, 2];
/// What stands between two of them.
const GAP: usize = 2;
/// The sign and the blank behind it.
const SIGN: usize = 2;
/// So many lines of a reason are shown.
const REASON: usize = 3;

/// What was started, and when: the first line of `ralph report`.
#[must_use]
pub(crate) fn head(report: &RunReport) -> String {
    let verb = report.verb.as_deref().unwrap_or("a run of an earlier version");
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
    let lines = lines(report);
    let rows: Vec<[String; CELLS]> = lines.iter().map(cells).collect();
    let columns = Columns::fitting(&rows, width);
    let mut text = String::new();
    for (line, row) in lines.iter().zip(&rows) {
        let (style, sign) = sign(line.end);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{style}{sign}{style:#} {}", columns.line(row, style));
        for (style, below) in below(line) {
            for part in
                wrapped(&below, width.map_or(usize::MAX, |width| width.saturating_sub(SIGN + 2)), REASON)
            {
                let _ = writeln!(text, "    {style}{part}{style:#}");
            }
        }
    }
    for note in notes(report) {
        text += &wrapped(&note, width.unwrap_or(usize::MAX), REASON).join("\n");
        text += "\n";
    }
    if let Some(total) = total(report) {
        text += &wrapped(&total, width.unwrap_or(usize::MAX), usize::MAX).join("\n");
        text += "\n";
    }
    if let Some(next) = &report.next {
        let _ = writeln!(text, "{STRONG}Next:{STRONG:#} {}", plain(next));
    }
    text
}

/// What stands below a line: its task's title, why it ended so, what to do.
fn below(line: &Line<'_>) -> Vec<(Style, String)> {
    let title = line.title.map(|title| (Style::new(), plain(title)));
    let is_done = line.end == "done";
    let reason =
        line.reason.filter(|_| !is_done || line.title.is_none()).map(|why| (Style::new(), plain(why)));
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

/// Which cells there is room for, and how wide they are.
struct Columns {
    shown: Vec<usize>,
    widths: [usize; CELLS],
}

impl Columns {
    fn fitting(rows: &[[String; CELLS]], width: Option<usize>) -> Self {
        let widest = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or_default();
        let mut widths: [usize; CELLS] = std::array::from_fn(widest);
        let mut shown: Vec<usize> = (0..CELLS).filter(|&column| widths[column] > 0).collect();
        let Some(width) = width else { return Self { shown, widths } };
        let needed = |shown: &[usize]| SIGN + shown.iter().map(|&column| widths[column] + GAP).sum::<usize>();
        for column in LEAST_TELLING {
            if needed(&shown) > width + GAP {
                shown.retain(|kept| *kept != column);
            }
        }
        let too_much = needed(&shown).saturating_sub(width + GAP);
        widths[0] = widths[0].saturating_sub(too_much).max(1);
        Self { shown, widths }
    }

    fn line(&self, row: &[String; CELLS], end: Style) -> String {
        let mut line = String::new();
        // Nothing stands behind the last one that says something.
        let last = self.shown.iter().rposition(|&column| !row[column].is_empty()).unwrap_or_default();
        for (place, &column) in self.shown.iter().enumerate().take(last + 1) {
            let width = self.widths[column];
            let text = pad(&cut(&row[column], width), width);
            let text = if place == last { text.trim_end().to_owned() } else { text };
            // How it ended is the second.
            let style = if column == 1 { end } else { Style::new() };
            let gap = if place > 0 { " ".repeat(GAP) } else { String::new() };
            let _ = write!(line, "{gap}{style}{text}{style:#}");
        }
        line
    }
}
