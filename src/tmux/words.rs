//! The words of a tmux command, and how to quote them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// One command of tmux: its name and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words(Vec<OsString>);

impl Words {
    /// A command of these words, none of which has a line end.
    pub fn new(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self(words.into_iter().map(Into::into).collect())
    }

    /// Appends words.
    #[must_use]
    pub fn and(mut self, words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.0.extend(words.into_iter().map(Into::into));
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        self.0.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// As text that tmux parses again: for connections, and for commands within commands.
    pub(super) fn to_line(&self) -> OsString {
        let quoted = |word: &OsString| {
            let inner: Vec<&[u8]> = word.as_bytes().split(|byte| *byte == b'\'').collect();
            [b"'".as_slice(), &inner.join(br"'\''".as_slice()), b"'"].concat()
        };
        OsString::from_vec(self.0.iter().map(quoted).collect::<Vec<_>>().join(b" ".as_slice()))
    }
}

/// Several commands as arguments of one process. A `;` at the end of a word would end the command.
pub(super) fn to_args(commands: &[Words]) -> Vec<OsString> {
    let escaped = |word: &OsString| match word.as_bytes().strip_suffix(b";") {
        Some(rest) => OsString::from_vec([rest, br"\;"].concat()),
        None => word.clone(),
    };
    let mut args = Vec::new();
    for command in commands {
        if !args.is_empty() {
            args.push(";".into());
        }
        args.extend(command.0.iter().map(escaped));
    }
    args
}

/// Several commands as one line of a connection.
pub(super) fn to_line(commands: &[Words]) -> OsString {
    let lines: Vec<OsString> = commands.iter().map(Words::to_line).collect();
    lines.join(OsStr::new(" ; "))
}

/// Escapes `text` where tmux expands formats (`#{…}`, `#(…)`) and times (`%H`).
pub(super) fn literal(text: &OsStr) -> OsString {
    let mut literal = Vec::with_capacity(text.len());
    for byte in text.as_bytes() {
        literal.push(*byte);
        if matches!(byte, b'#') {
            literal.push(*byte);
        }
    }
    OsString::from_vec(literal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_as_they_are() {
        let commands =
            [Words::new(["a", "b;", ";", "c;d", r"e\;"]), Words::new(["f"]).and(["it's", "", "$x #{y}"])];
        let args = to_args(&commands);
        assert_eq!(args, ["a", r"b\;", r"\;", "c;d", r"e\\;", ";", "f", "it's", "", "$x #{y}"]);
        assert_eq!(to_line(&commands), r"'a' 'b;' ';' 'c;d' 'e\;' ; 'f' 'it'\''s' '' '$x #{y}'");
        assert_eq!(commands[1].name(), "f");
        assert_eq!(literal("a#{b}".as_ref()), "a##{b}");
    }
}
