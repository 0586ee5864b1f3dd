//! Issue trackers whose issues become tasks: one file for each, and one row in [`TRACKERS`].

mod call;
mod fault;
mod github;
mod gitlab;
mod jira;
mod kind;
mod linear;

use std::ffi::OsStr;

use ureq::http::HeaderValue;

use crate::graph::import::Issue;
use crate::process::programs::find_program;
pub(crate) use call::Session;
use call::Way;
pub(crate) use fault::Fault;
use kind::{Place, Tracker};

/// All of them.
const TRACKERS: [&Tracker; 4] = [&github::TRACKER, &gitlab::TRACKER, &linear::TRACKER, &jira::TRACKER];

/// What the comment of a report begins with, by which it is found again.
const MARK: &str = "ralph: this is done.";

/// The issues that an address names.
pub(crate) struct Address {
    tracker: &'static Tracker,
    place: Place,
    label: Option<String>,
}

/// What the user has set about trackers: `NAME=VALUE` each.
pub(crate) struct Access<'a> {
    /// Where their APIs are.
    pub(crate) urls: &'a [String],
    /// Which variables have their tokens.
    pub(crate) token_env: &'a [String],
    /// The environment.
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
}

impl Address {
    /// Understands an address; `None` for anything else, such as the path of a file.
    ///
    /// # Errors
    /// If it begins as one, and is none.
    pub(crate) fn read(text: &str) -> Option<Result<Self, Fault>> {
        let (name, rest) = text.split_once(':')?;
        let tracker = TRACKERS.into_iter().find(|tracker| tracker.name == name)?;
        let (scope, label) = rest.split_once('#').map_or((rest, None), |(scope, label)| (scope, Some(label)));
        let label = label.map(str::to_owned);
        let place = (tracker.place)(scope).filter(|_| label.as_deref() != Some(""));
        let wrong = || Fault::other(format!("'{text}' is no address of issues: write {}", tracker.form));
        Some(place.map(|place| Self { tracker, place, label }).ok_or_else(wrong))
    }

    /// What a task of this address keeps of an issue.
    pub(crate) fn origin(&self, number: u64) -> String {
        format!("{}:{}{number}", self.tracker.name, self.place.prefix)
    }

    /// The number of the issue, if such an origin is of this address.
    pub(crate) fn number(&self, origin: &str) -> Option<u64> {
        let name = origin.strip_prefix(self.tracker.name)?.strip_prefix(':')?;
        name.strip_prefix(self.place.prefix.as_str())?.parse().ok()
    }

    /// Opens the way to it; `tell` says what is waited for.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn session<'a>(
        &self,
        access: &Access<'_>,
        tell: &'a dyn Fn(&str),
    ) -> Result<Session<'a>, Fault> {
        let Tracker { name, headers, .. } = *self.tracker;
        require_known("tracker.urls", access.urls)?;
        require_known("tracker.token_env", access.token_env)?;
        let url = of(access.urls, name);
        let (variables, is_named) = match of(access.token_env, name) {
            Some(variable) => (vec![variable], true),
            None => (self.tracker.tokens.to_vec(), false),
        };
        let set = |variable: &str| {
            (access.env)(variable).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let token = variables.iter().find_map(|variable| Some((*variable, set(variable)?)));
        let user = self.tracker.users.iter().find_map(|variable| set(variable));
        let mut session = Session::new(name, headers, user.is_some(), tell);
        if token.is_none() && is_named {
            return Err(Fault::other(format!(
                "tracker.token_env names {} for {name}, which is not in the environment: set it",
                variables[0]
            )));
        }
        if let (None, None, Some((program, host))) = (&token, url, self.tracker.program)
            && find_program(program, (access.env)("PATH").as_deref().map(OsStr::new).unwrap_or_default())
                .is_some()
        {
            session.login = format!("with the login of {program}");
            session.way = Way::Program { name: program, host };
            return Ok(session);
        }
        let base = url.or(self.place.base.as_deref()).unwrap_or(self.tracker.base).trim_end_matches('/');
        require_safe(name, base)?;
        if let Some(named) =
            self.place.base.as_deref().filter(|named| host(named) != host(base) && !is_here(base))
        {
            return Err(Fault::other(format!(
                "tracker.urls has {} for {name}, and the address names {}: a token goes to the named host only",
                host(base),
                host(named)
            )));
        }
        session.login = match &token {
            Some((variable, _)) => format!("with the token in {variable}"),
            None => self.without_token(),
        };
        let login =
            token.map(|(variable, token)| self.header(variable, &token, user.as_deref())).transpose()?;
        session.way = Way::Http { base: base.to_owned(), login };
        Ok(session)
    }

    fn without_token(&self) -> String {
        let or = |(program, _): (&str, &str)| format!(", or install {program} and log in");
        let program = self.tracker.program.map(or).unwrap_or_default();
        format!("without a token (set {}{program})", self.tracker.tokens[0])
    }

    fn header(
        &self,
        variable: &str,
        token: &str,
        user: Option<&str>,
    ) -> Result<(&'static str, HeaderValue), Fault> {
        let (name, value) = (self.tracker.login)(token, user);
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            Fault::other(format!("what is in {variable} is no token: it has characters that none has"))
        })?;
        value.set_sensitive(true);
        Ok((name, value))
    }

    /// All open issues.
    ///
    /// # Errors
    /// If not all of them can be had.
    pub(crate) fn open(&self, session: &mut Session<'_>) -> Result<Vec<Issue>, Fault> {
        let mut issues = (self.tracker.open)(session, &self.place, self.label.as_deref())?;
        // One that changes while pages are read can come twice.
        issues.sort_by_key(|issue| issue.number);
        issues.dedup_by_key(|issue| issue.number);
        Ok(issues)
    }

    /// Whether an issue is closed or gone.
    ///
    /// # Errors
    /// If that cannot be known.
    pub(crate) fn is_closed(&self, session: &mut Session<'_>, number: u64) -> Result<bool, Fault> {
        match (self.tracker.one)(session, &self.place, number) {
            Ok(issue) => Ok(issue.is_closed),
            Err(Fault::NotThere(_)) => Ok(true),
            Err(fault) => Err(fault),
        }
    }

    /// Whether this login has written a report below an issue. What others have written is none, whatever it says.
    ///
    /// # Errors
    /// If that cannot be known.
    pub(crate) fn is_reported(&self, session: &mut Session<'_>, number: u64) -> Result<bool, Fault> {
        let mut reports = (self.tracker.comments)(session, &self.place, number)?;
        reports.retain(|comment| comment.body.starts_with(MARK));
        if reports.is_empty() {
            return Ok(false);
        }
        let myself = match session.myself.take() {
            Some(known) => known,
            None => (self.tracker.myself)(session)?,
        };
        // Comments without an author would be its own.
        if myself.is_empty() {
            return Err(Fault::other(format!("{} does not say whose login this is", self.tracker.name)));
        }
        let is_there = reports.iter().any(|comment| is_by(&comment.author, &myself));
        session.myself = Some(myself);
        Ok(is_there)
    }

    /// Writes a report below an issue.
    ///
    /// # Errors
    /// If it is not taken.
    pub(crate) fn report(&self, session: &mut Session<'_>, number: u64, words: &str) -> Result<(), Fault> {
        (self.tracker.comment)(session, &self.place, number, &format!("{MARK}\n\n{words}"))
    }
}

/// Whether this author is the one of the login, of which only the end may be known.
fn is_by(author: &str, myself: &str) -> bool {
    author == myself || myself == github::APP && author.ends_with(myself)
}

/// The value for a tracker in a list of `NAME=VALUE`.
fn of<'a>(list: &'a [String], name: &str) -> Option<&'a str> {
    list.iter().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).filter(|value| !value.is_empty())
}

/// Refuses what would be overlooked: then a token could go to a place that was not meant.
fn require_known(key: &str, list: &[String]) -> Result<(), Fault> {
    let is_known = |pair: &String| {
        let (name, value) = pair.split_once('=').unwrap_or_default();
        !value.is_empty() && TRACKERS.iter().any(|tracker| tracker.name == name)
    };
    list.iter().find(|pair| !is_known(pair)).map_or(Ok(()), |pair| {
        let names = TRACKERS.map(|tracker| tracker.name).join(", ");
        Err(Fault::other(format!("'{pair}' in {key} is no NAME=VALUE, with a name of {names}")))
    })
}

/// The host of an address, with its port.
fn host(base: &str) -> &str {
    base.split_once("://").map_or(base, |(_, rest)| rest).split('/').next().unwrap_or_default()
}

/// Whether it is this machine, without encryption.
fn is_here(base: &str) -> bool {
    let host = host(base).split(':').next();
    base.starts_with("http://") && host.is_some_and(|host| ["127.0.0.1", "localhost"].contains(&host))
}

/// Refuses to send a token where others can read it.
fn require_safe(name: &str, base: &str) -> Result<(), Fault> {
    if (base.starts_with("https://") || is_here(base)) && !base.contains('@') {
        return Ok(());
    }
    Err(Fault::other(format!(
        "tracker.urls has no address of an API for {name} that is safe: write {name}=https://HOST/PATH, without a login in it"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood() {
        for (text, origin) in [
            ("github:Ann/Tool", "github:ann/tool#7"),
            ("github:ann/tool#good first issue", "github:ann/tool#7"),
            ("gitlab:group/sub/tool", "gitlab:group/sub/tool#7"),
            ("linear:eng#bug", "linear:ENG-7"),
            ("jira:Work.atlassian.net/abc", "jira:work.atlassian.net/ABC-7"),
        ] {
            let address = Address::read(text).unwrap().unwrap();
            assert_eq!(address.origin(7), origin, "{text}");
            assert_eq!(address.number(origin), Some(7));
            assert_eq!(address.number(&format!("{origin}x")), None);
        }
        for text in [
            "github:ann",
            "github:ann/tool#",
            "github:../x",
            "github:a/b/c",
            "gitlab:x",
            "linear:",
            "linear:a/b",
            "jira:abc",
            "jira:h@x/P",
        ] {
            let error = Address::read(text).unwrap().err().unwrap().to_string();
            assert!(error.contains("is no address of issues: write "), "{error}");
        }
        for text in ["TODO.md", "-", "c:/x", "githubx:a/b"] {
            assert!(Address::read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_report_is_by_the_login_itself() {
        assert!(is_by("ann", "ann") && is_by("tool[bot]", "[bot]") && is_by("tool[bot]", "tool[bot]"));
        assert!(!is_by("other[bot]", "tool[bot]") && !is_by("ann", "[bot]") && !is_by("", "ann"));
    }

    #[test]
    fn a_token_is_sent_only_where_it_is_safe() {
        for good in ["https://api.github.com", "http://127.0.0.1:80/x", "http://localhost"] {
            require_safe("github", good).unwrap();
        }
        for bad in [
            "http://example.org",
            "https://a@example.org",
            "http://127.0.0.1@example.org",
            "http://127.0.0.1:1@h",
            "example.org",
            "",
        ] {
            require_safe("github", bad).unwrap_err();
        }
    }
}
