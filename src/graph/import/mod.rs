//! Reads tasks from the files of other tools and of `ralph task export`: one module per format.

mod beads;
mod checklist;
mod exported;
mod issue;
mod json;
mod plan;
mod prd;

use std::io::{self, BufRead, BufReader, Read};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};

use super::error::GraphError;
use super::task::{LogLine, Status, Verification};
use crate::memory::journal::JournalEntry;

pub use exported::header;
pub(in crate::graph) use exported::header_of;
pub use exported::{DeletedIssue, ExportedLanding};
pub(super) use exported::{ExportedFeature, ExportedTask, is_id};
pub use issue::Issue;

/// The size limit in bytes: of a line, and of a file that is read whole.
const LARGEST: u64 = 16 << 20;

/// The identity of a task across two imports of its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Key {
    /// A ralph id.
    Id(String),
    /// The id or name that the file gives the task.
    Origin(String),
}

impl Key {
    /// The id or name in the file, if it is one.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        match self {
            Self::Id(_) => None,
            Self::Origin(origin) => Some(origin),
        }
    }

    /// The key as the file has it.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Id(id) => id,
            Self::Origin(origin) => {
                let name = origin.split_once(':').map_or(origin.as_str(), |(_, name)| name);
                name.lines().next().unwrap_or_default()
            }
        }
    }
}

/// A task that a file describes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Its line, from 1.
    pub line: usize,
    /// Its identity.
    pub key: Key,
    /// The task that it is a part of.
    pub parent: Option<Key>,
    /// The tasks that it waits for.
    pub after: Vec<Key>,
    /// Its title, one line.
    pub title: String,
    /// Its description; `None` keeps the one there is.
    pub description: Option<String>,
    /// Lower numbers go first; `None` keeps the priority there is, or means 0.
    pub priority: Option<i64>,
    /// Its own state; states that follow from other tasks are computed.
    pub status: Status,
    /// The name of its feature, which is created if it does not exist.
    pub feature: Option<String>,
    /// How many retries there were, and the limit.
    pub retries: Option<(u32, u32)>,
    /// What a verifying agent said about it.
    pub verification: Verification,
    /// When it was added, and when it was last changed.
    pub times: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// With parts, it only groups them.
    pub is_group: bool,
    /// It is an issue that is closed there: nothing to add or change, only to tell.
    pub is_closed: bool,
    /// What its tracker says, if it is an issue.
    pub issue: Option<FromIssue>,
    /// The id in another file, of a task whose key is a ralph id.
    pub origin: Option<String>,
    /// Its log, used only if the task is new, as is all that follows.
    pub log: Vec<LogLine>,
    /// Its limit of retries was given.
    pub retries_given: bool,
    /// The commit at which it was done.
    pub commit: Option<String>,
    /// What agents have committed for it.
    pub landing: Option<ExportedLanding>,
}

impl Item {
    /// An open task with only a title.
    fn new(line: usize, key: Key, title: String) -> Self {
        Self {
            line,
            key,
            parent: None,
            after: Vec::new(),
            title,
            description: None,
            priority: None,
            status: Status::Pending,
            feature: None,
            retries: None,
            verification: Verification::Pending,
            times: None,
            is_group: false,
            is_closed: false,
            issue: None,
            origin: None,
            log: Vec::new(),
            retries_given: false,
            commit: None,
            landing: None,
        }
    }
}

/// What a tracker says about an issue, apart from its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromIssue {
    /// Its page.
    pub address: String,
    /// Its priority; `None` if it has none.
    pub priority: Option<i64>,
    /// It becomes a task also if that was deleted here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// A feature that a file describes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureItem {
    /// Its line, from 1.
    pub line: usize,
    /// `f-` and hexadecimal digits.
    pub id: String,
    /// Its name, which is also its identity.
    pub name: String,
    /// Its spec, below the ralph dir.
    pub spec_path: Option<String>,
    /// Its plan, below the ralph dir.
    pub plan_path: Option<String>,
    /// When it was added, and when it was last changed.
    pub times: (DateTime<Utc>, DateTime<Utc>),
}

/// One record of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ImportEntry {
    /// A task.
    Task(Box<Item>),
    /// An attempt at a task that was exported before.
    Attempt(Box<JournalEntry>),
    /// A feature.
    Feature(FeatureItem),
    /// An issue whose task was deleted before the export.
    Deleted(DeletedIssue),
    /// An entry of a list of issues that becomes no task.
    Skipped(Skipped),
}

/// Why an entry of a list of issues becomes no task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Skipped {
    /// It is a pull request.
    PullRequest,
    /// The list has it before.
    Twice,
}

/// The records of a file, in order.
pub type ImportEntries<'a> = Box<dyn Iterator<Item = Result<ImportEntry, GraphError>> + 'a>;

/// Reads a file of any known format. `is_branch` says whether a text can be a branch name.
pub fn read<'a>(
    file: impl Read + 'a,
    is_branch: &dyn Fn(&str) -> bool,
) -> Result<ImportEntries<'a>, GraphError> {
    let mut lines = Lines { file: BufReader::with_capacity(64 << 10, Box::new(file)), number: 0 };
    // Leading blank lines count in the line numbers.
    let mut whole = String::new();
    let (number, first) = loop {
        let Some((number, line)) = lines.next().transpose()? else { break (0, String::new()) };
        let line = line.strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(&line).to_owned();
        if !line.trim().is_empty() {
            break (number, line);
        }
        require_size(&whole)?;
        whole.push('\n');
    };
    if exported::is_header(&first) {
        return Ok(Box::new(exported::entries(&first, lines)?));
    }
    if beads::is_one(&first) {
        return Ok(Box::new(beads::items((number, first), lines).map(|item| item.map(task))));
    }
    whole.push_str(&first);
    for line in lines {
        whole.push('\n');
        whole.push_str(&line?.1);
        require_size(&whole)?;
    }
    if let Some(entries) = issue::entries(&whole) {
        return Ok(Box::new(entries?.into_iter().map(Ok)));
    }
    let items = if whole.trim_start().starts_with(['{', '[']) {
        prd::items(&whole)?
    } else if plan::is_one(&whole) {
        plan::items(&whole, is_branch)?
    } else {
        checklist::items(&whole)?
    };
    if items.is_empty() {
        let known = "a list of '- [ ] task', a prd.json, beads' JSONL, an IMPLEMENTATION_PLAN.md, what 'gh issue list --json …' or what 'ralph task export' prints";
        return Err(at(0, &format!("there are no tasks in it: give {known}")));
    }
    Ok(Box::new(items.into_iter().map(|item| Ok(task(item)))))
}

fn require_size(whole: &str) -> Result<(), GraphError> {
    if whole.len() as u64 > LARGEST {
        return Err(at(
            0,
            &format!("the file is larger than {LARGEST} bytes: {}", smaller(whole.as_bytes())),
        ));
    }
    Ok(())
}

/// How a file like this becomes smaller.
fn smaller(text: &[u8]) -> &'static str {
    if text.trim_ascii_start().starts_with(b"[") {
        "make the list smaller, as with 'gh issue list --label NAME' or '--limit 1000', or import github:OWNER/REPO itself"
    } else {
        "split it"
    }
}

fn task(item: Item) -> ImportEntry {
    ImportEntry::Task(Box::new(item))
}

/// An error at a line, or at the whole file for line 0.
pub(super) fn at(line: usize, what: &str) -> GraphError {
    GraphError::BadValue(if line == 0 { what.to_owned() } else { format!("line {line}: {what}") })
}

/// Numbers the lines of a file and refuses lines over the size limit.
struct Lines<'a> {
    file: BufReader<Box<dyn Read + 'a>>,
    number: usize,
}

impl Iterator for Lines<'_> {
    type Item = Result<(usize, String), GraphError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.number += 1;
        let mut line = Vec::new();
        let read = (&mut self.file).take(LARGEST + 1).read_until(b'\n', &mut line);
        match read {
            Ok(0) => None,
            Ok(_) if line.len() as u64 > LARGEST => {
                let what = format!("it is longer than {LARGEST} bytes: {}", smaller(&line));
                Some(Err(at(self.number, &what)))
            }
            Ok(_) => Some(
                text(line)
                    .map(|line| (self.number, line))
                    .ok_or_else(|| at(self.number, "it is no UTF-8 text: convert the file")),
            ),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.next(),
            Err(error) => Some(Err(at(self.number, &format!("cannot be read: {error}")))),
        }
    }
}

fn text(line: Vec<u8>) -> Option<String> {
    let line = String::from_utf8(line).ok()?;
    Some(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Reads `null` as a missing value.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(value: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

/// Joins the non-empty paragraphs.
fn paragraphs<'a>(parts: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let parts: Vec<&str> = parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

#[cfg(test)]
mod tests;
