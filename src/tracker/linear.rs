//! Linear: issues of a team, by GraphQL.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::call::Session;
use super::fault::Fault;
use super::kind::{Comment, Place, Tracker};
use crate::graph::import::Issue;
use crate::text::foreign;

pub(super) const TRACKER: Tracker = Tracker {
    name: "linear",
    form: "linear:TEAM[#LABEL]",
    base: "https://api.linear.app",
    tokens: &["LINEAR_API_KEY"],
    users: &[],
    program: None,
    login: |token, _| ("Authorization", token.to_owned()),
    headers: &[],
    place,
    open,
    one,
    comments,
    myself,
    comment,
};

const ISSUES: &str = "query($filter: IssueFilter, $after: String) { issues(first: 100, after: $after, filter: $filter) { \
    nodes { number url title description priority labels { nodes { name } } state { type } } \
    pageInfo { hasNextPage endCursor } } }";
const ISSUE: &str = "query($id: String!) { issue(id: $id) { \
    number url title description priority labels { nodes { name } } state { type } } }";
const COMMENTS: &str = "query($id: String!, $after: String) { issue(id: $id) { comments(first: 100, after: $after) { \
    nodes { body user { id } } pageInfo { hasNextPage endCursor } } } }";
const MYSELF: &str = "query { viewer { id } }";
const COMMENT: &str = "mutation($id: String!, $body: String!) { commentCreate(input: { issueId: $id, body: $body }) { success } }";

#[derive(Deserialize)]
struct Nodes<T> {
    nodes: Vec<T>,
    #[serde(rename = "pageInfo")]
    page: Option<Page>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    has_next_page: bool,
    end_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Found {
    number: f64,
    url: String,
    title: String,
    description: Option<String>,
    priority: Option<f64>,
    labels: Nodes<Label>,
    state: State,
}

#[derive(Deserialize)]
struct Label {
    name: String,
}

#[derive(Deserialize)]
struct State {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Remark {
    body: String,
    /// `None` for an integration.
    user: Option<User>,
}

#[derive(Deserialize)]
struct User {
    id: String,
}

impl From<Found> for Issue {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "numbers of issues, and 0 to 4"
    )]
    fn from(found: Found) -> Self {
        Self {
            number: found.number as u64,
            address: found.url,
            title: found.title,
            body: found.description.unwrap_or_default(),
            labels: found.labels.nodes.into_iter().map(|label| label.name).collect(),
            // 0 is none.
            priority: found.priority.map(|priority| priority as i64).filter(|priority| *priority > 0),
            is_closed: ["completed", "canceled", "duplicate"].contains(&found.state.kind.as_str()),
        }
    }
}

fn place(text: &str) -> Option<Place> {
    let scope = text.to_ascii_uppercase();
    let is_one = !scope.is_empty() && scope.chars().all(|c| c.is_ascii_alphanumeric());
    is_one.then(|| Place { prefix: format!("{scope}-"), scope, base: None })
}

/// The answer to a question, at this place in its data.
fn ask<T: DeserializeOwned>(
    session: &mut Session<'_>,
    (query, variables): (&str, &Value),
    at: &str,
    what: &str,
) -> Result<T, Fault> {
    let reply = session.post("graphql", &json!({ "query": query, "variables": variables }), what)?;
    let mut answer: Value = session.read(&reply, what)?;
    if let Some(error) = answer.pointer("/errors/0/message").and_then(Value::as_str) {
        let why = format!("linear refuses {what}: {}", foreign::line(error));
        let is_missing = error.contains("not found");
        return Err(if is_missing { Fault::NotThere(why) } else { Fault::Other(why) });
    }
    let found = answer.pointer_mut(at).map(Value::take).unwrap_or_default();
    serde_json::from_value(found).map_err(|error| {
        Fault::other(format!("linear answers for {what} with what is not understood ({error})"))
    })
}

/// All values of a list, page by page.
fn all<T: DeserializeOwned>(
    session: &mut Session<'_>,
    query: &str,
    mut variables: Value,
    at: &str,
    what: &str,
) -> Result<Vec<T>, Fault> {
    let mut all = Vec::new();
    loop {
        let nodes: Nodes<T> = ask(session, (query, &variables), at, what)?;
        all.extend(nodes.nodes);
        match nodes.page.filter(|page| page.has_next_page).and_then(|page| page.end_cursor) {
            Some(cursor) if variables["after"] != cursor => variables["after"] = cursor.into(),
            _ => return Ok(all),
        }
    }
}

fn open(session: &mut Session<'_>, place: &Place, label: Option<&str>) -> Result<Vec<Issue>, Fault> {
    let mut filter = json!({
        "team": { "key": { "eq": place.scope } },
        "state": { "type": { "nin": ["completed", "canceled", "duplicate"] } },
    });
    if let Some(label) = label {
        filter["labels"] = json!({ "name": { "eq": label } });
    }
    let what = format!("team '{}'", place.scope);
    let found: Vec<Found> = all(session, ISSUES, json!({ "filter": filter }), "/data/issues", &what)?;
    Ok(found.into_iter().map(Issue::from).collect())
}

fn one(session: &mut Session<'_>, place: &Place, number: u64) -> Result<Issue, Fault> {
    let id = format!("{}{number}", place.prefix);
    ask::<Found>(session, (ISSUE, &json!({ "id": id })), "/data/issue", &id).map(Issue::from)
}

fn comments(session: &mut Session<'_>, place: &Place, number: u64) -> Result<Vec<Comment>, Fault> {
    let id = format!("{}{number}", place.prefix);
    let found: Vec<Remark> = all(session, COMMENTS, json!({ "id": id }), "/data/issue/comments", &id)?;
    let comment =
        |Remark { body, user }| Comment { author: user.map(|user: User| user.id).unwrap_or_default(), body };
    Ok(found.into_iter().map(comment).collect())
}

fn myself(session: &mut Session<'_>) -> Result<String, Fault> {
    Ok(ask::<User>(session, (MYSELF, &json!({})), "/data/viewer", "the user of the login")?.id)
}

fn comment(session: &mut Session<'_>, place: &Place, number: u64, text: &str) -> Result<(), Fault> {
    let id = format!("{}{number}", place.prefix);
    let variables = json!({ "id": id, "body": text });
    let is_there: bool = ask(session, (COMMENT, &variables), "/data/commentCreate/success", &id)?;
    is_there.then_some(()).ok_or_else(|| Fault::other(format!("linear does not take a comment on {id}")))
}
