//! Paints text on the screen: without escape sequences, within its place, and without unwanted colours.

use anstyle::{AnsiColor, Effects};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use crate::text::terminal::message;
use crate::view::cells::cut;

/// How text is painted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    /// Whether colours are wanted.
    pub(crate) colour: bool,
}

impl Paint {
    /// One of the styles that all views have, for this screen.
    pub(super) fn style(self, style: anstyle::Style) -> Style {
        let mut own = Style::new();
        let effects = style.get_effects();
        for (effect, modifier) in [
            (Effects::BOLD, Modifier::BOLD),
            (Effects::DIMMED, Modifier::DIM),
            (Effects::INVERT, Modifier::REVERSED),
        ] {
            if effects.contains(effect) {
                own = own.add_modifier(modifier);
            }
        }
        match style.get_fg_color() {
            Some(anstyle::Color::Ansi(color)) if self.colour => own.fg(known(color)),
            _ => own,
        }
    }

    /// Writes a line into a row of an area, from a column on; returns the column after it. What does not fit is cut.
    pub(super) fn put(
        self,
        buffer: &mut Buffer,
        area: Rect,
        (column, row): (u16, u16),
        text: &str,
        style: anstyle::Style,
    ) -> u16 {
        if row >= area.height || column >= area.width {
            return column;
        }
        let room = usize::from(area.width - column);
        let (end, _) = buffer.set_stringn(
            area.x + column,
            area.y + row,
            cut(&shown(text), room),
            room,
            self.style(style),
        );
        end - area.x
    }
}

/// `text` in one line whose cells all terminals count alike: characters that join others to one picture are removed, so that
/// each is shown by itself.
pub(super) fn shown(text: &str) -> String {
    let mut text = message(text);
    text.retain(
        |char| !matches!(char, '\u{200c}'..='\u{200d}' | '\u{fe0e}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}'),
    );
    text
}

fn known(color: AnsiColor) -> Color {
    match color {
        AnsiColor::Black => Color::Black,
        AnsiColor::Red => Color::Red,
        AnsiColor::Green => Color::Green,
        AnsiColor::Yellow => Color::Yellow,
        AnsiColor::Blue => Color::Blue,
        AnsiColor::Magenta => Color::Magenta,
        AnsiColor::Cyan => Color::Cyan,
        AnsiColor::White => Color::Gray,
        AnsiColor::BrightBlack => Color::DarkGray,
        AnsiColor::BrightRed => Color::LightRed,
        AnsiColor::BrightGreen => Color::LightGreen,
        AnsiColor::BrightYellow => Color::LightYellow,
        AnsiColor::BrightBlue => Color::LightBlue,
        AnsiColor::BrightMagenta => Color::LightMagenta,
        AnsiColor::BrightCyan => Color::LightCyan,
        AnsiColor::BrightWhite => Color::White,
    }
}
