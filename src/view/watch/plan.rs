//! The plan or the tasks of the selected loop.

use anstyle::Style;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::paint::Paint;
use super::scroll::{Paragraph, lines_of};
use crate::engine::fact::TaskCounts;
use crate::text::palette::{ERROR, FAINT, STRONG};
use crate::view::report::done_of;

/// So many lines stand above the first task that is open.
const ABOVE: usize = 2;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Open,
    AtWork,
    Done,
    Failed,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) standing: Standing,
    pub(crate) text: String,
}

/// The tasks of a loop in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// `plan` or `tasks`.
    pub(crate) what: &'static str,
    pub(crate) tasks: Vec<Task>,
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// `plan 3/8`
    pub(super) fn title(&self) -> String {
        let count = |standing| self.tasks.iter().filter(|task| task.standing == standing).count() as u64;
        let (done, failed) = (count(Standing::Done), count(Standing::Failed));
        format!("{} {}", self.what, done_of(TaskCounts { done, failed, total: self.tasks.len() as u64 }))
    }

    /// Draws as many tasks as there is room for, the first open one among them.
    pub(super) fn draw(&self, paint: Paint, buffer: &mut Buffer, area: Rect) {
        let (mut lines, mut first_open) = (Vec::new(), None);
        for task in &self.tasks {
            if matches!(task.standing, Standing::Open | Standing::AtWork) {
                first_open = first_open.or(Some(lines.len()));
            }
            lines.extend(lines_of(&task.paragraph(), area.width.into()));
        }
        let height = usize::from(area.height);
        let top = first_open.map_or(usize::MAX, |first| first.saturating_sub(ABOVE));
        let top = top.min(lines.len().saturating_sub(height));
        for (row, (style, line)) in (0..area.height).zip(lines.iter().skip(top)) {
            paint.put(buffer, area, (0, row), line, *style);
        }
    }
}

impl Task {
    fn paragraph(&self) -> Paragraph {
        let (style, sign) = match self.standing {
            Standing::Open => (Style::new(), "○ "),
            Standing::AtWork => (STRONG, "▶ "),
            Standing::Done => (FAINT, "✓ "),
            Standing::Failed => (ERROR, "✗ "),
        };
        Paragraph { style, sign: sign.to_owned(), text: self.text.clone() }
    }
}
