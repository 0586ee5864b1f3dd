//! A report as one page that needs nothing else: no network, no script. Foreign text has no effect in it: [`markup`] is the
//! only way in, and the page tells browsers to load and run nothing.

mod charts;
mod head;
mod iterations;
mod markup;
mod one_loop;
mod overview;
mod svg;
mod timeline;
mod tone;
mod transcript;

use markup::Html;
pub(crate) use transcript::Transcripts;

use super::ends;
use crate::record::report::RunReport;
use crate::text::line::{one_line_within, shell_word};
use crate::text::timestamp;
use crate::view::cells::plain;

/// The style of the page.
const STYLE: &str = include_str!("style.css");
/// The only style that browsers may use: the SHA-256 of [`STYLE`] in base64, checked by a test.
const STYLE_HASH: &str = "yOlgBGHG732etV0DSVHp46M4ugwV11HqTdKkVwAEq6M=";
/// So much of a project's name is shown, in characters.
const PROJECT: usize = 80;
/// The room for iterations and transcripts in the page, in bytes: browsers of telephones must be able to show it.
pub(crate) const ROOM: usize = 3 << 20;

/// The page of a run of `project`, with its iterations; `transcripts` are those of its loops, in their order.
#[must_use]
pub(crate) fn page(report: &RunReport, project: &str, transcripts: &[Transcripts]) -> String {
    let none = Transcripts::default();
    let mut html = Html::default();
    html.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{STYLE_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
    );
    html.empty("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy)]).raw("\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
    html.raw("<meta name=\"referrer\" content=\"no-referrer\">\n");
    html.raw("<meta name=\"generator\" content=\"ralph\">\n<link rel=\"icon\" href=\"data:,\">\n");
    html.with("title", &[], title(report, project)).raw("\n");
    html.element("style", &[], |html| {
        html.raw(STYLE);
    })
    .raw("\n</head>\n<body>\n");
    html.raw("<a class=\"skip\" href=\"#main\">Skip to the loops</a>\n");
    svg::patterns(&mut html);
    head::head(&mut html, report, project);
    html.element("main", &[("id", "main")], |html| {
        overview::needs_you(html, report);
        head::figures(html, report);
        overview::overview(html, report);
        timeline::timeline(html, report);
        charts::charts(html, report);
        let mut room = ROOM;
        for (place, one) in report.loops.iter().enumerate() {
            let share = room / (report.loops.len() - place);
            let logs = Logs { run: &report.run, transcripts: transcripts.get(place).unwrap_or(&none) };
            room -= one_loop::one_loop(html, place, one, &logs, share).min(share);
        }
    });
    html.raw("\n");
    foot(&mut html, report);
    html.raw("</body>\n</html>\n");
    html.finish()
}

/// The contents of a loop's logs, besides its report.
struct Logs<'a> {
    /// The id of the run.
    run: &'a str,
    transcripts: &'a Transcripts,
}

impl Logs<'_> {
    /// The command line that shows what agents did in this run; `name` is the loop's.
    fn command(&self, name: &str, attempt: Option<u64>) -> String {
        let attempt = attempt.map(|attempt| format!(" --attempt {attempt}")).unwrap_or_default();
        format!("ralph logs {} --agent --run {}{attempt}", shell_word(name), shell_word(self.run))
    }
}

/// The name of the loop's section in the page.
fn anchor(place: usize) -> String {
    format!("loop-{}", place + 1)
}

/// `export: ralph loop build, 3 done, 2026-01-31 23:59`
fn title(report: &RunReport, project: &str) -> String {
    let project = one_line_within(&plain(project), PROJECT);
    let verb = report.verb.as_deref().unwrap_or("report");
    let ends = ends(report.loops.iter().map(|one| &*one.end)).join(", ");
    let began = report.started_at.map(|at| format!(", {}", timestamp::minute(&at)));
    format!("{project}: ralph {verb}, {ends}{}", began.unwrap_or_default())
}

fn foot(html: &mut Html, report: &RunReport) {
    html.element("footer", &[], |html| {
        html.element("p", &[], |html| {
            html.text("Run ").with("code", &[], &report.run);
            html.text(", told by ralph on ").text(timestamp::local(&chrono::Local::now())).text(".");
        });
        let unreadable: u64 = report.loops.iter().map(|one| one.unreadable_lines).sum();
        if unreadable > 0 {
            let lines = crate::text::count::of(unreadable, "line");
            html.line(
                "p",
                "",
                format!("{lines} of its events logs could not be read: torn, or of another version."),
            );
        }
    });
    html.raw("\n");
}

#[cfg(test)]
mod tests;
