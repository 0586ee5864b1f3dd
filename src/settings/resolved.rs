//! One setting as it was decided, and its value read as what it has to be.

use std::time::Duration;

use super::setting::{Setting, ValueKind};
use super::{Origin, SettingsError};
use crate::files::room::Floor;
use crate::text::{bytes, duration};

/// The longest wait between two steps of ending an agent.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// One setting as it was decided.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The row of the table.
    pub setting: &'static Setting,
    /// The value as it was written; an empty one is none, see [`Setting::empty`].
    pub value: String,
    /// Who wrote it.
    pub origin: Origin,
}

impl Resolved {
    /// The value as it may be shown: of a secret only that there is one.
    #[must_use]
    pub fn shown(&self) -> &str {
        match self.setting.kind {
            ValueKind::Secret if !self.value.is_empty() => "(set)",
            _ => &self.value,
        }
    }

    pub(super) fn name(&self) -> Result<String, SettingsError> {
        if self.value.trim().is_empty() {
            return Err(self.invalid("this is empty; write a value or leave it out".to_owned()));
        }
        Ok(self.value.clone())
    }

    pub(super) fn words(&self) -> Vec<String> {
        self.value.split_whitespace().map(str::to_owned).collect()
    }

    pub(super) fn count<T: TryFrom<u64>>(&self) -> Result<T, SettingsError> {
        let least = if let ValueKind::Count { least } = self.setting.kind { least } else { 0 };
        let value = self.value.trim().parse().ok().filter(|value| *value >= u64::from(least));
        value
            .and_then(|value| T::try_from(value).ok())
            .ok_or_else(|| self.invalid(format!("`{}` is not a whole number of {least} or more", self.value)))
    }

    pub(super) fn duration(&self) -> Result<Duration, SettingsError> {
        duration::parse(&self.value).map_err(|error| self.invalid(error.to_string()))
    }

    /// A wait while something is ended. It is bounded: what ralph started must not outlive it for hours.
    pub(super) fn wait(&self) -> Result<Duration, SettingsError> {
        let wait = self.duration()?;
        if wait > LONGEST_WAIT {
            return Err(
                self.invalid(format!("`{}` is longer than five minutes; write a shorter wait", self.value))
            );
        }
        Ok(wait)
    }

    pub(super) fn duration_or_zero(&self) -> Result<Duration, SettingsError> {
        duration::parse_or_zero(&self.value).map_err(|error| self.invalid(error.to_string()))
    }

    pub(super) fn money(&self) -> Result<f64, SettingsError> {
        let number = self.value.trim().trim_start_matches('$').parse().ok();
        number.filter(|amount: &f64| amount.is_finite() && *amount > 0.0).ok_or_else(|| {
            self.invalid(format!(
                "`{}` is not an amount of US dollars above zero, such as 5 or 2.50",
                self.value
            ))
        })
    }

    /// How much of something, by the kind of the setting.
    #[expect(clippy::cast_precision_loss, reason = "no loop counts to 2^52")]
    pub(super) fn amount(&self) -> Result<f64, SettingsError> {
        match self.setting.kind {
            ValueKind::Money => self.money(),
            ValueKind::Duration => Ok(self.duration()?.as_secs_f64()),
            _ => Ok(self.count::<u64>()? as f64),
        }
    }

    /// An amount of bytes; `None`: no limit.
    pub(super) fn size(&self) -> Result<Option<u64>, SettingsError> {
        let size = bytes::parse(&self.value);
        let size = size.ok_or_else(|| {
            self.invalid(format!("`{}` is no amount such as 2 GB or 500 MB, nor 0 for no limit", self.value))
        })?;
        Ok((size > 0).then_some(size))
    }

    /// How much of a file system has to be free.
    pub(super) fn room(&self) -> Result<Floor, SettingsError> {
        let percent = |text: &str| text.trim().parse().ok().filter(|percent| (1..=99).contains(percent));
        let floor = match self.value.trim().strip_suffix('%') {
            Some(share) => percent(share).map(Floor::of_percent),
            None => bytes::parse(&self.value).map(Floor::of_bytes),
        };
        floor.ok_or_else(|| {
            self.invalid(format!("`{}` is no amount such as 1 GB, 500 MB or 5%, nor 0", self.value))
        })
    }

    pub(super) fn switch(&self) -> Result<bool, SettingsError> {
        match self.value.trim() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            other => Err(self.invalid(format!("`{other}` is neither true nor false"))),
        }
    }

    pub(super) fn invalid(&self, problem: String) -> SettingsError {
        let Setting { key, shell, .. } = self.setting;
        let place = match &self.origin {
            Origin::Default => (*key).to_owned(),
            origin @ (Origin::UserToml { .. } | Origin::ProjectToml { .. }) => format!("{key} in {origin}"),
            origin @ Origin::ShellConfig { .. } => format!("{shell} in {origin}"),
            origin @ (Origin::Env(_) | Origin::Flag(_)) => origin.to_string(),
        };
        SettingsError::Invalid { place, problem }
    }
}
