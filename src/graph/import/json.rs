//! JSON errors of task files, in plain words.

use super::{GraphError, at};

/// Says what is wrong with `text`, which should be `kind`: one line of a file (`line`, from 1) or the whole file
/// (`None`).
pub(super) fn bad_json(line: Option<usize>, kind: &str, text: &str, error: &serde_json::Error) -> GraphError {
    // `serde_json` numbers the lines of the text that it gets.
    let place = format!("column {}: {kind}: {}", error.column(), in_words(text, error));
    match line.unwrap_or(error.line()) {
        0 => at(0, &format!("{kind}: {}", in_words(text, error))),
        line => GraphError::BadValue(format!("line {line}, {place}")),
    }
}

fn in_words(text: &str, error: &serde_json::Error) -> String {
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    let key = key_before(text, error);
    let here = key.map_or_else(|| "here".to_owned(), |key| format!("'{key}'"));
    if error.is_eof() {
        return "it ends too early: a bracket or a quote is not closed".to_owned();
    }
    if let Some(name) = said.strip_prefix("missing field `") {
        return format!("the key '{}' is missing", name.trim_end_matches('`'));
    }
    if let Some((found, known)) =
        said.strip_prefix("unknown variant `").and_then(|rest| rest.split_once("`, expected "))
    {
        let known = known.trim_start_matches("one of ").replace('`', "");
        return format!("{here} is '{found}': there belongs one of {known}");
    }
    if let Some((found, wanted)) =
        said.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
    {
        return format!("{here} is {}: there belongs {}", found_in_words(found), wanted_in_words(wanted));
    }
    if let Some((found, wanted)) =
        said.strip_prefix("invalid value: integer `").and_then(|rest| rest.split_once("`, expected "))
    {
        return format!("{here} is {found}: there belongs {}", wanted_in_words(wanted));
    }
    match said {
        "number out of range" => format!("{here} is a number that is too large"),
        "invalid number" => format!("{here} is no number"),
        "key must be a string" => "a key has to stand in double quotes".to_owned(),
        "trailing comma" => "the comma before this is one too many".to_owned(),
        "trailing characters" => "there is more behind its end".to_owned(),
        "expected `:`" => "a colon is missing before this".to_owned(),
        "expected `,` or `}`" | "expected `,` or `]`" => {
            format!("a comma or a closing {} is missing before this", &said[said.len() - 2..said.len() - 1])
        }
        "expected ident" | "expected value" => "this is no JSON".to_owned(),
        _ if said.starts_with("control character") => "a line ends within quotes: write \\n there".to_owned(),
        _ if said.starts_with("data did not match") => format!("{here} has to be a text or a whole number"),
        _ if key.is_some_and(|key| key.ends_with("_at")) => {
            format!("{here} is no time, such as \"2026-01-31T12:00:00Z\"")
        }
        _ => said.to_owned(),
    }
}

/// The last key before the error.
fn key_before<'t>(text: &'t str, error: &serde_json::Error) -> Option<&'t str> {
    let start: usize = text.split_inclusive('\n').take(error.line().checked_sub(1)?).map(str::len).sum();
    let before = text.get(..(start + error.column()).min(text.len()))?;
    let mut quoted = before.split('"').rev();
    // A key is text in quotes followed by a colon.
    let mut behind = quoted.next()?;
    for piece in quoted {
        if behind.trim_start().starts_with(':') {
            return Some(piece);
        }
        behind = piece;
    }
    None
}

fn found_in_words(found: &str) -> String {
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        // Such as "integer `5`", "string \"high\"".
        _ => found.find(['`', '"']).map_or(found, |at| found[at..].trim_matches('`')).to_owned(),
    }
}

fn wanted_in_words(wanted: &str) -> &str {
    match wanted {
        "a string" => "a text in quotes",
        "i64" => "a whole number",
        "u64" => "a whole number from 0",
        "u32" => "a whole number from 0 to 4294967295",
        "a sequence" => "a list",
        "a boolean" => "true or false",
        _ if wanted.starts_with("struct ") || wanted == "a map" => "an object, {\"KEY\": VALUE}",
        _ => wanted,
    }
}
