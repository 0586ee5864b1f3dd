//! A wait is reported once, however many loops meet it and however often.

use chrono::{DateTime, TimeDelta, Utc};

use crate::engine::event::Stamped;
use crate::engine::fact::{Fact, WaitReason, Word};

/// A limit that is met again this soon after its end is the same one: its end was guessed, or slightly wrong.
const SAME_LIMIT: TimeDelta = TimeDelta::minutes(1);
/// A limit that lasts this much longer than reported is reported again.
const MUCH_LONGER: TimeDelta = TimeDelta::minutes(10);
/// A provider that does not work again within this has not recovered.
const SAME_OUTAGE: TimeDelta = TimeDelta::minutes(10);

/// The latest waits.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    limit: Option<Told>,
    /// Why a provider was waited for last, and until when.
    outage: Option<(Word<WaitReason>, DateTime<Utc>)>,
}

/// A known limit.
#[derive(Debug, Clone, Copy)]
struct Told {
    /// Its end when it was reported.
    until: DateTime<Utc>,
    /// The latest end that was met.
    last: DateTime<Utc>,
}

impl Waits {
    /// Books a wait; returns whether it must be reported.
    pub(crate) fn meet(&mut self, stamped: &Stamped<'_>) -> bool {
        let Fact::Waiting { reason, until, .. } = stamped.fact else { return false };
        self.is_new(reason, stamped.at.to_utc(), until.to_utc())
    }

    /// Books a wait that begins now and lasts until then; returns whether it is a new one.
    fn is_new(&mut self, reason: &Word<WaitReason>, now: DateTime<Utc>, until: DateTime<Utc>) -> bool {
        if *reason != WaitReason::UsageLimit.into() {
            let last = self.outage.replace((reason.clone(), until));
            return last.is_none_or(|(before, last)| before != *reason || now > last + SAME_OUTAGE);
        }
        match &mut self.limit {
            Some(told) if now <= told.last + SAME_LIMIT && until <= told.until + MUCH_LONGER => {
                told.last = told.last.max(until);
                false
            }
            limit => {
                *limit = Some(Told { until, last: until });
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_limit_is_told_once_and_the_next_one_again() {
        let at = |minutes: i64| DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes);
        let (limit, overload) = (WaitReason::UsageLimit.into(), WaitReason::Overload.into());
        let mut waits = Waits::default();
        assert!(waits.is_new(&limit, at(0), at(60)));
        assert!(!waits.is_new(&limit, at(1), at(60)), "another loop");
        assert!(waits.is_new(&limit, at(1), at(90)), "it lasts longer");
        assert!(waits.is_new(&limit, at(92), at(300)), "the next one");
        assert!(waits.is_new(&overload, at(0), at(1)));
        assert!(!waits.is_new(&overload, at(2), at(4)));
        assert!(!waits.is_new(&overload, at(5), at(9)));
        assert!(waits.is_new(&overload, at(20), at(21)));
        assert!(waits.is_new(&WaitReason::Network.into(), at(22), at(23)), "another reason");
    }

    #[test]
    fn a_limit_without_a_known_end_is_told_now_and_then() {
        let limit = WaitReason::UsageLimit.into();
        let mut waits = Waits::default();
        let at = |seconds: i64| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
        // Each attempt comes a moment after the guessed end, and the next guess is a minute.
        let told = (0..30).filter(|wait| waits.is_new(&limit, at(wait * 61), at(wait * 61 + 60)));
        assert_eq!(told.collect::<Vec<_>>(), [0, 10, 20]);
    }
}
