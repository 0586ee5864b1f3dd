//! A line for each loop or task, as on the terminal.

use super::anchor;
use super::head::{badge, why};
use super::markup::Html;
use super::tone::Tone;
use crate::record::report::{LoopReport, RunReport};
use crate::tell::group::Group;
use crate::text::count::money;
use crate::text::line::one_line_within;
use crate::view::cells::plain;
use crate::view::report::text::notes;
use crate::view::report::{Line, changes, done_of, of_loop, of_task, span};

/// How much of a name or title is shown, in characters.
const NAME: usize = 300;
/// How much of a reason is shown, in characters.
const REASON: usize = 2_000;

/// The table of the results of loops or tasks.
pub(super) fn overview(html: &mut Html, report: &RunReport) {
    let is_of_tasks = report.loops.iter().any(|one| !one.task_list.is_empty());
    let what = if is_of_tasks { "Tasks" } else { "Loops" };
    let mut lines: Vec<(usize, Line<'_>)> = Vec::new();
    for (place, one) in report.loops.iter().enumerate() {
        if is_of_tasks {
            lines.extend(one.task_list.iter().map(|task| (place, of_task(task, one))));
        } else {
            lines.push((place, of_loop(one)));
        }
    }
    let rows: Vec<[Option<String>; FIGURES]> = lines.iter().map(|(_, line)| figures(line)).collect();
    let shown: Vec<usize> =
        (0..FIGURES).filter(|&column| rows.iter().any(|row| row[column].is_some())).collect();
    html.element("section", &[("aria-labelledby", "overview")], |html| {
        html.with("h2", &[("id", "overview")], what);
        html.element(
            "table",
            &[("class", "rows"), ("role", "table"), ("aria-labelledby", "overview")],
            |html| {
                head(html, if is_of_tasks { "Task" } else { "Loop" }, &shown);
                html.element("tbody", &[("role", "rowgroup")], |html| {
                    for ((place, line), row) in lines.iter().zip(&rows) {
                        self::row(
                            html,
                            *place,
                            line,
                            shown.iter().map(|&column| (NAMES[column], row[column].as_deref())),
                        );
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

/// The figures of a line; an empty column is left out.
const FIGURES: usize = 5;
/// Their heads, which stand before each figure if there is no room for columns.
const NAMES: [&str; FIGURES] = ["Done", "Changes", "Commits", "Time", "Cost"];

fn figures(line: &Line<'_>) -> [Option<String>; FIGURES] {
    [
        line.tasks.map(done_of),
        line.work.and_then(changes),
        line.work.and_then(|work| work.commits).map(|commits| commits.to_string()),
        (line.duration_s > 0.0).then(|| span(line.duration_s)),
        money(line.cost_usd),
    ]
}

fn head(html: &mut Html, first: &'static str, shown: &[usize]) {
    html.element("thead", &[("role", "rowgroup")], |html| {
        html.element("tr", &[("role", "row")], |html| {
            for name in [first, "Ended"].into_iter().chain(shown.iter().map(|&column| NAMES[column])) {
                html.with("th", &[("role", "columnheader"), ("scope", "col")], name);
            }
        });
    });
}

fn row<'a>(
    html: &mut Html,
    place: usize,
    line: &Line<'_>,
    figures: impl Iterator<Item = (&'static str, Option<&'a str>)>,
) {
    let tone = Tone::of_end(line.end, line.proof);
    html.element("tr", &[("role", "row"), ("class", tone.class())], |html| {
        html.element("th", &[("role", "rowheader"), ("scope", "row")], |html| name(html, place, line));
        html.element("td", &[("role", "cell")], |html| badge(html, tone, &plain(line.end)));
        for (of, figure) in figures {
            let class = if figure.is_some() { "number" } else { "number none" };
            html.with("td", &[("role", "cell"), ("data-of", of), ("class", class)], figure.unwrap_or("–"));
        }
    });
}

/// The loops of a run of several that need the user, before all figures: what they need, and the command that helps.
pub(super) fn needs_you(html: &mut Html, report: &RunReport) {
    let is_meant = |one: &LoopReport| one.group == Some(Group::NeedsYou) && one.task_list.is_empty();
    let meant: Vec<(usize, &LoopReport)> =
        report.loops.iter().enumerate().filter(|(_, one)| is_meant(one)).collect();
    if meant.is_empty() || report.loops.len() == 1 {
        return;
    }
    html.element("section", &[("class", "needs"), ("aria-labelledby", "needs")], |html| {
        html.with("h2", &[("id", "needs")], Group::NeedsYou.heading());
        html.element("ul", &[], |html| {
            for (place, one) in meant {
                html.element("li", &[], |html| {
                    name(html, place, &of_loop(one));
                });
            }
        });
    });
}

/// The name, its title, what shows that its work is good, why it ended so, and what to do.
fn name(html: &mut Html, place: usize, line: &Line<'_>) {
    html.element("a", &[("href", &format!("#{}", anchor(place)))], |html| {
        html.words(one_line_within(&plain(line.name), NAME));
    });
    if let Some(title) = line.title {
        html.text(" ").element("span", &[("class", "title")], |html| {
            html.words(one_line_within(&plain(title), NAME));
        });
    }
    why(html, line);
    if let Some(address) = line.pull_request {
        html.element("div", &[("class", "reason")], |html| link(html, address));
    }
    if let Some(next) = line.next {
        html.element("div", &[("class", "todo")], |html| {
            html.with("span", &[("aria-hidden", "true")], "→ ");
            html.line("code", "", one_line_within(&plain(next), REASON));
            if let Some(then) = line.then {
                html.text(", then ").line("code", "", one_line_within(&plain(then), REASON));
            }
        });
    }
}

/// A link for a web address; anything else is text.
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
