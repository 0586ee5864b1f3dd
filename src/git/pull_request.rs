//! A pull request that is there, and what was written about it, from the answers of a forge's program.

use chrono::{DateTime, Utc};
use serde_json::{Deserializer, Value};

use super::forge::{Forge, Shape};
use super::remote::Remote;
use crate::text::halves::without_halves;

/// Where the commits of pull requests are kept here. Git finds them as `ralph/pr/12`.
const KEPT: &str = "refs/ralph/pr/";
/// What a base that is a pull request begins with.
const BASES: [&str; 2] = ["pr/", "mr/"];

/// A pull request. All texts are the words of other people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its description.
    pub body: String,
    /// Who has opened it.
    pub author: String,
    /// Its state, in the forge's word.
    pub state: String,
    /// Its address.
    pub address: String,
    /// The branch with its commits.
    pub head: String,
    /// The branch that it is to be merged into.
    pub base: String,
    /// Whether its branch is in another repository.
    pub is_fork: bool,
    /// Whether its branch is gone, as after a merge.
    pub is_gone: bool,
    /// What was written about it.
    pub remarks: Vec<Remark>,
}

impl PullRequest {
    /// The branch that work on it is to be merged into: its own, unless that is in another repository, or gone.
    #[must_use]
    pub fn target(&self) -> &str {
        if self.is_fork || self.is_gone { &self.base } else { &self.head }
    }
}

/// A remark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Who has written it.
    pub author: String,
    /// Its text.
    pub text: String,
    /// The file that it is about.
    pub file: Option<String>,
    /// The line in the file as it is now; `None` also if that line is not there any more.
    pub line: Option<u64>,
    /// The line in an earlier state of the file.
    pub old_line: Option<u64>,
    /// When it was written, if that is said.
    pub at: Option<DateTime<Utc>>,
}

/// The number in a plan's `Base: pr/12`, or `Base: mr/12`; `None` for another base.
#[must_use]
pub fn number(base: &str) -> Option<u64> {
    let number = BASES.iter().find_map(|before| base.strip_prefix(before))?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|number| is_number && *number > 0)
}

/// The ref that has the commits of a pull request here, once they were fetched.
#[must_use]
pub fn reference(number: u64) -> String {
    format!("{KEPT}{number}")
}

/// The name by which git finds that ref.
#[must_use]
pub fn kept_as(number: u64) -> String {
    reference(number).trim_start_matches("refs/").to_owned()
}

/// What is to be fetched for that: also where the pull request was forced to other commits.
#[must_use]
pub fn refspec(remote: &Remote, number: u64) -> String {
    format!("+{}:{}", remote.home.forge().head(number), reference(number))
}

/// Reads the answers about a pull request, and about the comments on its code.
///
/// # Errors
/// If they are not of the shape that is known, in words.
pub fn read(forge: Forge, number: u64, view: &str, comments: &str) -> Result<PullRequest, String> {
    let shape = &forge.row().shape;
    let program = forge.row().program;
    let value: Value = serde_json::from_str(&without_halves(view))
        .map_err(|error| format!("the answer of {program} is no JSON: {error}"))?;
    let text = |at: &str| text_at(&value, at);
    if text(shape.title).is_empty() {
        return Err(format!("the answer of {program} has no title"));
    }
    let mut remarks = Vec::new();
    for (list, author, body, at) in shape.remarks {
        let items = value.pointer(list).and_then(Value::as_array).into_iter().flatten();
        remarks.extend(items.map(|item| Remark {
            author: text_at(item, author),
            text: text_at(item, body),
            file: None,
            line: None,
            old_line: None,
            at: time_at(item, at),
        }));
    }
    // Of several pages each is a list of its own.
    for page in Deserializer::from_str(&without_halves(comments)).into_iter::<Value>() {
        let page =
            page.map_err(|error| format!("the comments that {program} has printed are no JSON: {error}"))?;
        remarks.extend(page.as_array().into_iter().flatten().flat_map(|comment| notes(shape, comment)));
    }
    remarks.retain(|remark| !remark.text.trim().is_empty());
    // What answers an earlier one comes after it, whatever it is about.
    remarks.sort_by_key(|remark| remark.at);
    Ok(PullRequest {
        number,
        title: text(shape.title),
        body: text(shape.body),
        author: text(shape.author),
        state: text(shape.state).to_lowercase(),
        address: text(shape.address),
        head: text(shape.head),
        base: text(shape.base),
        is_fork: (shape.is_fork)(&value),
        is_gone: false,
        remarks,
    })
}

/// The remarks of one comment on code.
fn notes(shape: &Shape, comment: &Value) -> Vec<Remark> {
    let notes = match shape.notes {
        Some(at) => comment.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default(),
        None => vec![comment.clone()],
    };
    let is_left_out =
        |note: &&Value| shape.left_out.iter().any(|flag| note.pointer(flag) == Some(&Value::Bool(true)));
    let remark = |note: &Value| {
        let line = |at: &str| note.pointer(at).and_then(Value::as_u64);
        Remark {
            author: text_at(note, shape.note_author),
            text: text_at(note, "/body"),
            file: Some(text_at(note, shape.file)).filter(|file| !file.is_empty()),
            line: line(shape.line),
            old_line: line(shape.old_line),
            at: time_at(note, "/created_at"),
        }
    };
    notes.iter().filter(|note| !is_left_out(note)).map(remark).collect()
}

fn time_at(value: &Value, at: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(value.pointer(at)?.as_str()?).ok()?;
    Some(time.with_timezone(&Utc))
}

/// The text at a place; empty if there is none.
fn text_at(value: &Value, at: &str) -> String {
    value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_may_be_a_pull_request() {
        assert_eq!((number("pr/12"), number("mr/3")), (Some(12), Some(3)));
        for base in ["pr/", "pr/0", "pr/+1", "pr/x", "12", "pr/1/2", "origin/pr/1"] {
            assert_eq!(number(base), None, "{base}");
        }
        assert_eq!(kept_as(12), "ralph/pr/12");
    }

    #[test]
    fn the_answers_of_gh() {
        let view = r#"{"author":{"login":"ann"},"baseRefName":"main","body":"Why","headRefName":"fix","isCrossRepository":true,
            "state":"OPEN","title":"Fix it","url":"https://github.com/a/b/pull/7","comments":[{"author":{"login":"bo"},"body":"Nice"}],
            "reviews":[{"author":{"login":"cy"},"body":"","state":"APPROVED"}]}"#;
        let comments = r#"[{"path":"a.rs","line":3,"original_line":2,"body":"Why?","user":{"login":"cy"}}]
            [{"path":"b.rs","line":null,"original_line":9,"body":"Old","user":{"login":"cy"}}]"#;
        let found = read(Forge::GitHub, 7, view, comments).unwrap();
        assert_eq!(
            (&*found.title, &*found.head, &*found.base, found.is_fork),
            ("Fix it", "fix", "main", true)
        );
        let remarks: Vec<_> = found
            .remarks
            .iter()
            .map(|one| (&*one.author, one.file.as_deref(), one.line, one.old_line))
            .collect();
        assert_eq!(
            remarks,
            [
                ("bo", None, None, None),
                ("cy", Some("a.rs"), Some(3), Some(2)),
                ("cy", Some("b.rs"), None, Some(9))
            ]
        );
        assert!(read(Forge::GitHub, 7, "{}", "[]").unwrap_err().contains("no title"));
        assert!(read(Forge::GitHub, 7, view, "<html>").unwrap_err().contains("no JSON"));
    }

    #[test]
    fn remarks_are_in_the_order_of_their_times() {
        let view = r#"{"title":"T","comments":[{"author":{"login":"a"},"body":"2","createdAt":"2026-01-02T00:00:00Z"},
            {"author":{"login":"a"},"body":"5 \ud83d","createdAt":"2026-01-05T00:00:00Z"}],
            "reviews":[{"author":{"login":"a"},"body":"1","submittedAt":"2026-01-01T00:00:00Z"},
            {"author":{"login":"a"},"body":"4","submittedAt":"2026-01-04T02:00:00+02:00"}]}"#;
        let comments = r#"[{"body":"3","user":{"login":"a"},"created_at":"2026-01-03T00:00:00Z"}]"#;
        let found = read(Forge::GitHub, 7, view, comments).unwrap();
        let texts: Vec<&str> = found.remarks.iter().map(|remark| remark.text.as_str()).collect();
        assert_eq!(texts, ["1", "2", "3", "4", "5 \u{fffd}"]);
    }

    #[test]
    fn the_answers_of_glab() {
        let view = r#"{"iid":7,"title":"Fix it","description":"Why","author":{"username":"ann"},"state":"opened","source_branch":"fix",
            "target_branch":"main","source_project_id":1,"target_project_id":1,"web_url":"https://gitlab.com/a/b/-/merge_requests/7"}"#;
        let comments = r#"[{"id":"x","notes":[{"body":"Why?","author":{"username":"cy"},"system":false,"resolved":false,
            "position":{"new_path":"a.rs","old_path":"a.rs","new_line":3,"old_line":null}},{"body":"Done","author":{"username":"ann"},
            "system":false,"resolved":true}]},{"notes":[{"body":"added 1 commit","author":{"username":"ann"},"system":true}]}]"#;
        let found = read(Forge::GitLab, 7, view, comments).unwrap();
        assert_eq!((&*found.body, &*found.state, found.is_fork), ("Why", "opened", false));
        let why = Remark {
            author: "cy".into(),
            text: "Why?".into(),
            file: Some("a.rs".into()),
            line: Some(3),
            old_line: None,
            at: None,
        };
        assert_eq!(found.remarks, [why]);
    }
}
