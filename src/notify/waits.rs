//! One wait is told once, however many loops meet it and however often it is met.

use chrono::{DateTime, TimeDelta, Utc};

/// A limit that is met again within this is the same.
const SAME_LIMIT: TimeDelta = TimeDelta::minutes(1);
/// A provider that is overloaded again within this has not recovered.
const SAME_OVERLOAD: TimeDelta = TimeDelta::minutes(10);

/// The latest waits.
#[derive(Debug, Default)]
pub(super) struct Waits {
    limit: Option<DateTime<Utc>>,
    overload: Option<DateTime<Utc>>,
}

impl Waits {
    /// Books a wait that begins now and lasts until then; answers whether nobody knows of it yet.
    pub(super) fn is_new(&mut self, is_overload: bool, now: DateTime<Utc>, until: DateTime<Utc>) -> bool {
        if is_overload {
            let last = self.overload.replace(until);
            return last.is_none_or(|last| now > last + SAME_OVERLOAD);
        }
        let is_new = self.limit.is_none_or(|last| now > last || until > last + SAME_LIMIT);
        if is_new {
            self.limit = Some(until);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_limit_is_told_once_and_the_next_one_again() {
        let at = |minutes: i64| DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes);
        let mut waits = Waits::default();
        assert!(waits.is_new(false, at(0), at(60)));
        assert!(!waits.is_new(false, at(1), at(60)), "another loop");
        assert!(waits.is_new(false, at(1), at(90)), "it lasts longer");
        assert!(waits.is_new(false, at(91), at(300)), "the next one");
        assert!(waits.is_new(true, at(0), at(1)));
        assert!(!waits.is_new(true, at(2), at(4)));
        assert!(!waits.is_new(true, at(5), at(9)));
        assert!(waits.is_new(true, at(20), at(21)));
    }
}
