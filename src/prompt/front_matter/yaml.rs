//! Explains errors in the YAML of a front matter: what is there, and what is expected. The parser knows the position;
//! the reason is usually visible in the line itself.

use serde_saphyr::Error as YamlError;

use super::Problem;
use crate::text::line;
use crate::text::nearest::meant;

/// A line `KEY: VALUE`, possibly as an item of a list.
struct KeyValue<'a> {
    key: &'a str,
    value: &'a str,
    /// The column of the value, from 1.
    column: usize,
}

/// The problem in unreadable `yaml`.
pub(super) fn explain(yaml: &str, error: &YamlError) -> Problem {
    let error = error.without_snippet();
    let (row, column) = error.location().map_or((1, 0), |place| (place.line().max(1), place.column()));
    let lines: Vec<&str> = yaml.lines().collect();
    let at =
        |row: usize, column: usize, what: String| Problem { line: row as u64, column: column as u64, what };
    let here = |what: String| Problem { line: row, column, what };
    let row = usize::try_from(row).unwrap_or(usize::MAX);
    match error {
        YamlError::SerdeUnknownField { field, expected, .. } => return here(unknown(field, expected)),
        YamlError::SerdeMissingField { field: "agent", .. } => {
            return here(
                "the key 'agent' is missing: name the command that reads the prompt, such as 'agent: claude -p'"
                    .to_owned(),
            );
        }
        YamlError::SerdeMissingField { field, .. } => {
            return here(format!("the key '{field}' is missing here: add {}", belongs(field)));
        }
        YamlError::DuplicateMappingKey { key: Some(key), .. } => {
            return here(format!("the key '{key}' stands here twice: remove one"));
        }
        YamlError::MultipleDocuments { .. } => {
            return here("a line '...' or '---' ends the front matter before this: remove it".to_owned());
        }
        _ => {}
    }
    let said = error.to_string();
    if said.contains("quoted scalar")
        && let Some((row, column)) = lines.iter().take(row).enumerate().find_map(|(at, line)| {
            Some((at + 1, entry(line).filter(|entry| behind_quote(entry.value).is_none())?.column))
        })
    {
        let quote = lines[row - 1].chars().nth(column - 1).unwrap_or('"');
        return at(row, column, format!("this {quote} is never closed: add the missing {quote}"));
    }
    if let Some((column, what)) = lines.get(row - 1).and_then(|line| slip(line)) {
        return at(row, column, what);
    }
    if is_of_wrong_kind(error) {
        return here(wrong_kind(&lines, row, usize::try_from(column).unwrap_or(usize::MAX)));
    }
    if let Some(bracket) = said.strip_prefix("unclosed bracket '").and_then(|rest| rest.chars().next()) {
        let closing = if bracket == '{' { '}' } else { ']' };
        return here(format!("this {bracket} is never closed: add the missing {closing}"));
    }
    if said.contains("unknown escape") {
        return here("\\ has a meaning within double quotes: use single ones, or write \\\\".to_owned());
    }
    if said.contains("found a tab") {
        // The parser names the place where the text begins that the tab is in.
        let tab =
            |(at, line): (usize, &&str)| Some((at + 1, line.chars().position(|char| char == '\t')? + 1));
        let what = "a tab stands here, where YAML wants blanks: write blanks in its place".to_owned();
        let found = lines.iter().enumerate().skip(row - 1).find_map(tab);
        return found.map_or_else(|| here(what.clone()), |(row, column)| at(row, column, what.clone()));
    }
    if said.contains("mapping values are not allowed") || said.contains("indent") {
        return here(
            "this line does not begin where those above do: indent what belongs together by the same blanks"
                .to_owned(),
        );
    }
    here(format!("this is not valid YAML: {}", own_words(&said)))
}

/// A key that is ignored.
const IGNORED: &str = "credit";

fn unknown(field: &str, expected: &[&'static str]) -> String {
    let expected: Vec<&str> = expected.iter().copied().filter(|key| *key != IGNORED).collect();
    let known = expected.join(", ");
    let meant = meant(field, expected.iter().copied());
    format!("there is no key '{field}': {meant}known are {known}")
}

/// The expected value of a key, with an example.
fn belongs(key: &str) -> &'static str {
    match key {
        "agent" => "a command line, such as 'agent: claude -p'",
        "commands" => "a list, of '- name: NAME' with 'run: COMMAND' below it",
        "args" => "a list of names, such as 'args: [dir, focus]'",
        "name" => "a name, such as 'name: tests'",
        "run" => "a command line, such as 'run: cargo test'",
        "timeout" => "a time, such as 'timeout: 5m'",
        "title" => "a line of text, such as 'title: How tests are run'",
        "tags" => "a list of words, such as 'tags: [git, tests]'",
        "created_at" => "a time, such as 'created_at: 2026-01-31T12:00:00Z'",
        _ => "a text",
    }
}

fn wants_a_list(key: &str) -> bool {
    belongs(key).starts_with("a list")
}

/// The keys by which a line without a colon is recognised.
const KEYS: [&str; 10] =
    ["agent", "commands", "args", "name", "run", "timeout", "title", "tags", "feature", "created_at"];

/// Splits a line; `None` for one of another form.
fn entry(line: &str) -> Option<KeyValue<'_>> {
    let text = item(line);
    let end = text.find(|char: char| !char.is_ascii_alphanumeric() && !matches!(char, '_' | '-'))?;
    let behind = text[end..].strip_prefix(':').filter(|_| end > 0)?;
    if !(behind.is_empty() || behind.starts_with([' ', '\t'])) {
        return None;
    }
    let value = behind.trim_start();
    let column = line.chars().count() - value.chars().count() + 1;
    Some(KeyValue { key: &text[..end], value: value.trim_end(), column })
}

/// A line without its indentation and the dash of a list.
fn item(line: &str) -> &str {
    let text = line.trim_start();
    text.strip_prefix("- ").map_or(text, str::trim_start)
}

/// The text after the quoted text at the beginning of a value; `None` if its quote is not closed. Empty for a value
/// without quotes.
fn behind_quote(value: &str) -> Option<&str> {
    let Some(quote) = value.chars().next().filter(|char| matches!(char, '"' | '\'')) else { return Some("") };
    let mut rest = value[1..].char_indices();
    while let Some((at, char)) = rest.next() {
        if char == '\\' && quote == '"' {
            rest.next();
        } else if char == quote {
            // A doubled quote stands for itself.
            if quote == '\'' && value[at + 2..].starts_with('\'') {
                rest.next();
                continue;
            }
            return Some(value[at + 2..].trim());
        }
    }
    None
}

/// The frequent mistake in a line, if it has one, with its column.
fn slip(line: &str) -> Option<(usize, String)> {
    let indent = &line[..line.len() - line.trim_start().len()];
    if let Some(at) = indent.find('\t') {
        return Some((
            at + 1,
            "a tab indents this line: YAML wants blanks, write two of them in its place".to_owned(),
        ));
    }
    let start = line.chars().count() - item(line).chars().count() + 1;
    let Some(KeyValue { key, value, column }) = entry(line) else { return Some((start, no_entry(line)?)) };
    if wants_a_list(key) {
        return None;
    }
    let quoted = format!("put it in quotes, as in {key}: '{}'", value.replace('\'', "''"));
    let begins = |does: &str| format!("a value that begins with {} {does}: {quoted}", &value[..1]);
    let what = match value.chars().next()? {
        '@' | '`' | '%' | '*' | '&' | '!' | '|' | '>' => begins("means something else in YAML"),
        '[' if value.ends_with(']') => return None,
        '[' | '{' => begins("is no text in YAML"),
        '"' | '\'' if behind_quote(value).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('#')) => {
            format!("there is more behind the closing quote: {quoted}")
        }
        '"' | '\'' => return None,
        _ if value.contains(": ") || value.ends_with(':') => {
            format!("a text with a colon and a blank in it is no text in YAML: {quoted}")
        }
        _ => return None,
    };
    Some((column, what))
}

/// The problem in a line without a key, a value, or a separator.
fn no_entry(line: &str) -> Option<String> {
    let text = item(line).trim_end();
    if let Some(item) =
        text.strip_prefix('-').filter(|item| !item.is_empty() && !item.starts_with(['-', ' ']))
    {
        return Some(format!("a blank is missing behind the dash: write '- {item}'"));
    }
    let end = text.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    let value = rest.trim_start().trim_start_matches(['=', ':']).trim_start();
    // Other words may be part of a text or of a list.
    KEYS.contains(&key).then_some(())?;
    let written = format!("write '{key}: {value}'");
    let written = written.replace(": '", ":'");
    Some(if rest.starts_with(':') {
        format!("a blank is missing behind '{key}:': {written}")
    } else {
        format!("there is no colon behind '{key}': {written}")
    })
}

/// Whether the error is about a value of the wrong kind.
fn is_of_wrong_kind(error: &YamlError) -> bool {
    matches!(
        error,
        YamlError::Unexpected { .. }
            | YamlError::NullIntoString { .. }
            | YamlError::SerdeInvalidType { .. }
            | YamlError::SerdeInvalidValue { .. }
            | YamlError::InvalidScalar { .. }
            | YamlError::Message { .. }
    )
}

/// What is at a position, and what is expected there.
fn wrong_kind(lines: &[&str], row: usize, column: usize) -> String {
    let line = lines.get(row - 1).copied().unwrap_or_default();
    let own = entry(line).filter(|entry| column >= entry.column || entry.value.is_empty());
    if let Some(KeyValue { key, value, .. }) = own {
        return if value.is_empty() {
            format!("'{key}' has no value: there belongs {}", belongs(key))
        } else {
            format!("'{key}' is {}: there belongs {}", standing(value), belongs(key))
        };
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_item = line.trim_start().starts_with('-');
    // The owner of a list item may begin in the same column.
    let is_above = |above: &&str| indent(above) < indent(line) || is_item && indent(above) == indent(line);
    let mut above = lines.iter().take(row - 1).rev().copied().filter(is_above).filter_map(entry);
    match above.find(|entry| entry.value.is_empty()) {
        Some(KeyValue { key, .. }) => {
            format!("below '{key}' is {}: there belongs {}", standing(line.trim()), belongs(key))
        }
        None => {
            format!("here is {}: a front matter is lines of the form 'KEY: VALUE'", standing(line.trim()))
        }
    }
}

/// The kind of a piece of YAML, in words.
fn standing(text: &str) -> String {
    if let Some(item) = text.strip_prefix("- ") {
        format!("the item '{item}'")
    } else if text.starts_with('[') {
        format!("the list {text}")
    } else {
        format!("'{text}'")
    }
}

/// The parser's message without the position, which is reported separately.
fn own_words(said: &str) -> &str {
    let line = line::first(said).unwrap_or_default();
    line.rfind(" at line ").map_or(line, |place| &line[..place])
}

#[cfg(test)]
mod tests {
    use crate::prompt::front_matter::Document;

    #[test]
    fn frequent_mistakes_are_told_in_words() {
        let command = "agent: x\ncommands:\n- name: a\n";
        for (yaml, said) in [
            ("commands:\n\t- name: a", "3, column 1: a tab indents this line"),
            ("agent: claude\n\t-p", "3, column 1: a tab"),
            ("agent claude -p", "2, column 1: there is no colon behind 'agent': write 'agent: claude -p'"),
            ("agent = claude", "2, column 1: there is no colon behind 'agent': write 'agent: claude'"),
            ("agent:claude", "2, column 1: a blank is missing behind 'agent:': write 'agent: claude'"),
            (
                "agent: x\ncommands:\n- name a\n  run: b",
                "4, column 3: there is no colon behind 'name': write 'name: a'",
            ),
            ("agent: x\nargs:\n-a\n-b", "4, column 1: a blank is missing behind the dash: write '- a'"),
            (
                "agent:",
                "2, column 6: 'agent' has no value: there belongs a command line, such as 'agent: claude -p'",
            ),
            ("agent: [x, y]", "2, column 8: 'agent' is the list [x, y]: there belongs a command line"),
            ("agent:\n  cmd: y", "3, column 3: below 'agent' is 'cmd: y': there belongs a command line"),
            (
                "agent: x\ncommands: ls",
                "3, column 11: 'commands' is 'ls': there belongs a list, of '- name: NAME'",
            ),
            (
                "agent: x\ncommands:\n  t: y",
                "4, column 3: below 'commands' is 't: y': there belongs a list, of",
            ),
            (
                "agent: x\ncommands:\n- test",
                "4, column 3: below 'commands' is the item 'test': there belongs a list",
            ),
            (
                "agent: x\nargs: a, b",
                "3, column 7: 'args' is 'a, b': there belongs a list of names, such as 'args: [",
            ),
            ("agent: x\nargs: {a: 1}", "3, column 7: 'args' is '{a: 1}': there belongs a list of names"),
            ("agent: x\nargs: [a, b", "3, column 7: this [ is never closed: add the missing ]"),
            (
                "agent: @x",
                "2, column 8: a value that begins with @ means something else in YAML: put it in quotes, as in agent: '@x'",
            ),
            (
                "agent: it's: 'x' -",
                "2, column 8: a text with a colon and a blank in it is no text in YAML: put it in quotes, as in agent: 'it''s: ''x'' -'",
            ),
            (&format!("{command}  run: *.sh"), "5, column 8: a value that begins with * means"),
            (
                &format!("{command}  run: {{{{ args.b }}}} c"),
                "5, column 8: a value that begins with { is no text in YAML: put it in quotes, as in run: '{{ args.b }} c'",
            ),
            (&format!("{command}  run: [ -f x ] && y"), "5, column 8: a value that begins with [ is no text"),
            (&format!("{command}   run: b"), "5, column 7: this line does not begin where those above do"),
            ("agent: \"x\nargs: [a]", "2, column 8: this \" is never closed: add the missing \""),
            (
                "agent: \"x\" -p",
                "2, column 8: there is more behind the closing quote: put it in quotes, as in agent: '\"x\" -p'",
            ),
            ("agent: \"x\\d\"", "2, column 8: \\ has a meaning within double quotes"),
            ("agent: x\nagent: y", "3, column 1: the key 'agent' stands here twice"),
            ("agent: x\n...\nargs: [a]", "4, column 1: a line '...' or '---' ends the front matter"),
            ("{\"agent\": \"x\"", "2, column 1: this { is never closed: add the missing }"),
            (
                "just words",
                "2, column 1: here is 'just words': a front matter is lines of the form 'KEY: VALUE'",
            ),
        ] {
            let text = format!("---\n{yaml}\n---\nDo it.\n");
            let found = Document::parse(&text, &[]).expect_err(yaml).to_string();
            assert!(found.starts_with(&format!("line {said}")) && !found.contains('\n'), "{yaml}: {found}");
        }
    }
}
