//! The cost of iterations: a bar for each, or for several in a row.

use super::markup::Html;
use super::svg::{Place, rect};
use crate::record::report::{IterationReport, LoopReport, RunReport};
use crate::text::count;
use crate::text::line::one_line_within;
use crate::view::cells::plain;

/// The most bars; with more iterations, a bar is for several.
const BARS: usize = 80;
/// The height of a chart, and the space above its highest bar, in pixels.
const HEIGHT: f64 = 120.0;
const ABOVE: f64 = 8.0;
/// The part of its place that a bar fills.
const FILL: f64 = 0.8;
/// The widest bar, as a part of a chart.
const WIDEST: f64 = 0.08;

/// The cost of one iteration, or of several.
#[derive(Debug, Clone, Default, PartialEq)]
struct Taken {
    of: String,
    cost: f64,
    input: u64,
    output: u64,
}

/// Both charts.
pub(super) fn charts(html: &mut Html, report: &RunReport) {
    let bars = taken(report);
    if bars.is_empty() {
        return;
    }
    html.element("section", &[("aria-labelledby", "spent")], |html| {
        html.raw("<h2 id=\"spent\">Cost and tokens</h2>");
        html.element("div", &[("class", "charts")], |html| {
            costs(html, &bars);
            tokens(html, &bars);
        });
    });
    html.raw("\n");
}

/// The bars, in the order in which the iterations began.
fn taken(report: &RunReport) -> Vec<Taken> {
    let mut all: Vec<(&LoopReport, &IterationReport)> = report
        .loops
        .iter()
        .flat_map(|one| one.iteration_list.iter().map(move |iteration| (one, iteration)))
        .collect();
    all.sort_by_key(|(_, iteration)| iteration.attempts.first().map(|attempt| attempt.started_at));
    let is_one = report.loops.len() == 1;
    let each = all.len().div_ceil(BARS).max(1);
    all.chunks(each).map(|chunk| together(chunk, is_one)).collect()
}

fn together(iterations: &[(&LoopReport, &IterationReport)], is_one: bool) -> Taken {
    let name = |(one, iteration): &(&LoopReport, &IterationReport)| {
        let of = if is_one { String::new() } else { format!("{}, ", one_line_within(&plain(&one.name), 80)) };
        format!("{of}iteration {}", iteration.number)
    };
    let first = iterations.first().map(name).unwrap_or_default();
    let last = iterations.last().map(name).unwrap_or_default();
    let of = if iterations.len() == 1 { first } else { format!("{first} to {last}") };
    let attempts = iterations.iter().flat_map(|(_, iteration)| &iteration.attempts);
    attempts.fold(Taken { of, ..Taken::default() }, |sum, attempt| Taken {
        cost: sum.cost + attempt.cost_usd.filter(|cost| cost.is_finite()).unwrap_or_default().max(0.0),
        input: sum.input.saturating_add(attempt.input_tokens.unwrap_or_default()),
        output: sum.output.saturating_add(attempt.output_tokens.unwrap_or_default()),
        ..sum
    })
}

fn costs(html: &mut Html, bars: &[Taken]) {
    let sum: f64 = bars.iter().map(|bar| bar.cost).sum();
    if sum <= 0.0 {
        return figure_without(html, "Cost", "No agent said what it cost.");
    }
    let values: Vec<Vec<f64>> = bars.iter().map(|bar| vec![bar.cost]).collect();
    let told = |bar: &Taken| format!("{}: {}", bar.of, dollars(bar.cost));
    let most = bars.iter().max_by(|a, b| a.cost.total_cmp(&b.cost));
    let most = most.map(|bar| format!("at most {} ({})", dollars(bar.cost), bar.of)).unwrap_or_default();
    let summary = format!("Cost: {} in all, {most}", dollars(sum));
    chart(html, &summary, bars, &values, &["cost"], &told, &dollars);
}

fn tokens(html: &mut Html, bars: &[Taken]) {
    let (input, output) = bars.iter().fold((0_u64, 0_u64), |(input, output), bar| {
        (input.saturating_add(bar.input), output.saturating_add(bar.output))
    });
    if input == 0 && output == 0 {
        return figure_without(html, "Tokens", "No agent said how many it used.");
    }
    #[expect(clippy::cast_precision_loss, reason = "it is painted")]
    let values: Vec<Vec<f64>> = bars.iter().map(|bar| vec![bar.output as f64, bar.input as f64]).collect();
    let told =
        |bar: &Taken| format!("{}: {} in, {} out", bar.of, count::short(bar.input), count::short(bar.output));
    let most = bars.iter().max_by_key(|bar| bar.input.saturating_add(bar.output));
    let most = most.map(|bar| format!(", most in {}", bar.of)).unwrap_or_default();
    let summary = format!("Tokens: {} in, {} out{most}", count::short(input), count::short(output));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it comes from whole numbers"
    )]
    let short = |tokens: f64| count::short(tokens as u64);
    chart(html, &summary, bars, &values, &["out", "in"], &told, &short);
}

fn dollars(cost: f64) -> String {
    if cost > 0.0 && cost < 0.01 { format!("${cost:.4}") } else { format!("${cost:.2}") }
}

fn figure_without(html: &mut Html, name: &'static str, why: &'static str) {
    html.element("figure", &[], |html| {
        html.element("figcaption", &[], |html| {
            html.line("strong", "", name).text(": ").text(why);
        });
    });
}

/// Bars, each a stack of parts.
fn chart(
    html: &mut Html,
    summary: &str,
    bars: &[Taken],
    values: &[Vec<f64>],
    classes: &[&'static str],
    told: &dyn Fn(&Taken) -> String,
    short: &dyn Fn(f64) -> String,
) {
    let highest = values.iter().map(|parts| parts.iter().sum::<f64>()).fold(0.0, f64::max);
    html.element("figure", &[], |html| {
        html.element("figcaption", &[], |html| {
            let (name, rest) = summary.split_once(": ").unwrap_or((summary, ""));
            html.line("strong", "", name).text(": ").text(rest);
        });
        html.element("div", &[("class", "chart")], |html| {
            html.element("p", &[("class", "scale"), ("aria-hidden", "true")], |html| {
                html.line("span", "", short(highest))
                    .line("span", "", short(highest / 2.0))
                    .line("span", "", "0");
            });
            let height = format!("{HEIGHT}");
            html.element("svg", &[("role", "img"), ("aria-label", summary), ("height", &height)], |html| {
                for top in [ABOVE, f64::midpoint(ABOVE, HEIGHT), HEIGHT - 1.0] {
                    rect(html, Place { from: 0.0, to: 1.0, top, height: 1.0 }, "grid", None, None);
                }
                paint(html, bars, values, classes, highest, told);
            });
        });
        names(html, bars);
        if classes.len() > 1 {
            html.raw("<ul class=\"legend\">");
            for class in classes.iter().rev() {
                html.element("li", &[], |html| {
                    let sample =
                        [("class", "sample"), ("width", "16"), ("height", "12"), ("aria-hidden", "true")];
                    let all = Place { from: 0.0, to: 1.0, top: 0.0, height: 12.0 };
                    html.element("svg", &sample, |html| part(html, all, class, None));
                    html.text(" ").text(class);
                });
            }
            html.raw("</ul>");
        }
    });
}

/// What the first and the last bar are of, and those in the middle where there are some.
fn names(html: &mut Html, bars: &[Taken]) {
    let middle = (bars.len() > 2).then(|| &bars[bars.len() / 2]);
    let named = [bars.first(), middle, bars.last().filter(|_| bars.len() > 1)];
    html.element("p", &[("class", "names")], |html| {
        for bar in named.into_iter().flatten() {
            html.element("span", &[], |html| {
                html.words(&bar.of);
            });
        }
    });
}

fn paint(
    html: &mut Html,
    bars: &[Taken],
    values: &[Vec<f64>],
    classes: &[&'static str],
    highest: f64,
    told: &dyn Fn(&Taken) -> String,
) {
    let step = bars.len().max(1);
    #[expect(clippy::cast_precision_loss, reason = "they are few")]
    let (width, at) = (1.0 / step as f64, |place: usize| place as f64 / step as f64);
    let fill = (width * FILL).min(WIDEST);
    for (place, (bar, parts)) in bars.iter().zip(values).enumerate() {
        let told = told(bar);
        let mut bottom = HEIGHT;
        for (value, class) in parts.iter().zip(classes) {
            let height = value / highest.max(f64::MIN_POSITIVE) * (HEIGHT - ABOVE);
            bottom -= height;
            let from = at(place) + (width - fill) / 2.0;
            part(html, Place { from, to: from + fill, top: bottom, height }, class, Some(&told));
        }
    }
}

/// A part of a bar. Input is lighter than output, and has a pattern.
fn part(html: &mut Html, place: Place, class: &str, title: Option<&str>) {
    rect(html, place, class, None, title);
    if class == "in" {
        rect(html, place, "over", Some("url(#lines)"), title);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::report::tests::{attempt, iteration, loop_named, report_of};

    fn loop_of(iterations: u64) -> LoopReport {
        let of = |number: u64| {
            let mut attempt = attempt(0, 1.0, "success");
            attempt.cost_usd = Some(0.5);
            attempt.input_tokens = Some(number);
            iteration(number, vec![attempt])
        };
        LoopReport { iteration_list: (1..=iterations).map(of).collect(), ..loop_named("a") }
    }

    #[test]
    fn each_iteration_has_a_bar() {
        let bars = taken(&report_of(vec![loop_of(3)]));
        assert_eq!(
            bars.iter().map(|bar| &*bar.of).collect::<Vec<_>>(),
            ["iteration 1", "iteration 2", "iteration 3"]
        );
        assert_eq!(bars[2].input, 3);
    }

    #[test]
    fn many_are_put_together_and_nothing_is_lost() {
        let bars = taken(&report_of(vec![loop_of(10_000)]));
        assert!(bars.len() <= BARS, "{}", bars.len());
        assert_eq!(bars[0].of, "iteration 1 to iteration 125");
        assert!((bars.iter().map(|bar| bar.cost).sum::<f64>() - 5_000.0).abs() < 1e-6);
    }

    #[test]
    fn costs_that_are_no_numbers_are_none() {
        let mut one = loop_of(2);
        one.iteration_list[0].attempts[0].cost_usd = Some(f64::NAN);
        one.iteration_list[1].attempts[0].cost_usd = Some(-3.0);
        assert!(taken(&report_of(vec![one])).iter().all(|bar| bar.cost == 0.0));
    }
}
