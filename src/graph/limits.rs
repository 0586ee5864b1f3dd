//! Limits of tasks: titles, names, texts, levels, priorities.

use std::path::{Component, Path};

use super::error::GraphError;
use crate::text::line::escaped;

/// The longest title, in characters.
pub(super) const TITLE: usize = 500;
/// The longest name of a feature, in bytes.
pub(super) const NAME: usize = 100;
/// The longest text, in bytes.
pub(super) const TEXT: usize = 1 << 20;
/// How deep tasks can be nested: each task is listed for every task above it.
pub(super) const LEVELS: usize = 100;
/// The largest absolute value of a priority.
const PRIORITY: i64 = 1_000_000;

/// Characters of no width.
fn is_unseen(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Characters that end a line or change the direction of text, so that it reads differently.
fn turns_text(char: char) -> bool {
    matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub(super) fn title(title: &str) -> Result<(), GraphError> {
    if title.trim().is_empty() {
        return refuse("the title is empty: say in a line what is to be done");
    }
    let length = title.chars().count();
    if length > TITLE {
        return refuse(&format!(
            "the title has {length} characters, {TITLE} is the most: put the rest into the description"
        ));
    }
    if title.chars().all(|char| char.is_whitespace() || is_unseen(char)) {
        return refuse("nothing of the title can be seen: say in a line what is to be done");
    }
    if let Some(control) = title.chars().find(|char| char.is_control() || turns_text(*char)) {
        let shown = control.escape_default();
        return refuse(&format!("the title has a control character, {shown}: write it in one plain line"));
    }
    Ok(())
}

pub(super) fn text(what: &str, text: &str) -> Result<(), GraphError> {
    if text.len() > TEXT {
        return refuse(&format!(
            "{what} has {} bytes, {TEXT} is the most: put it into a file and name that",
            text.len()
        ));
    }
    let bad = |char: &char| char.is_control() && !is_of_text(*char);
    if let Some(control) = text.chars().find(bad) {
        let shown = escaped(&control.to_string());
        return refuse(&format!("{what} has a control character, {shown}: leave that out"));
    }
    Ok(())
}

/// Control characters that a text may have.
pub(super) fn is_of_text(char: char) -> bool {
    matches!(char, '\n' | '\t' | '\r')
}

/// Whether a feature's name may have this character.
pub(super) fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '-' | '_' | '.' | ' ')
}

/// Checks a feature's name: it is also the name of a folder.
pub fn feature(name: &str) -> Result<(), GraphError> {
    if !name.chars().all(is_of_name) || name.starts_with(['.', '-', ' ']) || name.ends_with(' ') {
        let shown = escaped(name);
        return refuse(&format!(
            "feature '{shown}': give a name of letters, digits, '-', '_' and '.', and no path"
        ));
    }
    if name.is_empty() || name.len() > NAME {
        return refuse(&format!("a feature's name has 1 to {NAME} bytes, not {}", name.len()));
    }
    Ok(())
}

/// Checks the path of a spec or a plan, relative to the ralph dir.
pub(super) fn path(path: &str) -> Result<(), GraphError> {
    let mut parts = Path::new(path).components();
    if path.is_empty()
        || path.chars().any(char::is_control)
        || !parts.all(|part| matches!(part, Component::Normal(_)))
    {
        return refuse(&format!("'{}' is no path below the ralph dir", escaped(path)));
    }
    Ok(())
}

/// Checks the level of a task; a root task is on level 1.
pub(super) fn level(what: &str, level: usize) -> Result<(), GraphError> {
    if level <= LEVELS {
        return Ok(());
    }
    refuse(&format!(
        "{what} would stand on level {level}, {LEVELS} is the deepest: put it below a task further up"
    ))
}

pub(super) fn priority(priority: i64) -> Result<(), GraphError> {
    if (-PRIORITY..=PRIORITY).contains(&priority) {
        return Ok(());
    }
    refuse(&format!("priority {priority}: give a whole number from -{PRIORITY} to {PRIORITY}"))
}

fn refuse(why: &str) -> Result<(), GraphError> {
    Err(GraphError::BadValue(why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_themselves_are_good() {
        for good in [&"x".repeat(500), &"ü".repeat(500), "日本語: a-b \"c\" --"] {
            title(good).unwrap();
        }
        text("x", &"x".repeat(1 << 20)).unwrap();
        text("x", "a\n\tb\r\n").unwrap();
        path("features/a b/spec.md").unwrap();
        for good in [-1_000_000, 0, 1_000_000] {
            priority(good).unwrap();
        }
    }

    #[test]
    fn what_is_beyond_them_is_refused_in_a_line() {
        let long = "x".repeat(1 << 20);
        for (result, what) in [
            (title(""), "is empty"),
            (title(" \t"), "is empty"),
            (title(&long), "has 1048576 characters, 500 is the most"),
            (title("a\nb"), "control character, \\n"),
            (title("a\u{1b}[31m"), "control character, \\u{1b}"),
            (title("a\u{9b}"), "control character, \\u{9b}"),
            (text("the reason", &format!("{long}x")), "the reason has 1048577 bytes"),
            (text("the reason", "a\u{7}"), "control character"),
            (priority(1_000_001), "from -1000000 to 1000000"),
            (priority(i64::MIN), "from -1000000"),
            (path(""), "'' is no path below"),
            (path("/etc/passwd"), "is no path below"),
            (path("features/../../x"), "is no path below"),
        ] {
            let said = result.unwrap_err().to_string();
            assert!(said.contains(what) && !said.contains('\n'), "{said}");
        }
    }
}
