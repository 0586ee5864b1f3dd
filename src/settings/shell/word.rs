//! Words: quotes, escapes and `$`.

use super::syntax::{Action, Cursor, Operator, Parameter, Part, Word, ends_word, is_name, operator};
use super::{Result, ShellError, escape};

/// How deep `${A:-${B:-…}}` may nest: far more than anyone writes, far less than the stack holds.
const MAX_DEPTH: usize = 50;

const WRITE_THE_VALUE: &str = "ralph reads this file, it does not run it; write the value itself, or set it in the environment and use \
     ${NAME:-default}";

/// The context of a word, which decides its end and the meaning of `~`, `{` and quotes in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The value of an assignment.
    Value,
    /// The value of an assignment after `export`, where bash would expand braces.
    Exported,
    /// An argument of `:`.
    Argument,
    /// The word in `${NAME:-word}` outside double quotes.
    Default { action: Action, assigned: bool },
}

impl Place {
    /// Whether a `~` after an unquoted `:` counts. One of bash's ways: not in the word of `:=` itself.
    fn tilde_after_colon(self) -> bool {
        match self {
            Self::Value | Self::Exported => true,
            Self::Argument => false,
            Self::Default { action, assigned } => assigned && action != Action::Assign,
        }
    }

    /// Whether a nested word is part of an assignment.
    fn assigned(self) -> bool {
        match self {
            Self::Value | Self::Exported => true,
            Self::Argument => false,
            Self::Default { action, assigned } => assigned || action == Action::Assign,
        }
    }
}

/// The surroundings of a `$`.
#[derive(Clone, Copy)]
enum Around {
    Nothing {
        assigned: bool,
    },
    DoubleQuotes,
    /// The word of `"${NAME:-word}"`, which has quoting rules of its own.
    QuotedDefault {
        in_single: bool,
    },
}

/// Reads words at a cursor, which it moves past them.
pub(super) struct Words<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    depth: usize,
}

impl<'c, 'a> Words<'c, 'a> {
    pub(super) fn new(cursor: &'c mut Cursor<'a>) -> Self {
        Self { cursor, depth: 0 }
    }

    /// The value after `NAME=`, perhaps empty.
    pub(super) fn assigned(&mut self, exported: bool) -> Result<Word> {
        self.word(if exported { Place::Exported } else { Place::Value })
    }

    /// One word of a command.
    pub(super) fn argument(&mut self) -> Result<Word> {
        self.word(Place::Argument)
    }

    fn word(&mut self, place: Place) -> Result<Word> {
        let mut word = Word::new();
        let inside = matches!(place, Place::Default { .. });
        let mut tilde = place != Place::Argument;
        while let Some(c) = self.cursor.peek() {
            let tilde_counts = std::mem::replace(&mut tilde, false);
            match c {
                '}' if inside => break,
                ' ' | '\t' | '\n' | ';' if !inside => break,
                _ if !inside && ends_word(c) => return Err(operator(self.cursor, c)),
                '<' | '>' if self.starts_substitution() => return Err(operator(self.cursor, c)),
                '{' if place == Place::Exported => {
                    return Err(self
                        .cursor
                        .error("bash would expand this `{` after `export`; quote the value"));
                }
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '\\' => {
                    self.cursor.at += 1;
                    self.literal(&mut word);
                }
                '~' if tilde_counts => self.tilde(&mut word, inside)?,
                '$' => self.dollar(&mut word, Around::Nothing { assigned: place.assigned() })?,
                '`' => return Err(self.backtick()),
                c => {
                    push(&mut word, c);
                    self.cursor.at += 1;
                    tilde = c == ':' && place.tilde_after_colon();
                }
            }
        }
        Ok(word)
    }

    /// Takes the character after a backslash as it is; at the end of the file the backslash stands for itself.
    fn literal(&mut self, word: &mut Word) {
        let c = self.cursor.raw();
        self.cursor.at += usize::from(c.is_some());
        push(word, c.unwrap_or('\\'));
    }

    fn single_quoted(&mut self, word: &mut Word) -> Result<()> {
        let open = *self.cursor;
        self.cursor.at += 1;
        let text = &self.cursor.source.chars[self.cursor.at..];
        let Some(end) = text.iter().position(|c| *c == '\'') else {
            return Err(open.error("this ' is never closed; add the missing '"));
        };
        extend(word, text[..end].iter().collect::<String>().as_bytes());
        self.cursor.at += end + 1;
        Ok(())
    }

    /// `$'…'`, the cursor standing on the quote.
    fn ansi_quoted(&mut self, word: &mut Word) -> Result<()> {
        let open = *self.cursor;
        let start = open.at + 1;
        let text = &open.source.chars[start..];
        let mut end = 0;
        while text.get(end).is_some_and(|c| *c != '\'') {
            end += if text[end] == '\\' { 2 } else { 1 };
        }
        if end >= text.len() {
            return Err(open.error("this $' is never closed; add the missing '"));
        }
        let bytes = escape::decode(&text[..end])
            .map_err(|(offset, problem)| open.source.error(start + offset, problem))?;
        extend(word, &bytes);
        self.cursor.at = start + end + 1;
        Ok(())
    }

    fn double_quoted(&mut self, word: &mut Word) -> Result<()> {
        let open = *self.cursor;
        self.cursor.at += 1;
        loop {
            match self.cursor.peek() {
                None => return Err(open.error("this \" is never closed; add the missing \"")),
                Some('"') => break,
                Some('\\') => self.escaped(word, &['$', '`', '"', '\\']),
                Some('$') => self.dollar(word, Around::DoubleQuotes)?,
                Some('`') => return Err(self.backtick()),
                Some(c) => {
                    push(word, c);
                    self.cursor.at += 1;
                }
            }
        }
        self.cursor.at += 1;
        Ok(())
    }

    /// A backslash that takes away the meaning of the characters in `special` and stays before all others.
    fn escaped(&mut self, word: &mut Word, special: &[char]) {
        self.cursor.at += 1;
        match self.cursor.raw() {
            Some(c) if special.contains(&c) => self.literal(word),
            _ => push(word, '\\'),
        }
    }

    fn tilde(&mut self, word: &mut Word, inside: bool) -> Result<()> {
        let at = self.cursor.at;
        self.cursor.at += 1;
        let mut look = *self.cursor;
        let mut login = String::new();
        while let Some(c) = look.peek().filter(|c| is_name(*c) || matches!(c, '.' | '-' | '+')) {
            login.push(c);
            look.at += 1;
        }
        let ended = match look.peek() {
            None | Some('/' | ':') => true,
            Some(c) => {
                if inside {
                    c == '}'
                } else {
                    ends_word(c)
                }
            }
        };
        match (ended, login.is_empty()) {
            (true, true) => word.push(Part::Home { at }),
            (true, false) => {
                let message =
                    format!("`~{login}` is not supported; write the whole path, or quote it if it is text");
                return Err(self.cursor.source.error(at, message));
            }
            (false, _) => push(word, '~'),
        }
        Ok(())
    }

    fn dollar(&mut self, word: &mut Word, around: Around) -> Result<()> {
        let start = *self.cursor;
        self.cursor.at += 1;
        match (self.cursor.peek(), around) {
            (Some('{'), _) => {
                let parameter = self.braced(start.at, around)?;
                word.push(Part::Parameter(parameter));
            }
            (Some('('), _) => {
                return Err(start.error(format!("`$(…)` would run a command: {WRITE_THE_VALUE}")));
            }
            (Some('['), _) => {
                return Err(start.error("`$[…]` is arithmetic, which is not supported; write the number"));
            }
            (Some('\''), Around::Nothing { .. }) => self.ansi_quoted(word)?,
            (Some('"'), Around::Nothing { .. }) => self.double_quoted(word)?,
            (Some('\''), Around::QuotedDefault { in_single: false })
            | (Some('"'), Around::QuotedDefault { .. }) => {
                return Err(tangled(&start));
            }
            (Some(c), _) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                return Err(special(&start, &c.to_string()));
            }
            _ => match self.cursor.name() {
                Some(name) if name == "_" => return Err(special(&start, "_")),
                Some(name) => word.push(Part::Parameter(Parameter { name, at: start.at, operator: None })),
                None => push(word, '$'),
            },
        }
        Ok(())
    }

    /// `${…}`, the cursor standing on the brace.
    fn braced(&mut self, at: usize, around: Around) -> Result<Parameter> {
        let open = *self.cursor;
        self.cursor.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(
                open.error(format!("more than {MAX_DEPTH} `${{…}}` inside each other; use helper variables"))
            );
        }
        let Some(name) = self.cursor.name().filter(|name| name != "_") else {
            let found = self.cursor.peek().map_or_else(String::new, String::from);
            return Err(special(&open, &format!("{{{found}…}}")));
        };
        if self.cursor.eat('}') {
            self.depth -= 1;
            return Ok(Parameter { name, at, operator: None });
        }
        let colon = self.cursor.eat(':');
        let action = match self.cursor.peek() {
            Some('-') => Action::Default,
            Some('=') => Action::Assign,
            Some('+') => Action::Alternative,
            None => return Err(unclosed(&open)),
            Some(_) => {
                return Err(self.cursor.error(format!(
                    "of all `${{{name}…}}` only ${{{name}:-x}}, ${{{name}:=x}} and ${{{name}:+x}} are supported, with \
                     or without the colon; write the value itself"
                )));
            }
        };
        self.cursor.at += 1;
        let word = match around {
            Around::Nothing { assigned } => self.word(Place::Default { action, assigned })?,
            Around::DoubleQuotes | Around::QuotedDefault { .. } => self.quoted_default()?,
        };
        if !self.cursor.eat('}') {
            return Err(unclosed(&open));
        }
        self.depth -= 1;
        Ok(Parameter { name, at, operator: Some(Operator { action, colon, word }) })
    }

    /// The word of `"${NAME:-word}"`. There bash drops double quotes, and with them the backslashes between them; a
    /// pair of single quotes stays, and a `}` between them does not end the word.
    fn quoted_default(&mut self) -> Result<Word> {
        let mut word = Word::new();
        let mut in_double = false;
        let mut single_end = None;
        let mut name_is_open = false;
        while let Some(c) = self.cursor.peek() {
            let here = *self.cursor;
            if single_end.is_some_and(|end| here.at > end) {
                return Err(tangled(&here));
            }
            match c {
                '}' if !in_double && single_end.is_none() => break,
                '"' => {
                    self.cursor.at += 1;
                    in_double = !in_double;
                    // Dropping the quote after `$NAME` would make the next characters a part of the name.
                    if single_end.is_some() || (name_is_open && self.cursor.peek().is_some_and(is_name)) {
                        return Err(tangled(&here));
                    }
                    continue;
                }
                '<' | '>' if self.starts_substitution() => return Err(operator(self.cursor, c)),
                '\'' if !in_double => {
                    single_end = match single_end {
                        Some(_) => None,
                        None => Some(self.closing_single()?),
                    };
                    push(&mut word, c);
                    self.cursor.at += 1;
                }
                '\\' if in_double => {
                    self.cursor.at += 1;
                    self.literal(&mut word);
                }
                '\\' => self.escaped(&mut word, &['$', '`', '"', '\\', '}']),
                '$' => {
                    self.dollar(&mut word, Around::QuotedDefault { in_single: single_end.is_some() })?;
                    name_is_open = self.behind_bare_name(&word);
                    continue;
                }
                '`' => return Err(self.backtick()),
                c => {
                    push(&mut word, c);
                    self.cursor.at += 1;
                }
            }
            name_is_open = false;
        }
        Ok(word)
    }

    /// Where the single quote at the cursor is closed.
    fn closing_single(&self) -> Result<usize> {
        let from = self.cursor.at + 1;
        let rest = &self.cursor.source.chars[from..];
        let found = rest.iter().position(|c| *c == '\'');
        found.map(|offset| from + offset).ok_or_else(|| {
            self.cursor.error(
                "a single ' in \"${…}\" is not closed; put the text in a variable of its own and use it",
            )
        })
    }

    /// Whether `word` ends with a `$NAME` without braces, right before the cursor.
    fn behind_bare_name(&self, word: &Word) -> bool {
        matches!(word.last(), Some(Part::Parameter(_))) && self.cursor.source.chars[self.cursor.at - 1] != '}'
    }

    /// Whether `<(` or `>(` starts here.
    fn starts_substitution(&self) -> bool {
        let mut next = *self.cursor;
        next.at += 1;
        next.peek() == Some('(')
    }

    fn backtick(&self) -> ShellError {
        self.cursor.error(format!("a backtick would run a command: {WRITE_THE_VALUE}"))
    }
}

fn special(at: &Cursor, name: &str) -> ShellError {
    at.error(format!(
        "`${name}` has no meaning in a file that is read, not run; to get the character, write \\$"
    ))
}

fn tangled(at: &Cursor) -> ShellError {
    at.error(
        "quotes within \"${…}\" are too tangled here; write \\\" for a quote, or use a variable of its own",
    )
}

fn unclosed(open: &Cursor) -> ShellError {
    open.error("this { is never closed; add the missing }")
}

fn push(word: &mut Word, c: char) {
    extend(word, c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn extend(word: &mut Word, bytes: &[u8]) {
    match word.last_mut() {
        Some(Part::Text(text)) => text.extend(bytes),
        _ => word.push(Part::Text(bytes.to_vec())),
    }
}
