//! A markdown checklist: a nested item becomes a part of the item above it.

use super::{Item, Key, at};
use crate::graph::error::GraphError;
use crate::graph::limits;
use crate::graph::task::Status;

/// An item that others may be parts of.
struct Above {
    indent: usize,
    key: Key,
    /// Its title, then the titles above it, one per line. Titles have no line ends.
    path: String,
}

pub(super) fn items(text: &str) -> Result<Vec<Item>, GraphError> {
    let mut items: Vec<Item> = Vec::new();
    let mut above: Vec<Above> = Vec::new();
    let mut headings: Vec<&str> = Vec::new();
    let mut fence: Option<&str> = None;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if let Some(open) = fence {
            fence = Some(open).filter(|open| !closes(trimmed, open));
            continue;
        }
        fence = opens(trimmed);
        let heading = heading_level(trimmed);
        if fence.is_some() || (heading.is_none() && list_item(trimmed).is_none()) {
            continue;
        }
        // An item without a box also ends the items of its level and below.
        let indent = line[..line.len() - trimmed.len()].chars().map(|c| if c == '\t' { 4 } else { 1 }).sum();
        above.retain(|other| other.indent < indent);
        if let Some(level) = heading {
            headings.retain(|other| heading_level(other).is_some_and(|other| other < level));
            headings.push(trimmed.trim_end());
        }
        let Some((done, title)) = list_item(trimmed).and_then(boxed) else { continue };
        limits::level(&format!("'{title}'"), above.len() + 1)
            .map_err(|error| at(number + 1, &error.to_string()))?;
        let path = above.last().map_or(title.to_owned(), |above| format!("{title}\n{}", above.path));
        // Titles are never empty, so the blank line separates titles from headings.
        let key = Key::Origin(format!("list:{path}\n\n{}", headings.join("\n")));
        items.push(Item {
            parent: above.last().map(|above| above.key.clone()),
            status: if done { Status::Done } else { Status::Pending },
            is_group: true,
            ..Item::new(number + 1, key.clone(), title.to_owned())
        });
        above.push(Above { indent, key, path });
    }
    Ok(items)
}

/// The fence that this line opens, if it opens a code block.
fn opens(line: &str) -> Option<&str> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    let (marks, rest) = line.split_at(length);
    // Backquotes later in the line make it inline code.
    (length >= 3 && !(mark == '`' && rest.contains('`'))).then_some(marks)
}

/// Whether a line closes the fence: at least as many marks, and nothing else.
fn closes(line: &str, marks: &str) -> bool {
    let rest = line.trim_end().strip_prefix(marks);
    rest.is_some_and(|rest| rest.chars().all(|mark| marks.starts_with(mark)))
}

fn heading_level(line: &str) -> Option<usize> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    ((1..=6).contains(&level) && (text.is_empty() || text.starts_with([' ', '\t']))).then_some(level)
}

/// The text of a list item.
fn list_item(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = match digits.strip_prefix(['.', ')']) {
        Some(rest) if digits.len() < line.len() => rest,
        _ => line.strip_prefix(['-', '*', '+'])?,
    };
    Some(rest.strip_prefix([' ', '\t'])?.trim_start())
}

/// The text after a checkbox, and whether the box is ticked.
fn boxed(item: &str) -> Option<(bool, &str)> {
    for (mark, done) in [("[ ]", false), ("[x]", true), ("[X]", true)] {
        if let Some(title) = item.strip_prefix(mark) {
            let title = title.trim();
            return (!title.is_empty()).then_some((done, title));
        }
    }
    None
}
