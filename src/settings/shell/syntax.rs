//! The parts of words of a config file, and the cursor that reads them.

use super::{ShellError, Source};

/// A word: its parts, joined.
pub(super) type Word = Vec<Part>;

/// A piece of a word.
#[derive(Debug)]
pub(super) enum Part {
    /// Text without its quotes.
    Text(Vec<u8>),
    /// An unquoted `~`.
    Home { at: usize },
    /// `$NAME` or `${NAME…}`.
    Parameter(Parameter),
}

/// A reference to a variable.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) operator: Option<Operator>,
}

/// The operator after the name in `${NAME:-word}`.
#[derive(Debug)]
pub(super) struct Operator {
    pub(super) action: Action,
    /// An empty variable counts as unset.
    pub(super) colon: bool,
    pub(super) word: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// `-`
    Default,
    /// `=`
    Assign,
    /// `+`
    Alternative,
}

/// A position in the text. `\` and newline together are skipped, except by `raw`.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) source: &'a Source,
    pub(super) at: usize,
}

impl Cursor<'_> {
    pub(super) fn raw(&self) -> Option<char> {
        self.source.chars.get(self.at).copied()
    }

    pub(super) fn peek(&mut self) -> Option<char> {
        while self.source.chars[self.at..].starts_with(&['\\', '\n']) {
            self.at += 2;
        }
        self.raw()
    }

    pub(super) fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// A variable's name, if one starts here.
    pub(super) fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| is_name(*c) && !(name.is_empty() && c.is_ascii_digit())) {
            name.push(c);
            self.at += 1;
        }
        (!name.is_empty()).then_some(name)
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ShellError {
        self.source.error(self.at, message)
    }
}

pub(super) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether an unquoted `c` ends a word.
pub(super) fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '(' | ')' | '<' | '>' | '&' | '|')
}

/// Why an unquoted `c` cannot stand at the cursor.
pub(super) fn operator(cursor: &Cursor, c: char) -> ShellError {
    let does = match c {
        '(' | ')' => "a shell would start a function, an array or a subshell",
        '<' | '>' => "a shell would redirect",
        '&' => "a shell would run this in the background",
        '|' => "a shell would start a pipe",
        _ => "this does not belong",
    };
    cursor.error(format!(
        "{does} at `{c}`, and ralph reads this file, it does not run it; quote a value that holds it"
    ))
}
