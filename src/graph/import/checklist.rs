//! A markdown checklist: nesting makes parts.

use super::{Item, Key};
use crate::graph::task::Status;

pub(super) fn items(text: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    // The items above the next line, with their indents and their texts.
    let mut above: Vec<(usize, Key, String)> = Vec::new();
    let mut fence: Option<&str> = None;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        if let Some(mark) = mark.filter(|mark| fence.is_none_or(|open| open == *mark)) {
            fence = if fence.is_some() { None } else { Some(mark) };
            continue;
        }
        if fence.is_some() || !(trimmed.starts_with('#') || list_item(trimmed).is_some()) {
            continue;
        }
        // What has no box ends what stands above it all the same.
        let indent = line[..line.len() - trimmed.len()].chars().map(|c| if c == '\t' { 4 } else { 1 }).sum();
        above.retain(|(other, _, _)| *other < indent);
        let Some((done, title)) = list_item(trimmed).and_then(boxed) else { continue };
        let path = above.last().map_or(title.to_owned(), |(_, _, path)| format!("{path} > {title}"));
        let key = Key::Origin(format!("list:{path}"));
        items.push(Item {
            parent: above.last().map(|(_, key, _)| key.clone()),
            status: if done { Status::Done } else { Status::Pending },
            ..Item::new(number + 1, key.clone(), title.to_owned())
        });
        above.push((indent, key, path));
    }
    items
}

/// The text of an item of a list.
fn list_item(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = match digits.strip_prefix(['.', ')']) {
        Some(rest) if digits.len() < line.len() => rest,
        _ => line.strip_prefix(['-', '*', '+'])?,
    };
    Some(rest.strip_prefix([' ', '\t'])?.trim_start())
}

/// The text behind a box, and whether that is ticked.
fn boxed(item: &str) -> Option<(bool, &str)> {
    for (mark, done) in [("[ ]", false), ("[x]", true), ("[X]", true)] {
        if let Some(title) = item.strip_prefix(mark) {
            let title = title.trim();
            return (!title.is_empty()).then_some((done, title));
        }
    }
    None
}
