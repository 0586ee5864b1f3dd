//! The issue files of beads: one JSON object per line.

use serde::Deserialize;

use super::json::bad_json;
use super::{Item, Key, Lines, at, or_default, paragraphs};
use crate::graph::error::GraphError;
use crate::graph::task::Status;

#[derive(Deserialize)]
struct Issue {
    id: String,
    title: String,
    #[serde(default, deserialize_with = "or_default")]
    description: String,
    #[serde(default, deserialize_with = "or_default")]
    acceptance_criteria: String,
    #[serde(default, deserialize_with = "or_default")]
    notes: String,
    status: String,
    priority: Option<i64>,
    #[serde(default, deserialize_with = "or_default")]
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    depends_on_id: String,
    #[serde(rename = "type")]
    kind: String,
}

/// Whether a file with this first line is a beads file: the line is a whole object with an id and a status.
pub(super) fn is_one(first: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(first).is_ok_and(|value| {
        value.get("id").is_some() && value.get("status").is_some() && value.get("userStories").is_none()
    })
}

pub(super) fn items(
    first: (usize, String),
    lines: Lines<'_>,
) -> impl Iterator<Item = Result<Item, GraphError>> {
    let all = std::iter::once(Ok(first)).chain(lines);
    let full = all.filter(|line| line.as_ref().map_or(true, |(_, text)| !text.trim().is_empty()));
    full.map(|line| line.and_then(|(number, text)| item(number, &text)))
}

fn item(line: usize, text: &str) -> Result<Item, GraphError> {
    let issue: Issue = serde_json::from_str(text)
        .map_err(|error| bad_json(Some(line), "no issue of beads'", text, &error))?;
    let key = |id: &str| Key::Origin(format!("beads:{id}"));
    let of_kind = |kind: &'static str| {
        issue
            .dependencies
            .iter()
            .filter(move |other| other.kind == kind)
            .map(|other| key(&other.depends_on_id))
    };
    let parents: Vec<Key> = of_kind("parent-child").collect();
    if parents.len() > 1 {
        let id = &issue.id;
        return Err(at(
            line,
            &format!("'{id}' is a part of {} others: a task has one parent at most", parents.len()),
        ));
    }
    let status = match issue.status.as_str() {
        "closed" => Status::Done,
        "open" | "in_progress" | "blocked" => Status::Pending,
        other => {
            let known = "open, in_progress, blocked and closed are known";
            return Err(at(line, &format!("'{other}' is no status: {known}")));
        }
    };
    let description = paragraphs([issue.description.as_str(), &issue.acceptance_criteria, &issue.notes]);
    Ok(Item {
        parent: parents.into_iter().next(),
        after: of_kind("blocks").collect(),
        is_group: description.is_none(),
        description,
        priority: issue.priority,
        status,
        ..Item::new(line, key(&issue.id), issue.title.clone())
    })
}
