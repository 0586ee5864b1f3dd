//! Amounts of bytes as people write and read them.

/// Units by size, the largest first. A kilobyte has a thousand bytes, as disk vendors count.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

/// An amount such as `1 GB`, `500MB`, `1.5 GiB` or `0`; `None` for anything else.
#[must_use]
pub(crate) fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (text[..split].parse::<f64>().ok()?, text[split..].trim());
    let size = match unit {
        // A number without a unit is ambiguous.
        "" => (number == 0.0).then_some(1)?,
        unit => UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1,
    };
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it has no sign, and too much is as much as there can be"
    )]
    Some((number * size as f64) as u64)
}

/// `1.5 GB`, `312 MB`, `0 B`.
#[must_use]
pub(crate) fn short(bytes: u64) -> String {
    let unit = UNITS.iter().filter(|(name, _)| !name.contains('i')).find(|(_, size)| bytes >= *size);
    let Some((name, size)) = unit.filter(|(_, size)| *size > 1) else { return format!("{bytes} B") };
    let tenths = bytes / (size / 10);
    if tenths < 100 && !tenths.is_multiple_of(10) {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    } else {
        format!("{} {name}", tenths / 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("1 GB", Some(1_000_000_000)),
            ("500MB", Some(500_000_000)),
            ("1.5 gib", Some(1_610_612_736)),
            (" 0 ", Some(0)),
            ("12 B", Some(12)),
            ("900 TB", Some(900_000_000_000_000)),
            ("12", None),
            ("GB", None),
            ("-1 GB", None),
            ("1 XB", None),
            ("1.2.3 GB", None),
            ("", None),
        ] {
            assert_eq!(parse(text), bytes, "{text}");
        }
    }

    #[test]
    fn amounts_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_500, "1.5 KB"),
            (312_900_000, "312 MB"),
            (2_000_000_000, "2 GB"),
            (59_900_000_000, "59 GB"),
        ] {
            assert_eq!(short(bytes), text);
        }
    }
}
