//! Issues of a tracker, and the list of them that `gh issue list --json` prints.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::json::bad_json;
use super::{FromIssue, ImportEntry, Item, Key, Skipped, at, or_default};
use crate::graph::error::GraphError;
use crate::text::halves::without_halves;
use crate::text::{foreign, issue_words};

/// An issue, in the words of its author.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Issue {
    /// Its number in its repository, project or team.
    pub number: u64,
    /// Its page.
    pub address: String,
    /// Its title.
    pub title: String,
    /// What stands below the title.
    pub body: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// What its tracker says about its priority; lower numbers go first.
    pub priority: Option<i64>,
    /// It is closed there.
    pub is_closed: bool,
}

impl Issue {
    /// The task; `origin` is the tracker, and the name of the issue there.
    #[must_use]
    pub fn into_entry(self, line: usize, origin: String) -> ImportEntry {
        let title = foreign::line(&self.title);
        let title = if title.is_empty() { format!("Issue {} has no title", self.number) } else { title };
        ImportEntry::Task(Box::new(Item {
            description: Some(issue_words::description(&self.address, &self.labels, &self.body)),
            issue: Some(FromIssue {
                priority: self.priority.or_else(|| self.labels.iter().find_map(|label| of_label(label))),
                address: foreign::line(&self.address),
                again: false,
            }),
            is_closed: self.is_closed,
            ..Item::new(line, Key::Origin(origin), title)
        }))
    }
}

/// The priority that a label means: `P1`, `priority: high`, `priority::2`.
fn of_label(label: &str) -> Option<i64> {
    let label = label.to_ascii_lowercase();
    let named = label.strip_prefix("priority").map(|rest| rest.trim_start_matches([':', '/', '-', ' ']));
    let word = named.unwrap_or(&label);
    let digits = word.strip_prefix('p').or(named).filter(|digits| digits.len() == 1);
    let known = ["critical", "high", "medium", "low"].iter().position(|known| named == Some(known));
    digits.and_then(|digits| digits.parse().ok()).or_else(|| i64::try_from(known?).ok().map(|at| at + 1))
}

/// One element of the list.
#[derive(Deserialize)]
struct Listed {
    number: u64,
    title: String,
    url: String,
    /// Its page, in what the API answers; the other address is then that of the API.
    html_url: Option<String>,
    /// Only pull requests have it.
    pull_request: Option<Value>,
    #[serde(default, deserialize_with = "or_default", rename = "isPullRequest")]
    is_pull_request: bool,
    #[serde(default, deserialize_with = "or_default")]
    body: String,
    #[serde(default, deserialize_with = "or_default")]
    labels: Vec<Label>,
    #[serde(default, deserialize_with = "or_default")]
    state: String,
}

#[derive(Deserialize)]
struct Label {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
}

/// The entries of a list of issues; `None` for a list of something else, and what is no list.
pub(super) fn entries(text: &str) -> Option<Result<Vec<ImportEntry>, GraphError>> {
    if !text.trim_start().starts_with('[') {
        return None;
    }
    let text = &without_halves(text);
    let is_issue = |one: &Value| one.get("number").is_some() || one.get("url").is_some();
    let list = serde_json::from_str::<Vec<Value>>(text);
    // One that is cut off, or broken, is nothing else either.
    let is_other = list.is_ok_and(|list| !list.is_empty() && !list.iter().any(is_issue));
    (!is_other).then(|| all(text))
}

fn all(text: &str) -> Result<Vec<ImportEntry>, GraphError> {
    let kind = "no list of 'gh issue list --json number,title,body,labels,url'";
    let list: Vec<Listed> = serde_json::from_str(text).map_err(|error| bad_json(None, kind, text, &error))?;
    let mut seen = BTreeSet::new();
    let mut entry = |mut listed: Listed| {
        listed.url = listed.html_url.take().unwrap_or(listed.url);
        let is_request = listed.is_pull_request || listed.pull_request.is_some();
        if is_request || is_of_request(&listed.url) {
            return Ok(ImportEntry::Skipped(Skipped::PullRequest));
        }
        // Lists of two labels have some issues twice.
        if !seen.insert(listed.url.to_lowercase()) {
            return Ok(ImportEntry::Skipped(Skipped::Twice));
        }
        entry(listed)
    };
    list.into_iter().map(&mut entry).collect()
}

/// Whether this is the address of a pull request. Repositories and owners may have that name, too.
fn is_of_request(url: &str) -> bool {
    url.trim_end_matches(|c: char| c.is_ascii_digit()).ends_with("/pull/")
}

fn entry(listed: Listed) -> Result<ImportEntry, GraphError> {
    let Listed { number, title, url, body, labels, state, .. } = listed;
    let repository = repository(&url).ok_or_else(|| {
        at(
            0,
            &format!(
                "'{}' is no address of an issue, as https://github.com/OWNER/REPO/issues/1",
                foreign::line(&url)
            ),
        )
    })?;
    let is_its_number = url.rsplit('/').next().is_some_and(|last| last.parse() == Ok(number));
    if !is_its_number {
        return Err(at(
            0,
            &format!("issue {number} has the address of another one, {}", foreign::line(&url)),
        ));
    }
    let origin = format!("github:{repository}#{number}");
    let labels = labels.into_iter().map(|label| label.name).filter(|name| !name.is_empty()).collect();
    let is_closed = state.eq_ignore_ascii_case("closed");
    let issue = Issue { number, address: url, title, body, labels, priority: None, is_closed };
    Ok(issue.into_entry(0, origin))
}

/// The repository of an issue's address, in small letters: GitHub knows no others.
fn repository(url: &str) -> Option<String> {
    let (host, path) = url.strip_prefix("https://")?.split_once('/')?;
    let (repository, _) = path.split_once("/issues/")?;
    let (owner, name) = repository.split_once('/')?;
    let is_plain =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    // Issues of a server of one's own are others than those of the same name at GitHub.
    let host = if host == "github.com" { String::new() } else { format!("{host}/") };
    let is_one = is_plain(owner) && is_plain(name) && (host.is_empty() || is_plain(&host[..host.len() - 1]));
    is_one.then(|| format!("{host}{repository}").to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_may_mean_a_priority() {
        for (label, priority) in [
            ("P0", Some(0)),
            ("p3", Some(3)),
            ("priority: high", Some(2)),
            ("priority::2", Some(2)),
            ("Priority/Low", Some(4)),
            ("bug", None),
            ("3", None),
            ("high", None),
            ("p33", None),
        ] {
            assert_eq!(of_label(label), priority, "{label}");
        }
    }

    #[test]
    fn a_repository_may_be_named_pull() {
        for (url, is_one) in [
            ("https://github.com/ann/tool/pull/3", true),
            ("https://github.com/wei/pull/issues/3", false),
            ("https://github.com/pull/tool/issues/3", false),
            ("https://github.com/wei/pull/pull/3", true),
        ] {
            assert_eq!(is_of_request(url), is_one, "{url}");
        }
    }

    #[test]
    fn a_list_of_something_else_is_refused_by_what_is_wrong() {
        assert!(entries("[{\"id\": 1}]").is_none() && entries("{\"number\": 1}").is_none());
        let error = |text| entries(text).unwrap().unwrap_err().to_string();
        assert!(error("[{\"number\": 1,").contains("no list of 'gh issue list"), "{}", error("["));
        assert!(error("[{\"number\": 1, \"title\": \"x\"}]").contains("the key 'url' is missing"));
        let other = "[{\"number\": 1, \"title\": \"x\", \"url\": \"https://h/x\"}]";
        assert!(error(other).contains("'https://h/x' is no address of an issue"), "{}", error(other));
    }
}
