//! What is known of a tracker: a row of the table.

use super::call::Session;
use super::fault::Fault;
use crate::graph::import::Issue;

/// Fetches all open issues, with this label if one is given.
type Open = fn(&mut Session<'_>, &Place, Option<&str>) -> Result<Vec<Issue>, Fault>;

/// A tracker. Each one is a file with such a row.
pub(super) struct Tracker {
    /// What an address begins with, before the colon.
    pub(super) name: &'static str,
    /// How an address is written.
    pub(super) form: &'static str,
    /// The place of its API.
    pub(super) base: &'static str,
    /// The variables with a token, the first one that is set counts.
    pub(super) tokens: &'static [&'static str],
    /// The variables with the user of the token, where it needs one.
    pub(super) users: &'static [&'static str],
    /// Its own command, and the host that this is to ask, for those without a token.
    pub(super) program: Option<(&'static str, &'static str)>,
    /// The header that says who asks, from token and user.
    pub(super) login: fn(&str, Option<&str>) -> (&'static str, String),
    /// Headers of every request.
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// Understands what stands after the colon, without the label.
    pub(super) place: fn(&str) -> Option<Place>,
    /// All open issues, with this label if one is given.
    pub(super) open: Open,
    /// One issue.
    pub(super) one: fn(&mut Session<'_>, &Place, u64) -> Result<Issue, Fault>,
    /// The comments on an issue.
    pub(super) comments: fn(&mut Session<'_>, &Place, u64) -> Result<Vec<Comment>, Fault>,
    /// Whose login this is, as authors of comments are named.
    pub(super) myself: fn(&mut Session<'_>) -> Result<String, Fault>,
    /// Writes a comment.
    pub(super) comment: fn(&mut Session<'_>, &Place, u64, &str) -> Result<(), Fault>,
}

/// A comment on an issue.
pub(super) struct Comment {
    /// Who has written it; empty if that is not said.
    pub(super) author: String,
    pub(super) body: String,
}

/// Where issues are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The repository, project or team in the words of its API.
    pub(super) scope: String,
    /// What the name of an issue begins with, before its number: `owner/repo#`, `ENG-`.
    pub(super) prefix: String,
    /// The place of the API, if the address says it.
    pub(super) base: Option<String>,
}

/// Whether all parts of a path are plain names.
pub(super) fn are_plain<'a>(mut parts: impl Iterator<Item = &'a str>) -> bool {
    parts.all(|part| {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !part.is_empty() && !part.chars().all(|c| c == '.') && part.chars().all(is_of_name)
    })
}
