//! Finds the end of a usage limit in an agent's message, if none of its fields has it.

use std::sync::LazyLock;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZoneDatabase;
use jiff::{SignedDuration, Timestamp, Zoned};
use regex::{Captures, Regex};

/// The wordings of real agents and their providers. The names of the groups say what is read: `epoch`, `stamp` (RFC
/// 3339), `length` (from now on), or `hour` with other parts of a time.
const WORDINGS: [&str; 5] = [
    // claude, formerly: "usage limit reached|1795227012"
    r"limit reached\|(?<epoch>\d{10})\b",
    r"(?:resets?|again|until|after)(?: at| on)? (?<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))",
    // codex: "try again at Nov 23rd, 2026 9:44 PM."; claude: "resets Nov 25, 3pm (UTC)"
    r"(?:again at|resets?(?: at| on)?) (?<month>[a-z]{3})[a-z]* (?<day>\d{1,2})(?:st|nd|rd|th)?,?(?: (?<year>\d{4}),?)?(?: at)? (?<hour>\d{1,2})(?::(?<minute>\d\d))? ?(?<half>[ap])m\b(?: \((?<zone>[^)]+)\))?",
    // codex: "try again at 4:13 PM."; claude: "resets 2:10am (UTC)"
    r"(?:again at|resets?(?: at)?) (?<hour>\d{1,2})(?::(?<minute>\d\d))? ?(?<half>[ap])m\b(?: \((?<zone>[^)]+)\))?",
    // codex: "try again in 3 days 2 hours"; gemini: "retry in 52.6s", "reset after 18h23m12s"
    r"(?:(?:again|retry|resets?) (?:in|after)) (?<length>(?:\d+(?:\.\d+)? ?(?:days?|d|hours?|hrs?|h|minutes?|mins?|ms|m|seconds?|secs?|s)(?:,? and |, | )?)+)",
];

/// A time of day at most this far in the past has just passed; it is not tomorrow's.
const JUST_PASSED: SignedDuration = SignedDuration::from_hours(1);
/// Agents omit the seconds.
const CUT_OFF: SignedDuration = SignedDuration::from_mins(1);

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Our own database, so that it also works on a machine without time zones.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    WORDINGS.iter().filter_map(|wording| Regex::new(&format!("(?i){wording}")).ok()).collect()
});
static PARTS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(?<count>\d+(?:\.\d+)?) ?(?<unit>ms|d|h|m|s)").ok());

/// The end of a usage limit in `message`, in seconds since the epoch. `now` is in the zone that the agent means if it
/// names none.
#[must_use]
pub(super) fn named(message: &str, now: &Zoned) -> Option<i64> {
    let captures = PATTERNS.iter().find_map(|pattern| pattern.captures(message))?;
    let group = |name: &str| captures.name(name).map(|group| group.as_str());
    let at = if let Some(epoch) = group("epoch") {
        return epoch.parse().ok();
    } else if let Some(stamp) = group("stamp") {
        stamp.parse::<Timestamp>().ok()?
    } else if let Some(length) = group("length") {
        now.timestamp().checked_add(time_of(length)?).ok()?
    } else if let Some(zone) = group("zone").and_then(|zone| ZONES.get(zone).ok()) {
        moment(&captures, &now.with_time_zone(zone))?
    } else {
        moment(&captures, now)?
    };
    // Rounded up, as a part of a second would be too early.
    Some(at.as_second() + i64::from(at.subsec_nanosecond() > 0))
}

/// `3 days 2 hours`
fn time_of(length: &str) -> Option<SignedDuration> {
    let mut seconds = 0.0;
    for part in PARTS.as_ref()?.captures_iter(length) {
        let unit = match &part["unit"].to_ascii_lowercase()[..] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => 86400.0,
        };
        seconds += part["count"].parse::<f64>().ok()? * unit;
    }
    SignedDuration::try_from_secs_f64(seconds).ok()
}

/// A time of day, with a date if there is one.
fn moment(captures: &Captures<'_>, now: &Zoned) -> Option<Timestamp> {
    let number = |name: &str| captures.name(name).map_or(Some(0), |group| group.as_str().parse::<i8>().ok());
    let half = if captures["half"].eq_ignore_ascii_case("p") { 12 } else { 0 };
    let hour = number("hour").filter(|hour| (1..=12).contains(hour))? % 12 + half;
    let time = Time::new(hour, number("minute")?, 0, 0).ok()?;
    let today = now.date();
    let at = |day: Date| instant(now, day, time)?.checked_add(CUT_OFF).ok();
    let Some(month) = captures.name("month") else {
        let days = [today.yesterday().ok()?, today, today.tomorrow().ok()?];
        let has_passed = |at: &Timestamp| now.timestamp().duration_since(*at) >= JUST_PASSED;
        return days.into_iter().filter_map(at).find(|at| !has_passed(at));
    };
    let month = MONTHS.iter().zip(1..).find(|(name, _)| month.as_str().eq_ignore_ascii_case(name))?.1;
    let in_year = |year| Date::new(year, month, number("day")?).ok();
    if let Some(year) = captures.name("year") {
        return at(in_year(year.as_str().parse().ok()?)?);
    }
    let yesterday = today.yesterday().ok()?;
    [today.year(), today.year() + 1]
        .into_iter()
        .filter_map(in_year)
        .find(|day| *day >= yesterday)
        .and_then(at)
}

/// That time in the zone of `now`: the second occurrence if a clock is set back, moved by the gap if it is set
/// forward.
fn instant(now: &Zoned, day: Date, time: Time) -> Option<Timestamp> {
    now.time_zone().to_ambiguous_timestamp(day.to_datetime(time)).later().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODEX: &str = "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit \
                         https://chatgpt.com/settings/usage to purchase more credits or try again at ";

    /// The time that a message names, in the zone of `now` (`2026-11-21T20:40:00 Europe/Berlin`).
    fn read(message: &str, now: &str) -> Option<String> {
        let (time, zone) = now.split_once(' ').unwrap();
        let time: jiff::civil::DateTime = time.parse().unwrap();
        let now = time.to_zoned(ZONES.get(zone).unwrap()).unwrap();
        let named = Timestamp::from_second(named(message, &now)?).unwrap();
        Some(named.to_zoned(now.time_zone().clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
    }

    #[test]
    fn every_wording_is_read() {
        let now = "2026-11-21T14:00:00 Europe/Berlin";
        for (message, expected) in [
            (format!("{CODEX}4:13 PM."), "2026-11-21T16:14:00+01:00"),
            (format!("{CODEX}Nov 23rd, 2026 9:44 PM."), "2026-11-23T21:45:00+01:00"),
            ("try again at Nov 23rd, 2026 8:40 PM".into(), "2026-11-23T20:41:00+01:00"),
            ("try again at Dec 1st, 2026 12:05 AM.".into(), "2026-12-01T00:06:00+01:00"),
            ("Try again at Dec 2nd, 2026 12:05 PM.".into(), "2026-12-02T12:06:00+01:00"),
            ("You've hit your limit · resets 2:10am (UTC)".into(), "2026-11-22T03:11:00+01:00"),
            ("You've hit your limit · resets 3pm".into(), "2026-11-21T15:01:00+01:00"),
            ("You've hit your limit · resets 5pm (America/New_York)".into(), "2026-11-21T23:01:00+01:00"),
            ("You've hit your limit · resets 5pm (Nowhere/Land)".into(), "2026-11-21T17:01:00+01:00"),
            ("weekly limit reached · resets Nov 25, 3pm (UTC)".into(), "2026-11-25T16:01:00+01:00"),
            ("weekly limit reached · resets Jan 2 at 3:30pm".into(), "2027-01-02T15:31:00+01:00"),
            ("Claude AI usage limit reached|1795227012".into(), "2026-11-21T03:10:12+01:00"),
            ("limit resets at 2026-11-23T20:40:00Z".into(), "2026-11-23T21:40:00+01:00"),
            ("Try again in 3 days 2 hours 5 minutes.".into(), "2026-11-24T16:05:00+01:00"),
            ("Please try again in 6m0s.".into(), "2026-11-21T14:06:00+01:00"),
            ("Please try again in 500ms.".into(), "2026-11-21T14:00:01+01:00"),
            ("Please retry in 52.6s.".into(), "2026-11-21T14:00:53+01:00"),
            ("Retry after 26 seconds".into(), "2026-11-21T14:00:26+01:00"),
            ("Your quota will reset after 18h23m12s.".into(), "2026-11-22T08:23:12+01:00"),
            ("try again in 1 hour, 2 minutes and 3 seconds".into(), "2026-11-21T15:02:03+01:00"),
        ] {
            assert_eq!(read(&message, now).as_deref(), Some(expected), "{message}");
        }
        for message in [
            "",
            "Too many requests",
            "try again later",
            "try again at 25:10 PM",
            "try again at 13 PM",
            "try again at Foo 23rd, 2026 9:44 PM",
            "try again at Feb 30th, 2026 9:44 PM",
            "try again in 9999999999999999999999 days",
            "usage limit reached|12",
        ] {
            assert_eq!(read(message, now), None, "{message}");
        }
    }

    #[test]
    fn a_time_of_day_may_be_tomorrows_or_have_just_passed() {
        for (now, named, expected) in [
            ("23:50:00", "12:10 AM", "2026-11-22T00:11:00+01:00"),
            ("16:13:59", "4:13 PM", "2026-11-21T16:14:00+01:00"),
            ("16:20:00", "4:13 PM", "2026-11-21T16:14:00+01:00"),
            ("18:00:00", "4:13 PM", "2026-11-22T16:14:00+01:00"),
            ("00:00:10", "11:59 PM", "2026-11-21T00:00:00+01:00"),
        ] {
            let now = format!("2026-11-21T{now} Europe/Berlin");
            assert_eq!(read(&format!("try again at {named}."), &now).as_deref(), Some(expected), "{now}");
        }
    }

    #[test]
    fn clocks_are_set_forward_and_back() {
        for (now, named, expected) in [
            // Summer time ends at 3:00, which becomes 2:00.
            ("2026-10-24T23:00:00", "4:10 AM", "2026-10-25T04:11:00+01:00"),
            ("2026-10-24T23:00:00", "2:30 AM", "2026-10-25T02:31:00+01:00"),
            // It begins at 2:00, which becomes 3:00.
            ("2026-03-28T23:00:00", "4:10 AM", "2026-03-29T04:11:00+02:00"),
            ("2026-03-28T23:00:00", "2:30 AM", "2026-03-29T03:31:00+02:00"),
            ("2026-03-28T12:00:00", "Mar 30th, 2026 1:00 PM", "2026-03-30T13:01:00+02:00"),
        ] {
            let now = format!("{now} Europe/Berlin");
            assert_eq!(read(&format!("try again at {named}."), &now).as_deref(), Some(expected), "{now}");
        }
    }
}
