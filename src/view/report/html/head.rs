//! The command of a run, its results, and the next command.

use super::PROJECT;
use super::markup::Html;
use super::tone::Tone;
use crate::record::report::{LoopReport, RunReport, Work};
use crate::tell::words;
use crate::text::count::money;
use crate::text::line::one_line_within;
use crate::text::{count, timestamp};
use crate::view::cells::plain;
use crate::view::report::{Line, ends, span, to, took};

/// So much of a reason is shown, in characters.
const REASON: usize = 2_000;

/// The head of the page.
pub(super) fn head(html: &mut Html, report: &RunReport, project: &str) {
    html.element("header", &[], |html| {
        html.element("h1", &[], |html| {
            html.words(one_line_within(&plain(project), PROJECT))
                .text(": ralph ")
                .words(plain(report.verb.as_deref().unwrap_or("report")));
        });
        when(html, report);
        badges(html, report);
        if let Some(next) = &report.next {
            html.element("p", &[("class", "next")], |html| {
                html.line("strong", "", "Next:").text(" ").line("code", "", plain(next));
            });
        }
    });
    html.raw("\n");
}

fn when(html: &mut Html, report: &RunReport) {
    let Some(began) = report.started_at else { return };
    html.element("p", &[("class", "when")], |html| {
        time(html, &began, &timestamp::local(&began));
        if report.is_running {
            html.text(", running");
        } else if let Some(ended) = report.ended_at {
            html.text(to(report));
            let began = began.with_timezone(&chrono::Local);
            time(html, &ended, &timestamp::nearby(&ended, began));
        }
    });
}

/// A time for people and programs.
pub(super) fn time(html: &mut Html, at: &chrono::DateTime<chrono::FixedOffset>, shown: &str) {
    html.with("time", &[("datetime", &at.to_rfc3339())], shown);
}

/// The number of loops with each end.
fn badges(html: &mut Html, report: &RunReport) {
    if report.loops.is_empty() {
        html.line("p", "", if report.is_running { "No loop has begun." } else { "No loop of it is left." });
        return;
    }
    let words = ends(report.loops.iter().map(|one| &*one.end));
    html.element("p", &[("class", "badges")], |html| {
        for one in &words {
            let (_, end) = one.split_once(' ').unwrap_or(("", one));
            let told = if report.loops.len() == 1 { end } else { one };
            // The worst of those with this end.
            let tones = report.loops.iter().filter(|one| one.end == end).map(Tone::of_loop);
            badge(html, tones.max().unwrap_or_else(|| Tone::of_end(end, None)), &plain(told));
            html.text(" ");
        }
    });
}

/// A word in the colour of a tone, after its sign.
pub(super) fn badge(html: &mut Html, tone: Tone, word: &str) {
    let class = format!("badge {}", tone.class());
    html.element("span", &[("class", &class)], |html| {
        html.with("span", &[("aria-hidden", "true")], tone.sign());
        html.text(" ").words(word);
    });
}

/// What shows that the work is good, and why it ended so where that is another fact.
pub(super) fn why(html: &mut Html, line: &Line<'_>) {
    if let Some(proof) = line.proof {
        let class = format!("proof {}", Tone::of_proof(proof).class());
        let told = words::proof(proof);
        html.element("div", &[("class", &class), ("dir", "auto")], |html| {
            html.with("span", &[("aria-hidden", "true")], &told.mark);
            html.text(" ").text(one_line_within(&plain(&told.text), REASON));
        });
    }
    if let Some(reason) = line.why() {
        html.element("div", &[("class", "reason"), ("dir", "auto")], |html| {
            html.text(one_line_within(&plain(reason), REASON));
        });
    }
}

/// The totals.
pub(super) fn figures(html: &mut Html, report: &RunReport) {
    let sum = |of: fn(&LoopReport) -> u64| report.loops.iter().map(of).fold(0, u64::saturating_add);
    let of_work = |of: fn(&Work) -> Option<u64>| {
        let known = report.loops.iter().filter_map(|one| of(one.work.as_ref()?));
        known.reduce(|sum, one| sum + one)
    };
    let costs: Vec<f64> = report.loops.iter().filter_map(|one| one.cost_usd).collect();
    let changed = of_work(|work| work.insertions).zip(of_work(|work| work.deletions));
    let (input, output) = (sum(|one| one.input_tokens), sum(|one| one.output_tokens));
    let failed = sum(|one| one.failed_attempts);
    let attempts = sum(|one| one.attempts);
    let figures = [
        took(report).map(|took| ("Time", span(took.as_secs_f64()), None)),
        Some(("Iterations", sum(|one| one.iterations).to_string(), None)),
        Some(("Attempts", attempts.to_string(), (failed > 0).then(|| format!("{failed} failed")))),
        of_work(|work| work.commits).map(|commits| {
            let changed = changed.map(|(came, went)| format!("+{came} −{went} lines"));
            ("Commits", commits.to_string(), changed)
        }),
        money((!costs.is_empty()).then(|| costs.iter().sum())).map(|cost| ("Cost", cost, None)),
        (input.saturating_add(output) > 0).then(|| {
            let told = format!("{} in, {} out", count::short(input), count::short(output));
            ("Tokens", count::short(input.saturating_add(output)), Some(told))
        }),
    ];
    html.element("dl", &[("class", "figures")], |html| {
        for (name, figure, more) in figures.into_iter().flatten() {
            html.element("div", &[], |html| {
                html.line("dt", "", name);
                html.element("dd", &[], |html| {
                    html.line("strong", "", figure);
                    if let Some(more) = more {
                        html.text(" ").line("small", "", more);
                    }
                });
            });
        }
    });
}
