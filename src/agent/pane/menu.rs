//! Menus: a list of entries, one of them marked, and the keys that lead from there to another.

use regex::Regex;

use super::text::bare;

/// What stands before the marked entry.
const MARKS: [char; 7] = ['❯', '›', '●', '>', '▶', '▸', '→'];

/// The keys that choose the first entry that `wanted` finds; `None` where the screen shows no such menu.
pub(super) fn keys(screen: &[String], wanted: &Regex) -> Option<Vec<&'static str>> {
    let entries: Vec<&str> = screen.iter().map(|line| bare(line)).collect();
    let marked = entries.iter().rposition(|entry| entry.starts_with(MARKS))?;
    let numbered = is_numbered(entries[marked]);
    // Entries stand one below the other; those with numbers may have explanations between them.
    let is_entry = |entry: &&str| if numbered { is_numbered(entry) } else { !entry.is_empty() };
    let above =
        entries[..marked].iter().rposition(|entry| ends_list(entry, numbered)).map_or(0, |last| last + 1);
    let below = entries[marked..].iter().position(|entry| ends_list(entry, numbered));
    let list = &entries[above..below.map_or(entries.len(), |length| marked + length)];
    let list: Vec<&&str> = list.iter().filter(|entry| is_entry(entry)).collect();
    let from = list.iter().position(|entry| entry.starts_with(MARKS))?;
    let to = list.iter().position(|entry| wanted.is_match(name(entry)))?;
    let step = if to > from { "Down" } else { "Up" };
    Some([vec![step; to.abs_diff(from)], vec!["Enter"]].concat())
}

/// Entries without numbers are a block, those with numbers may have blank lines between them.
fn ends_list(entry: &str, numbered: bool) -> bool {
    entry.is_empty() && !numbered
}

fn is_numbered(entry: &str) -> bool {
    let entry = unmarked(entry);
    let digits = entry.trim_start_matches(|char: char| char.is_ascii_digit());
    digits.len() < entry.len() && digits.starts_with(['.', ')'])
}

/// An entry without its mark.
fn unmarked(entry: &str) -> &str {
    entry.trim_start_matches(MARKS).trim_start()
}

/// An entry without its mark and its number.
fn name(entry: &str) -> &str {
    let entry = unmarked(entry);
    let number = entry.trim_start_matches(|char: char| char.is_ascii_digit());
    if is_numbered(entry) { number[1..].trim_start() } else { entry }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_keys(screen: &str, wanted: &str, expected: Option<&str>) {
        let screen: Vec<String> = screen.lines().map(str::to_owned).collect();
        let keys = keys(&screen, &Regex::new(wanted).unwrap());
        assert_eq!(keys.map(|keys| keys.join(" ")).as_deref(), expected, "{screen:?}");
    }

    #[test]
    fn the_way_from_the_marked_entry_to_another() {
        let plain = "Trust it?\n\n  No, really\n ❯ No, exit\n   Yes, I trust this folder\n\n Yes?";
        assert_keys(plain, "^Yes", Some("Down Enter"));
        assert_keys(plain, "^No, exit", Some("Enter"));
        assert_keys(plain, "^No", Some("Up Enter"));
        assert_keys(plain, "^Maybe", None);
        let numbered = "│ 1. Update now │\n│    npm install │\n│ › 2. Skip │\n\n│ 3. Skip until later │";
        assert_keys(numbered, "^Skip$", Some("Enter"));
        assert_keys(numbered, "^Update", Some("Up Enter"));
        assert_keys(numbered, "later", Some("Down Enter"));
        assert_keys("no menu\nYes", "^Yes", None);
    }
}
