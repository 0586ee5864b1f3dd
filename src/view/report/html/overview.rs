//! A line for each loop or task, as on the terminal.

use super::anchor;
use super::head::badge;
use super::markup::Html;
use super::tone::Tone;
use crate::record::report::RunReport;
use crate::text::line::one_line_within;
use crate::view::cells::plain;
use crate::view::report::text::notes;
use crate::view::report::{Line, changes, done_of, money, of_loop, of_task, span};

/// So much of a name or title is shown, in characters.
const NAME: usize = 300;
/// So much of a reason.
const REASON: usize = 2_000;

/// The table of what became of each loop or task.
pub(super) fn overview(html: &mut Html, report: &RunReport) {
    let is_of_tasks = report.loops.iter().any(|one| !one.task_list.is_empty());
    let what = if is_of_tasks { "Tasks" } else { "Loops" };
    html.element("section", &[("aria-labelledby", "overview")], |html| {
        html.with("h2", &[("id", "overview")], what);
        html.element(
            "table",
            &[("class", "rows"), ("role", "table"), ("aria-labelledby", "overview")],
            |html| {
                head(html, if is_of_tasks { "Task" } else { "Loop" });
                html.element("tbody", &[("role", "rowgroup")], |html| {
                    for (place, one) in report.loops.iter().enumerate() {
                        if is_of_tasks {
                            one.task_list.iter().for_each(|task| row(html, place, &of_task(task, one)));
                        } else {
                            row(html, place, &of_loop(one));
                        }
                    }
                });
            },
        );
        for note in notes(report) {
            html.line("p", "note", one_line_within(&note, REASON));
        }
    });
    html.raw("\n");
}

/// What stands above the columns, and before each cell where there is no room for columns.
const COLUMNS: [&str; 6] = ["Ended", "Done", "Changes", "Commits", "Time", "Cost"];

fn head(html: &mut Html, first: &'static str) {
    html.element("thead", &[("role", "rowgroup")], |html| {
        html.element("tr", &[("role", "row")], |html| {
            for name in [first].iter().chain(&COLUMNS) {
                html.with("th", &[("role", "columnheader"), ("scope", "col")], name);
            }
        });
    });
}

fn row(html: &mut Html, place: usize, line: &Line<'_>) {
    let tone = Tone::of_end(line.end);
    let cells = [
        line.tasks.map(done_of),
        line.work.and_then(changes),
        line.work.and_then(|work| work.commits).map(|commits| commits.to_string()),
        (line.duration_s > 0.0).then(|| span(line.duration_s)),
        money(line.cost_usd),
    ];
    html.element("tr", &[("role", "row"), ("class", tone.class())], |html| {
        html.element("th", &[("role", "rowheader"), ("scope", "row")], |html| name(html, place, line));
        html.element("td", &[("role", "cell"), ("data-of", COLUMNS[0])], |html| {
            badge(html, tone, &plain(line.end));
        });
        for (of, cell) in COLUMNS[1..].iter().zip(cells) {
            let class = if cell.is_some() { "number" } else { "number none" };
            html.element("td", &[("role", "cell"), ("data-of", of), ("class", class)], |html| {
                html.text(cell.as_deref().unwrap_or("–"));
            });
        }
    });
}

/// The name, its title, why it ended so, and what to do.
fn name(html: &mut Html, place: usize, line: &Line<'_>) {
    html.element("a", &[("href", &format!("#{}", anchor(place)))], |html| {
        html.words(one_line_within(&plain(line.name), NAME));
    });
    if let Some(title) = line.title {
        html.text(" ").element("span", &[("class", "title")], |html| {
            html.words(one_line_within(&plain(title), NAME));
        });
    }
    let reason = line.reason.filter(|_| line.end != "done" || line.title.is_none());
    if let Some(reason) = reason {
        html.element("div", &[("class", "reason"), ("dir", "auto")], |html| {
            html.text(one_line_within(&plain(reason), REASON));
        });
    }
    if let Some(address) = line.pull_request {
        html.element("div", &[("class", "reason")], |html| link(html, address));
    }
    if let Some(next) = line.next {
        html.element("div", &[("class", "todo")], |html| {
            html.with("span", &[("aria-hidden", "true")], "→ ");
            html.line("code", "", one_line_within(&plain(next), REASON));
        });
    }
}

/// An address of the web can be followed; anything else is text.
pub(super) fn link(html: &mut Html, address: &str) {
    let is_address = address.starts_with("https://")
        && address.len() < 2_000
        && address.chars().all(|char| char.is_ascii_graphic());
    if is_address {
        html.element("a", &[("href", address), ("rel", "noopener noreferrer")], |html| {
            html.words(address);
        });
    } else {
        html.words(one_line_within(&plain(address), NAME));
    }
}
