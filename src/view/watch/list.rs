//! The list of loops.

use anstyle::Style;
use chrono::{DateTime, Utc};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr as _;

use super::model::Model;
use super::paint::{Paint, shown};
use super::row::Row;
use crate::text::count::money;
use crate::text::palette::{FAINT, STRONG};
use crate::view::cells::{cut, pad};
use crate::view::report::done_of;

/// Cells of a row.
const CELLS: usize = 7;
/// What stands above them.
const HEADS: [&str; CELLS] = ["NAME", "PROJECT", "STATUS", "TASKS", "ITERATION", "COST", "TIME"];
/// What is left out first where there is no room: project, iteration, cost, time, tasks.
const LEAST_TELLING: [usize; 5] = [1, 4, 5, 6, 3];
/// Rows of heads.
pub(super) const HEAD: u16 = 1;
/// The least cells of a name before other columns are left out.
const NAME: usize = 14;
/// The space between two cells.
const GAP: usize = 2;
/// The mark of the selected loop, its sign, and a blank.
const BEFORE: usize = 3;

/// Draws the rows around the selected one.
pub(super) fn draw(model: &Model, paint: Paint, now: DateTime<Utc>, buffer: &mut Buffer, area: Rect) {
    let listed = model.listed();
    if listed.is_empty() {
        let text = match (model.rows.is_empty(), model.whole_machine) {
            (false, _) => "no loop is meant by this filter, Esc takes it away",
            (true, true) => "no loop on this machine yet",
            (true, false) => "no loop in this project yet; 'ralph watch --all' shows those of the machine",
        };
        paint.put(buffer, area, (1, 0), text, FAINT);
        return;
    }
    let head = Rect { height: HEAD.min(area.height), ..area };
    let area = Rect { y: area.y + head.height, height: area.height - head.height, ..area };
    let (at, height) = (model.at(), usize::from(area.height));
    let top = top(at.unwrap_or_default(), listed.len(), height);
    let seen = &listed[top..(top + height).min(listed.len())];
    let rows: Vec<[String; CELLS]> = seen.iter().map(|row| cells(row, model.whole_machine, now)).collect();
    let widths = widths(&rows, usize::from(area.width).saturating_sub(BEFORE));
    let heads = joined(&HEADS.map(str::to_owned), &widths);
    paint.put(buffer, head, (u16::try_from(BEFORE).unwrap_or_default(), 0), &heads, FAINT);
    for (line, (row, cells)) in (0u16..).zip(seen.iter().zip(&rows)) {
        let is_selected = at == Some(top + usize::from(line));
        let (sign_style, sign) = row.sign();
        let style = |style: Style| if is_selected { STRONG.invert() } else { style };
        let text = pad(&joined(cells, &widths), usize::from(area.width).saturating_sub(BEFORE));
        let mark = if is_selected { ">" } else { " " };
        let column = paint.put(buffer, area, (0, line), mark, style(STRONG));
        let column = paint.put(buffer, area, (column, line), sign, style(sign_style));
        let plain = if row.is_alive || row.rank() == 0 { Style::new() } else { FAINT };
        paint.put(buffer, area, (column, line), &format!(" {text}"), style(plain));
    }
}

/// The cells that there is room for in a line.
fn joined(cells: &[String; CELLS], widths: &[usize; CELLS]) -> String {
    let shown = (0..CELLS).filter(|cell| widths[*cell] > 0);
    let text: Vec<String> = shown.map(|cell| pad(&cut(&cells[cell], widths[cell]), widths[cell])).collect();
    text.join(&" ".repeat(GAP))
}

/// The number of hidden rows, in words.
pub(super) fn more(model: &Model) -> String {
    match model.listed().len().saturating_sub(model.list_height) {
        0 => String::new(),
        more => format!("{more} more in the list"),
    }
}

/// The first visible row: the selected one is in the middle if possible.
fn top(at: usize, count: usize, height: usize) -> usize {
    at.saturating_sub(height / 2).min(count.saturating_sub(height))
}

fn cells(row: &Row, whole_machine: bool, now: DateTime<Utc>) -> [String; CELLS] {
    let project = if whole_machine { row.project.as_str() } else { "" };
    let cells = [
        row.name.as_str(),
        project,
        &row.word.replace('_', " "),
        &row.tasks.map(done_of).unwrap_or_default(),
        &row.iteration,
        &money(row.cost).unwrap_or_default(),
        &row.clock(now),
    ];
    cells.map(shown)
}

/// The width of each cell; 0 if it does not fit or is empty.
fn widths(rows: &[[String; CELLS]], room: usize) -> [usize; CELLS] {
    let mut widths = [0; CELLS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    // A column of which nothing is known has no head.
    for (width, head) in widths.iter_mut().zip(HEADS).filter(|(width, _)| **width > 0) {
        *width = (*width).max(head.len());
    }
    let taken = |widths: &[usize; CELLS]| {
        let cells = widths.iter().filter(|width| **width > 0).count();
        widths.iter().sum::<usize>() + GAP * cells.saturating_sub(1)
    };
    for cell in LEAST_TELLING {
        let over = taken(&widths).saturating_sub(room);
        if widths[0] >= NAME.min(widths[0]) + over {
            break;
        }
        widths[cell] = 0;
    }
    let over = taken(&widths).saturating_sub(room);
    widths[0] = widths[0].saturating_sub(over).max(1);
    widths
}
