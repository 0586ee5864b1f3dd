//! Finds the words that end a loop in what came after the prompt.
//!
//! Programs show the prompt that they were given, and its words are no answer: the block of the text that shows it is left
//! out, however it is wrapped and framed, and also where it is shown again because the screen was painted anew. The same words
//! anywhere else count.

use regex::{Regex, RegexBuilder};
use unicode_width::UnicodeWidthStr as _;

use super::text::{alphanumeric, bare, side, split};

/// A user's pattern, in Rust's syntax. `^` and `$` are the ends of lines.
#[derive(Debug, Clone)]
pub struct DonePattern(Regex);

/// An invalid pattern; the message says what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{pattern}' is no regular expression: {why}")]
pub struct PatternError {
    pattern: String,
    why: String,
}

/// Python's syntax that Rust's does not have, and what to write instead.
const OTHERS: [(&str, &str); 9] = [
    (r"\(\?P=", "references to groups do not exist here; write the text of the group again"),
    (r"\\[1-9]|\\g<", "references to groups do not exist here; write the text of the group again"),
    (r"\(\?<?=", "lookaround does not exist here; write what stands around as a part of the pattern"),
    (r"\(\?<?!", "lookaround does not exist here; write only what has to be there"),
    (r"\(\?\(", "conditions do not exist here; write both cases with `|` between them"),
    (r"\(\?>", "atomic groups do not exist here; write `(?:…)`"),
    (r"\(\?#", "comments do not exist here; leave it out"),
    (r"\\Z", "the end of the text is `\\z` here"),
    (r"\\N\{|\\u[0-9A-Fa-f]{4}", "a character by its number is `\\x{…}` here"),
];

impl DonePattern {
    /// Compiles the pattern, or says why not and, for Python's syntax, what to write.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        RegexBuilder::new(pattern).multi_line(true).build().map(Self).map_err(|error| {
            let is_other =
                |(other, _): &&(&str, &str)| Regex::new(other).is_ok_and(|other| other.is_match(pattern));
            let why =
                OTHERS.iter().find(is_other).map_or_else(|| last_line(&error), |(_, why)| (*why).to_owned());
            PatternError { pattern: pattern.to_owned(), why }
        })
    }

    /// The pattern as the user wrote it.
    #[must_use]
    pub fn words(&self) -> &str {
        self.0.as_str()
    }

    /// What the pattern finds in `text`, the lines since this iteration began, besides the blocks that show the `prompt`.
    /// Where the whole prompt is shown, what stands above it came before and does not count.
    #[must_use]
    pub fn find<S: AsRef<str>>(&self, text: &[S], prompt: &str) -> Option<String> {
        let text: Vec<&str> = text.iter().map(AsRef::as_ref).collect();
        let width = text.iter().map(|line| line.width()).max().unwrap_or(0);
        // Where the prompt is nothing but the words that end the loop, they are an answer when they come again.
        let repeats = !self.is_all_of(prompt);
        let parts = without(&text, prompt, repeats);
        parts.iter().find_map(|part| self.find_in(part, width))
    }

    fn is_all_of(&self, prompt: &str) -> bool {
        let found = self.0.find(prompt).map(|found| alphanumeric(found.as_str()));
        found.is_some_and(|found| found == alphanumeric(prompt))
    }

    /// The match without frames, and with wrapped lines joined.
    fn find_in(&self, lines: &[&str], width: usize) -> Option<String> {
        let bare: Vec<&str> = lines.iter().map(|line| bare(line)).collect();
        [lines.join("\n"), bare.join("\n"), unwrapped(&bare, width)]
            .iter()
            .find_map(|text| self.0.find(text).map(|found| found.as_str().to_owned()))
    }
}

/// The parts of a text besides the block that shows the prompt; also where something else stands beside it, on the same lines.
/// With `repeats`, besides all such blocks.
fn without<'a>(text: &[&'a str], prompt: &str, repeats: bool) -> Vec<Vec<&'a str>> {
    let whole = |shown: &Shown<'_, 'a>| {
        let parts = shown.without_whole(prompt)?;
        Some(if repeats {
            parts.into_iter().flat_map(|part| without_repeats(part, prompt)).collect()
        } else {
            parts
        })
    };
    let shown = Shown::new(text);
    let beside = || {
        let column = side(text)?;
        let (text, beside): (Vec<&str>, Vec<&str>) = text.iter().map(|line| split(line, column)).unzip();
        let shown = Shown::new(&text);
        let mut parts = whole(&shown).or_else(|| shown.without_piece(prompt))?;
        parts.push(beside);
        Some(parts)
    };
    let parts = whole(&shown).or_else(beside).or_else(|| shown.without_piece(prompt));
    parts.unwrap_or_else(|| vec![text.to_vec()])
}

/// The parts of what follows a prompt besides the blocks that show it again, the whole prompt or a piece.
fn without_repeats<'a>(text: Vec<&'a str>, prompt: &str) -> Vec<Vec<&'a str>> {
    let letters = alphanumeric(prompt);
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = Shown::new(&rest).around_repeat(&letters, prompt) {
        parts.push(before);
        rest = after;
    }
    parts.push(rest);
    parts
}

fn last_line(error: &regex::Error) -> String {
    let error = error.to_string();
    error.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned()
}

/// Lines of a screen of this width, with a blank in the place of each break that only the width requires.
fn unwrapped(lines: &[&str], width: usize) -> String {
    /// The widest margins and borders around wrapped text.
    const AROUND: usize = 8;
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        text.push_str(line);
        let next = lines.get(at + 1).and_then(|next| next.split_whitespace().next());
        let fits = next.is_none_or(|word| line.width() + 1 + word.width() <= width.saturating_sub(AROUND));
        text.push(if fits || line.is_empty() { '\n' } else { ' ' });
    }
    text
}

/// The letters of a text, and where its lines begin in them.
struct Shown<'t, 'a> {
    lines: &'t [&'a str],
    letters: String,
    /// For each line, how many bytes of `letters` are before it.
    starts: Vec<usize>,
}

/// A part of the letters, in bytes.
type Block = std::ops::Range<usize>;

impl<'t, 'a> Shown<'t, 'a> {
    /// A shorter piece of a prompt may be a word of the answer.
    const PIECE: usize = 12;
    /// More lines than this are a history, which has the whole prompt and is not searched for pieces of it.
    const SCREEN: usize = 1000;

    fn new(lines: &'t [&'a str]) -> Self {
        let mut shown = Self { lines, letters: String::new(), starts: Vec::with_capacity(lines.len()) };
        for line in lines {
            shown.starts.push(shown.letters.len());
            shown.letters.push_str(&alphanumeric(line));
        }
        shown
    }

    /// The text after the block that shows the whole prompt; `None` without such a block.
    fn without_whole(&self, prompt: &str) -> Option<Vec<Vec<&'a str>>> {
        let letters = alphanumeric(prompt);
        if letters.is_empty() {
            // It has no letters, so it is only found as a line.
            let is_prompt = |line: &&str| !prompt.trim().is_empty() && bare(line).ends_with(prompt.trim());
            let at = self.lines.iter().position(is_prompt)?;
            return Some(vec![self.lines[at + 1..].to_vec()]);
        }
        let at = self.letters.find(&letters)?;
        Some(vec![self.after(at + letters.len(), prompt)])
    }

    /// The text before and after a block that shows the prompt once more, from the beginning of a line; `letters` are those of
    /// the prompt.
    fn around_repeat(&self, letters: &str, prompt: &str) -> Option<(Vec<&'a str>, Vec<&'a str>)> {
        if letters.is_empty() {
            return None;
        }
        let mut starts = self.starts.iter().copied();
        let whole = starts.find(|&start| self.letters[start..].starts_with(letters));
        let block = whole.map(|start| start..start + letters.len()).or_else(|| self.piece(letters))?;
        (!block.is_empty()).then(|| (self.before(block.start), self.after(block.end, prompt)))
    }

    /// The text before and after a block that shows a part of the prompt.
    fn without_piece(&self, prompt: &str) -> Option<Vec<Vec<&'a str>>> {
        let letters = Some(alphanumeric(prompt)).filter(|letters| !letters.is_empty())?;
        let block = self.cut_off_above(&letters).or_else(|| self.piece(&letters))?;
        Some(vec![self.before(block.start), self.after(block.end, prompt)])
    }

    /// The end of the prompt at the top of the text, when the rest has scrolled away; or a window on its middle that is the
    /// whole text.
    fn cut_off_above(&self, prompt: &str) -> Option<Block> {
        let ends = self.starts.iter().copied().skip(1).chain([self.letters.len()]);
        let ends: Vec<usize> = ends.filter(|end| (1..=prompt.len()).contains(end)).collect();
        let end = ends.into_iter().rev().find(|&end| prompt.ends_with(&self.letters[..end]))?;
        Some(0..end)
    }

    /// A piece of the prompt: its beginning, or some of its lines if only these are shown, with its end after what was left out.
    fn piece(&self, prompt: &str) -> Option<Block> {
        if self.lines.len() > Self::SCREEN {
            return None;
        }
        let head = self.starts.iter().find_map(|&start| {
            let same = common(&self.letters[start..], prompt);
            (same >= Self::PIECE.min(prompt.len())).then_some(start..start + same)
        });
        let block = head.or_else(|| self.lines_of(prompt))?;
        let mut rest = self.starts.iter().filter(|&&start| start > block.end).take(3);
        let tail = rest.find_map(|&start| self.tail(start, prompt));
        Some(block.start..tail.unwrap_or(block.end))
    }

    /// The longest end of the prompt that is here and is whole lines.
    fn tail(&self, start: usize, prompt: &str) -> Option<usize> {
        let ends = self.starts.iter().copied().chain([self.letters.len()]);
        let mut ends: Vec<usize> = ends.filter(|&end| end >= start + Self::PIECE).collect();
        ends.retain(|&end| prompt.ends_with(&self.letters[start..end]));
        ends.last().copied()
    }

    /// The first lines, at least two, that follow each other in the prompt as well.
    fn lines_of(&self, prompt: &str) -> Option<Block> {
        let line =
            |at: usize| self.starts[at]..self.starts.get(at + 1).copied().unwrap_or(self.letters.len());
        (0..self.lines.len().saturating_sub(1)).find_map(|at| {
            let (first, second) = (line(at), line(at + 1));
            let both = &self.letters[first.start..second.end];
            let is_piece = !first.is_empty() && !second.is_empty() && both.len() >= 2 * Self::PIECE;
            let place = is_piece.then(|| prompt.find(both)).flatten()?;
            let same = common(&self.letters[first.start..], &prompt[place..]);
            Some(first.start..first.start + same)
        })
    }

    /// The lines up to this many bytes of the letters.
    fn before(&self, letters: usize) -> Vec<&'a str> {
        let count = self.starts.iter().filter(|&&start| start < letters).count();
        self.lines[..count.min(self.lines.len())].to_vec()
    }

    /// The text after this many bytes of the letters and the other characters that end the prompt.
    fn after(&self, letters: usize, prompt: &str) -> Vec<&'a str> {
        let line = self.starts.iter().rposition(|&start| start < letters).unwrap_or(0);
        let Some((first, rest)) = self.lines.get(line..).and_then(<[_]>::split_first) else {
            return Vec::new();
        };
        let mut left = letters - self.starts[line];
        let mut end = first.len();
        for (at, char) in first.char_indices().filter(|(_, char)| char.is_alphanumeric()) {
            left = left.saturating_sub(char.len_utf8());
            if left == 0 {
                end = at + char.len_utf8();
                break;
            }
        }
        let closing = prompt.trim_end().rsplit(char::is_alphanumeric).next().unwrap_or_default();
        let mut after = &first[end..];
        for char in closing.chars().filter(|char| !char.is_whitespace()) {
            let Some(rest) = after.trim_start().strip_prefix(char) else { break };
            after = rest;
        }
        [&[after], rest].concat()
    }
}

/// The length of the common beginning of two texts, in bytes.
fn common(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(one, other)| one == other).map(|(char, _)| char.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn find(pattern: &str, text: &str, prompt: &str) -> Option<String> {
        let lines: Vec<&str> = text.lines().collect();
        DonePattern::new(pattern).unwrap().find(&lines, prompt)
    }

    #[test]
    fn what_only_python_knows_is_refused_with_what_to_write() {
        for (pattern, words) in [
            ("(?P<a>x)(?P=a)", "write the text of the group again"),
            (r"(x)\1", "write the text of the group again"),
            ("(?<=x)DONE", "write what stands around"),
            ("DONE(?=x)", "write what stands around"),
            ("(?!x)DONE", "write only what has to be there"),
            ("(?<!x)DONE", "write only what has to be there"),
            ("(a)?(?(1)b|c)", "with `|` between them"),
            ("(?>a+)b", "`(?:…)`"),
            ("DONE(?#all)", "leave it out"),
            (r"DONE\Z", r"`\z`"),
            ("DONE(", "unclosed group"),
            ("*", "repetition operator missing expression"),
        ] {
            let error = DonePattern::new(pattern).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(pattern) && !error.contains('\n'), "{error}");
        }
        for pattern in ["(?P<a>x)", "(?i)done", r"\bDONE\b", "[(?=]", r"\ADONE\z", ""] {
            DonePattern::new(pattern).unwrap();
        }
    }

    #[test]
    fn the_echo_does_not_count_and_the_answer_does() {
        let prompt = "Do it.\nThen say `ALL DONE`.";
        let echo = "~/p\n❯ Do it.\n  Then say `ALL DONE`.\n\n";
        assert_eq!(find("ALL DONE", echo, prompt), None);
        assert_eq!(find("`|\\.", echo, prompt), None);
        assert_eq!(find("ALL DONE", &format!("{echo}● ALL DONE"), prompt).as_deref(), Some("ALL DONE"));
        // What stood there before the prompt does not count.
        assert_eq!(find("ALL DONE", &format!("ALL DONE\n{echo}"), prompt), None);
        // On one line with its end.
        assert_eq!(find("^ ?yes", "$ go? yes", "go?").as_deref(), Some(" yes"));
    }

    #[test]
    fn a_prompt_that_is_shown_again_does_not_count() {
        let prompt = "Do the first task.\nThen say `ALL DONE`.";
        let echo = "~/p\n❯ Do the first task.\n  Then say `ALL DONE`.\n\n";
        let narrow = "~/p\n❯ Do the first\n  task.\n  Then say `ALL\n  DONE`.\n\n";
        for text in [format!("{echo}{echo}"), format!("{echo}● Working\n{narrow}● Working\n{echo}")] {
            assert_eq!(find("ALL DONE", &text, prompt), None, "{text}");
            for said in [format!("{text}● ALL DONE"), format!("{echo}● ALL DONE\n\n{text}")] {
                assert!(find("ALL DONE", &said, prompt).is_some(), "{said}");
            }
        }
        // Painted anew, and only its beginning is to be seen.
        let prompt = format!("{prompt}\nNever stop before.\n{}", "One more line.\n".repeat(9));
        let echo = format!("~/p\n❯ {}\n", prompt.replace('\n', "\n  "));
        let part = echo.lines().take(3).collect::<Vec<_>>().join("\n");
        assert_eq!(find("ALL DONE", &format!("{echo}● Working\n{part}"), &prompt), None);
    }

    #[test]
    fn frames_and_margins_are_not_in_the_way() {
        for line in ["ALL DONE", "  ALL DONE", "│ ALL DONE │", "┃ ALL DONE"] {
            assert!(find("^ALL DONE$", line, "Go.").is_some(), "{line}");
        }
        assert_eq!(find("^ALL DONE$", "● ALL DONE", "Go."), None);
        let rule = "─".repeat(40);
        let wrapped = format!("{rule}\n● This is a sentence in which all tasks\n  are complete.\n{rule}");
        assert!(find("all tasks are complete", &wrapped, "Go.").is_some());
        assert_eq!(find("all tasks are", &format!("{rule}\nall tasks\nare complete"), "Go."), None);
    }

    #[test]
    fn parts_of_a_prompt_on_a_screen_do_not_count() {
        let lines = (1..60).map(|line| format!("Line {line} of the prompt."));
        let prompt = lines.chain(["Say ALL DONE then.".to_owned()]).collect::<Vec<_>>().join("\n");
        let lines: Vec<&str> = prompt.lines().collect();
        // Scrolled away above.
        let end = lines[50..].join("\n");
        assert_eq!(find("ALL DONE", &end, &prompt), None);
        assert!(find("ALL DONE", &format!("{end}\n\n● ALL DONE"), &prompt).is_some());
        assert_eq!(find("ALL DONE", &format!("{}\n● Working", lines[59]), &prompt), None);
        // The beginning, or a window on the middle.
        assert_eq!(find("prompt", &format!("~/p\n❯ {}", lines[..20].join("\n")), &prompt), None);
        assert_eq!(
            find("prompt", &format!("~/p\n│ {} │\n? for help", lines[30..40].join(" │\n│ ")), &prompt),
            None
        );
        // Head and tail with something between them.
        let short = format!("~/p\n> {}\n  … +58 lines\n  {}\n\n", lines[0], lines[59]);
        assert_eq!(find("ALL DONE", &short, &prompt), None);
        assert!(find("ALL DONE", &format!("{short}ALL DONE"), &prompt).is_some());
        // A placeholder has none of its words.
        assert!(find("ALL DONE", "❯ [Pasted text #1 +59 lines]\n\nALL DONE", &prompt).is_some());
    }

    #[test]
    fn odd_prompts() {
        assert!(find("DONE", "DONE", "").is_some());
        assert_eq!(find(r"\?\?", "> ??", "??"), None);
        assert!(find(r"\?\?", "> ??\n??", "??").is_some());
        assert_eq!(find("fertig", "> 完了と言って\n  fertig は", "完了と言ってfertig は"), None);
        assert!(find("DONE", "❯ DONE\n\nDONE", "DONE").is_some());
        assert_eq!(find("DONE", "❯ DONE\n\n", "DONE"), None);
    }

    /// How programs frame what they were given: before the first line, before the others, after each.
    const STYLES: [(&str, &str, &str); 6] = [
        ("❯ ", "  ", ""),
        ("│ > ", "│   ", " │"),
        ("┃  ", "┃  ", ""),
        (" * ", "   ", ""),
        ("$ ", "", ""),
        ("> ", "> ", " █"),
    ];

    fn framed(prompt: &str, width: usize, style: usize) -> String {
        let (first, other, end) = STYLES[style];
        let mut lines = Vec::new();
        for line in prompt.lines() {
            let chars: Vec<char> = line.chars().collect();
            if chars.is_empty() {
                lines.push(String::new());
            }
            lines.extend(chars.chunks(width).map(|piece| piece.iter().collect::<String>()));
        }
        let framed =
            |(at, line): (usize, &String)| format!("{}{line}{end}\n", if at == 0 { first } else { other });
        lines.iter().enumerate().map(framed).collect()
    }

    proptest! {
        #[test]
        fn an_echo_alone_never_matches(
            before in "[a-z ]{0,20}", words in "(ALL DONE|THE_END|<done/>|fini 7)", after in "[ -~é日\n]{0,200}",
            width in 5_usize..120, style in 0..STYLES.len(), above in 0_usize..4,
        ) {
            let prompt = format!("{before}{words}{after}");
            let pattern = regex::escape(&words);
            let banner = "│ some banner │\n".repeat(above);
            let echo = format!("{banner}{}", framed(&prompt, width, style));
            prop_assert_eq!(find(&pattern, &echo, &prompt), None, "{}", echo);
            let footer = "────────\n❯\n────────\n  ? for shortcuts";
            prop_assert_eq!(find(&pattern, &format!("{echo}\n{footer}"), &prompt), None);
            let again = format!("{echo}\n{}\n{footer}", framed(&prompt, (width / 2).max(5), style));
            if alphanumeric(&words) != alphanumeric(&prompt) {
                prop_assert_eq!(find(&pattern, &again, &prompt), None, "{}", again);
            }
            let said = format!("{echo}\n● It is so:\n\n  {words}\n\n{footer}");
            prop_assert_eq!(find(&pattern, &said, &prompt), Some(words), "{}", said);
        }

        #[test]
        fn no_text_and_no_prompt_is_too_odd(text in "\\PC{0,60}(\n\\PC{0,60}){0,4}", prompt in "\\PC{0,60}(\n\\PC{0,20}){0,2}") {
            let _ = find("x", &text, &prompt);
        }
    }
}
