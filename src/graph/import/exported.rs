//! What `ralph task export` prints: a line that says so, then a task on each line.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Item, Key, Lines, at};
use crate::graph::error::GraphError;
use crate::graph::task::{LogLine, Status};
use crate::graph::transitions::Own;

/// What the first line begins with.
pub(in crate::graph) const HEADER: &str = "{\"ralph_tasks\":";
/// The version of the format.
const VERSION: u64 = 1;

/// A task as it is exported.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::graph) struct Exported {
    pub(in crate::graph) id: String,
    pub(in crate::graph) parent_id: Option<String>,
    pub(in crate::graph) feature: Option<String>,
    pub(in crate::graph) title: String,
    #[serde(default)]
    pub(in crate::graph) description: String,
    pub(in crate::graph) status: Status,
    pub(in crate::graph) priority: i64,
    pub(in crate::graph) created_at: DateTime<Utc>,
    pub(in crate::graph) retry_count: u32,
    pub(in crate::graph) max_retries: u32,
    #[serde(default)]
    pub(in crate::graph) blockers: Vec<String>,
    #[serde(default)]
    pub(in crate::graph) log: Vec<LogLine>,
}

/// The first line of an export.
#[must_use]
pub fn header() -> String {
    format!("{HEADER}{VERSION}}}")
}

pub(super) fn items<'a>(
    first: &str,
    lines: Lines<'a>,
) -> Result<impl Iterator<Item = Result<Item, GraphError>> + 'a, GraphError> {
    if first != header() {
        return Err(at(1, &format!("'{first}' is not '{}': use the ralph that wrote it", header())));
    }
    let full = lines.filter(|line| line.as_ref().map_or(true, |(_, text)| !text.trim().is_empty()));
    Ok(full.map(|line| line.and_then(|(number, text)| item(number, &text))))
}

fn item(line: usize, text: &str) -> Result<Item, GraphError> {
    let task: Exported = serde_json::from_str(text).map_err(|error| at(line, &error.to_string()))?;
    let is_id = |id: &str| {
        id.strip_prefix("t-").is_some_and(|hex| {
            hex.len() > 5
                && hex.len() <= 16
                && hex.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
        })
    };
    if !is_id(&task.id) {
        return Err(at(
            line,
            &format!("'{}' is no id: it has to be 't-' and 6 to 16 hexadecimal digits", task.id),
        ));
    }
    Ok(Item {
        parent: task.parent_id.map(Key::Id),
        after: task.blockers.into_iter().map(Key::Id).collect(),
        description: task.description,
        priority: Some(task.priority),
        own: Own::of(task.status),
        feature: task.feature,
        retries: Some((task.retry_count, task.max_retries)),
        created_at: Some(task.created_at),
        log: task.log.into_iter().map(|line| (line.message, line.timestamp)).collect(),
        ..Item::new(line, Key::Id(task.id), task.title)
    })
}
