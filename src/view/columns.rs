//! Tables whose least important columns are left out if the terminal is too narrow for all.

use std::fmt::Write as _;

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::cells::cut;
use crate::text::palette::FAINT;

/// The space between two columns, in cells.
const GAP: usize = 2;

/// A table with heads, and a column that is coloured.
pub(super) struct Table<const N: usize> {
    pub(super) heads: [&'static str; N],
    /// The column that has the style of its row.
    pub(super) coloured: usize,
    /// The columns in the order in which they are left out, and the one that shrinks before, as in [`Columns::fitting`].
    pub(super) least_telling: &'static [usize],
    pub(super) gives: (usize, usize),
}

impl<const N: usize> Table<N> {
    /// The lines of these rows below their heads, and whether the column `of` is shown. Empty columns are left out.
    pub(super) fn text(
        &self,
        rows: impl IntoIterator<Item = ([String; N], Style)>,
        width: Option<usize>,
        of: usize,
    ) -> (String, bool) {
        let (mut lines, styles): (Vec<[String; N]>, Vec<Style>) = rows.into_iter().unzip();
        let has_words = |at: usize| lines.is_empty() || lines.iter().any(|row| !row[at].is_empty());
        let heads = std::array::from_fn(|at| if has_words(at) { self.heads[at] } else { "" }.to_owned());
        lines.insert(0, heads);
        let columns = Columns::fitting(&lines, self.least_telling, self.gives, width);
        let mut text = columns.line(&lines[0], |_| FAINT) + "\n";
        for (row, style) in lines[1..].iter().zip(styles) {
            text += &columns.line(row, |column| if column == self.coloured { style } else { Style::new() });
            text += "\n";
        }
        (text, columns.shown.contains(&of))
    }
}

/// The columns of a table that fit, and their widths.
#[derive(Debug)]
pub(super) struct Columns<const N: usize> {
    shown: Vec<usize>,
    widths: [usize; N],
}

impl<const N: usize> Columns<N> {
    /// The columns that are not empty, as many as fit into `width` cells; `None`: all. First the column `gives.0` shrinks to
    /// `gives.1` cells, then those of `least_telling` are left out one after the other, and if that is not enough, `gives.0` is
    /// cut further, or the widest column if that one is left out.
    pub(super) fn fitting(
        rows: &[[String; N]],
        least_telling: &[usize],
        gives: (usize, usize),
        width: Option<usize>,
    ) -> Self {
        let widest = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or_default();
        let mut widths: [usize; N] = std::array::from_fn(widest);
        let mut shown: Vec<usize> = (0..N).filter(|&column| widths[column] > 0).collect();
        let Some(width) = width else { return Self { shown, widths } };
        let (gives, least) = gives;
        let wanted = widths[gives];
        widths[gives] = wanted.min(least);
        let needed = |shown: &[usize], widths: &[usize; N]| {
            (shown.iter().map(|&column| widths[column] + GAP).sum::<usize>()).saturating_sub(GAP)
        };
        for column in least_telling {
            if needed(&shown, &widths) > width {
                shown.retain(|kept| kept != column);
            }
        }
        if let Some(cut) = shown.iter().copied().max_by_key(|&column| (column == gives, widths[column])) {
            let others = needed(&shown, &widths) - widths[cut];
            let wanted = if cut == gives { wanted } else { widths[cut] };
            widths[cut] = wanted.min(width.saturating_sub(others)).max(1);
        }
        Self { shown, widths }
    }

    /// The line of a row, without a newline; `style` is that of each column.
    pub(super) fn line(&self, row: &[String; N], style: impl Fn(usize) -> Style) -> String {
        let cells = self.shown.iter().map(|&column| self.widths[column] + GAP).sum();
        let mut line = String::with_capacity(cells);
        // Blanks at the end of a line are left out.
        let last = self.shown.iter().rposition(|&column| !row[column].is_empty());
        for (place, &column) in self.shown.iter().enumerate().take_while(|(place, _)| Some(*place) <= last) {
            let width = self.widths[column];
            let text = cut(&row[column], width);
            let blanks = if Some(place) == last { 0 } else { width.saturating_sub(text.width()) };
            let gap = if place > 0 { GAP } else { 0 };
            let style = style(column);
            // Writing to a String cannot fail.
            let _ = write!(line, "{:gap$}{style}{text}{:blanks$}{style:#}", "", "");
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(width: Option<usize>, least: usize) -> Vec<String> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned);
        let rows = [row(["name", "3", "", "long text"]), row(["日本語のなまえ", "10", "", ""])];
        let columns = Columns::fitting(&rows, &[1], (3, least), width);
        rows.iter().map(|row| columns.line(row, |_| Style::new())).collect()
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_then_cut() {
        let shown = |width| table(Some(width), usize::MAX);
        assert_eq!(table(None, 0), ["name            3   long text", "日本語のなまえ  10"]);
        assert_eq!(shown(29), table(None, 0));
        assert_eq!(shown(28), ["name            long text", "日本語のなまえ"]);
        assert_eq!(shown(20), ["name            lon…", "日本語のなまえ"]);
        assert_eq!(shown(1), ["name            …", "日本語のなまえ"]);
        // The column that may shrink does so first.
        assert_eq!(table(Some(26), 4), ["name            3   long …", "日本語のなまえ  10"]);
        assert_eq!(table(Some(23), 4), ["name            long t…", "日本語のなまえ"]);
        let row = ["long name", "proven: a"].map(str::to_owned);
        let columns = Columns::fitting(std::slice::from_ref(&row), &[1], (1, 6), Some(5));
        assert_eq!(columns.line(&row, |_| Style::new()), "long…", "the one that gives is left out");
    }
}
