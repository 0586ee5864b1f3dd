//! Draws the whole screen.

use anstyle::Style;
use chrono::{DateTime, Local};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use unicode_width::UnicodeWidthStr as _;

use super::help::{HINTS, KEYS};
use super::keys::Deed;
use super::list;
use super::model::{Mode, Model, Side};
use super::paint::{Paint, shown};
use super::row::Key as LoopKey;
use super::side::{self, about, below, draw_about, draw_pages, rule, style_of};
use crate::text::count::money;
use crate::text::palette::{ERROR, FAINT, NOTE, QUESTION, STRONG};
use crate::view::cells::plain;

/// The smallest screen, in columns and rows.
const SMALLEST: (u16, u16) = (60, 20);
/// The least columns for two areas beside each other.
const WIDE: u16 = 110;
/// From so many columns on there is room for the plan as well.
const WIDEST: u16 = 160;

/// The areas of the screen.
struct Places {
    list: Rect,
    about: Rect,
    transcript: Option<Rect>,
    history: Option<Rect>,
    plan: Option<Rect>,
}

/// Draws the model. The sizes of areas are noted in it.
pub(crate) fn draw(model: &mut Model, colour: bool, now: DateTime<Local>, frame: &mut Frame<'_>) {
    let (paint, area) = (Paint { colour }, frame.area());
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        return too_small(paint, frame.buffer_mut(), area);
    }
    let places = places(model, area, now);
    fit(model, &places);
    let buffer = frame.buffer_mut();
    draw_head(model, paint, buffer, Rect { height: 1, ..area });
    if model.mode == Mode::Help {
        draw_help(paint, buffer, rows(area, 1, area.height - 2));
    } else {
        list::draw(model, paint, now.to_utc(), buffer, places.list);
        draw_selected(model, paint, now, buffer, &places);
    }
    let last = rows(area, area.height - 1, 1);
    if let Some(column) = draw_foot(model, paint, buffer, last) {
        frame.set_cursor_position(Position { x: column.min(area.width - 1), y: last.y });
    }
}

fn too_small(paint: Paint, buffer: &mut Buffer, area: Rect) {
    let (columns, rows) = SMALLEST;
    let lines = [
        format!("too small: {}×{}", area.width, area.height),
        format!("{columns}×{rows} are needed"),
        "q leaves".to_owned(),
    ];
    for (row, line) in (0..).zip(lines) {
        paint.put(buffer, area, (0, row), &line, Style::new());
    }
}

/// The first rows of an area.
fn rows(area: Rect, from: u16, count: u16) -> Rect {
    let from = from.min(area.height);
    Rect { y: area.y + from, height: count.min(area.height - from), ..area }
}

fn places(model: &Model, area: Rect, now: DateTime<Local>) -> Places {
    let body = rows(area, 1, area.height - 2);
    let count = u16::try_from(model.listed().len()).unwrap_or(u16::MAX).max(1).saturating_add(list::HEAD);
    let lines =
        |width| u16::try_from(about(model, now, width).len()).unwrap_or(u16::MAX).clamp(1, side::LINES);
    if area.width < WIDE {
        let (list, lines) = (count.min(body.height / 3), lines(area.width));
        let rest = rows(body, list + lines + 2, body.height);
        let is_transcript = model.side == Side::Transcript;
        return Places {
            list: rows(body, 0, list),
            about: rows(body, list + 1, lines),
            transcript: is_transcript.then_some(rest),
            history: (!is_transcript).then_some(rest),
            plan: None,
        };
    }
    let has_plan = area.width >= WIDEST && !model.plan.is_empty();
    let left = if has_plan { (area.width / 3).clamp(46, 70) } else { (area.width * 2 / 5).clamp(46, 80) };
    let left = Rect { width: left, ..body };
    let right = Rect { x: left.x + left.width + 1, width: area.width - left.width - 1, ..body };
    let (list, lines) = (count.min(body.height * 3 / 5), lines(right.width));
    let below = rows(right, lines + 2, body.height);
    let plan = if has_plan { (right.width * 2 / 5).min(60) } else { 0 };
    let transcript = Rect { width: below.width - plan - u16::from(has_plan), ..below };
    let plan = has_plan.then_some(Rect { x: transcript.x + transcript.width + 1, width: plan, ..below });
    Places {
        list: rows(left, 0, list),
        history: Some(rows(left, list + 1, body.height)),
        about: rows(right, 1, lines),
        transcript: Some(transcript),
        plan,
    }
}

/// Sets the sizes of the pages.
fn fit(model: &mut Model, places: &Places) {
    model.list_height = places.list.height.saturating_sub(list::HEAD).into();
    for (pages, place) in [(&mut model.transcript, places.transcript), (&mut model.history, places.history)] {
        if let Some(place) = place {
            pages.fit(place.width.into(), place.height.into());
        }
    }
}

/// `ralph watch · PROJECT · $12.40 · 3 running, 1 waiting, 2 done`
fn draw_head(model: &Model, paint: Paint, buffer: &mut Buffer, area: Rect) {
    let mut counts: Vec<(u8, &str, usize)> = Vec::new();
    for row in &model.rows {
        match counts.iter_mut().find(|(_, word, _)| *word == row.word) {
            Some((_, _, count)) => *count += 1,
            None => counts.push((row.rank(), row.word, 1)),
        }
    }
    counts.sort_by_key(|(rank, word, _)| (*rank, *word));
    let counts: Vec<String> =
        counts.iter().map(|(_, word, count)| format!("{count} {}", word.replace('_', " "))).collect();
    let cost: Vec<f64> = model.rows.iter().filter_map(|row| row.cost).collect();
    let filter = if model.filter.is_empty() { String::new() } else { format!("filter: {}", model.filter) };
    let cost = money(Some(cost.iter().sum())).unwrap_or_default();
    let parts = [model.of.clone(), filter, cost, counts.join(", ")];
    let column = paint.put(buffer, area, (0, 0), " ralph watch", STRONG);
    let known: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    paint.put(buffer, area, (column, 0), &format!(" · {}", known.join(" · ")), Style::new());
}

fn draw_selected(model: &Model, paint: Paint, now: DateTime<Local>, buffer: &mut Buffer, places: &Places) {
    let name = model.selected().map(|row| row.name.clone()).unwrap_or_default();
    let above = |area: Rect| Rect { y: area.y - 1, height: 1, ..area };
    let both = places.transcript.is_some() && places.history.is_some();
    // The line below the list shows it.
    let more = |is_below: bool| (FAINT, if is_below { list::more(model) } else { String::new() });
    rule(paint, buffer, above(places.about), 0, &[(STRONG, plain(&name)), more(!both)]);
    draw_about(model, paint, now, buffer, places.about);
    for (side, place, pages) in [
        (Side::Transcript, places.transcript, &model.transcript),
        (Side::History, places.history, &model.history),
    ] {
        let Some(place) = place.filter(|place| place.height > 0) else { continue };
        let word = |named: Side, word: &str| {
            let is_shown = if both { named == side } else { true };
            let word = if is_shown { word.to_owned() } else { String::new() };
            (style_of(named == model.side), word)
        };
        let words = [
            word(Side::Transcript, "transcript"),
            word(Side::History, "history"),
            (NOTE, below(pages)),
            more(both && side == Side::History),
        ];
        rule(paint, buffer, above(place), 0, &words);
        draw_pages(model, side, paint, buffer, place);
    }
    if let Some(place) = places.plan.filter(|place| place.height > 0) {
        rule(paint, buffer, above(place), 0, &[(STRONG, model.plan.title())]);
        model.plan.draw(paint, buffer, place);
    }
}

fn draw_help(paint: Paint, buffer: &mut Buffer, area: Rect) {
    paint.put(buffer, area, (1, 0), "Keys, about the selected loop. Esc goes back.", STRONG);
    for (row, (key, what)) in (1..).zip(KEYS) {
        paint.put(buffer, area, (1, row), key, STRONG);
        paint.put(buffer, area, (12, row), what, Style::new());
    }
}

/// Typed text, a question or a message, else the keys; returns the column of the cursor if there is one.
fn draw_foot(model: &Model, paint: Paint, buffer: &mut Buffer, area: Rect) -> Option<u16> {
    let name = |key: &LoopKey| {
        let row = model.rows.iter().find(|row| row.key == *key);
        row.map(|row| plain(&row.name)).unwrap_or_default()
    };
    match &model.mode {
        Mode::Filtering => return Some(draw_typed(paint, buffer, area, "/", &model.filter)),
        Mode::Noting(key, text) => {
            return Some(draw_typed(paint, buffer, area, &format!("note to {}: ", name(key)), text));
        }
        Mode::Confirming(key, deed) => {
            let what = match deed {
                Deed::CancelNow => "cancel it now and end its agent",
                _ => "cancel it after the current attempt",
            };
            let text = format!("{}: {what}? y does, any other key does not", name(key));
            paint.put(buffer, area, (0, 0), &text, QUESTION);
            return None;
        }
        Mode::Choosing | Mode::Help => {}
    }
    if let Some(told) = &model.told {
        let style = if told.is_trouble { ERROR } else { Style::new() };
        paint.put(buffer, area, (0, 0), &told.text, style);
    } else {
        paint.put(buffer, area, (0, 0), &hints(area.width.into()), FAINT);
    }
    None
}

/// As many hints as fit.
fn hints(width: usize) -> String {
    let mut text = HINTS[0].to_owned();
    for hint in &HINTS[1..] {
        let longer = format!("{text}  {hint}");
        if longer.width() > width {
            break;
        }
        text = longer;
    }
    text
}

/// A typed line, of which the end is visible. Returns the column after it.
fn draw_typed(paint: Paint, buffer: &mut Buffer, area: Rect, before: &str, text: &str) -> u16 {
    let column = paint.put(buffer, area, (0, 0), before, QUESTION);
    let room = usize::from(area.width.saturating_sub(column + 1));
    let text = shown(text);
    let mut end = text.as_str();
    while end.width() > room {
        let mut chars = end.chars();
        chars.next();
        end = chars.as_str();
    }
    paint.put(buffer, area, (column, 0), end, Style::new())
}
