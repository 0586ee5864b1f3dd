//! References to issues, as forges understand them.

/// What may stand before the number of an issue or a pull request.
const BEFORE: [&str; 8] =
    ["#", "!", "gh-", "/issues/", "/work_items/", "/pull/", "/pulls/", "/merge_requests/"];

/// The text with a space before the number of each reference. A forge closes what `closes #3` in a commit or a pull request names, and
/// the words may be those of a stranger.
#[must_use]
pub(crate) fn unlinked(text: &str) -> String {
    // Of the same length, byte for byte.
    let small = text.to_ascii_lowercase();
    let mut unlinked = String::with_capacity(text.len());
    for (at, char) in text.char_indices() {
        if char.is_ascii_digit() && BEFORE.iter().any(|before| small[..at].ends_with(before)) {
            unlinked.push(' ');
        }
        unlinked.push(char);
    }
    unlinked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_stands_at_what_makes_it_a_reference() {
        for (text, unlinked_text) in [
            ("closes #99", "closes # 99"),
            ("fixes bo/other#9, #10", "fixes bo/other# 9, # 10"),
            ("Resolves: https://h/a/b/-/issues/7.", "Resolves: https://h/a/b/-/issues/ 7."),
            ("fix GH-3 and !4", "fix GH- 3 and ! 4"),
            ("é/Pull/5 #é", "é/Pull/ 5 #é"),
            ("v1.2, 3 issues, #[cfg], a != b", "v1.2, 3 issues, #[cfg], a != b"),
        ] {
            assert_eq!(unlinked(text), unlinked_text);
            assert_eq!(unlinked(unlinked_text), unlinked_text);
        }
    }
}
