//! Finds the name that the user meant.

/// The candidate closest to `wanted`, if the difference can be a typing error: one edit for every three characters
/// begun. Ignores case.
pub(crate) fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let close_enough = wanted.chars().count().div_ceil(3);
    candidates
        .into_iter()
        .map(|candidate| (distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= close_enough)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// For a message about an unknown name: the candidate that was probably meant, as the beginning of a sentence; else nothing.
pub(crate) fn meant<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wanted, candidates).map_or_else(String::new, |name| format!("did you mean '{name}'? "))
}

/// The closest candidate within two edits, such as two swapped letters: certainly a typing error.
pub(crate) fn slip<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let edits = |candidate: &str| distance(&written.to_lowercase(), &candidate.to_lowercase());
    nearest(written, candidates).filter(|candidate| edits(candidate) <= 2)
}

/// The number of insertions, deletions and replacements from `from` to `to`.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (from, to, edits) in [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2)]
        {
            assert_eq!(distance(from, to), edits);
        }
    }

    #[test]
    fn a_slip_is_less_than_a_guess() {
        let known = ["VALIDATION_COMMAND"];
        assert_eq!(nearest("VALIDATE_COMMAND", known), Some("VALIDATION_COMMAND"));
        assert_eq!(slip("VALIDATE_COMMAND", known), None);
        assert_eq!(slip("validation_cmomand", known), Some("VALIDATION_COMMAND"));
    }

    #[test]
    fn suggests_only_what_is_close() {
        let known = ["claude", "codex", "gemini"];
        assert_eq!(nearest("cluade", known), Some("claude"));
        assert_eq!(nearest("CODEX", known), Some("codex"));
        assert_eq!(nearest("vim", known), None);
        assert_eq!(nearest("", known), None);
    }
}
