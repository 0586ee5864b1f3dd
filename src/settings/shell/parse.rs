//! Turns the text of a config file into statements, refusing everything that is not an assignment.

use super::syntax::{Cursor, Word, ends_word, is_name, operator};
use super::word::Words;
use super::{Result, Source};

/// A statement.
pub(super) enum Statement {
    /// `NAME=value` or `NAME+=value`.
    Assign(Assign),
    /// `export NAME… NAME=value…`
    Export(Vec<Assign>),
    /// One word of a `:` command, there for the `${NAME:=x}` in it.
    Expand(Word),
}

/// A name and its value.
pub(super) struct Assign {
    pub(super) name: String,
    /// Where the name starts, for messages.
    pub(super) at: usize,
    /// `+=`: the value is added to what is there.
    pub(super) append: bool,
    /// `export NAME`: there is no value.
    pub(super) name_only: bool,
    pub(super) value: Word,
}

/// Reads the whole file.
pub(super) fn statements(source: &Source) -> Result<Vec<Statement>> {
    let mut parser = Parser { cursor: Cursor { source, at: 0 }, statements: Vec::new() };
    if let Some(at) = source.chars.iter().position(|c| *c == '\0') {
        return Err(source.error(at, "a NUL byte; is this a text file? Remove the byte"));
    }
    while parser.next_statement()? {}
    Ok(parser.statements)
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    statements: Vec<Statement>,
}

impl Parser<'_> {
    /// Reads one statement with its end; false at the end of the file.
    fn next_statement(&mut self) -> Result<bool> {
        self.skip_blanks();
        match self.cursor.peek() {
            None => return Ok(false),
            Some('\n') => {
                self.cursor.at += 1;
                return Ok(true);
            }
            Some(';') => return Err(self.cursor.error("there is nothing before this `;`; remove it")),
            Some(_) => {}
        }
        if let Some(first) = self.assignment(false)? {
            self.assignments(first)?;
        } else {
            self.command()?;
        }
        self.skip_blanks();
        match self.cursor.peek() {
            None | Some('\n') => Ok(true),
            Some(';') => {
                self.cursor.at += 1;
                Ok(true)
            }
            Some(c) => Err(operator(&self.cursor, c)),
        }
    }

    /// `A=1 B=2`: the rest of the line after the first.
    fn assignments(&mut self, first: Assign) -> Result<()> {
        self.statements.push(Statement::Assign(first));
        while self.at_word() {
            let start = self.cursor;
            let Some(next) = self.assignment(false)? else {
                let word = self.bare_word();
                return Err(start.error(format!(
                    "`{word}` after an assignment would run with it; put a value with blanks in quotes, or start a \
                     new line",
                )));
            };
            self.statements.push(Statement::Assign(next));
        }
        Ok(())
    }

    /// `NAME=value` or `NAME+=value`, if one starts here.
    fn assignment(&mut self, exported: bool) -> Result<Option<Assign>> {
        self.cursor.peek();
        let start = self.cursor;
        let Some(name) = self.cursor.name() else { return Ok(None) };
        if self.cursor.peek() == Some('[') {
            return Err(self.cursor.error("arrays are not supported; use one variable per value"));
        }
        let append = self.cursor.eat('+');
        if !self.cursor.eat('=') {
            self.cursor = start;
            return Ok(None);
        }
        if self.cursor.peek() == Some('(') {
            return Err(self
                .cursor
                .error("arrays are not supported; use one variable per value, or quote the `(`"));
        }
        let value = Words::new(&mut self.cursor).assigned(exported)?;
        Ok(Some(Assign { name, at: start.at, append, name_only: false, value }))
    }

    /// The rest is `export`, `:` or something that would run.
    fn command(&mut self) -> Result<()> {
        let start = self.cursor;
        match self.bare_word().as_str() {
            "export" => self.export(),
            ":" => {
                while self.at_word() {
                    let word = Words::new(&mut self.cursor).argument()?;
                    self.statements.push(Statement::Expand(word));
                }
                Ok(())
            }
            "" => Err(operator(&start, start.raw().unwrap_or('\n'))),
            word => Err(start.error(refusal(word, self.cursor))),
        }
    }

    fn export(&mut self) -> Result<()> {
        let mut targets = Vec::new();
        while self.at_word() {
            if let Some(assign) = self.assignment(true)? {
                targets.push(assign);
                continue;
            }
            let start = self.cursor;
            let name = self.cursor.name();
            match name {
                Some(name) if !self.in_word() => {
                    targets.push(Assign {
                        name,
                        at: start.at,
                        append: false,
                        name_only: true,
                        value: Vec::new(),
                    });
                }
                _ => {
                    return Err(
                        start.error("`export` takes NAME or NAME=value here, without quotes around NAME")
                    );
                }
            }
        }
        self.statements.push(Statement::Export(targets));
        Ok(())
    }

    /// Skips blanks and a comment.
    fn skip_blanks(&mut self) {
        while matches!(self.cursor.peek(), Some(' ' | '\t')) {
            self.cursor.at += 1;
        }
        if self.cursor.peek() == Some('#') {
            while self.cursor.raw().is_some_and(|c| c != '\n') {
                self.cursor.at += 1;
            }
        }
    }

    /// Goes to the next word of this statement; false when there is none.
    fn at_word(&mut self) -> bool {
        self.skip_blanks();
        self.in_word()
    }

    fn in_word(&mut self) -> bool {
        self.cursor.peek().is_some_and(|c| !ends_word(c))
    }

    /// The word as it is written, without any meaning given to it.
    fn bare_word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.cursor.peek().filter(|c| !ends_word(*c)) {
            word.push(c);
            self.cursor.at += 1;
        }
        word
    }
}

/// Why a line that starts with `word` is refused; `after` is the position behind it.
fn refusal(word: &str, mut after: Cursor) -> String {
    const READS: &str = "ralph reads this file, it does not run it";
    while matches!(after.peek(), Some(' ' | '\t')) {
        after.at += 1;
    }
    let is_a_name = word.chars().all(is_name) && !word.starts_with(|c: char| c.is_ascii_digit());
    match word {
        _ if is_a_name && after.raw() == Some('=') => {
            format!("blanks around `=`; write {word}=value")
        }
        _ if is_a_name && after.raw() == Some('(') => {
            format!("`{word}()` defines a function, and {READS}; write assignments only")
        }
        "if" | "then" | "else" | "elif" | "fi" | "for" | "while" | "until" | "do" | "done" | "case"
        | "esac" | "select" | "function" | "time" | "{" | "}" | "!" | "[" | "[[" | "test" => {
            format!("`{word}` is program code, and {READS}; for a default write NAME=${{OTHER:-value}}")
        }
        "source" | "." => format!("`{word}` would read another file; copy its assignments here"),
        "declare" | "typeset" | "local" | "readonly" | "set" | "unset" => {
            format!("`{word}` is not supported; write NAME=value or export NAME=value")
        }
        _ => match word.split_once('=') {
            Some((name, _)) => {
                let name = name.trim_end_matches('+');
                format!(
                    "`{name}` cannot be a variable's name; use letters, digits and _, no digit first, no quotes"
                )
            }
            None => format!("`{word}` would run as a command, and {READS}; write NAME=value"),
        },
    }
}
