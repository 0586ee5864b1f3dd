//! Who is told of what, and commands of the user's beside a loop: the sections `[notify]` and `[hooks]`.

use std::fmt;
use std::time::Duration;

use super::loading::Values;
use super::{Resolved, SettingsError};

/// What somebody may want to be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// A loop, or a run of many, has ended, and not by a failure.
    End,
    /// It has ended by a failure.
    Failure,
    /// A loop waits for a usage limit or an overloaded provider.
    Waiting,
    /// A person is asked something.
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

/// Who can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// A command of the user's.
    Command,
    /// A URL.
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

/// Something that is shown to nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
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

/// What is posted to a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The event line.
    Json,
    /// A message for Slack, or what speaks like it.
    Slack,
    /// A message for Discord.
    Discord,
    /// A message for ntfy.
    Ntfy,
}

/// A URL that is told.
#[derive(Debug, Clone)]
pub struct Webhook {
    /// Where to; many carry a secret.
    pub url: Secret,
    /// What signs it.
    pub secret: Option<Secret>,
    /// What is posted.
    pub format: Format,
}

impl Webhook {
    /// The URL's host, which may be shown.
    #[must_use]
    pub fn host(&self) -> &str {
        host(self.url.reveal()).unwrap_or_default()
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

/// Who is told of what.
#[derive(Debug, Clone, Default)]
pub struct NotifySettings {
    /// What every target is told of.
    pub on: Vec<Moment>,
    /// A command for `sh`.
    pub command: Option<String>,
    /// A URL, which may carry a secret.
    pub url: Option<Secret>,
    /// What signs what is posted there.
    pub secret: Option<Secret>,
    /// The variable that the secret comes from.
    pub secret_env: Option<String>,
    /// What is posted; `None`: what the host wants to have.
    pub format: Option<Format>,
    /// The desktop.
    pub desktop: bool,
    /// The terminal's bell.
    pub bell: bool,
    /// Who is told of a good end besides.
    pub on_complete: Vec<Target>,
    /// Who is told of a failure besides.
    pub on_error: Vec<Target>,
}

impl NotifySettings {
    /// Reads them; with what the user should know.
    pub(super) fn of(
        values: &Values,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Self, Option<String>), SettingsError> {
        let secret_env = values.text("notify.webhook_secret_env");
        let of_env = secret_env.as_deref().and_then(env).filter(|secret| !secret.is_empty());
        let has_secret = of_env.is_some();
        let settings = Self {
            on: moments(values.row("notify.on"))?,
            command: values.text("notify.command"),
            url: url(values.row("notify.webhook"))?,
            secret: of_env.or_else(|| values.text("notify.webhook_secret")).map(Secret),
            secret_env,
            format: format(values.row("notify.webhook_format"))?,
            desktop: values.get("notify.desktop", Resolved::switch)?,
            bell: values.get("notify.bell", Resolved::switch)?,
            on_complete: targets(values.row("monitoring.notifications.on_complete"))?,
            on_error: targets(values.row("monitoring.notifications.on_error"))?,
        };
        let missing = settings.secret_env.as_ref().filter(|_| settings.url.is_some() && !has_secret);
        let warning = missing.map(|name| {
            format!(
                "notify.webhook_secret_env names {name}, which is not in the environment: set it, or no receiver can tell \
                 that what is posted comes from you"
            )
        });
        Ok((settings, warning))
    }

    /// The URL that is told, with all that belongs to it.
    #[must_use]
    pub fn webhook(&self) -> Option<Webhook> {
        let url = self.url.clone()?;
        let format = self.format.unwrap_or_else(|| usual(host(url.reveal()).unwrap_or_default()));
        Some(Webhook { url, secret: self.secret.clone(), format })
    }

    /// Whether this target is told of this.
    #[must_use]
    pub fn tells(&self, target: Target, moment: Moment) -> bool {
        let is_on = match target {
            Target::Command => self.command.is_some(),
            Target::Webhook => self.url.is_some(),
            Target::Desktop => self.desktop,
            Target::Bell => self.bell,
        };
        let besides = match moment {
            Moment::End => &self.on_complete,
            Moment::Failure => &self.on_error,
            Moment::Waiting | Moment::Attention => return is_on && self.on.contains(&moment),
        };
        is_on && self.on.contains(&moment) || besides.contains(&target) && self.can(target)
    }

    /// Whether anything is ever told to this target.
    #[must_use]
    pub fn has(&self, target: Target) -> bool {
        [Moment::End, Moment::Failure, Moment::Waiting, Moment::Attention]
            .into_iter()
            .any(|moment| self.tells(target, moment))
    }

    /// Whether it is known how to tell it.
    fn can(&self, target: Target) -> bool {
        match target {
            Target::Command => self.command.is_some(),
            Target::Webhook => self.url.is_some(),
            Target::Desktop | Target::Bell => true,
        }
    }
}

/// `end` is an end of any kind.
fn moments(row: &Resolved) -> Result<Vec<Moment>, SettingsError> {
    let mut moments = Vec::new();
    for word in row.words() {
        match word.as_str() {
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

fn targets(row: &Resolved) -> Result<Vec<Target>, SettingsError> {
    let words = row.value.split(|char: char| char.is_whitespace() || char == ',');
    let words = words.filter(|word| !word.is_empty() && *word != "none");
    let target = |word: &str| {
        let found = Target::ALL.into_iter().find(|target| target.word() == word);
        found.ok_or_else(|| row.invalid(format!("`{word}` is none of none, bell, desktop, command, webhook")))
    };
    words.map(target).collect()
}

fn format(row: &Resolved) -> Result<Option<Format>, SettingsError> {
    Ok(Some(match row.value.as_str() {
        "" => return Ok(None),
        "json" => Format::Json,
        "slack" => Format::Slack,
        "discord" => Format::Discord,
        "ntfy" => Format::Ntfy,
        other => return Err(row.invalid(format!("`{other}` is none of json, slack, discord, ntfy"))),
    }))
}

fn url(row: &Resolved) -> Result<Option<Secret>, SettingsError> {
    if row.value.is_empty() {
        return Ok(None);
    }
    if host(&row.value).is_none() {
        // It may hold a secret, and is not shown.
        let problem = "this is no URL that begins with https:// or http:// and names a host";
        return Err(row.invalid(problem.to_owned()));
    }
    Ok(Some(Secret(row.value.clone())))
}

/// What a host wants to have.
fn usual(host: &str) -> Format {
    let is_of =
        |domain: &str| host == domain || host.strip_suffix(domain).is_some_and(|sub| sub.ends_with('.'));
    if is_of("slack.com") {
        Format::Slack
    } else if is_of("discord.com") || is_of("discordapp.com") {
        Format::Discord
    } else if is_of("ntfy.sh") || host.starts_with("ntfy.") {
        Format::Ntfy
    } else {
        Format::Json
    }
}

/// Commands of the user's beside a loop.
#[derive(Debug, Clone, Default)]
pub struct HookSettings {
    /// When it starts.
    pub on_loop_start: Option<String>,
    /// After each attempt.
    pub on_iteration: Option<String>,
    /// When it has ended.
    pub on_end: Option<String>,
    /// Longest time for one of them.
    pub timeout: Duration,
}

impl HookSettings {
    pub(super) fn of(values: &Values) -> Result<Self, SettingsError> {
        Ok(Self {
            on_loop_start: values.text("hooks.on_loop_start"),
            on_iteration: values.text("hooks.on_iteration"),
            on_end: values.text("hooks.on_end"),
            timeout: values.get("hooks.timeout", Resolved::duration)?,
        })
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
        for (host, format) in [
            ("hooks.slack.com", Format::Slack),
            ("discord.com", Format::Discord),
            ("notdiscord.com", Format::Json),
            ("ntfy.sh", Format::Ntfy),
            ("ntfy.example.org", Format::Ntfy),
            ("example.org", Format::Json),
        ] {
            assert_eq!(usual(host), format, "{host}");
        }
    }

    #[test]
    fn a_target_is_told_of_what_it_is_for() {
        let settings = NotifySettings {
            on: vec![Moment::Waiting],
            bell: true,
            on_error: vec![Target::Desktop, Target::Webhook],
            ..NotifySettings::default()
        };
        let told = |target| {
            [Moment::End, Moment::Failure, Moment::Waiting].map(|moment| settings.tells(target, moment))
        };
        assert_eq!(told(Target::Bell), [false, false, true]);
        assert_eq!(told(Target::Desktop), [false, true, false]);
        // Nobody knows where it is.
        assert!(!settings.has(Target::Webhook));
    }

    #[test]
    fn a_secret_is_not_printed() {
        let webhook = Webhook {
            url: Secret("https://x/hush".into()),
            secret: Some(Secret("hush".into())),
            format: Format::Json,
        };
        assert!(!format!("{webhook:?}").contains("hush"));
    }
}
