//! Filters and sorts the list of loops.

use super::row::Row;

/// The order of the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Sort {
    /// Loops that need a person first, ended ones last.
    #[default]
    Standing,
    Name,
    Cost,
    /// The newest first.
    Start,
}

impl Sort {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Standing => Self::Name,
            Self::Name => Self::Cost,
            Self::Cost => Self::Start,
            Self::Start => Self::Standing,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Standing => "where they stand",
            Self::Name => "name",
            Self::Cost => "cost",
            Self::Start => "start",
        }
    }
}

/// The rows that match the filter, in order. They come with the newest start first.
pub(super) fn listed<'a>(rows: &'a [Row], filter: &str, sort: Sort) -> Vec<&'a Row> {
    let mut listed: Vec<&Row> = rows.iter().filter(|row| row.is_meant(filter)).collect();
    match sort {
        Sort::Standing => listed.sort_by_key(|row| row.place()),
        Sort::Name => listed.sort_by_cached_key(|row| row.name.to_lowercase()),
        Sort::Cost => listed.sort_by(|a, b| {
            let cost = |row: &Row| row.cost.unwrap_or_default();
            cost(b).total_cmp(&cost(a))
        }),
        Sort::Start => {}
    }
    listed
}
