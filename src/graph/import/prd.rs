//! `prd.json` with user stories, as shell loops use it.

use serde::Deserialize;

use super::json::bad_json;
use super::{Item, Key, at, or_default, paragraphs};
use crate::graph::error::GraphError;
use crate::graph::task::Status;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prd {
    project: Option<String>,
    branch_name: Option<String>,
    user_stories: Vec<Story>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Story {
    id: Name,
    title: String,
    #[serde(default, deserialize_with = "or_default")]
    description: String,
    #[serde(default, deserialize_with = "or_default")]
    acceptance_criteria: Vec<String>,
    priority: Option<i64>,
    #[serde(default, deserialize_with = "or_default")]
    passes: bool,
    #[serde(default, deserialize_with = "or_default")]
    notes: String,
    #[serde(default, deserialize_with = "or_default")]
    depends_on: Vec<Name>,
}

/// The id of a story: a string or a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Number(u64),
}

impl Name {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
        }
    }

    /// The id as JSON usually writes it.
    fn written(&self) -> String {
        match self {
            Self::Text(text) => serde_json::to_string(text).unwrap_or_default(),
            Self::Number(number) => number.to_string(),
        }
    }
}

pub(super) fn items(text: &str) -> Result<Vec<Item>, GraphError> {
    if text.trim_start().starts_with('[') {
        return Err(at(
            0,
            "it is a list: the stories of a prd.json stand in an object, {\"userStories\": [...]}",
        ));
    }
    let prd: Prd = serde_json::from_str(text).map_err(|error| bad_json(None, "no prd.json", text, &error))?;
    // Another prd.json has the same ids.
    let name = prd.branch_name.or(prd.project).unwrap_or_default();
    let key = |id: &Name| Key::Origin(format!("prd:{}\n{name}", id.text()));
    let lines = lines_of(text, &prd.user_stories);
    let items = prd.user_stories.iter().zip(lines).map(|(story, line)| {
        let criteria: Vec<String> =
            story.acceptance_criteria.iter().map(|each| format!("\n- {each}")).collect();
        let heading = if criteria.is_empty() { "" } else { "Acceptance criteria:" };
        let criteria = heading.to_owned() + &criteria.concat();
        Item {
            after: story.depends_on.iter().map(key).collect(),
            description: paragraphs([story.description.as_str(), &criteria, &story.notes]),
            priority: story.priority,
            status: if story.passes { Status::Done } else { Status::Pending },
            ..Item::new(line, key(&story.id), story.title.clone())
        }
    });
    Ok(items.collect())
}

/// The line of each story: where its id first occurs after the previous story.
fn lines_of(text: &str, stories: &[Story]) -> Vec<usize> {
    let (mut from, mut line) = (0, 1);
    let mut lines = Vec::new();
    for story in stories {
        let written = story.id.written();
        let rest = &text[from..];
        let key = rest.match_indices("\"id\"").find(|(at, _)| {
            rest[at + 4..].trim_start_matches([' ', '\t', '\n', '\r', ':']).starts_with(&written)
        });
        if let Some((at, _)) = key {
            line += rest[..at].matches('\n').count();
            from += at + "\"id\"".len();
        }
        lines.push(line);
    }
    lines
}
