//! Paragraphs in lines of a width, of which a page is visible: the growing end, or where the user has scrolled to.

use std::collections::VecDeque;

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::paint::shown;
use crate::text::wrap::wrapped;

/// How many lines are kept.
const LINES: usize = 5000;
/// How many lines of one paragraph are shown.
const OF_ONE: usize = 200;
/// How much of one paragraph is kept, in bytes, because wrapping takes time.
const LONGEST: usize = 16 << 10;

/// A paragraph, in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paragraph {
    pub(crate) style: Style,
    /// The beginning of its first line; the others are indented by its width.
    pub(crate) sign: String,
    /// One or more lines from any source, shown without escape sequences.
    pub(crate) text: String,
}

/// Paragraphs, and the visible lines.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// Each with the number of its lines.
    paragraphs: VecDeque<(Paragraph, usize)>,
    lines: VecDeque<(Style, String)>,
    /// How many lines were dropped.
    first: usize,
    width: usize,
    height: usize,
    /// The first visible line; `None`: the last page is visible as it grows.
    top: Option<usize>,
}

impl Pages {
    /// Adds a paragraph.
    pub(super) fn push(&mut self, mut paragraph: Paragraph) {
        if paragraph.text.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|&at| paragraph.text.is_char_boundary(at));
            paragraph.text.truncate(end.unwrap_or_default());
            paragraph.text.push('…');
        }
        let lines = lines_of(&paragraph, self.width);
        self.paragraphs.push_back((paragraph, lines.len()));
        self.lines.extend(lines);
        self.trim();
    }

    /// Replaces the paragraphs. A scrolled position stays.
    pub(super) fn replace(&mut self, paragraphs: Vec<Paragraph>) {
        let (width, height, top) = (self.width, self.height, self.top);
        *self = Self { width, height, top, ..Self::default() };
        for paragraph in paragraphs {
            self.push(paragraph);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self { width: self.width, height: self.height, ..Self::default() };
    }

    /// Removes the last paragraph, which goes on.
    pub(super) fn pop(&mut self) -> Option<Paragraph> {
        let (paragraph, count) = self.paragraphs.pop_back()?;
        self.lines.truncate(self.lines.len() - count);
        Some(paragraph)
    }

    /// Sets the size of the page.
    pub(super) fn fit(&mut self, width: usize, height: usize) {
        self.height = height;
        if self.width == width {
            return;
        }
        self.width = width;
        // The top line has another place now.
        let share = self.top.map(|top| (top.saturating_sub(self.first), self.lines.len().max(1)));
        self.lines.clear();
        self.first = 0;
        for (paragraph, count) in &mut self.paragraphs {
            let lines = lines_of(paragraph, width);
            *count = lines.len();
            self.lines.extend(lines);
        }
        self.top = share.map(|(above, of)| above * self.lines.len() / of);
        self.trim();
    }

    fn trim(&mut self) {
        while self.lines.len() > LINES && self.paragraphs.len() > 1 {
            let Some((_, count)) = self.paragraphs.pop_front() else { break };
            self.lines.drain(..count);
            self.first += count;
        }
    }

    /// Scrolls by lines; upwards if negative.
    pub(super) fn scroll(&mut self, by: isize) {
        let top = self.top().saturating_add_signed(by).max(self.first);
        self.top = (top < self.last_top()).then_some(top);
    }

    /// Scrolls by pages.
    pub(super) fn page(&mut self, by: isize) {
        let page = isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1);
        self.scroll(by * page);
    }

    pub(super) fn go_to_begin(&mut self) {
        self.top = (self.first < self.last_top()).then_some(self.first);
    }

    pub(super) fn go_to_end(&mut self) {
        self.top = None;
    }

    fn last_top(&self) -> usize {
        self.first + self.lines.len().saturating_sub(self.height)
    }

    fn top(&self) -> usize {
        self.top.unwrap_or(usize::MAX).clamp(self.first, self.last_top())
    }

    /// The visible lines.
    pub(super) fn seen(&self) -> impl Iterator<Item = &(Style, String)> {
        self.lines.iter().skip(self.top() - self.first).take(self.height)
    }

    /// How many lines are below the visible ones.
    pub(super) fn below(&self) -> usize {
        self.last_top() - self.top()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.paragraphs.is_empty()
    }
}

/// Its lines in this width.
pub(super) fn lines_of(paragraph: &Paragraph, width: usize) -> Vec<(Style, String)> {
    let indent = paragraph.sign.width();
    let room = width.saturating_sub(indent).max(1);
    let mut lines: Vec<String> = Vec::new();
    for line in paragraph.text.lines() {
        if lines.len() >= OF_ONE {
            lines.push("…".to_owned());
            break;
        }
        lines.extend(wrapped(shown(&line.replace('\t', "    ")).trim_end(), room, OF_ONE));
    }
    let sign = |at: usize| if at == 0 { paragraph.sign.clone() } else { " ".repeat(indent) };
    lines.into_iter().enumerate().map(|(at, line)| (paragraph.style, sign(at) + &line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(count: usize) -> Pages {
        let mut pages = Pages::default();
        pages.fit(10, 3);
        (0..count).for_each(|number| pages.push(paragraph(&format!("line {number}"))));
        pages
    }

    fn paragraph(text: &str) -> Paragraph {
        Paragraph { style: Style::new(), sign: String::new(), text: text.to_owned() }
    }

    fn seen(pages: &Pages) -> Vec<&str> {
        pages.seen().map(|(_, line)| line.as_str()).collect()
    }

    #[test]
    fn the_end_is_seen_until_somebody_scrolls() {
        let mut pages = pages(5);
        assert_eq!(seen(&pages), ["line 2", "line 3", "line 4"]);
        pages.push(paragraph("new"));
        assert_eq!((seen(&pages), pages.below()), (vec!["line 3", "line 4", "new"], 0));
        pages.scroll(-2);
        pages.push(paragraph("newer"));
        assert_eq!((seen(&pages), pages.below()), (vec!["line 1", "line 2", "line 3"], 3));
        pages.page(-1);
        pages.page(-1);
        assert_eq!(seen(&pages), ["line 0", "line 1", "line 2"]);
        pages.go_to_end();
        pages.push(paragraph("last"));
        assert_eq!(seen(&pages), ["new", "newer", "last"]);
        pages.go_to_begin();
        assert_eq!(seen(&pages), ["line 0", "line 1", "line 2"]);
    }

    #[test]
    fn paragraphs_are_wrapped_to_the_width_and_again_to_another() {
        let mut pages = pages(0);
        pages.push(Paragraph {
            sign: "▸ ".to_owned(), ..paragraph("some words that go on\n日本語日本語")
        });
        pages.fit(12, 10);
        assert_eq!(seen(&pages), ["▸ some words", "  that go on", "  日本語日本", "  語"]);
        pages.fit(30, 10);
        assert_eq!(seen(&pages), ["▸ some words that go on", "  日本語日本語"]);
        pages.fit(0, 10);
        assert_eq!(seen(&pages).len(), 10, "it fits nowhere, and does no harm");
    }

    #[test]
    fn the_last_one_goes_on_and_the_oldest_are_dropped() {
        let mut pages = pages(2 * LINES);
        assert_eq!(pages.lines.len(), LINES);
        pages.go_to_begin();
        assert_eq!(seen(&pages)[0], format!("line {LINES}"));
        pages.go_to_end();
        assert_eq!(pages.pop().unwrap().text, format!("line {}", 2 * LINES - 1));
        assert_eq!(seen(&pages)[2], format!("line {}", 2 * LINES - 2));
    }

    #[test]
    fn a_text_of_any_length_is_cut() {
        let mut pages = pages(0);
        pages.push(paragraph(&"é ".repeat(1 << 20)));
        pages.push(paragraph(&"a\n".repeat(1 << 20)));
        assert!(pages.lines.len() <= 2 * (OF_ONE + 1), "{}", pages.lines.len());
    }
}
