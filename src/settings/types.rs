//! The types that values of settings have.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::SettingsError;
use super::forge::ForgeChoice;
use super::proof_level::{LandingStyle, OnProtected, ProofLevel};
use super::resolved::Resolved;
use super::sandbox::{Mode, Network, Tripping};
use super::setting::{Span, ValueKind};
use crate::files::room::Floor;
use crate::text::pauses::Pauses;
use crate::text::{bytes, duration};

/// The longest wait between two steps of ending an agent, which must not outlive ralph for hours.
const SHORTEST_LEASE: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// A type that the value of a setting can have.
pub(super) trait SettingType: Sized {
    /// The kind of such a setting, unless its row says otherwise.
    const KIND: ValueKind;

    /// The value of a setting of this type.
    fn read(row: &Resolved) -> Result<Self, SettingsError>;
}

/// An empty value means no value.
impl<T: SettingType> SettingType for Option<T> {
    const KIND: ValueKind = match T::KIND {
        ValueKind::Name => ValueKind::Text,
        kind => kind,
    };

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        (!row.value.is_empty()).then(|| T::read(row)).transpose()
    }
}

impl SettingType for String {
    const KIND: ValueKind = ValueKind::Name;

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        if row.setting.kind == ValueKind::Name && row.value.trim().is_empty() {
            return Err(row.invalid("this is empty; write a value or leave it out".to_owned()));
        }
        Ok(row.value.clone())
    }
}

impl SettingType for Vec<String> {
    const KIND: ValueKind = ValueKind::Words;

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        Ok(row.value.split_whitespace().map(str::to_owned).collect())
    }
}

/// Paths below the project, written with spaces between them.
impl SettingType for Vec<PathBuf> {
    const KIND: ValueKind = ValueKind::Words;

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        let path = |word: &str| {
            let path = Path::new(word);
            let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
            let wrong = || {
                row.invalid(format!("`{word}` is no path below the project; write it from the project's top"))
            };
            is_below.then(|| path.to_owned()).ok_or_else(wrong)
        };
        row.value.split_whitespace().map(path).collect()
    }
}

impl SettingType for bool {
    const KIND: ValueKind = ValueKind::Switch;

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        match row.value.trim() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            other => Err(row.invalid(format!("`{other}` is neither true nor false"))),
        }
    }
}

impl SettingType for u32 {
    const KIND: ValueKind = ValueKind::Count { least: 0 };

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        count(row)
    }
}

impl SettingType for u64 {
    const KIND: ValueKind = ValueKind::Count { least: 0 };

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        if row.setting.kind != ValueKind::Size {
            return count(row);
        }
        bytes::parse(&row.value).ok_or_else(|| {
            let value = &row.value;
            row.invalid(format!("`{value}` is no amount such as 2 GB or 500 MB, nor 0 for no limit"))
        })
    }
}

fn count<T: TryFrom<u64>>(row: &Resolved) -> Result<T, SettingsError> {
    let least = if let ValueKind::Count { least } = row.setting.kind { least } else { 0 };
    let value = row.value.trim().parse().ok().filter(|value| *value >= u64::from(least));
    value
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| row.invalid(format!("`{}` is not a whole number of {least} or more", row.value)))
}

impl SettingType for f64 {
    const KIND: ValueKind = ValueKind::Money;

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        let number = row.value.trim().trim_start_matches('$').parse().ok();
        number.filter(|amount: &Self| amount.is_finite() && *amount > 0.0).ok_or_else(|| {
            let value = &row.value;
            row.invalid(format!("`{value}` is not an amount of US dollars above zero, such as 5 or 2.50"))
        })
    }
}

impl SettingType for Duration {
    const KIND: ValueKind = ValueKind::Duration(Span::AboveZero);

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        let parse = match row.setting.kind {
            ValueKind::Duration(Span::OrZero) => duration::parse_or_zero,
            _ => duration::parse,
        };
        let value = parse(&row.value).map_err(|error| row.invalid(error.to_string()))?;
        if row.setting.kind == ValueKind::Duration(Span::UpToFiveMinutes) && value > LONGEST_WAIT {
            let problem = format!("`{}` is longer than five minutes; write a shorter wait", row.value);
            return Err(row.invalid(problem));
        }
        if row.setting.kind == ValueKind::Duration(Span::AtLeast30Seconds) && value < SHORTEST_LEASE {
            return Err(
                row.invalid(format!("`{}` is shorter than 30 seconds; write a longer one", row.value))
            );
        }
        Ok(value)
    }
}

/// The choice with the word that is written in a row.
fn one_of<T: Copy>(row: &Resolved, all: &[T], word: fn(T) -> &'static str) -> Result<T, SettingsError> {
    all.iter().copied().find(|one| word(*one) == row.value.trim()).ok_or_else(|| {
        let words: Vec<&str> = all.iter().copied().map(word).collect();
        let (last, others) = words.split_last().unwrap_or((&"", &[]));
        row.invalid(format!("`{}` is none of {} and {last}", row.value, others.join(", ")))
    })
}

/// Choices by a word.
macro_rules! choices {
    ($($choice:ty)*) => {$(
        impl SettingType for $choice {
            const KIND: ValueKind = ValueKind::Name;

            fn read(row: &Resolved) -> Result<Self, SettingsError> {
                one_of(row, &Self::ALL, Self::word)
            }
        }
    )*};
}

choices! { ForgeChoice ProofLevel OnProtected LandingStyle Mode Network Tripping }

impl SettingType for Pauses {
    const KIND: ValueKind = ValueKind::Pauses;

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        let value = &row.value;
        Self::parse(value).map_err(|error| {
            let with_blanks = value.replace(',', " ");
            if with_blanks != *value && Self::parse(&with_blanks).is_ok() {
                return row.invalid(format!(
                    "`{value}` has commas; write blanks between the pauses: `{with_blanks}`"
                ));
            }
            row.invalid(error.to_string())
        })
    }
}

impl SettingType for Floor {
    const KIND: ValueKind = ValueKind::Room;

    fn read(row: &Resolved) -> Result<Self, SettingsError> {
        let percent = |text: &str| text.trim().parse().ok().filter(|percent| (1..=99).contains(percent));
        let floor = match row.value.trim().strip_suffix('%') {
            Some(share) => percent(share).map(Self::of_percent),
            None => bytes::parse(&row.value).map(Self::of_bytes),
        };
        floor.ok_or_else(|| {
            row.invalid(format!("`{}` is no amount such as 1 GB, 500 MB or 5%, nor 0", row.value))
        })
    }
}
