//! A report for a pull request or a chat. Foreign words are in code spans: there they are no mark-up, no mention and no HTML.

use std::fmt::Write as _;

use super::{changes, done_of, lines, span, sums, to};
use crate::record::report::RunReport;
use crate::text::count::money;
use crate::text::timestamp;
use crate::view::cells::plain;

/// The whole report.
#[must_use]
pub(crate) fn markdown(report: &RunReport) -> String {
    let mut text = format!("## ralph {}\n\n", report.verb.as_deref().unwrap_or("report"));
    if let Some(began) = report.started_at {
        // Writing to a String cannot fail.
        let _ = write!(text, "{}", timestamp::local(&began));
        let ended = report.ended_at.filter(|_| !report.is_running);
        let _ = writeln!(
            text,
            "{}\n",
            ended.map(|at| format!("{}{}", to(report), timestamp::local(&at))).unwrap_or_default()
        );
    }
    text += "| | | tasks | changes | commits | time | cost |\n|---|---|---|---|---|---|---|\n";
    let lines = lines(report);
    for line in &lines {
        let commits = line.work.and_then(|work| work.commits).map(|commits| commits.to_string());
        let cells = [
            code(&line.title.map_or(line.name.to_owned(), |title| format!("{} {title}", line.name)))
                .replace('|', "\\|"),
            format!("**{}**", plain(line.end)),
            line.tasks.map(done_of).unwrap_or_default(),
            line.work.and_then(changes).unwrap_or_default(),
            commits.unwrap_or_default(),
            span(line.duration_s),
            money(line.cost_usd).unwrap_or_default(),
        ];
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    for line in sums(report) {
        let _ = writeln!(text, "\n{line}");
    }
    let mut told = lines
        .iter()
        .filter(|line| {
            line.proof.is_some() || line.why().is_some() || line.next.is_some() || line.pull_request.is_some()
        })
        .peekable();
    if told.peek().is_some() {
        text += "\n";
    }
    for line in told {
        let parts = [
            line.proof.map(|proof| format!("{}: {}", proof.standing.word(), code(&proof.by))),
            line.why().map(code),
            line.waits.clone(),
            line.pull_request.map(code_or_address),
            line.next.map(|next| format!("next: {}", code(next))),
            line.then.map(|then| format!("then: {}", code(then))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let _ = writeln!(text, "- {}: {}", code(line.name), parts.join("; "));
    }
    if let Some(next) = &report.next {
        let _ = writeln!(text, "\nNext: {}", code(next));
    }
    text
}

/// An address of the web as it is, anything else as code.
fn code_or_address(text: &str) -> String {
    let is_address = text.starts_with("https://")
        && text.chars().all(|char| char.is_ascii_graphic() && !"<>()[]`\"".contains(char));
    if is_address { text.to_owned() } else { code(text) }
}

/// `text` on one line in a code span, whatever is in it.
fn code(text: &str) -> String {
    let text = plain(text);
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // Markdown removes one blank at both ends.
    let blank = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    if text.is_empty() { text } else { format!("{fence}{blank}{text}{blank}{fence}") }
}
