//! Why a tracker's issues cannot be had, in words that say what to do.

use chrono::{DateTime, Local, TimeDelta, Utc};

use crate::text::foreign;
use crate::text::timestamp::nearby;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// There is no such issue, repository or project, or it is hidden.
    #[error("{0}")]
    NotThere(String),
    /// The login is known, and does not allow it.
    #[error("{0}")]
    Denied(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Fault {
    pub(super) fn other(why: impl Into<String>) -> Self {
        Self::Other(why.into())
    }
}

/// What a status means; `who` is asked for `what`, and `login` says with which right.
pub(super) fn of_status(who: &str, what: &str, status: u16, login: &str, said: &str) -> Fault {
    let said = message(said).map(|said| format!(" ({said})")).unwrap_or_default();
    let why = match status {
        401 => format!("{who} does not accept the login, {login}{said}: make a new token, or log in again"),
        403 => {
            return Fault::Denied(format!(
                "{who} does not allow {what}, {login}{said}: the token needs the right to read issues, and for --report to write comments"
            ));
        }
        404 | 410 => {
            return Fault::NotThere(format!(
                "{who} has no {what}, or does not show it, {login}{said}: check the address, and that the token may see it"
            ));
        }
        300..=399 => {
            return Fault::NotThere(format!(
                "{who} says that {what} is elsewhere (status {status}), which is not followed: give its new address"
            ));
        }
        500.. => format!("{who} fails with status {status}{said}: try again later"),
        _ => format!("{who} refuses {what} with status {status}{said}"),
    };
    Fault::Other(why)
}

/// What was asked too often, and from when on it can be asked again.
pub(super) fn of_limit(who: &str, wait_s: u64) -> Fault {
    let seconds = i64::try_from(wait_s.min(1 << 31)).unwrap_or_default();
    let at: DateTime<Utc> = Utc::now() + TimeDelta::seconds(seconds);
    Fault::Other(format!(
        "{who} was asked too often, and answers again at {}: try again then",
        nearby(&at, Local::now())
    ))
}

/// The message in the body of an error.
fn message(body: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(body).ok()?;
    let of = |pointer: &str| value.pointer(pointer).and_then(|text| text.as_str());
    let said = ["/message", "/error", "/errors/0/message", "/errorMessages/0", "/error_description"];
    said.into_iter().find_map(of).map(foreign::line)
}
