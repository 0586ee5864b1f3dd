//! One setting with its value and origin.

use super::setting::{Setting, ValueKind};
use super::{Origin, SettingsError};

/// One setting with its value and origin.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The row of the table.
    pub setting: &'static Setting,
    /// The value as it was written; for an empty one see [`Setting::empty`].
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

impl Resolved {
    /// The value as it may be shown; of a secret only whether it is set.
    #[must_use]
    pub fn shown(&self) -> &str {
        match self.setting.kind {
            ValueKind::Secret if !self.value.is_empty() => "(set)",
            _ => &self.value,
        }
    }

    /// The error for a value that the setting cannot have.
    pub(super) fn invalid(&self, problem: String) -> SettingsError {
        SettingsError::Invalid { place: self.place(), problem }
    }

    /// What its user calls it, and where it stands.
    #[must_use]
    pub fn place(&self) -> String {
        let Setting { key, shell, .. } = self.setting;
        match &self.origin {
            Origin::Default => (*key).to_owned(),
            origin @ (Origin::UserToml { .. } | Origin::ProjectToml { .. }) => format!("{key} in {origin}"),
            origin @ Origin::ShellConfig { .. } => format!("{shell} in {origin}"),
            origin @ (Origin::Env(_) | Origin::Flag(_)) => origin.to_string(),
        }
    }
}

/// The setting of this key, which a row of the table has.
pub(super) fn row<'a>(rows: &'a [Resolved], key: &str) -> &'a Resolved {
    // Keys are literals of the table, and every load looks up each of them: the first test would fail.
    rows.iter().find(|row| row.setting.key == key).expect("the key of a row of the table")
}
