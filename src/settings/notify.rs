//! Notices, and the user's commands beside a loop: the sections `[notify]` and `[hooks]`.

pub(super) mod words;

pub use super::table::{HookSettings, NotifySettings};
pub use words::{Format, Moment, Secret, Target, Url, host};

/// A webhook.
#[derive(Debug, Clone)]
pub struct Webhook {
    /// Its URL; many contain a secret.
    pub url: Url,
    /// The secret that signs it.
    pub secret: Option<Secret>,
    /// The format of what is posted.
    pub format: Format,
}

impl Webhook {
    /// The URL's host, which may be shown.
    #[must_use]
    pub fn host(&self) -> &str {
        self.url.host()
    }
}

impl NotifySettings {
    /// Takes the secret from the variable that the settings name; returns a warning.
    pub(super) fn take_secret(&mut self, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let name = self.secret_env.as_deref()?;
        if let Some(secret) = env(name).filter(|secret| !secret.is_empty()) {
            self.secret = Some(Secret::new(secret));
            return None;
        }
        self.url.is_some().then(|| {
            format!(
                "notify.webhook_secret_env names {name}, which is not in the environment: set it, or no receiver can tell \
                 that what is posted comes from you"
            )
        })
    }

    /// The webhook, with its secret and format.
    #[must_use]
    pub fn webhook(&self) -> Option<Webhook> {
        let url = self.url.clone()?;
        let format = self.format.unwrap_or_else(|| usual(url.host()));
        Some(Webhook { url, secret: self.secret.clone(), format })
    }

    /// Whether this target gets notices of this event.
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

    /// Whether this target gets any notices.
    #[must_use]
    pub fn has(&self, target: Target) -> bool {
        [Moment::End, Moment::Failure, Moment::Waiting, Moment::Attention]
            .into_iter()
            .any(|moment| self.tells(target, moment))
    }

    /// Whether this target is configured.
    fn can(&self, target: Target) -> bool {
        match target {
            Target::Command => self.command.is_some(),
            Target::Webhook => self.url.is_some(),
            Target::Desktop | Target::Bell => true,
        }
    }
}

/// The format for a host.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_its_usual_format() {
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
        // The name of the host is unknown.
        assert!(!settings.has(Target::Webhook));
    }
}
