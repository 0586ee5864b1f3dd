//! The values of `[notify]`.

use std::fmt;

use crate::settings::SettingsError;
use crate::settings::resolved::Resolved;
use crate::settings::setting::ValueKind;
use crate::settings::types::SettingType;

/// An event of notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// A loop, or a run of several, has ended without a failure.
    End,
    /// A loop, or a run of several, has ended by a failure.
    Failure,
    /// A loop waits for a usage limit or an overloaded provider.
    Waiting,
    /// A loop asks a person.
    Attention,
}

impl Moment {
    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Failure => "failure",
            Self::Waiting => "waiting",
            Self::Attention => "attention",
        }
    }
}

/// A target of notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// A user's command.
    Command,
    /// A webhook.
    Webhook,
    /// The desktop.
    Desktop,
    /// The terminal's bell.
    Bell,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Command, Self::Webhook, Self::Desktop, Self::Bell];

    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Webhook => "webhook",
            Self::Desktop => "desktop",
            Self::Bell => "bell",
        }
    }
}

/// A value that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret with this value.
    pub(in crate::settings) fn new(text: String) -> Self {
        Self(text)
    }

    /// The secret itself, for the one place that needs it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(set)")
    }
}

/// The format of what is posted to a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The event line.
    Json,
    /// A message for Slack and compatible services.
    Slack,
    /// A message for Discord.
    Discord,
    /// A message for ntfy.
    Ntfy,
}

/// A URL of http or https, which may contain a secret and is never shown.
#[derive(Debug, Clone)]
pub struct Url(Secret);

impl Url {
    /// The URL itself, for the one place that needs it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.0.reveal()
    }

    /// Its host, which may be shown.
    #[must_use]
    pub fn host(&self) -> &str {
        host(self.reveal()).unwrap_or_default()
    }
}

/// The host in a URL of http or https, without user and port.
#[must_use]
pub fn host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => authority.split(':').next()?,
    };
    (!host.is_empty() && !url.contains(|char: char| char.is_whitespace() || char.is_control()))
        .then_some(host)
}

/// `end` is an end of any kind.
impl SettingType for Vec<Moment> {
    const KIND: ValueKind = ValueKind::Words;

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        let mut moments = Self::new();
        for word in row.value.split_whitespace() {
            match word {
                "end" => moments.extend([Moment::End, Moment::Failure]),
                "failure" => moments.push(Moment::Failure),
                "waiting" => moments.push(Moment::Waiting),
                "attention" => moments.push(Moment::Attention),
                _ => {
                    let problem = format!("`{word}` is none of end, failure, waiting, attention");
                    return Err(row.invalid(problem));
                }
            }
        }
        Ok(moments)
    }
}

impl SettingType for Vec<Target> {
    const KIND: ValueKind = ValueKind::Text;

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        let words = row.value.split(|char: char| char.is_whitespace() || char == ',');
        let words = words.filter(|word| !word.is_empty() && *word != "none");
        let target = |word: &str| {
            let found = Target::ALL.into_iter().find(|target| target.word() == word);
            found.ok_or_else(|| {
                row.invalid(format!("`{word}` is none of none, bell, desktop, command, webhook"))
            })
        };
        words.map(target).collect()
    }
}

impl SettingType for Format {
    const KIND: ValueKind = ValueKind::Text;

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        match row.value.as_str() {
            "json" => Ok(Self::Json),
            "slack" => Ok(Self::Slack),
            "discord" => Ok(Self::Discord),
            "ntfy" => Ok(Self::Ntfy),
            other => Err(row.invalid(format!("`{other}` is none of json, slack, discord, ntfy"))),
        }
    }
}

impl SettingType for Secret {
    const KIND: ValueKind = ValueKind::Secret;

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        Ok(Self(row.value.clone()))
    }
}

impl SettingType for Url {
    const KIND: ValueKind = ValueKind::Secret;

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        if host(&row.value).is_none() {
            // It may contain a secret, and is not shown.
            let problem = "this is no URL that begins with https:// or http:// and names a host";
            return Err(row.invalid(problem.to_owned()));
        }
        Secret::read(row).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_and_what_is_no_url_is_none() {
        for (url, expected) in [
            ("https://hooks.slack.com/services/T/B/x", Some("hooks.slack.com")),
            ("http://user:pw@localhost:8080/x?y#z", Some("localhost")),
            ("http://[::1]:80/", Some("::1")),
            ("https://x", Some("x")),
            ("ftp://x", None),
            ("https:///x", None),
            ("https://a b", None),
            ("x", None),
        ] {
            assert_eq!(host(url), expected, "{url}");
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        let url = Url(Secret("https://x/hush".into()));
        assert!(!format!("{url:?} {:?}", url.0).contains("hush"));
    }
}
