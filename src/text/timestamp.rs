//! Times for users and in names.

use chrono::{DateTime, Local, TimeZone, Utc};

/// `2026-01-31 23:59:59`, local time.
#[must_use]
pub(crate) fn local<Z: TimeZone>(at: &DateTime<Z>) -> String {
    told(&at.with_timezone(&Local))
}

/// `2026-01-31 23:59:59` in the time's own zone.
#[must_use]
pub(crate) fn told<Z: TimeZone>(at: &DateTime<Z>) -> String {
    at.naive_local().format("%Y-%m-%d %H:%M:%S").to_string()
}

/// `2026-01-31 23:59`, local time.
#[must_use]
pub(crate) fn minute<Z: TimeZone>(at: &DateTime<Z>) -> String {
    at.with_timezone(&Local).format("%Y-%m-%d %H:%M").to_string()
}

/// A time that is usually less than a day away, local: `23:59:59` on the day of `now`, else `2026-01-31 23:59`.
#[must_use]
pub(crate) fn nearby<Z: TimeZone>(at: &DateTime<Z>, now: DateTime<Local>) -> String {
    let at = at.with_timezone(&Local);
    let form = if at.date_naive() == now.date_naive() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    at.format(form).to_string()
}

/// `23:59:59`, local time.
#[must_use]
pub(crate) fn clock(at: DateTime<Local>) -> String {
    at.format("%H:%M:%S").to_string()
}

/// `2026-01-31T23:59:59`, local time: one word, for logs that programs parse.
#[must_use]
pub(crate) fn iso(at: DateTime<Local>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S").to_string()
}

/// `20260131-235959`, local time: for file names that users look for.
#[must_use]
pub(crate) fn for_names(at: DateTime<Local>) -> String {
    at.format("%Y%m%d-%H%M%S").to_string()
}

/// `20260131T235959123456789` in UTC, to the nanosecond: for unique names that sort by time.
#[must_use]
pub(crate) fn exact(at: DateTime<Utc>) -> String {
    at.format("%Y%m%dT%H%M%S%9f").to_string()
}

/// The first name with this stamp is the stamp itself, later ones are `stamp-2`, `stamp-3` and so on.
#[must_use]
pub(crate) fn numbered(stamp: &str, number: u64) -> String {
    if number == 1 { stamp.to_owned() } else { format!("{stamp}-{number}") }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn moment() -> DateTime<Local> {
        Local.with_ymd_and_hms(2026, 1, 31, 22, 5, 9).unwrap() + TimeDelta::nanoseconds(42)
    }

    #[test]
    fn people_read_local_time() {
        let at = moment();
        assert_eq!(local(&at), "2026-01-31 22:05:09");
        assert_eq!(local(&at.to_utc()), "2026-01-31 22:05:09");
        assert_eq!(minute(&at.to_utc()), "2026-01-31 22:05");
        assert_eq!((iso(at).as_str(), clock(at).as_str()), ("2026-01-31T22:05:09", "22:05:09"));
    }

    #[test]
    fn a_date_is_only_worth_its_room_when_it_is_not_todays() {
        let at = moment();
        assert_eq!(nearby(&at.to_utc(), at - TimeDelta::hours(3)), "22:05:09");
        assert_eq!(nearby(&at, at - TimeDelta::days(1)), "2026-01-31 22:05");
    }

    #[test]
    fn names_sort_by_time() {
        assert_eq!(for_names(moment()), "20260131-220509");
        let at = Utc.with_ymd_and_hms(2026, 1, 31, 22, 5, 9).unwrap() + TimeDelta::nanoseconds(42);
        assert_eq!(exact(at), "20260131T220509000000042");
        assert_eq!([1, 2, 3].map(|number| numbered("a", number)), ["a", "a-2", "a-3"]);
    }
}
