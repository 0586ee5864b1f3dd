//! GitLab: issues of a project.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::call::Session;
use super::fault::Fault;
use super::kind::{Comment, Place, Tracker, are_plain};
use crate::graph::import::Issue;

pub(super) const TRACKER: Tracker = Tracker {
    name: "gitlab",
    form: "gitlab:GROUP/PROJECT[#LABEL]",
    base: "https://gitlab.com/api/v4",
    tokens: &["GITLAB_TOKEN"],
    users: &[],
    program: Some(("glab", "gitlab.com")),
    login: |token, _| ("PRIVATE-TOKEN", token.to_owned()),
    headers: &[],
    place,
    open,
    one,
    comments,
    myself,
    comment,
};

#[derive(Deserialize)]
struct Found {
    iid: u64,
    web_url: String,
    title: String,
    description: Option<String>,
    #[serde(default)]
    labels: Vec<String>,
    state: String,
}

#[derive(Deserialize)]
struct Note {
    body: String,
    /// `None` if the user is gone.
    author: Option<User>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

impl From<Found> for Issue {
    fn from(found: Found) -> Self {
        Self {
            number: found.iid,
            address: found.web_url,
            title: found.title,
            body: found.description.unwrap_or_default(),
            labels: found.labels,
            priority: None,
            is_closed: found.state == "closed",
        }
    }
}

fn place(text: &str) -> Option<Place> {
    let scope = text.to_ascii_lowercase();
    let is_one = scope.split('/').count() >= 2 && are_plain(scope.split('/'));
    is_one.then(|| Place { prefix: format!("{scope}#"), scope, base: None })
}

/// The path of a project's issues in the API.
fn issues(place: &Place) -> String {
    format!("projects/{}/issues", utf8_percent_encode(&place.scope, NON_ALPHANUMERIC))
}

/// All values of a list, page by page.
fn all<T: DeserializeOwned>(
    session: &mut Session<'_>,
    path: &str,
    query: &str,
    what: &str,
) -> Result<Vec<T>, Fault> {
    let (mut all, mut page) = (Vec::new(), 1_u64);
    loop {
        let reply = session.get(&format!("{path}?{query}per_page=100&page={page}"), what)?;
        all.extend(session.read::<Vec<T>>(&reply, what)?);
        match reply.header("x-next-page").and_then(|next| next.parse().ok()) {
            Some(next) if next > page => page = next,
            _ => return Ok(all),
        }
    }
}

fn open(session: &mut Session<'_>, place: &Place, label: Option<&str>) -> Result<Vec<Issue>, Fault> {
    let label = label.map(|label| format!("labels={}&", utf8_percent_encode(label, NON_ALPHANUMERIC)));
    let query = format!("state=opened&{}", label.unwrap_or_default());
    let found: Vec<Found> = all(session, &issues(place), &query, &format!("project '{}'", place.scope))?;
    Ok(found.into_iter().map(Issue::from).collect())
}

fn one(session: &mut Session<'_>, place: &Place, number: u64) -> Result<Issue, Fault> {
    let path = format!("{}/{number}", issues(place));
    Ok(session.value::<Found>(&path, &format!("issue {number}"))?.into())
}

fn comments(session: &mut Session<'_>, place: &Place, number: u64) -> Result<Vec<Comment>, Fault> {
    let path = format!("{}/{number}/notes", issues(place));
    let all: Vec<Note> = all(session, &path, "", &format!("issue {number}"))?;
    let comment = |Note { body, author }| Comment {
        author: author.map(|user: User| user.username).unwrap_or_default(),
        body,
    };
    Ok(all.into_iter().map(comment).collect())
}

fn myself(session: &mut Session<'_>) -> Result<String, Fault> {
    Ok(session.value::<User>("user", "the user of the login")?.username)
}

fn comment(session: &mut Session<'_>, place: &Place, number: u64, text: &str) -> Result<(), Fault> {
    let path = format!("{}/{number}/notes", issues(place));
    session.post(&path, &json!({ "body": text }), &format!("issue {number}")).map(drop)
}
