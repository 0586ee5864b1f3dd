//! Pauses before one try after the other, as users write them: `0 10s 1m 5m`.

use std::borrow::Cow;
use std::time::Duration;

use super::duration::{self, DurationError};

/// The longest pause before a try.
const LONGEST: Duration = Duration::from_mins(5);

/// The pauses before tries that follow each other. After the last one that is named, each is twice as long as the one before,
/// but no longer than five minutes; with none, no try waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pauses(Cow<'static, [Duration]>);

impl Pauses {
    /// No try waits.
    pub const NONE: Self = Self(Cow::Borrowed(&[]));

    /// Those that begin with these.
    #[must_use]
    pub fn of(pauses: Vec<Duration>) -> Self {
        Self(Cow::Owned(pauses))
    }

    /// The pauses that are named.
    #[must_use]
    pub fn named(&self) -> &[Duration] {
        &self.0
    }

    /// The pause before the try that follows `done` others.
    #[must_use]
    pub fn after(&self, done: u32) -> Duration {
        let at = usize::try_from(done).unwrap_or(usize::MAX);
        let Some(last) = self.0.last() else { return Duration::ZERO };
        let beyond = u32::try_from((at + 1).saturating_sub(self.0.len())).unwrap_or(u32::MAX);
        let doubled = last.saturating_mul(2_u32.saturating_pow(beyond)).min(LONGEST.max(*last));
        self.0.get(at).copied().unwrap_or(doubled)
    }

    /// The first pause that is one.
    #[must_use]
    pub fn first(&self) -> Option<Duration> {
        self.0.iter().copied().find(|pause| !pause.is_zero())
    }

    /// Reads durations that are separated by blanks; each may be zero.
    pub(crate) fn parse(text: &str) -> Result<Self, DurationError> {
        text.split_whitespace().map(duration::parse_or_zero).collect::<Result<_, _>>().map(Self::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str, tries: u32) -> Vec<u64> {
        let pauses = Pauses::parse(text).unwrap();
        (0..tries).map(|done| pauses.after(done).as_secs()).collect()
    }

    #[test]
    fn the_last_one_doubles_up_to_five_minutes() {
        assert_eq!(seconds("0 10s 1m 5m", 6), [0, 10, 60, 300, 300, 300]);
        assert_eq!(seconds("10s", 7), [10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(seconds("1s 10m", 4), [1, 600, 600, 600]);
        assert_eq!((seconds("", 3), seconds("0", 3)), (vec![0; 3], vec![0; 3]));
        assert_eq!(Pauses::parse("1s").unwrap().after(u32::MAX), LONGEST);
        assert_eq!(Pauses::NONE.after(u32::MAX), Duration::ZERO);
    }

    #[test]
    fn the_first_that_is_one_is_known() {
        assert_eq!(Pauses::parse("0 10s 1m").unwrap().first(), Some(Duration::from_secs(10)));
        assert_eq!((Pauses::NONE.first(), Pauses::parse("0").unwrap().first()), (None, None));
        assert!(Pauses::parse("10s soon").is_err());
    }
}
