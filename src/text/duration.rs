//! Durations as users write them, `30s`, `5m`, `2h`, `1h30m`, `1.5s` or bare seconds, and as they read them.
//!
//! A setting is shown as the user would write it ([`format`]), a measurement in the other forms.

use std::time::Duration;

use thiserror::Error;

/// The longest duration that is accepted: a hundred years. Any clock can still add it to now.
const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Units with what people call them and with their seconds, the largest first.
const UNITS: [(&[&str], u64); 3] = [
    (&["h", "hr", "hrs", "hour", "hours"], 3600),
    (&["m", "min", "mins", "minute", "minutes"], 60),
    (&["s", "sec", "secs", "second", "seconds"], 1),
];

/// Why a text is not a duration. The message quotes the text and says how to write one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum DurationError {
    /// Not a number with a unit.
    #[error("`{0}` is not a duration; write it like 30s, 5m, 2h, 1h30m, 1.5s or as seconds")]
    Malformed(String),
    /// A negative number.
    #[error("`{0}` is negative; write a duration above zero, like 30s, 5m or 2h")]
    Negative(String),
    /// Zero, or less than a nanosecond.
    #[error("`{0}` is no time at all; write a duration above zero, like 30s, 5m or 2h")]
    Zero(String),
    /// More than a hundred years.
    #[error("`{0}` is longer than a hundred years; write a shorter duration")]
    TooLong(String),
}

/// This many seconds; zero for an invalid number.
#[must_use]
pub(crate) fn of_seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Reads a duration above zero. Fractions count to the nanosecond, further digits are dropped.
pub(crate) fn parse(text: &str) -> Result<Duration, DurationError> {
    let duration = parse_or_zero(text)?;
    if duration.is_zero() { Err(DurationError::Zero(text.to_owned())) } else { Ok(duration) }
}

/// Reads a duration that may be zero, for an optional pause.
pub(crate) fn parse_or_zero(text: &str) -> Result<Duration, DurationError> {
    let malformed = || DurationError::Malformed(text.to_owned());
    let mut rest = text.trim();
    if let Some(number) = rest.strip_prefix('-')
        && parse_or_zero(number).is_ok()
    {
        return Err(DurationError::Negative(text.to_owned()));
    }
    let mut units = UNITS.as_slice();
    let mut nanos: u128 = 0;
    let mut first = true;
    while first || !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let seconds = match unit {
            // Seconds without a unit only count alone: in `1h30` they could mean minutes.
            "" if first && tail.is_empty() => 1,
            unit => {
                let at = units.iter().position(|(names, _)| names.contains(&unit)).ok_or_else(malformed)?;
                let seconds = units[at].1;
                units = &units[at + 1..];
                seconds
            }
        };
        let part = number_in_nanos(number).ok_or_else(malformed)?.saturating_mul(u128::from(seconds));
        nanos = nanos.saturating_add(part);
        rest = tail;
        first = false;
    }
    if nanos > LONGEST.as_nanos() {
        return Err(DurationError::TooLong(text.to_owned()));
    }
    let seconds = u64::try_from(nanos / NANOS_PER_SECOND).unwrap_or(u64::MAX);
    let rest = u32::try_from(nanos % NANOS_PER_SECOND).unwrap_or(0);
    Ok(Duration::new(seconds, rest))
}

/// `12`, `1.5`, `.5` or `1.` in billionths; a number too large to hold becomes the largest.
fn number_in_nanos(number: &str) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    // Only digits are left, so parsing fails only on overflow.
    let whole = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(u128::MAX) };
    let billionths = fraction.chars().chain(std::iter::repeat('0')).take(9);
    let fraction =
        billionths.fold(0, |value, digit| value * 10 + u128::from(digit.to_digit(10).unwrap_or(0)));
    Some(whole.saturating_mul(NANOS_PER_SECOND).saturating_add(fraction))
}

/// Writes a duration so that [`parse`] reads it back: `2h`, `15m`, `1m30s`, `1.5s`, `0s`.
#[must_use]
pub(crate) fn format(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let fraction = match duration.subsec_nanos() {
        0 => String::new(),
        nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
    };
    let part = |number: u64, unit| if number > 0 { format!("{number}{unit}") } else { String::new() };
    let seconds = match (seconds % 60, fraction.as_str()) {
        (0, "") if !duration.is_zero() => String::new(),
        (seconds, fraction) => format!("{seconds}{fraction}s"),
    };
    part(hours, 'h') + &part(minutes, 'm') + &seconds
}

/// A measurement in whole seconds: `7s`, `5m42s`, `1h02m03s`.
#[must_use]
pub(crate) fn elapsed(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes:02}m{seconds:02}s"),
    }
}

/// A measurement with tenths of a second below a minute: `1.2s`, `5m42s`.
#[must_use]
pub(crate) fn elapsed_tenths(duration: Duration) -> String {
    if duration < Duration::from_mins(1) {
        format!("{:.1}s", duration.as_secs_f64())
    } else {
        elapsed(duration)
    }
}

/// A measurement in seconds only: `342s`.
#[must_use]
pub(crate) fn in_seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs())
}

/// An estimate, rounded to minutes from a minute on: `42s`, `16m`, `5h 0m`.
#[must_use]
pub(crate) fn rough(duration: Duration) -> String {
    let minutes = (duration.as_secs() + 30) / 60;
    match (minutes / 60, minutes % 60) {
        _ if duration.as_secs() < 60 => in_seconds(duration),
        (0, minutes) => format!("{minutes}m"),
        (hours, minutes) => format!("{hours}h {minutes}m"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nanos(text: &str) -> u128 {
        parse(text).unwrap_or_else(|error| panic!("{error}")).as_nanos()
    }

    #[test]
    fn reads_what_people_write() {
        for (text, millis) in [
            ("30s", 30_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("1.5s", 1_500),
            ("90", 90_000),
            ("0.5", 500),
            (".5m", 30_000),
            ("1.h", 3_600_000),
            ("1h30m", 5_400_000),
            ("1h1s", 3_601_000),
            ("30min", 1_800_000),
            ("1hr20mins5sec", 4_805_000),
            ("2hours", 7_200_000),
            ("1minute", 60_000),
            (" 2h ", 7_200_000),
            ("007s", 7_000),
        ] {
            assert_eq!(nanos(text), millis * 1_000_000, "{text}");
        }
        assert_eq!(nanos("0.000000001"), 1);
    }

    #[test]
    fn refuses_the_rest_and_says_why() {
        let message = |text| parse(text).expect_err(text).to_string();
        let wrong = [
            "", " ", "abc", "s", ".", "1.2.3s", "5x", "5 m", "1m1h", "1h1h", "1h30", "1e3", "+5s", "NaN",
            "inf", "--5s", "-", "5M", "5é", "5mi", "5min5m", "3days",
        ];
        for text in wrong {
            assert!(
                message(text).contains("is not a duration; write it like 30s"),
                "{text}: {}",
                message(text)
            );
        }
        for text in ["0", "0s", "0h0m", "0.0000000001s"] {
            assert!(message(text).contains("no time at all"), "{text}");
        }
        for text in ["-1", "-0.5h", "-0"] {
            assert!(message(text).contains("negative"), "{text}");
        }
        for text in ["876001h", "99999999999999999999999999999999999999999999999h", "3153600000.1"] {
            assert!(message(text).contains("hundred years"), "{text}");
        }
        assert_eq!(parse("876000h"), Ok(LONGEST));
    }

    #[test]
    fn a_pause_may_be_none() {
        assert_eq!(parse_or_zero("0"), Ok(Duration::ZERO));
        assert!(parse_or_zero("-1").is_err());
    }

    #[test]
    fn writes_the_short_form() {
        for (millis, text) in [
            (0, "0s"),
            (42_000, "42s"),
            (90_000, "1m30s"),
            (900_000, "15m"),
            (7_200_000, "2h"),
            (5_400_000, "1h30m"),
            (3_601_500, "1h1.5s"),
            (250, "0.25s"),
        ] {
            assert_eq!(format(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn what_was_measured_reads_well() {
        let text = |seconds| elapsed(Duration::from_secs(seconds));
        assert_eq!([7, 120, 342, 3723].map(text), ["7s", "2m0s", "5m42s", "1h02m03s"]);
        let text = |millis| elapsed_tenths(Duration::from_millis(millis));
        assert_eq!([1_234, 59_940, 342_900].map(text), ["1.2s", "59.9s", "5m42s"]);
        assert_eq!(in_seconds(Duration::from_millis(342_900)), "342s");
    }

    #[test]
    fn estimates_are_rounded() {
        let text = |seconds| rough(Duration::from_secs(seconds));
        assert_eq!([42, 60, 936, 3599, 18_000].map(text), ["42s", "1m", "16m", "1h 0m", "5h 0m"]);
    }

    proptest! {
        #[test]
        fn reads_back_what_it_writes(seconds in 0..LONGEST.as_secs(), nanos in 1..1_000_000_000u32) {
            let duration = Duration::new(seconds, nanos);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn never_panics(text in "[-+0-9.hms eé]{0,30}") {
            let _ = parse(&text);
        }
    }
}
