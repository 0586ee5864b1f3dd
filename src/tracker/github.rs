//! GitHub: issues of a repository.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::json;

use super::call::{Reply, Session};
use super::fault::Fault;
use super::kind::{Comment, Place, Tracker, are_plain};
use crate::graph::import::Issue;

pub(super) const TRACKER: Tracker = Tracker {
    name: "github",
    form: "github:OWNER/REPO[#LABEL]",
    base: "https://api.github.com",
    tokens: &["GITHUB_TOKEN", "GH_TOKEN"],
    users: &[],
    program: Some(("gh", "github.com")),
    login: |token, _| ("Authorization", format!("Bearer {token}")),
    headers: &[("Accept", "application/vnd.github+json"), ("X-GitHub-Api-Version", "2022-11-28")],
    place,
    open,
    one,
    comments,
    myself,
    comment,
};

#[derive(Deserialize)]
struct Found {
    number: u64,
    html_url: String,
    title: String,
    body: Option<String>,
    #[serde(default)]
    labels: Vec<Label>,
    state: String,
    /// Only pull requests have it.
    pull_request: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Label {
    name: String,
}

#[derive(Deserialize)]
struct Remark {
    body: Option<String>,
    /// `None` if the user is gone.
    user: Option<User>,
}

#[derive(Deserialize)]
struct User {
    login: String,
    #[serde(rename = "type", default)]
    kind: String,
}

/// What the logins of apps end with; one may not ask who it is, and is called this.
pub(super) const APP: &str = "[bot]";

impl From<User> for String {
    fn from(user: User) -> Self {
        let is_told = user.kind != "Bot" || user.login.ends_with(APP);
        if is_told { user.login } else { user.login + APP }
    }
}

impl From<Found> for Issue {
    fn from(found: Found) -> Self {
        Self {
            number: found.number,
            address: found.html_url,
            title: found.title,
            body: found.body.unwrap_or_default(),
            labels: found.labels.into_iter().map(|label| label.name).collect(),
            priority: None,
            is_closed: found.state == "closed",
        }
    }
}

/// GitHub ignores the case of names.
fn place(text: &str) -> Option<Place> {
    let scope = text.to_ascii_lowercase();
    let is_one = scope.split('/').count() == 2 && are_plain(scope.split('/'));
    is_one.then(|| Place { prefix: format!("{scope}#"), scope, base: None })
}

/// All values of a list, page by page.
fn all<T: serde::de::DeserializeOwned>(
    session: &mut Session<'_>,
    path: &str,
    query: &str,
    what: &str,
) -> Result<Vec<T>, Fault> {
    let (mut all, mut query) = (Vec::new(), query.to_owned());
    loop {
        let reply = session.get(&format!("{path}?{query}"), what)?;
        all.extend(session.read::<Vec<T>>(&reply, what)?);
        match next(&reply) {
            Some(next) if next != query => query = next,
            _ => return Ok(all),
        }
    }
}

/// The query of the next page. Only that is taken: the login is for the host that was named.
fn next(reply: &Reply) -> Option<String> {
    let link = reply.header("link")?.split(',').find(|link| link.contains("rel=\"next\""))?;
    let (address, _) = link.split_once('<')?.1.split_once('>')?;
    address.split_once('?').map(|(_, query)| query.to_owned())
}

fn open(session: &mut Session<'_>, place: &Place, label: Option<&str>) -> Result<Vec<Issue>, Fault> {
    let label = label.map(|label| format!("&labels={}", utf8_percent_encode(label, NON_ALPHANUMERIC)));
    let query = format!("state=open&per_page=100{}", label.unwrap_or_default());
    let what = format!("repository '{}'", place.scope);
    let found: Vec<Found> = all(session, &format!("repos/{}/issues", place.scope), &query, &what)?;
    Ok(found.into_iter().filter(|found| found.pull_request.is_none()).map(Issue::from).collect())
}

fn one(session: &mut Session<'_>, place: &Place, number: u64) -> Result<Issue, Fault> {
    let path = format!("repos/{}/issues/{number}", place.scope);
    Ok(session.value::<Found>(&path, &format!("issue {number}"))?.into())
}

fn comments(session: &mut Session<'_>, place: &Place, number: u64) -> Result<Vec<Comment>, Fault> {
    let path = format!("repos/{}/issues/{number}/comments", place.scope);
    let all: Vec<Remark> = all(session, &path, "per_page=100", &format!("issue {number}"))?;
    let comment = |Remark { body, user }| Comment {
        author: user.map(String::from).unwrap_or_default(),
        body: body.unwrap_or_default(),
    };
    Ok(all.into_iter().map(comment).collect())
}

fn myself(session: &mut Session<'_>) -> Result<String, Fault> {
    match session.value::<User>("user", "the user of the login") {
        Err(Fault::Denied(_)) => Ok(APP.to_owned()),
        user => user.map(String::from),
    }
}

fn comment(session: &mut Session<'_>, place: &Place, number: u64, text: &str) -> Result<(), Fault> {
    let path = format!("repos/{}/issues/{number}/comments", place.scope);
    session.post(&path, &json!({ "body": text }), &format!("issue {number}")).map(drop)
}
