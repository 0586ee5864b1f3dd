//! Lines of a screen as the text that they show: borders and line breaks of boxes are not part of it.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The characters of boxes, bars and quotation marks at the edges of lines.
fn is_border(char: char) -> bool {
    matches!(char, '|' | '\u{2500}'..='\u{259f}')
}

/// `line` without the borders and blanks around it.
pub(in crate::agent) fn bare(line: &str) -> &str {
    line.trim_matches(|char: char| is_border(char) || char.is_whitespace())
}

/// The lines as one, with a single blank in the place of borders and white space between words, so that a phrase is found
/// however it was wrapped.
pub(super) fn flowed<S: AsRef<str>>(lines: &[S]) -> String {
    let words = lines.iter().flat_map(|line| bare(line.as_ref()).split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

/// The lines up to the last one that is not empty.
pub(super) fn written<S: AsRef<str>>(lines: &[S]) -> &[S] {
    let end = lines.iter().rposition(|line| !line.as_ref().trim().is_empty()).map_or(0, |last| last + 1);
    &lines[..end]
}

/// The letters and digits of a text, which every display keeps. For a text without any: all but its white space.
pub(super) fn letters(text: &str) -> Vec<char> {
    let letters: Vec<char> = text.chars().filter(|char| char.is_alphanumeric()).collect();
    if letters.is_empty() { text.chars().filter(|char| !char.is_whitespace()).collect() } else { letters }
}

/// Whether every display of a text keeps this character.
pub(super) fn alphanumeric(text: &str) -> String {
    text.chars().filter(|char| char.is_alphanumeric()).collect()
}

/// Where a column beside the text begins, if there is one: where at least three lines go on after a wide gap.
pub(super) fn side(lines: &[&str]) -> Option<usize> {
    /// A narrower gap is between words.
    const GAP: &str = "    ";
    let mut columns: Vec<usize> = Vec::new();
    for line in lines {
        let Some((before, _)) =
            line.trim_end().rsplit_once(GAP).filter(|(before, _)| !bare(before).is_empty())
        else {
            continue;
        };
        columns.push(before.width() + GAP.len());
    }
    columns.sort_unstable();
    let runs = columns.chunk_by(|one, other| one == other).filter(|run| run.len() >= 3);
    runs.max_by_key(|run| run.len()).map(|run| run[0])
}

/// A line split at a column, if there is a gap before it; else there is no second part.
pub(super) fn split(line: &str, column: usize) -> (&str, &str) {
    let mut width = 0;
    for (at, char) in line.char_indices() {
        if width == column {
            let (text, beside) = line.split_at(at);
            return if text.ends_with("  ") { (text, beside) } else { (line, "") };
        }
        width += char.width().unwrap_or(0);
    }
    (line, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_beside_the_text_is_found_and_split_off() {
        let lines = ["┃  é one", "┃  two", "┃  three", "   日本", "  x"];
        let besides = ["Context", "107 tokens", "", "Costs", "none"];
        let lines = lines.iter().zip(besides).map(|(line, beside)| {
            format!("{line}{}{beside}", " ".repeat(20 - line.width())).trim_end().to_owned()
        });
        let lines: Vec<String> = lines.collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(side(&lines), Some(20));
        assert_eq!(split(lines[0], 20), ("┃  é one            ", "Context"));
        assert_eq!(split(lines[3], 20).1, "Costs");
        assert_eq!(split(lines[2], 20), (lines[2], ""));
        assert_eq!(split("a longer line of text", 20), ("a longer line of text", ""));
        assert_eq!(side(&["a    b", "c    d", "    e"]), None);
    }

    #[test]
    fn phrases_are_found_across_lines_and_borders() {
        let lines = ["╭──────╮", "│ Do you │", "│  trust it? │", "", "┃  > a | b", "╰──────╯", ""];
        assert_eq!(flowed(&lines), "Do you trust it? > a | b");
        assert_eq!(written(&lines).len(), 6);
        assert_eq!(written(&["", " "]), [""; 0]);
    }

    #[test]
    fn letters_are_all_that_every_display_keeps() {
        assert_eq!(letters("│ a-b ❯ é1\n日本").iter().collect::<String>(), "abé1日本");
        assert_eq!(letters(" ?\n!"), ['?', '!']);
    }
}
