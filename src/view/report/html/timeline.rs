//! The timeline: a lane for each loop, a bar for each attempt, with its end.

use chrono::{DateTime, FixedOffset, Local};

use super::head::{badge, time};
use super::markup::Html;
use super::svg::{Place, rect, sample, toned};
use super::tone::Tone;
use crate::record::report::{LoopReport, RunReport};
use crate::tell::words;
use crate::text::line::one_line_within;
use crate::text::{count, timestamp};
use crate::view::cells::plain;
use crate::view::report::span;

/// The number of slots of a lane; attempts in one slot are one bar.
const SLOTS: u32 = 400;
/// The most lanes.
const LANES: usize = 40;
/// The height of a lane, and of the waits below its bars.
const LANE: f64 = 30.0;
const WAIT: f64 = 6.0;
/// The space between two bars, in slots.
const GAP: f64 = 0.25;

/// The time range of the picture, in milliseconds of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scale {
    from: i64,
    to: i64,
}

/// A bar: adjacent slots with the same attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bar {
    /// The first slot and the one after the last.
    from: u32,
    to: u32,
    /// The worst tone of its attempts.
    tone: Tone,
    /// The numbers of the first and the last attempt in the loop.
    attempts: (usize, usize),
    /// Their iterations.
    iterations: (u64, u64),
}

/// The picture with its legend; nothing without attempts.
pub(super) fn timeline(html: &mut Html, report: &RunReport) {
    let Some(scale) = Scale::of(report) else { return };
    let lanes: Vec<&LoopReport> = report.loops.iter().filter(|one| !one.iteration_list.is_empty()).collect();
    html.element("section", &[("aria-labelledby", "timeline")], |html| {
        html.raw("<h2 id=\"timeline\">Timeline</h2>");
        html.element("div", &[("class", "lanes")], |html| {
            for one in &lanes[..lanes.len().min(LANES)] {
                lane(html, one, scale);
            }
            axis(html, scale);
        });
        if lanes.len() > LANES {
            html.line(
                "p",
                "note",
                format!("{} more are not painted.", count::of((lanes.len() - LANES) as u64, "loop")),
            );
        }
        legend(html, &lanes);
    });
    html.raw("\n");
}

impl Scale {
    fn of(report: &RunReport) -> Option<Self> {
        let attempts = report.loops.iter().flat_map(|one| &one.iteration_list).flat_map(|one| &one.attempts);
        let waits = report.loops.iter().flat_map(|one| &one.waits);
        let spans = attempts.map(|attempt| {
            let from = attempt.started_at.timestamp_millis();
            (from, from + millis(attempt.duration_s.unwrap_or_default()))
        });
        let waits =
            waits.filter_map(|wait| Some((wait.from.timestamp_millis(), wait.to?.timestamp_millis())));
        let is_empty = report.loops.iter().all(|one| one.iteration_list.is_empty());
        let all = spans.chain(waits).reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))?;
        (!is_empty).then_some(Self { from: all.0, to: all.1.max(all.0 + 1) })
    }

    /// The place of a time, from 0 to 1; outside of that if the clock was set.
    fn part(self, at: i64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "it is painted")]
        let part = (at - self.from) as f64 / (self.to - self.from) as f64;
        part.clamp(0.0, 1.0)
    }

    fn slot(self, at: i64) -> u32 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 1")]
        let slot = (self.part(at) * f64::from(SLOTS)).round() as u32;
        slot.min(SLOTS)
    }

    fn moment(self, part: i32) -> DateTime<Local> {
        let at = self.from + (self.to - self.from) / 4 * i64::from(part);
        DateTime::from_timestamp_millis(at).unwrap_or_default().with_timezone(&Local)
    }
}

fn millis(seconds: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "nothing takes that long")]
    let millis = (seconds.max(0.0) * 1e3) as i64;
    millis
}

/// The bars of a loop, from left to right.
fn bars(one: &LoopReport, scale: Scale) -> Vec<Bar> {
    let is_running = one.is_at_work();
    let mut slots: Vec<Option<Bar>> = vec![None; SLOTS as usize];
    let mut count = 0;
    for iteration in &one.iteration_list {
        let last = iteration.attempts.len().saturating_sub(1);
        for (place, attempt) in iteration.attempts.iter().enumerate() {
            let from = attempt.started_at.timestamp_millis();
            let to = match attempt.duration_s {
                Some(duration) => from + millis(duration),
                None => one.ended_at.map_or(from, |at| at.timestamp_millis()),
            };
            let of_attempt = Tone::of_attempt(attempt, is_running);
            let tone = if place == last { Tone::of_iteration(iteration, is_running) } else { of_attempt };
            let first = scale.slot(from).min(SLOTS - 1);
            for slot in first..scale.slot(to).max(first + 1) {
                let numbers = (iteration.number, iteration.number);
                let bar =
                    Bar { from: slot, to: slot + 1, tone, attempts: (count, count), iterations: numbers };
                let there = &mut slots[slot as usize];
                *there = Some(there.map_or(bar, |before| before.with(bar)));
            }
            count += 1;
        }
    }
    let mut bars: Vec<Bar> = Vec::new();
    for bar in slots.into_iter().flatten() {
        match bars.last_mut() {
            Some(before) if before.to == bar.from && before.attempts == bar.attempts => before.to = bar.to,
            _ => bars.push(bar),
        }
    }
    bars
}

impl Bar {
    /// Both in the same slot.
    fn with(self, other: Self) -> Self {
        Self {
            tone: self.tone.max(other.tone),
            attempts: (self.attempts.0, other.attempts.1),
            iterations: (self.iterations.0, other.iterations.1),
            ..self
        }
    }

    fn told(&self) -> String {
        let (first, last) = self.iterations;
        let iterations = if first == last {
            format!("iteration {first}")
        } else {
            format!("iterations {first} to {last}")
        };
        let attempts = self.attempts.1 - self.attempts.0 + 1;
        let attempts = if attempts > 1 { format!(", {attempts} attempts") } else { String::new() };
        format!("{iterations}{attempts}: {}", self.tone.word())
    }
}

fn lane(html: &mut Html, one: &LoopReport, scale: Scale) {
    let name = one_line_within(&plain(&one.name), 120);
    html.element("div", &[("class", "lane")], |html| {
        html.element("p", &[], |html| {
            html.element("span", &[("class", "of")], |html| {
                html.words(&name);
            });
            html.text(" ");
            badge(html, Tone::of_loop(one), &plain(&one.end));
        });
        let told = format!("{name}: {}", summary(one));
        let height = format!("{LANE}");
        html.element("svg", &[("role", "img"), ("aria-label", &told), ("height", &height)], |html| {
            for part in 1..4 {
                let from = f64::from(part) / 4.0;
                rect(html, Place { from, to: from + 0.0005, top: 0.0, height: LANE }, "grid", None, None);
            }
            for bar in bars(one, scale) {
                let place = Place {
                    from: f64::from(bar.from) / f64::from(SLOTS),
                    to: (f64::from(bar.to) - GAP) / f64::from(SLOTS),
                    top: 2.0,
                    height: LANE - WAIT - 5.0,
                };
                toned(html, place, bar.tone, Some(&bar.told()));
            }
            waits(html, one, scale);
        });
    });
}

fn waits(html: &mut Html, one: &LoopReport, scale: Scale) {
    let mut last = None;
    for wait in &one.waits {
        let from = wait.from.timestamp_millis();
        let to = wait.to.or(one.ended_at).map_or(from, |at| at.timestamp_millis()).max(from);
        let slots = (scale.slot(from), scale.slot(to));
        // Many short ones are painted once.
        if last.replace(slots) == Some(slots) {
            continue;
        }
        let (from, to) = (scale.part(from), scale.part(to));
        let place = Place { from, to: to.max(from + 0.002), top: LANE - WAIT, height: WAIT };
        let told = wait_word(&wait.what);
        rect(html, place, "wait", None, Some(told));
        rect(html, place, "over", Some("url(#hatch)"), Some(told));
    }
}

/// The reason of a wait, in words.
pub(super) fn wait_word(what: &str) -> &str {
    match what {
        "queued" => words::QUEUED,
        "needs_attention" => "needs attention",
        other => words::wait_named(other),
    }
}

/// The lane in words.
fn summary(one: &LoopReport) -> String {
    let is_running = one.is_at_work();
    let tones: Vec<Tone> =
        one.iteration_list.iter().map(|iteration| Tone::of_iteration(iteration, is_running)).collect();
    let counts = Tone::ALL.map(|tone| (tone, tones.iter().filter(|one| **one == tone).count()));
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts.map(|(tone, count)| format!("{count} {}", tone.word())).collect();
    let waits = if one.waits.is_empty() {
        String::new()
    } else {
        format!(", waited {}", count::of(one.waits.len() as u64, "time"))
    };
    format!(
        "{} in {}: {}{waits}",
        count::of(one.iterations, "iteration"),
        span(one.duration_s),
        counts.join(", ")
    )
}

/// The times below the lanes; with little room only the first, the middle and the last.
fn axis(html: &mut Html, scale: Scale) {
    let (first, last) = (scale.moment(0), scale.moment(4));
    let is_short = scale.to - scale.from < 5 * 60 * 1_000;
    let form = match (first.date_naive() == last.date_naive(), is_short) {
        (true, true) => "%H:%M:%S",
        (true, false) => "%H:%M",
        (false, _) => "%b %d, %H:%M",
    };
    html.element("div", &[("class", "axis")], |html| {
        for part in 0..=4 {
            let at: DateTime<FixedOffset> = scale.moment(part).fixed_offset();
            time(html, &at, &at.format(form).to_string());
        }
    });
    html.line("p", "zone", format!("From {} on, local time.", timestamp::local(&first)));
}

/// The legend of the colours and patterns in use.
fn legend(html: &mut Html, lanes: &[&LoopReport]) {
    let is_there = |tone: Tone| {
        lanes.iter().any(|one| {
            let is_running = one.is_at_work();
            let attempts = one.iteration_list.iter().flat_map(|one| &one.attempts);
            let of_iterations = one.iteration_list.iter().map(|one| Tone::of_iteration(one, is_running));
            attempts.map(|one| Tone::of_attempt(one, is_running)).chain(of_iterations).any(|one| one == tone)
        })
    };
    html.element("ul", &[("class", "legend")], |html| {
        for tone in Tone::ALL.into_iter().filter(|tone| is_there(*tone)) {
            html.element("li", &[], |html| {
                sample(html, tone);
                html.text(" ").text(tone.word());
            });
        }
        if lanes.iter().any(|one| !one.waits.is_empty()) {
            html.raw(
                "<li><svg class=\"sample\" width=\"16\" height=\"12\" aria-hidden=\"true\"><rect class=\"wait\" \
                 y=\"3\" width=\"16\" height=\"6\"/><rect class=\"over\" y=\"3\" width=\"16\" height=\"6\" \
                 fill=\"url(#hatch)\"/></svg> waits</li>",
            );
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::report::tests::{attempt, iteration, report_of};

    fn bars_of(one: LoopReport) -> Vec<Bar> {
        let report = report_of(vec![one]);
        bars(&report.loops[0], Scale::of(&report).unwrap())
    }

    #[test]
    fn attempts_lie_where_their_time_was() {
        let mut one = crate::view::report::tests::loop_named("a");
        one.iteration_list = vec![
            iteration(1, vec![attempt(0, 100.0, "agent-failure"), attempt(100, 100.0, "success")]),
            iteration(2, vec![attempt(300, 100.0, "usage-limit")]),
        ];
        let bars = bars_of(one);
        let told: Vec<(u32, u32, Tone)> = bars.iter().map(|bar| (bar.from, bar.to, bar.tone)).collect();
        assert_eq!(told, [(0, 100, Tone::Failed), (100, 200, Tone::Good), (300, 400, Tone::Limit)]);
    }

    #[test]
    fn ten_thousand_are_a_few_hundred_bars_and_the_worst_shows() {
        let mut one = crate::view::report::tests::loop_named("a");
        let status = |number: i64| if number == 5_000 { "timeout" } else { "success" };
        one.iteration_list = (0..10_000_i64)
            .map(|number: i64| {
                iteration(number.unsigned_abs() + 1, vec![attempt(number, 1.0, status(number))])
            })
            .collect();
        let bars = bars_of(one);
        assert!(bars.len() <= SLOTS as usize, "{}", bars.len());
        assert_eq!((bars[0].attempts.0, bars[bars.len() - 1].attempts.1), (0, 9_999));
        assert_eq!(bars.iter().filter(|bar| bar.tone == Tone::Failed).count(), 1);
    }

    #[test]
    fn a_clock_that_was_set_back_paints_something() {
        let mut one = crate::view::report::tests::loop_named("a");
        one.iteration_list = vec![
            iteration(1, vec![attempt(3_600, 10.0, "success")]),
            iteration(2, vec![attempt(0, -5.0, "success")]),
        ];
        let bars = bars_of(one);
        assert!(bars.iter().all(|bar| bar.from < bar.to && bar.to <= SLOTS), "{bars:?}");
    }
}
