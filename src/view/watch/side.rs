//! The pages of the selected loop: its state, its transcript, its history.

use anstyle::Style;
use chrono::{DateTime, Local};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::model::{Model, Side};
use super::paint::{Paint, shown};
use super::scroll::Pages;
use crate::tell::words;
use crate::text::palette::{ERROR, FAINT, STRONG};
use crate::text::wrap::wrapped;

/// The most lines about a loop, with its name.
pub(super) const LINES: u16 = 6;
/// So many of them say why it ended or what went wrong.
const TROUBLE: usize = 3;

/// The lines about the selected loop in so many cells: where it stands, what shows that its work is good, why it ended or what went
/// wrong, what to type next, facts.
pub(super) fn about(model: &Model, now: DateTime<Local>, width: u16) -> Vec<(Style, String)> {
    let Some(row) = model.selected() else { return Vec::new() };
    let mut lines = vec![(row.sign().0, row.standing(now))];
    let room = usize::from(width).saturating_sub(1).max(1);
    if let Some(proof) = row.proof.as_ref().map(words::proof) {
        let text = format!("{} {}", proof.mark, proof.text);
        lines
            .extend(wrapped(&shown(&text), room, TROUBLE).into_iter().map(|line| (proof.kind.style(), line)));
    }
    let style = if row.is_alive { ERROR } else { row.sign().0 };
    let trouble = row.trouble.iter().flat_map(|trouble| wrapped(&shown(trouble), room, TROUBLE));
    lines.extend(trouble.map(|line| (style, line)));
    lines.extend(row.next.iter().map(|next| (STRONG, format!("Next: {next}"))));
    lines.extend(row.facts.iter().map(|fact| (Style::new(), fact.clone())));
    lines
}

/// Draws the lines about the selected loop.
pub(super) fn draw_about(model: &Model, paint: Paint, now: DateTime<Local>, buffer: &mut Buffer, area: Rect) {
    for (line, (style, text)) in (0..area.height).zip(about(model, now, area.width)) {
        paint.put(buffer, area, (1, line), &text, style);
    }
}

/// A line across, with words in it.
pub(super) fn rule(paint: Paint, buffer: &mut Buffer, area: Rect, row: u16, words: &[(Style, String)]) {
    let line = "─".repeat(usize::from(area.width));
    paint.put(buffer, area, (0, row), &line, FAINT);
    let mut column = 2;
    for (style, word) in words.iter().filter(|(_, word)| !word.is_empty()) {
        column = paint.put(buffer, area, (column, row), &format!(" {word} "), *style) + 1;
    }
}

/// Draws transcript or history below a line that names it.
pub(super) fn draw_pages(model: &Model, which: Side, paint: Paint, buffer: &mut Buffer, area: Rect) {
    let (pages, nothing) = match which {
        Side::Transcript => {
            (&model.transcript, model.missing.as_deref().unwrap_or("its agents have shown nothing yet"))
        }
        Side::History => (&model.history, "no iteration has begun yet"),
    };
    if pages.is_empty() && model.selected().is_some() {
        paint.put(buffer, area, (1, 0), nothing, FAINT);
    }
    for (line, (style, text)) in (0..area.height).zip(pages.seen()) {
        paint.put(buffer, area, (0, line), text, *style);
    }
}

/// How much is below the visible lines, in words.
pub(super) fn below(pages: &Pages) -> String {
    match pages.below() {
        0 => String::new(),
        below => format!("{below} more below, G goes there"),
    }
}

/// The style of a name in a rule.
pub(super) fn style_of(is_active: bool) -> Style {
    if is_active { STRONG } else { FAINT }
}
