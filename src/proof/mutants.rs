//! Mutants: changes of lines that the work has added or changed, one at a time, which its tests should notice. Pure.
//!
//! A table of operators and constants that are written alike in most languages says what a line is changed to. A mutant that
//! does not compile is noticed as well; one that changes nothing that could be seen is not, so that nothing follows from that.

use std::collections::HashMap;
use std::path::Path;

use crate::text::digest::sha256_of_words;

/// The ends of files with sources.
const SOURCES: [&str; 32] = [
    "c", "cc", "cjs", "cpp", "cs", "cts", "dart", "ex", "exs", "go", "h", "hpp", "java", "js", "jsx", "kt",
    "lua", "mjs", "mts", "php", "pl", "py", "rb", "rs", "scala", "sh", "svelte", "swift", "ts", "tsx", "vue",
    "zig",
];
/// Comparisons, boolean and arithmetic operators, and constants, as they stand between other words.
const TABLE: [(&str, &str); 22] = [
    (" == ", " != "),
    (" != ", " == "),
    (" === ", " !== "),
    (" !== ", " === "),
    (" <= ", " > "),
    (" >= ", " < "),
    (" < ", " >= "),
    (" > ", " <= "),
    (" && ", " || "),
    (" || ", " && "),
    (" and ", " or "),
    (" or ", " and "),
    (" + ", " - "),
    (" - ", " + "),
    (" * ", " / "),
    (" / ", " * "),
    (" += ", " -= "),
    (" -= ", " += "),
    ("true", "false"),
    ("false", "true"),
    ("True", "False"),
    ("False", "True"),
];
/// What lines begin with that do nothing, or of which other lines depend.
const LEFT_OUT: [&str; 17] = [
    "//", "#", "/*", "*", "--", "\"\"\"", "'''", "use ", "import ", "from ", "package ", "pub use ", "mod ",
    "pub mod ", "@", "export {", "type ",
];
/// The longest line that is changed.
const LONGEST: usize = 400;

/// A source file at the base and in the claimed commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) base: String,
    pub(super) now: String,
}

/// A source with one line changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mutant {
    pub(super) path: String,
    /// The number of the line, from 1.
    pub(super) line: usize,
    pub(super) before: String,
    pub(super) after: String,
    /// The whole file.
    pub(super) text: String,
}

/// Whether a file is one that can be changed so.
pub(super) fn is_source(path: &str) -> bool {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| SOURCES.contains(&extension))
}

/// At most `number` mutants, each in another line. Which ones depends on nothing but the commit and its sources.
pub(super) fn mutants(commit: &str, sources: &[Source], number: usize) -> Vec<Mutant> {
    let mut all: Vec<(String, &Source, usize, String)> = Vec::new();
    for source in sources {
        for (at, line) in new_lines(source) {
            let changed = changed(line, &source.path);
            // One for each line, so that no line takes all.
            let place = at.to_string();
            let order = |after: &str| sha256_of_words([commit, &source.path, &place, after]);
            let one = changed.into_iter().map(|after| (order(&after), after)).min();
            all.extend(one.map(|(order, after)| (order, source, at, after)));
        }
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    let chosen = all.into_iter().take(number).map(|(_, source, at, after)| {
        let mut lines: Vec<&str> = source.now.split_inclusive('\n').collect();
        let before = lines[at].trim_end_matches(['\r', '\n']);
        let end = &lines[at][before.len()..];
        let line = format!("{after}{end}");
        lines[at] = &line;
        let text = lines.concat();
        Mutant {
            path: source.path.clone(),
            line: at + 1,
            before: before.trim().to_owned(),
            after: after.trim().to_owned(),
            text,
        }
    });
    chosen.collect()
}

/// The lines that the base does not have, but for tests within the file, and their places.
fn new_lines(source: &Source) -> Vec<(usize, &str)> {
    let mut old: HashMap<&str, usize> = HashMap::new();
    for line in source.base.lines() {
        *old.entry(line.trim()).or_default() += 1;
    }
    let is_test = |line: &&str| line.starts_with("#[cfg(test)]");
    let lines = source.now.lines().take_while(|line| !is_test(line)).enumerate();
    let is_new = |(_, line): &(usize, &str)| match old.get_mut(line.trim()) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    };
    lines.filter(is_new).collect()
}

/// What a line can be changed to.
fn changed(line: &str, path: &str) -> Vec<String> {
    let code = line.trim();
    let is_left_out = LEFT_OUT.iter().any(|begin| code.starts_with(begin));
    if code.len() < 3 || line.len() > LONGEST || is_left_out {
        return Vec::new();
    }
    let code_at = in_code(line);
    let is_code = |at: usize, length: usize| code_at[at..at + length].iter().all(|is_code| *is_code);
    let mut found = Vec::new();
    for (from, to) in TABLE {
        for (at, _) in line.match_indices(from) {
            if is_code(at, from.len()) && is_whole(line, at, from.len()) {
                found.push(with(line, at, from.len(), to));
            }
        }
    }
    for (at, length) in numbers(line).into_iter().filter(|(at, length)| is_code(*at, *length)) {
        let next = line[at..at + length].parse::<u32>().ok().and_then(|number| number.checked_add(1));
        found.extend(next.map(|next| with(line, at, length, &next.to_string())));
    }
    found.extend(without_value(line));
    found.extend(deleted(line, path));
    found.sort();
    found.dedup();
    found
}

fn with(line: &str, at: usize, length: usize, to: &str) -> String {
    format!("{}{to}{}", &line[..at], &line[at + length..])
}

/// For each byte of a line whether it is outside of texts in quotes.
fn in_code(line: &str) -> Vec<bool> {
    let (mut quote, mut escaped) = (None, false);
    let mut found = Vec::with_capacity(line.len());
    for byte in line.bytes() {
        let was_in = quote.is_some();
        match quote {
            _ if escaped => escaped = false,
            Some(_) if byte == b'\\' => escaped = true,
            Some(open) if open == byte => quote = None,
            None if [b'"', b'`'].contains(&byte) => quote = Some(byte),
            _ => {}
        }
        found.push(!was_in && quote.is_none());
    }
    found
}

/// Whether what stands there is no part of a longer word.
fn is_whole(line: &str, at: usize, length: usize) -> bool {
    let is_word = |char: char| char == '_' || char.is_alphanumeric();
    let [first, last] = [line[at..].chars().next(), line[..at + length].chars().next_back()];
    let before = line[..at].chars().next_back().is_some_and(is_word) && first.is_some_and(is_word);
    let after = line[at + length..].chars().next().is_some_and(is_word) && last.is_some_and(is_word);
    !(before || after)
}

/// The whole numbers of a line.
fn numbers(line: &str) -> Vec<(usize, usize)> {
    let is_digit = |char: char| char.is_ascii_digit();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(from) = line[at..].find(is_digit).map(|from| at + from) {
        let length = line[from..].find(|char| !is_digit(char)).unwrap_or(line.len() - from);
        let is_part = line[..from].ends_with('.') || line[from + length..].starts_with('.');
        if is_whole(line, from, length) && !is_part {
            found.push((from, length));
        }
        at = from + length;
    }
    found
}

/// A line that returns something else.
fn without_value(line: &str) -> Option<String> {
    let (before, value) = line.split_once("return ").filter(|(before, _)| before.trim().is_empty())?;
    let value = value.trim_end();
    let end = if value.ends_with(';') { ";" } else { "" };
    let is_zero = value.trim_end_matches(';') == "0";
    // A value that goes on in the next line cannot be replaced here.
    let is_whole = value.matches(['(', '[', '{']).count() == value.matches([')', ']', '}']).count();
    is_whole.then(|| format!("{before}return {}{end}", if is_zero { "1" } else { "0" }))
}

/// A statement that is left out.
fn deleted(line: &str, path: &str) -> Option<String> {
    const KEPT: [&str; 9] = ["let ", "var ", "return", "break", "continue", "}", ")", "throw", "static "];
    let code = line.trim();
    let indent = &line[..line.len() - line.trim_start().len()];
    let is_call = code.split_once('(').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || "_.:!".contains(char))
    });
    let is_whole = code.matches('(').count() == code.matches(')').count();
    if KEPT.iter().any(|begin| code.starts_with(begin)) || !is_call || !is_whole {
        return None;
    }
    if code.ends_with(';') {
        return Some(format!("{indent};"));
    }
    let is_python = Path::new(path).extension().is_some_and(|extension| extension == "py");
    (is_python && code.ends_with(')')).then(|| format!("{indent}pass"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        let mut expected: Vec<String> = expected.iter().map(|&line| line.to_owned()).collect();
        expected.sort();
        assert_eq!(changed(line, "a.py"), expected, "{line}");
    }

    #[test]
    fn a_line_is_changed_by_the_table() {
        check("    if a == b and c:", &["    if a != b and c:", "    if a == b or c:"]);
        check("return a - b", &["return a + b", "return 0"]);
        check("  return 0;", &["  return 1;"]);
        check("x = limit(41) > 1.5", &["x = limit(42) > 1.5", "x = limit(41) <= 1.5"]);
        check("is_true = True", &["is_true = False"]);
        check("    self.log(a)", &["    pass"]);
        check("say(\"a + b == 3\");", &[";"]);
        check("let list: Vec<u8> = x2", &[]);
        for line in ["", "// a == b", "# a + 1", "import a + b", "}", "def f(a):", "return f("] {
            check(line, &[]);
        }
    }

    #[test]
    fn only_new_lines_outside_of_tests_are_changed_and_always_the_same_ones() {
        let now = "a = 1\nb = 2\r\nc = b + a\n#[cfg(test)]\nd = 4\n";
        let source = Source { path: "x.rs".to_owned(), base: "a = 1\n".to_owned(), now: now.to_owned() };
        let all = mutants("c0ffee", std::slice::from_ref(&source), 10);
        let mut lines: Vec<_> = all.iter().map(|mutant| (mutant.line, mutant.after.as_str())).collect();
        lines.sort_unstable();
        assert_eq!(lines, [(2, "b = 3"), (3, "c = b - a")]);
        let of_b = all.iter().find(|mutant| mutant.line == 2).unwrap();
        assert_eq!(of_b.text, now.replace("b = 2", "b = 3"));
        assert_eq!(of_b.before, "b = 2");
        assert_eq!(mutants("c0ffee", &[source], 1), all[..1]);
        assert!(is_source("src/a.rs") && !is_source("a.json") && !is_source("Makefile"));
    }
}
