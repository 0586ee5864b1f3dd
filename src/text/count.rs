//! Numbers for users.

/// `812`, `12.3k`, `1.2M`.
#[must_use]
pub(crate) fn short(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one digit of it is shown")]
    let exact = count as f64;
    match count {
        0..1_000 => count.to_string(),
        // Rounds to 1.0M, not to 1000.0k.
        1_000..999_950 => format!("{:.1}k", exact / 1e3),
        _ => format!("{:.1}M", exact / 1e6),
    }
}

/// `1 commit`, `3 commits`.
#[must_use]
pub(crate) fn of(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// The verb behind this many of something.
#[must_use]
pub(crate) const fn are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// `$1.20`; `None` if the cost is zero or unknown.
#[must_use]
pub(crate) fn money(cost: Option<f64>) -> Option<String> {
    cost.filter(|cost| *cost > 0.0).map(|cost| format!("${cost:.2}"))
}

/// `12.3k tokens in, 678 out`; `None` without tokens.
#[must_use]
pub(crate) fn tokens((input, output): (u64, u64)) -> Option<String> {
    (input.saturating_add(output) > 0).then(|| format!("{} tokens in, {} out", short(input), short(output)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_short() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (12_345, "12.3k"),
            (999_949, "999.9k"),
            (999_950, "1.0M"),
        ];
        for (count, expected) in cases {
            assert_eq!(short(count), expected);
        }
        assert_eq!(short(1_234_567_890), "1234.6M");
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|count| of(count, "file")), ["0 files", "1 file", "2 files"]);
    }
}
