//! The output of `ralph task export`: a header line, then one feature or task per line.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::json::bad_json;
use super::{FeatureItem, FromIssue, ImportEntry, Item, Key, Lines, at};
use crate::graph::error::GraphError;
use crate::graph::landing::{Landing, Made, Standing};
use crate::graph::task::{LogLine, Status, Verification};
use crate::memory::journal::JournalEntry;

/// The version of the format.
const VERSION: u64 = 1;
/// That of an export with deleted issues: a ralph that does not know these lines has to refuse it as a whole, by its version.
const WITH_DELETED: u64 = 2;

/// The header line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// The version of the format.
    ralph_tasks: u64,
}

fn read_header(line: &str) -> Option<u64> {
    serde_json::from_str(line).ok().map(|Header { ralph_tasks }| ralph_tasks)
}

/// Whether a file with this first line is an export, of any version.
pub(super) fn is_header(line: &str) -> bool {
    read_header(line).is_some()
}

/// A feature as it is exported.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::graph) struct ExportedFeature {
    pub(in crate::graph) id: String,
    pub(in crate::graph) name: String,
    pub(in crate::graph) spec_path: Option<String>,
    pub(in crate::graph) plan_path: Option<String>,
    pub(in crate::graph) created_at: DateTime<Utc>,
    pub(in crate::graph) updated_at: DateTime<Utc>,
}

/// A task as it is exported. It has no claim: processes of one machine hold claims. Only id and title are required
/// for reading.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::graph) struct ExportedTask {
    pub(in crate::graph) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::graph) origin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::graph) issue: Option<FromIssue>,
    pub(in crate::graph) parent_id: Option<String>,
    pub(in crate::graph) feature: Option<String>,
    pub(in crate::graph) title: String,
    pub(in crate::graph) description: Option<String>,
    #[serde(default)]
    pub(in crate::graph) status: Status,
    pub(in crate::graph) priority: Option<i64>,
    pub(in crate::graph) created_at: Option<DateTime<Utc>>,
    pub(in crate::graph) updated_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub(in crate::graph) retry_count: u32,
    pub(in crate::graph) max_retries: Option<u32>,
    #[serde(default)]
    pub(in crate::graph) verification_status: Verification,
    #[serde(default)]
    pub(in crate::graph) blockers: Vec<String>,
    /// It only groups its parts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::graph) group: bool,
    #[serde(default)]
    pub(in crate::graph) log: Vec<LogLine>,
    /// Its limit of retries was given, and is not the usual one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::graph) retries_given: bool,
    /// The commit at which it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::graph) commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::graph) landing: Option<ExportedLanding>,
}

/// An issue whose task was deleted, as it is exported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedIssue {
    /// What its tracker calls it.
    pub(in crate::graph) deleted: String,
    /// What that last said about it.
    pub(in crate::graph) issue: FromIssue,
}

/// What agents have committed for a task, as it is exported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedLanding {
    pub(in crate::graph) claim: (i64, String),
    pub(in crate::graph) trunk: String,
    pub(in crate::graph) base: String,
    pub(in crate::graph) head: String,
    pub(in crate::graph) standing: Standing,
    pub(in crate::graph) since: DateTime<Utc>,
    pub(in crate::graph) returned: u32,
    pub(in crate::graph) gates: u32,
    pub(in crate::graph) reason: String,
    pub(in crate::graph) landed: Option<String>,
}

impl From<Landing> for ExportedLanding {
    fn from(landing: Landing) -> Self {
        let Landing { fence, nonce, made, standing, since, returned, gates, reason, landed, .. } = landing;
        let Made { trunk, base, head } = made;
        Self { claim: (fence, nonce), trunk, base, head, standing, since, returned, gates, reason, landed }
    }
}

/// The header line of an export without deleted issues.
#[must_use]
pub fn header() -> String {
    header_of(false)
}

/// The header line of an export.
pub(in crate::graph) fn header_of(has_deleted: bool) -> String {
    let version = if has_deleted { WITH_DELETED } else { VERSION };
    format!("{{\"ralph_tasks\":{version}}}")
}

pub(super) fn entries<'a>(
    first: &str,
    lines: Lines<'a>,
) -> Result<impl Iterator<Item = Result<ImportEntry, GraphError>> + 'a, GraphError> {
    if !read_header(first).is_some_and(|version| (VERSION..=WITH_DELETED).contains(&version)) {
        let known = format!("{VERSION} and {WITH_DELETED}");
        return Err(at(
            1,
            &format!(
                "'{first}' is a version that this ralph does not read ({known}): use the ralph that wrote it"
            ),
        ));
    }
    let full = lines.filter(|line| line.as_ref().map_or(true, |(_, text)| !text.trim().is_empty()));
    Ok(full.map(|line| line.and_then(|(number, text)| entry(number, &text))))
}

fn entry(line: usize, text: &str) -> Result<ImportEntry, GraphError> {
    // Only attempts are of a run.
    if let Ok(attempt) = serde_json::from_str::<JournalEntry>(text) {
        return Ok(ImportEntry::Attempt(Box::new(attempt)));
    }
    // Only features have a name.
    if let Ok(feature) = serde_json::from_str::<ExportedFeature>(text) {
        require_id(line, "f-", &feature.id)?;
        let ExportedFeature { id, name, spec_path, plan_path, created_at, updated_at } = feature;
        let times = (created_at, updated_at);
        return Ok(ImportEntry::Feature(FeatureItem { line, id, name, spec_path, plan_path, times }));
    }
    // Only issues without tasks say that they were deleted.
    if let Ok(deleted) = serde_json::from_str::<DeletedIssue>(text) {
        return Ok(ImportEntry::Deleted(deleted));
    }
    let task: ExportedTask = serde_json::from_str(text)
        .map_err(|error| bad_json(Some(line), "no task of an export", text, &error))?;
    require_id(line, "t-", &task.id)?;
    Ok(ImportEntry::Task(Box::new(Item {
        parent: task.parent_id.map(Key::Id),
        after: task.blockers.into_iter().map(Key::Id).collect(),
        description: task.description,
        priority: task.priority,
        // The claim's process does not exist here, nor do the commits that were to land.
        status: match task.status {
            Status::InProgress | Status::Landing => Status::Pending,
            status => status,
        },
        feature: task.feature,
        retries: task.max_retries.map(|most| (task.retry_count, most)),
        verification: task.verification_status,
        times: task.created_at.map(|created| (created, task.updated_at.unwrap_or(created))),
        is_group: task.group,
        origin: task.origin,
        issue: task.issue,
        log: task.log,
        retries_given: task.retries_given,
        commit: task.commit,
        landing: task.landing.map(|landing| ExportedLanding {
            // It is handed in by its next agent.
            standing: if landing.standing == Standing::Waiting { Standing::Kept } else { landing.standing },
            ..landing
        }),
        ..Item::new(line, Key::Id(task.id), task.title)
    })))
}

/// Whether this is the id of a task (`t-`) or a feature (`f-`).
pub(in crate::graph) fn is_id(kind: &str, id: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    id.strip_prefix(kind).is_some_and(|hex| (6..=16).contains(&hex.len()) && hex.bytes().all(is_digit))
}

fn require_id(line: usize, kind: &str, id: &str) -> Result<(), GraphError> {
    if is_id(kind, id) {
        return Ok(());
    }
    Err(at(line, &format!("'{id}' is no id: it has to be '{kind}' and 6 to 16 hexadecimal digits")))
}
