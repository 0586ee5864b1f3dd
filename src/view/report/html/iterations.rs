//! The iterations of a loop, each folded: its attempts, the last text, the output of its validation.

use super::Logs;
use super::head::{badge, time};
use super::markup::Html;
use super::tone::Tone;
use super::transcript::transcript;
use crate::record::report::{AttemptReport, IterationReport, LoopReport, ValidationReport};
use crate::text::count;
use crate::text::count::money;
use crate::text::head_and_tail::head_and_tail;
use crate::text::line::one_line_within;
use crate::text::timestamp;
use crate::view::cells::plain;
use crate::view::report::span;

/// The most iterations of a loop that are shown, the newest.
const MOST: usize = 200;
/// More than so many are folded into groups of this size; the newest ones stand by themselves.
const GROUP: usize = 20;
/// The most attempts of an iteration that are shown, the last.
const ATTEMPTS: usize = 30;
/// How much of the last text, of a failure and of a validation is shown, in bytes.
const SAID: usize = 3_000;
const FAILURE: usize = 2_000;
const VALIDATION: usize = 8_000;

/// The newest iterations that fit, in their order.
pub(super) fn iterations(html: &mut Html, id: &str, one: &LoopReport, logs: &Logs<'_>, room: usize) {
    if one.iteration_list.is_empty() {
        return;
    }
    html.with("h3", &[("id", &format!("{id}-iterations"))], "Iterations");
    let mut told: Vec<(&IterationReport, Html)> = Vec::new();
    let mut left = room;
    // The number of the attempt after that of the iteration.
    let mut behind = one.iteration_list.iter().map(|one| one.attempts.len() as u64).sum::<u64>() + 1;
    for iteration in one.iteration_list.iter().rev().take(MOST) {
        if left == 0 {
            break;
        }
        behind -= iteration.attempts.len() as u64;
        let frame = Frame { id, one, logs, first: behind, room: left, is_last: told.is_empty() };
        let mut piece = Html::default();
        frame.iteration(&mut piece, iteration);
        left = left.saturating_sub(piece.len());
        told.push((iteration, piece));
    }
    let left_out = one.iteration_list.len() - told.len();
    if let Some(last) = left_out.checked_sub(1).map(|last| &one.iteration_list[last]) {
        html.element("p", &[("class", "note")], |html| {
            let first = &one.iteration_list[0];
            html.text(format!("Left out here: iterations {} to {}. All are in ", first.number, last.number));
            html.line("code", "", logs.command(&one.name, None)).text(".");
        });
    }
    told.reverse();
    let grouped = told.len().saturating_sub(1) / GROUP * GROUP;
    let (older, newest) = told.split_at(grouped);
    for group in older.chunks(GROUP) {
        self::group(html, one, group);
    }
    for (_, piece) in newest {
        html.append(piece);
    }
}

/// Iterations that are folded together, with how they ended.
fn group(html: &mut Html, one: &LoopReport, group: &[(&IterationReport, Html)]) {
    let (Some((first, _)), Some((last, _))) = (group.first(), group.last()) else { return };
    let tones: Vec<Tone> =
        group.iter().map(|(iteration, _)| Tone::of_iteration(iteration, one.is_at_work())).collect();
    html.element("details", &[("class", "group")], |html| {
        html.element("summary", &[], |html| {
            html.text(format!("Iterations {} to {} ", first.number, last.number));
            for tone in Tone::ALL {
                let count = tones.iter().filter(|other| **other == tone).count();
                if count > 0 {
                    badge(html, tone, &format!("{count} {}", tone.word()));
                    html.text(" ");
                }
            }
        });
        for (_, piece) in group {
            html.append(piece);
        }
    });
}

/// The context of an iteration.
struct Frame<'a> {
    /// The loop's section in the page.
    id: &'a str,
    one: &'a LoopReport,
    logs: &'a Logs<'a>,
    /// The number of its first attempt.
    first: u64,
    /// The room for it, in bytes.
    room: usize,
    is_last: bool,
}

impl Frame<'_> {
    fn is_running(&self) -> bool {
        self.one.is_at_work()
    }

    /// An iteration, folded, except the last one of a loop that did not end well.
    fn iteration(&self, html: &mut Html, iteration: &IterationReport) {
        let tone = Tone::of_iteration(iteration, self.is_running());
        let id = format!("{}-iteration-{}", self.id, iteration.number);
        let mut attributes = vec![("id", &*id), ("class", "iteration")];
        if self.is_last && self.one.end != "done" {
            attributes.push(("open", ""));
        }
        html.element("details", &attributes, |html| {
            html.element("summary", &[], |html| {
                html.with("h4", &[], format!("Iteration {}", iteration.number)).text(" ");
                badge(html, tone, tone.word());
                html.text(" ");
                html.element("span", &[("class", "faint")], |html| in_short(html, self.one, iteration));
            });
            self.attempts(html, iteration);
            if let Some(validation) = &iteration.validation {
                self::validation(html, validation);
            }
        });
        html.raw("\n");
    }

    /// The last attempts of an iteration, which may have many.
    fn attempts(&self, html: &mut Html, iteration: &IterationReport) {
        let attempts = iteration.attempts.len();
        let left_out = attempts.saturating_sub(ATTEMPTS);
        if left_out > 0 {
            html.line(
                "p",
                "note",
                format!("{} before these are left out.", count::of(left_out as u64, "attempt")),
            );
        }
        for (place, attempt) in iteration.attempts.iter().enumerate().skip(left_out) {
            // The last one is as good as its validation.
            let tone = if place + 1 == attempts {
                Tone::of_iteration(iteration, self.is_running())
            } else {
                Tone::of_attempt(attempt, self.is_running())
            };
            self::attempt(html, attempt, (place, attempts), tone, self.is_running());
            let number = self.first + place as u64;
            let command = self.logs.command(&self.one.name, Some(number));
            transcript(html, self.logs.transcripts, number, &command, html.len() < self.room);
        }
    }
}

fn validation(html: &mut Html, validation: &ValidationReport) {
    let (word, tone) = match (validation.ok, validation.undecided) {
        (true, _) => ("succeeded", Tone::Good),
        (false, true) => ("without a verdict", Tone::Unproven),
        (false, false) => ("failed", Tone::Failed),
    };
    html.raw("<h5>Validation ");
    badge(html, tone, word);
    html.raw("</h5>");
    if !validation.output.trim().is_empty() {
        html.with("pre", &[("dir", "auto")], head_and_tail(&validation.output, VALIDATION));
    }
}

/// Time, duration and cost, on one line.
fn in_short(html: &mut Html, one: &LoopReport, iteration: &IterationReport) {
    let sum = |of: fn(&AttemptReport) -> Option<f64>| {
        iteration.attempts.iter().filter_map(of).reduce(|sum, one| sum + one)
    };
    if let Some(first) = iteration.attempts.first() {
        let day = one.started_at.unwrap_or(first.started_at).with_timezone(&chrono::Local);
        time(html, &first.started_at, &timestamp::nearby(&first.started_at, day));
    }
    let tools: u64 = iteration.attempts.iter().map(|attempt| attempt.tool_calls).sum();
    let attempts = iteration.attempts.len() as u64;
    let parts = [
        sum(|attempt| attempt.duration_s).map(span),
        (attempts > 1).then(|| count::of(attempts, "attempt")),
        (tools > 0).then(|| count::of(tools, "tool call")),
        money(sum(|attempt| attempt.cost_usd)),
    ];
    for part in parts.into_iter().flatten() {
        html.text(" · ").text(part);
    }
    if let Some(task) = &iteration.task {
        html.text(" · ").words(one_line_within(&plain(task), 100));
    }
}

fn attempt(
    html: &mut Html,
    attempt: &AttemptReport,
    (place, attempts): (usize, usize),
    tone: Tone,
    is_running: bool,
) {
    html.element("h5", &[], |html| {
        let which = if attempts > 1 {
            format!("Attempt {} of {attempts} ", place + 1)
        } else {
            "Attempt ".to_owned()
        };
        html.text(which);
        badge(
            html,
            tone,
            &plain(attempt.status.as_deref().unwrap_or(if is_running { "running" } else { "cut off" })),
        );
    });
    html.element("p", &[("class", "faint")], |html| {
        let tokens = attempt.input_tokens.zip(attempt.output_tokens);
        let parts = [
            (attempt.retry > 0).then(|| format!("retry {}", attempt.retry)),
            attempt.duration_s.map(span),
            money(attempt.cost_usd),
            tokens.map(|(input, output)| format!("{} in, {} out", count::short(input), count::short(output))),
            (attempt.tool_calls > 0).then(|| count::of(attempt.tool_calls, "tool call")),
        ];
        time(html, &attempt.started_at, &timestamp::local(&attempt.started_at));
        for part in parts.into_iter().flatten() {
            html.text(" · ").text(part);
        }
    });
    if let Some(failure) = &attempt.failure {
        html.element("p", &[("class", "failure"), ("dir", "auto")], |html| {
            html.text(head_and_tail(failure, FAILURE));
        });
    }
    if let Some(said) = &attempt.said {
        html.raw("<h6>Said last</h6>");
        html.element("blockquote", &[("class", "said"), ("dir", "auto")], |html| {
            html.text(head_and_tail(said, SAID));
        });
    }
}
