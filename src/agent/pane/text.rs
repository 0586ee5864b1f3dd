//! Lines of a screen as the text that they show: borders and line breaks of boxes are not part of it.

/// What boxes, bars and quotation marks at the edges of lines are drawn with.
fn is_border(char: char) -> bool {
    matches!(char, '|' | '\u{2500}'..='\u{259f}')
}

/// `line` without the borders and blanks around it.
pub(super) fn bare(line: &str) -> &str {
    line.trim_matches(|char: char| is_border(char) || char.is_whitespace())
}

/// The lines as one, with a single blank in the place of all borders and white space between words: a phrase is found however
/// it was wrapped.
pub(super) fn flowed<S: AsRef<str>>(lines: &[S]) -> String {
    let words = lines.iter().flat_map(|line| bare(line.as_ref()).split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

/// The lines up to the last with something on it.
pub(super) fn written<S: AsRef<str>>(lines: &[S]) -> &[S] {
    let end = lines.iter().rposition(|line| !line.as_ref().trim().is_empty()).map_or(0, |last| last + 1);
    &lines[..end]
}

/// The letters and digits of a text, which is what every way to show it keeps. A text that has none: all but its white space.
pub(super) fn letters(text: &str) -> Vec<char> {
    let letters: Vec<char> = text.chars().filter(|char| char.is_alphanumeric()).collect();
    if letters.is_empty() { text.chars().filter(|char| !char.is_whitespace()).collect() } else { letters }
}

#[cfg(test)]
mod tests {
    use super::*;

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
