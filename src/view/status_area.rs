//! The place of the status lines: below everything that is written.
//!
//! After a finished line they take the next rows, with the cursor back at the first one's start. After an unfinished one,
//! as when an agent's text comes in small pieces, they take the rows below, with the cursor back at the end of the text. So
//! everything from the cursor on can always be erased, also after the terminal was resized and has wrapped its lines again.

use unicode_width::UnicodeWidthChar as _;

/// The columns between two tabulator stops.
const TAB: usize = 8;

/// Tracks the cursor, and whether the status lines are visible.
#[derive(Debug, Default)]
pub(super) struct StatusArea {
    /// Cells in use on the cursor's row.
    column: usize,
    drawn: bool,
}

impl StatusArea {
    /// Whether the status lines are visible.
    pub(super) fn is_drawn(&self) -> bool {
        self.drawn
    }

    /// The text that draws `lines`, each shorter than a row, and fewer than the terminal has rows; `None` if the cursor is
    /// too close to the edge to be brought back exactly.
    pub(super) fn draw(&mut self, lines: &[String], width: usize) -> Option<String> {
        let erase = self.erase().unwrap_or_default();
        let (text, rows) = (lines.join("\r\n"), lines.len());
        let draw = match self.column {
            0 if rows > 1 => format!("{erase}{text}\r\x1b[{}A", rows - 1),
            0 => format!("{erase}{text}\r"),
            // Down and up again first: that makes room, so that the remembered place cannot scroll away.
            column if column < width => {
                let down = "\x0b".repeat(rows);
                format!("{erase}{down}\x1b[{rows}A\x1b7\r\n{text}\x1b8")
            }
            _ => return None,
        };
        self.drawn = true;
        Some(draw)
    }

    /// The text that erases them; `None` if they are not visible.
    pub(super) fn erase(&mut self) -> Option<&'static str> {
        // Keys that the user typed meanwhile are on their first row and are erased with it.
        let erase = if self.column == 0 { "\r\x1b[J" } else { "\x1b[J" };
        std::mem::take(&mut self.drawn).then_some(erase)
    }

    /// Books that `text` is written, on a terminal of `width` columns. It has no control characters other than newline, tab
    /// and colours.
    pub(super) fn wrote(&mut self, text: &str, width: usize) {
        // Text before the last newline does not matter.
        let rest = text.rsplit_once('\n').map_or(text, |(_, rest)| {
            self.column = 0;
            rest
        });
        for char in anstream::adapter::strip_str(rest).flat_map(str::chars) {
            if char == '\t' {
                self.column = ((self.column / TAB + 1) * TAB).min(width.saturating_sub(1));
                continue;
            }
            let cells = char.width().unwrap_or_default();
            self.column = if self.column + cells > width { cells } else { self.column + cells };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "the status";

    /// A terminal with room for four rows of ten columns.
    struct Screen {
        area: StatusArea,
        parser: vt100::Parser,
    }

    impl Screen {
        fn new() -> Self {
            let size = |cells| std::num::NonZero::new(cells).unwrap();
            Self { area: StatusArea::default(), parser: vt100::Parser::new(size(4), size(10), 100) }
        }

        fn write(&mut self, text: &str) {
            if let Some(erase) = self.area.erase() {
                self.parser.process(erase.as_bytes());
            }
            self.area.wrote(text, 10);
            self.parser.process(text.replace('\n', "\r\n").as_bytes());
        }

        fn draw(&mut self) -> String {
            self.draw_lines(&[LINE])
        }

        fn draw_lines(&mut self, lines: &[&str]) -> String {
            let lines: Vec<String> = lines.iter().copied().map(str::to_owned).collect();
            if let Some(draw) = self.area.draw(&lines, 10) {
                self.parser.process(draw.as_bytes());
            }
            self.parser.screen().contents()
        }

        fn erase(&mut self) -> String {
            if let Some(erase) = self.area.erase() {
                self.parser.process(erase.as_bytes());
            }
            self.parser.screen().contents()
        }
    }

    #[test]
    fn stands_on_the_row_below_a_finished_line() {
        let mut screen = Screen::new();
        assert_eq!(screen.draw(), LINE);
        screen.write("one\n");
        assert_eq!(screen.draw(), format!("one\n{LINE}"));
        assert_eq!(screen.draw(), format!("one\n{LINE}"), "drawn twice");
        for text in ["two\n", "three\n", "four\n"] {
            screen.draw();
            screen.write(text);
        }
        assert_eq!(screen.draw(), format!("two\nthree\nfour\n{LINE}"));
        assert_eq!(screen.erase(), "two\nthree\nfour");
        assert_eq!(screen.erase(), "two\nthree\nfour");
    }

    #[test]
    fn an_unfinished_line_goes_on_where_it_ended() {
        let mut screen = Screen::new();
        screen.write("a\nb\nc\nun");
        assert_eq!(screen.draw(), format!("b\nc\nun\n{LINE}"));
        screen.write("fini");
        assert_eq!(screen.draw(), format!("b\nc\nunfini\n{LINE}"));
        screen.write("shed and wrapped");
        assert_eq!(screen.draw(), format!("unfinished and wrapped\n{LINE}"));
        screen.write("\nnext");
        assert_eq!(screen.erase(), "unfinished and wrapped\nnext");
    }

    #[test]
    fn several_lines_stand_below_what_scrolls_by() {
        let mut screen = Screen::new();
        assert_eq!(screen.draw_lines(&["A", "B"]), "A\nB");
        for (text, contents) in
            [("1\n", "1\nA\nB"), ("2\n", "1\n2\nA\nB"), ("3\n", "2\n3\nA\nB"), ("4\n5\n6\n", "5\n6\nA\nB")]
        {
            screen.write(text);
            assert_eq!(screen.draw_lines(&["A", "B"]), contents);
            assert_eq!(screen.draw_lines(&["A", "B"]), contents, "drawn twice");
        }
        assert_eq!(screen.draw_lines(&["A", "B", "C"]), "6\nA\nB\nC", "one more");
        assert_eq!(screen.draw_lines(&["B"]), "6\nB", "two are gone");
        screen.write("7\n");
        assert_eq!(screen.draw_lines(&["B", "C"]), "6\n7\nB\nC");
        assert_eq!(screen.erase(), "6\n7");
        assert_eq!(screen.parser.screen().cursor_position(), (2, 0));
        screen.parser.screen_mut().set_scrollback(10);
        assert_eq!(screen.parser.screen().contents(), "1\n2\n3\n4", "nothing of the lines has scrolled away");
    }

    #[test]
    fn several_lines_stand_below_an_unfinished_one() {
        let mut screen = Screen::new();
        screen.write("a\nb\nun");
        assert_eq!(screen.draw_lines(&["A", "B"]), "b\nun\nA\nB");
        screen.write("finished and");
        assert_eq!(screen.draw_lines(&["A", "B"]), "unfinished and\nA\nB");
        screen.write("\nnext\n");
        assert_eq!(screen.draw_lines(&["A", "B", "C"]), "next\nA\nB\nC");
        assert_eq!(screen.erase(), "next");
    }

    #[test]
    fn a_terminal_that_became_smaller_or_larger_keeps_no_trace() {
        for (rows, columns) in [(3, 10), (4, 5), (3, 4), (8, 20)] {
            let mut screen = Screen::new();
            screen.write("1\n2\n3\n");
            screen.draw_lines(&["A A A A A", "B B B B B"]);
            let size = |cells| std::num::NonZero::new(cells).unwrap();
            screen.parser.screen_mut().set_size(size(rows), size(columns));
            screen.write("4\n");
            let lines = screen.draw_lines(&["C"]);
            assert!(lines.ends_with("3\n4\nC") && !lines.contains(['A', 'B']), "{rows}x{columns}: {lines}");
            assert!(screen.erase().ends_with("3\n4"));
        }
    }

    #[test]
    fn a_line_that_fills_the_row_loses_nothing() {
        let mut screen = Screen::new();
        screen.write("0123456789");
        assert_eq!(screen.draw(), "0123456789", "drawn although the cursor hangs at the edge");
        screen.write("0");
        assert_eq!(screen.draw(), format!("01234567890\n{LINE}"));
        screen.write("\n");
        assert_eq!(screen.draw(), format!("01234567890\n{LINE}"));
    }

    #[test]
    fn the_column_counts_cells() {
        for (text, column) in [
            ("", 0),
            ("ab", 2),
            ("ab\ncde", 3),
            ("ab\n", 0),
            ("a\tb", 9),
            ("日本", 4),
            ("e\u{301}", 1),
            ("\x1b[31mred\x1b[0m", 3),
            ("123456789日", 2),
            ("0123456789", 10),
            ("01234567890", 1),
        ] {
            let mut area = StatusArea::default();
            area.wrote(text, 10);
            assert_eq!(area.column, column, "{text:?}");
        }
    }
}
