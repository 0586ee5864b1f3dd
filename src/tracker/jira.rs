//! Jira: issues of a project, in the cloud (with a user) or on a server of one's own.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::json;

use super::call::Session;
use super::fault::Fault;
use super::kind::{Comment, Place, Tracker, are_plain};
use crate::graph::import::Issue;

pub(super) const TRACKER: Tracker = Tracker {
    name: "jira",
    form: "jira:HOST/PROJECT[#LABEL]",
    base: "",
    tokens: &["JIRA_API_TOKEN"],
    users: &["JIRA_USER", "JIRA_EMAIL"],
    program: None,
    login,
    headers: &[("Accept", "application/json")],
    place,
    open,
    one,
    comments,
    myself,
    comment,
};

/// The fields that are wanted.
const FIELDS: &str = "summary,description,labels,priority,status";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    issues: Vec<Found>,
    /// In the cloud, until the last page.
    next_page_token: Option<String>,
    /// On a server of one's own.
    total: Option<u64>,
}

#[derive(Deserialize)]
struct Found {
    key: String,
    #[serde(rename = "self")]
    address: String,
    fields: Fields,
}

#[derive(Deserialize)]
struct Fields {
    summary: String,
    description: Option<String>,
    #[serde(default)]
    labels: Vec<String>,
    priority: Option<Named>,
    status: Status,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    status_category: Category,
}

#[derive(Deserialize)]
struct Category {
    key: String,
}

#[derive(Deserialize)]
struct Comments {
    comments: Vec<Remark>,
    total: u64,
}

#[derive(Deserialize)]
struct Remark {
    body: String,
    author: Option<User>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct User {
    /// In the cloud.
    account_id: Option<String>,
    /// On a server of one's own.
    name: Option<String>,
}

impl From<User> for String {
    fn from(user: User) -> Self {
        user.account_id.or(user.name).unwrap_or_default()
    }
}

impl From<Found> for Issue {
    fn from(found: Found) -> Self {
        let levels = ["Highest", "High", "Medium", "Low", "Lowest"];
        let level =
            found.fields.priority.and_then(|named| levels.iter().position(|level| *level == named.name));
        let number = found.key.rsplit('-').next().and_then(|number| number.parse().ok());
        let server = found.address.split("/rest/").next().unwrap_or_default();
        Self {
            number: number.unwrap_or_default(),
            address: format!("{server}/browse/{}", found.key),
            title: found.fields.summary,
            body: found.fields.description.unwrap_or_default(),
            labels: found.fields.labels,
            priority: level.and_then(|level| i64::try_from(level + 1).ok()),
            is_closed: found.fields.status.status_category.key == "done",
        }
    }
}

/// Tokens of the cloud are for a user; those of a server stand for one.
fn login(token: &str, user: Option<&str>) -> (&'static str, String) {
    let value = user.map_or_else(
        || format!("Bearer {token}"),
        |user| format!("Basic {}", STANDARD.encode(format!("{user}:{token}"))),
    );
    ("Authorization", value)
}

fn place(text: &str) -> Option<Place> {
    let (host, project) = text.split_once('/')?;
    let (host, scope) = (host.to_ascii_lowercase(), project.to_ascii_uppercase());
    let is_one = are_plain(host.splitn(2, ':')) && are_plain([scope.as_str()].into_iter());
    is_one.then(|| Place { prefix: format!("{host}/{scope}-"), base: Some(format!("https://{host}")), scope })
}

fn open(session: &mut Session<'_>, place: &Place, label: Option<&str>) -> Result<Vec<Issue>, Fault> {
    let label =
        label.map(|label| format!(" AND labels = \"{}\"", label.replace('\\', "\\\\").replace('"', "\\\"")));
    let label = label.unwrap_or_default();
    let jql = format!("project = \"{}\" AND statusCategory != Done{label} ORDER BY key", place.scope);
    let jql = utf8_percent_encode(&jql, NON_ALPHANUMERIC);
    let what = format!("project '{}'", place.scope);
    let is_cloud = place.prefix.contains(".atlassian.net/") || session.has_user;
    let mut all: Vec<Issue> = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let path = match &token {
            _ if !is_cloud => format!("search?startAt={}&", all.len()),
            None => "search/jql?".to_owned(),
            Some(token) => {
                format!("search/jql?nextPageToken={}&", utf8_percent_encode(token, NON_ALPHANUMERIC))
            }
        };
        let path = format!("rest/api/2/{path}maxResults=100&fields={FIELDS}&jql={jql}");
        let listed: Listed = session.value(&path, &what)?;
        let is_empty = listed.issues.is_empty();
        all.extend(listed.issues.into_iter().map(Issue::from));
        let has_more = listed.total.is_some_and(|total| (all.len() as u64) < total);
        if listed.next_page_token.is_none() && (!has_more || is_cloud) || is_empty {
            return Ok(all);
        }
        token = listed.next_page_token;
    }
}

fn one(session: &mut Session<'_>, place: &Place, number: u64) -> Result<Issue, Fault> {
    let key = format!("{}-{number}", place.scope);
    Ok(session.value::<Found>(&format!("rest/api/2/issue/{key}?fields={FIELDS}"), &key)?.into())
}

fn comments(session: &mut Session<'_>, place: &Place, number: u64) -> Result<Vec<Comment>, Fault> {
    let key = format!("{}-{number}", place.scope);
    let mut all: Vec<Comment> = Vec::new();
    loop {
        let path = format!("rest/api/2/issue/{key}/comment?startAt={}&maxResults=100", all.len());
        let Comments { comments, total } = session.value(&path, &key)?;
        let is_empty = comments.is_empty();
        all.extend(comments.into_iter().map(|Remark { body, author }| Comment {
            author: author.map(String::from).unwrap_or_default(),
            body,
        }));
        if is_empty || all.len() as u64 >= total {
            return Ok(all);
        }
    }
}

fn myself(session: &mut Session<'_>) -> Result<String, Fault> {
    session.value::<User>("rest/api/2/myself", "the user of the login").map(String::from)
}

fn comment(session: &mut Session<'_>, place: &Place, number: u64, text: &str) -> Result<(), Fault> {
    let key = format!("{}-{number}", place.scope);
    session.post(&format!("rest/api/2/issue/{key}/comment"), &json!({ "body": text }), &key).map(drop)
}
