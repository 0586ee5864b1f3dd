//! The section of a loop: facts, waits, tools, commits, iterations.

use super::head::{badge, time, why};
use super::iterations::iterations;
use super::markup::Html;
use super::overview::link;
use super::timeline::wait_word;
use super::tone::Tone;
use super::{Logs, anchor};
use crate::record::report::{CommitReport, LoopReport};
use crate::text::count::money;
use crate::text::line::{one_line_within, shell_word};
use crate::text::{count, timestamp};
use crate::view::cells::plain;
use crate::view::report::{changes, done_of, of_loop, span};

/// How much of a name, subject or reason is shown, in characters.
const WORDS: usize = 300;
const REASON: usize = 2_000;
/// The most waits, tools and commits that are listed.
const WAITS: usize = 50;
const TOOLS: usize = 40;
const COMMITS: usize = 200;
/// How many characters of a commit's name are shown.
const SHORT: usize = 9;

/// The section of a loop, with at most about `room` bytes of iterations; returns how many it took.
pub(super) fn one_loop(
    html: &mut Html,
    place: usize,
    one: &LoopReport,
    logs: &Logs<'_>,
    room: usize,
) -> usize {
    let id = anchor(place);
    let heading = format!("{id}-name");
    let mut took = 0;
    html.element("section", &[("id", &id), ("class", "loop"), ("aria-labelledby", &heading)], |html| {
        html.element("h2", &[("id", &heading)], |html| {
            html.words(one_line_within(&plain(&one.name), WORDS)).text(" ");
            badge(html, Tone::of_loop(one), &plain(&one.end));
        });
        why(html, &of_loop(one));
        facts(html, one);
        for note in one.notes.iter().filter(|note| one.reason.as_ref() != Some(note)) {
            html.element("p", &[("class", "note"), ("dir", "auto")], |html| {
                html.text(one_line_within(&plain(note), REASON));
            });
        }
        let before = html.len();
        iterations(html, &id, one, logs, room);
        took = html.len() - before;
        commits(html, &id, one);
        waits(html, &id, one);
        tools(html, &id, one);
    });
    html.raw("\n");
    took
}

fn facts(html: &mut Html, one: &LoopReport) {
    let when = one.started_at.map(|at| timestamp::local(&at));
    let several = super::super::agents(std::slice::from_ref(one));
    let agent = match &one.model {
        Some(model) if *model != one.agent => format!("{}, {model}", one.agent),
        _ => one.agent.clone(),
    };
    let failed =
        if one.failed_attempts > 0 { format!(", {} failed", one.failed_attempts) } else { String::new() };
    let tokens = one.input_tokens + one.output_tokens;
    let facts = [
        ("Agent", several.or((!agent.is_empty()).then_some(agent))),
        ("Began", when),
        ("Took", (one.duration_s > 0.0).then(|| span(one.duration_s))),
        ("Tasks done", one.tasks.filter(|tasks| tasks.total > 0).map(done_of)),
        ("Iterations", Some(one.iterations.to_string())),
        ("Attempts", Some(format!("{}{failed}", one.attempts))),
        ("Changes", one.work.as_ref().and_then(changes)),
        ("Cost", money(one.cost_usd)),
        (
            "Tokens",
            (tokens > 0).then(|| {
                format!("{} in, {} out", count::short(one.input_tokens), count::short(one.output_tokens))
            }),
        ),
    ];
    html.element("dl", &[("class", "facts")], |html| {
        for (name, fact) in facts {
            let Some(fact) = fact else { continue };
            html.element("div", &[], |html| {
                html.line("dt", "", name);
                html.element("dd", &[], |html| {
                    html.words(one_line_within(&plain(&fact), WORDS));
                });
            });
        }
        if let Some(address) = &one.pull_request {
            html.raw("<div class=\"long\"><dt>Pull request</dt><dd>");
            link(html, address);
            html.raw("</dd></div>");
        }
        if let Some(next) = &one.next {
            html.raw("<div class=\"long\"><dt>Next</dt><dd>");
            html.line("code", "", one_line_within(&plain(next), REASON));
            if let Some(then) = &one.then {
                html.text(", then ").line("code", "", one_line_within(&plain(then), REASON));
            }
            html.raw("</dd></div>");
        }
    });
}

/// A table that may be wider than a telephone: it scrolls by itself, also with the keyboard.
fn table(html: &mut Html, label: &str, heads: &[&'static str], rows: impl FnOnce(&mut Html)) {
    html.element(
        "div",
        &[("class", "wide"), ("role", "region"), ("tabindex", "0"), ("aria-label", label)],
        |html| {
            html.element("table", &[], |html| {
                html.raw("<thead><tr>");
                for head in heads {
                    html.with("th", &[("scope", "col")], head);
                }
                html.raw("</tr></thead><tbody>");
                rows(html);
                html.raw("</tbody>");
            });
        },
    );
}

/// The table of commits, whose cells stand below each other on a telephone; its roles stay then, too.
fn table_of_commits(html: &mut Html, label: &str, rows: impl FnOnce(&mut Html)) {
    html.element("table", &[("class", "commits"), ("role", "table"), ("aria-label", label)], |html| {
        html.raw("<thead role=\"rowgroup\"><tr role=\"row\">");
        for head in ["Commit", "When", "What", "Lines", "Size"] {
            html.with("th", &[("role", "columnheader"), ("scope", "col")], head);
        }
        html.raw("</tr></thead><tbody role=\"rowgroup\">");
        rows(html);
        html.raw("</tbody>");
    });
}

fn heading(html: &mut Html, id: &str, what: &'static str, name: &'static str) {
    html.with("h3", &[("id", &format!("{id}-{what}"))], name);
}

fn commits(html: &mut Html, id: &str, one: &LoopReport) {
    if one.commit_list.is_empty() {
        return;
    }
    heading(html, id, "commits", "Commits");
    let label = format!("Commits of {}", one_line_within(&plain(&one.name), WORDS));
    let shown = &one.commit_list[..one.commit_list.len().min(COMMITS)];
    let largest = shown.iter().map(|commit| commit.insertions + commit.deletions).max().unwrap_or_default();
    table_of_commits(html, &label, |html| {
        for one in shown {
            commit(html, one, largest);
        }
    });
    let total = one.work.as_ref().and_then(|work| work.commits).unwrap_or_default();
    let left_out = total.saturating_sub(shown.len() as u64);
    if left_out > 0 {
        html.element("p", &[("class", "note")], |html| {
            html.text(format!("{} before these: ", count::of(left_out, "commit")));
            html.line("code", "", format!("ralph diff {}", shell_word(&one.name)));
        });
    }
}

fn commit(html: &mut Html, one: &CommitReport, largest: u64) {
    let cell = |class| [("role", "cell"), ("class", class)];
    html.element("tr", &[("role", "row")], |html| {
        let id: String = one.id.chars().take(SHORT).collect();
        html.element("td", &cell("number"), |html| {
            html.line("code", "", id);
        });
        html.element("td", &cell("number"), |html| time(html, &one.at, &timestamp::minute(&one.at)));
        html.element("td", &cell("subject"), |html| {
            html.words(one_line_within(&plain(&one.subject), WORDS));
        });
        html.element("td", &cell("number"), |html| {
            html.line("span", "came", format!("+{}", one.insertions)).text(" ");
            html.line("span", "went", format!("−{}", one.deletions));
        });
        html.element("td", &[("role", "cell")], |html| size(html, one, largest));
    });
}

/// The size of a commit, compared with the largest one.
fn size(html: &mut Html, one: &CommitReport, largest: u64) {
    use super::svg::{Place, rect};
    #[expect(clippy::cast_precision_loss, reason = "it is painted")]
    let part = |lines: u64| lines as f64 / largest.max(1) as f64;
    let (came, went) = (part(one.insertions), part(one.deletions));
    html.element("svg", &[("class", "size"), ("height", "10"), ("aria-hidden", "true")], |html| {
        rect(html, Place { from: 0.0, to: came, top: 0.0, height: 10.0 }, "plus", None, None);
        rect(html, Place { from: came, to: came + went, top: 0.0, height: 10.0 }, "minus", None, None);
    });
}

fn waits(html: &mut Html, id: &str, one: &LoopReport) {
    let waits = &one.waits;
    if waits.is_empty() {
        return;
    }
    heading(html, id, "waits", "Waits");
    let label = format!("Waits of {}", one_line_within(&plain(&one.name), WORDS));
    table(html, &label, &["For what", "From", "To", "Until at most"], |html| {
        for wait in &waits[waits.len().saturating_sub(WAITS)..] {
            let day = wait.from.with_timezone(&chrono::Local);
            html.element("tr", &[], |html| {
                html.raw("<td>")
                    .words(one_line_within(&plain(wait_word(&wait.what)), WORDS))
                    .raw("</td><td>");
                time(html, &wait.from, &timestamp::local(&wait.from));
                for at in [wait.to, wait.until] {
                    html.raw("</td><td>");
                    match at {
                        Some(at) => {
                            time(html, &at, &timestamp::nearby(&at, day));
                        }
                        None => {
                            html.text("–");
                        }
                    }
                }
                html.raw("</td>");
            });
        }
    });
    if waits.len() > WAITS {
        html.line("p", "note", format!("{} before these are left out.", waits.len() - WAITS));
    }
}

fn tools(html: &mut Html, id: &str, one: &LoopReport) {
    if one.tools.is_empty() {
        return;
    }
    heading(html, id, "tools", "Tool calls");
    let mut tools: Vec<(&String, &u64)> = one.tools.iter().collect();
    tools.sort_by_key(|(name, calls)| (std::cmp::Reverse(**calls), *name));
    html.element("ul", &[("class", "tools")], |html| {
        for (name, calls) in &tools[..tools.len().min(TOOLS)] {
            html.element("li", &[], |html| {
                html.words(one_line_within(&plain(name), WORDS)).text(" ");
                html.line("strong", "", calls.to_string());
            });
        }
    });
    if tools.len() > TOOLS {
        let calls: u64 = tools[TOOLS..].iter().map(|(_, calls)| **calls).sum();
        html.line(
            "p",
            "note",
            format!("{} more tools, called {}.", tools.len() - TOOLS, count::of(calls, "time")),
        );
    }
}
