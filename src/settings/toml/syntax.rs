//! Explains a syntax error of TOML. The parser knows where it stopped; the reason is mostly in the line itself.

use super::{Problem, line, wanted};
use crate::settings::table::TABLE;
use crate::text::line::joined;

/// The message for `text`, which the parser has refused with `error`.
pub(super) fn explain(text: &str, error: &::toml::de::Error) -> Problem {
    let said = error.message();
    let span = error.span().unwrap_or_default();
    let row = line(text, span.start);
    let lines: Vec<&str> = text.lines().collect();
    let current = lines.get(row - 1).copied().unwrap_or_default();
    let column = column(text, span.start);
    let problem = |line, column, message: String| Problem { line, column, message };
    let here = |message: String| problem(row, column, message);

    if let Some((line, column, quote)) = unclosed(&lines[..row.min(lines.len())]) {
        return problem(line, column, format!("this {quote} is never closed; add the missing {quote}"));
    }
    if said.starts_with("unclosed table") || said.starts_with("unclosed array") {
        let open = current.find('[').map_or(column, |at| current[..at].chars().count() + 1);
        return problem(row, open, "this [ is never closed; add the missing ]".to_owned());
    }
    if said.starts_with("duplicate key") {
        let twice = text.get(span).unwrap_or_default().trim();
        return here(if current.trim_start().starts_with('[') {
            format!("the section [{twice}] stands here twice; put its settings below the first one")
        } else {
            format!("`{twice}` stands here twice; remove one")
        });
    }
    if said.starts_with("missing comma") {
        return here("a comma is missing between two items of this list; add it".to_owned());
    }
    if said.contains("escape") {
        return here("\\ has a meaning within double quotes; use single ones, or write \\\\".to_owned());
    }
    let in_its_words = || format!("not valid TOML: {}", joined(said, "; "));
    // The parser has reached the end of the file.
    if current.trim().is_empty() {
        return here(in_its_words());
    }
    let Some(Setting { key, value, column: start }) = setting(current) else {
        let start = current.chars().take_while(|char| char.is_whitespace()).count() + 1;
        return problem(row, start, no_setting(current));
    };
    if said.starts_with("unexpected key or value") && column > start {
        let more = current.chars().skip(column - 1).collect::<String>();
        return here(format!(
            "behind the value stands `{}`; each setting stands on a line of its own",
            more.trim()
        ));
    }
    if !value.starts_with(['"', '\'', '[', '{']) {
        return problem(row, start, unquoted(&section(&lines[..row]), key, value));
    }
    here(in_its_words())
}

/// A line `KEY = VALUE`.
struct Setting<'a> {
    key: &'a str,
    value: &'a str,
    /// Where the value begins, from 1.
    column: usize,
}

fn setting(line: &str) -> Option<Setting<'_>> {
    let (key, value) = line.split_once('=')?;
    let key = key.trim();
    let is_key =
        !key.is_empty() && key.chars().all(|char| char.is_ascii_alphanumeric() || "_-.".contains(char));
    let column = line.chars().count() - value.trim_start().chars().count() + 1;
    is_key.then_some(Setting { key, value: value.trim(), column })
}

/// The first quoted text that does not end on its line, with the place of the quote.
fn unclosed(lines: &[&str]) -> Option<(usize, usize, char)> {
    lines.iter().enumerate().find_map(|(at, line)| {
        let Setting { value, column, .. } = setting(line)?;
        let quote = value.chars().next().filter(|char| matches!(char, '"' | '\''))?;
        let mut rest = value[1..].chars();
        while let Some(char) = rest.next() {
            if char == quote {
                return None;
            }
            if char == '\\' && quote == '"' {
                rest.next();
            }
        }
        Some((at + 1, column, quote))
    })
}

/// The section of the last of these lines, with a dot after it; empty above the first section.
fn section(lines: &[&str]) -> String {
    let head = lines.iter().rev().find_map(|line| line.trim().strip_prefix('[')?.split(']').next());
    head.map_or_else(String::new, |name| format!("{}.", name.trim()))
}

/// The message for a value that lacks quotes, or is none.
fn unquoted(section: &str, key: &str, value: &str) -> String {
    let name = format!("{section}{key}");
    let value = value.split(" #").next().unwrap_or_default().trim();
    let known = TABLE.iter().find(|setting| setting.key == name);
    let wanted = known.map_or("a string in quotes", |setting| wanted(setting.kind));
    if value.is_empty() || value.starts_with('#') {
        return format!("`{name}` has no value; write {wanted}");
    }
    // A value that must be text only lacks its quotes.
    if wanted.contains("quotes") && !wanted.contains("without") || wanted.contains('"') {
        return format!(
            "`{name}` is {value} without quotes; write {key} = \"{}\"",
            value.replace('"', "\\\"")
        );
    }
    format!("`{name}` is {value}; write {wanted}")
}

/// The message for a line that is no setting.
fn no_setting(line: &str) -> String {
    let text = line.trim();
    let end =
        text.find(|char: char| !char.is_ascii_alphanumeric() && !"_-.".contains(char)).unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    let value = rest.trim_start_matches([':', ' ', '\t']);
    if key.is_empty() || rest.is_empty() || value.is_empty() {
        return format!("`{text}` is neither a setting nor a section; write NAME = VALUE or [SECTION]");
    }
    format!("there is no = behind `{key}`; write {key} = {value}")
}

/// The column of a byte of the text, in characters, from 1.
pub(super) fn column(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    before.rsplit('\n').next().unwrap_or_default().chars().count() + 1
}
