//! The words of an issue as the description of a task: a line above them says whose words they are.

use super::foreign::{line, shown};

/// What the first line of such a description begins with.
const MARK: &str = "From the issue tracker: ";
/// The most labels that are told.
const MOST_LABELS: usize = 20;
/// The most bytes of a body.
const ROOM: usize = 30_000;

/// A description with the words of an issue.
#[must_use]
pub(crate) fn description(address: &str, labels: &[String], body: &str) -> String {
    let labels: Vec<String> = labels.iter().take(MOST_LABELS).map(|label| line(label)).collect();
    let labels = if labels.is_empty() { String::new() } else { format!("Labels: {}", labels.join(", ")) };
    let parts = [format!("{MARK}{}", line(address)), labels, shown(body, ROOM)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// The line that says where a description comes from, and the words of others below it; `None` for one of the user's own.
#[must_use]
pub(crate) fn parted(description: &str) -> Option<(&str, &str)> {
    description
        .starts_with(MARK)
        .then(|| description.split_once('\n').map_or((description, ""), |(mark, words)| (mark, words.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_without_end_is_cut_and_says_so() {
        let long = description("https://h/1", &[], &"x".repeat(1 << 20));
        assert!(long.len() < ROOM + 200, "{}", long.len());
        assert!(long.ends_with("[… 1018576 bytes left out …]"), "{}", &long[ROOM..]);
        for part in ["![", "<!--"] {
            assert!(description("https://h/1", &[], &part.repeat(1 << 16)).len() < ROOM + 200);
        }
    }

    #[test]
    fn whose_words_they_are_is_known_again() {
        let whole = description("https://h/1\nx", &["bug".to_owned(), "p\n1".to_owned()], "Do it.");
        assert_eq!(whole, "From the issue tracker: https://h/1 x\n\nLabels: bug, p 1\n\nDo it.");
        let (mark, words) = parted(&whole).unwrap();
        assert_eq!((mark, words), ("From the issue tracker: https://h/1 x", "Labels: bug, p 1\n\nDo it."));
        assert_eq!(parted("Do it. From the issue tracker: x"), None);
    }
}
