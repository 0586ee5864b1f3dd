//! Parses the output of tmux on a connection (control mode, `tmux -C`) line by line. Source: `tmux(1)`, "CONTROL
//! MODE".

/// Longer lines outside of an answer are ignored, in bytes.
const LONGEST: usize = 64 << 10;
/// The longest answer that is kept, in bytes: far more than a screen.
const LONGEST_ANSWER: usize = 16 << 20;

/// A message of tmux. Other messages are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The subscription of this name has a new value.
    Changed(String),
    /// This window was closed.
    WindowClosed(String),
    /// The connection ends, for this reason if there is one.
    Exit(String),
    /// The answer to a command.
    Answer {
        /// Whether this connection has sent the command; the one that made it was not.
        is_ours: bool,
        /// Its lines; an error if it was refused.
        lines: Result<Vec<String>, String>,
    },
}

/// Splits the output of tmux into messages.
#[derive(Debug, Default)]
pub struct Parser {
    /// An unfinished line.
    held: Vec<u8>,
    /// Whether that line is too long to be kept.
    is_too_long: bool,
    answer: Option<Answer>,
}

/// An unfinished answer.
#[derive(Debug)]
struct Answer {
    /// The text after `%begin`, which the end repeats.
    guard: Vec<u8>,
    lines: Vec<String>,
    size: usize,
}

impl Parser {
    /// Takes bytes, cut anywhere, and passes their messages on.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Said)) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.hold(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.held);
            if !std::mem::take(&mut self.is_too_long)
                && let Some(said) = self.line(line.strip_suffix(b"\r").unwrap_or(&line))
            {
                take(said);
            }
        }
        self.hold(rest);
    }

    fn hold(&mut self, piece: &[u8]) {
        let limit = if self.answer.is_some() { LONGEST_ANSWER } else { LONGEST };
        if self.held.len() + piece.len() > limit {
            self.is_too_long = true;
            self.held.clear();
        }
        if !self.is_too_long {
            self.held.extend_from_slice(piece);
        }
    }

    fn line(&mut self, line: &[u8]) -> Option<Said> {
        if let Some(answer) = &mut self.answer {
            let is_end = |word: &[u8]| line.strip_prefix(word) == Some(&answer.guard);
            let (ends, fails) = (is_end(b"%end "), is_end(b"%error "));
            if !ends && !fails {
                answer.push(line);
                return None;
            }
            return self.answer.take().map(|answer| answer.said(fails));
        }
        let (word, rest) = split(line);
        let text = || String::from_utf8_lossy(rest).into_owned();
        let first = || String::from_utf8_lossy(split(rest).0).into_owned();
        match word {
            b"%begin" => {
                self.answer = Some(Answer { guard: rest.to_vec(), lines: Vec::new(), size: 0 });
                None
            }
            b"%subscription-changed" => Some(Said::Changed(first())),
            b"%window-close" | b"%unlinked-window-close" => Some(Said::WindowClosed(first())),
            b"%exit" => Some(Said::Exit(text())),
            _ => None,
        }
    }
}

impl Answer {
    fn push(&mut self, line: &[u8]) {
        self.size += line.len() + size_of::<String>();
        if self.size > LONGEST_ANSWER {
            self.lines = Vec::new();
        } else {
            self.lines.push(String::from_utf8_lossy(line).into_owned());
        }
    }

    fn said(self, fails: bool) -> Said {
        let is_ours = self.guard.rsplit(|byte| *byte == b' ').next().is_some_and(|flags| flags != b"0");
        let lines = if fails {
            Err(self.lines.join(" "))
        } else if self.size > LONGEST_ANSWER {
            Err("the answer is too long".to_owned())
        } else {
            Ok(self.lines)
        };
        Said::Answer { is_ours, lines }
    }
}

/// The first word, and the text after the blank behind it.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b' ') {
        Some(end) => (&line[..end], &line[end + 1..]),
        None => (line, &[]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said(parser: &mut Parser, bytes: &[u8]) -> Vec<Said> {
        let mut all = Vec::new();
        parser.push(bytes, |said| all.push(said));
        all
    }

    fn answer(is_ours: bool, lines: Result<&[&str], &str>) -> Said {
        let lines = lines.map(|lines| lines.iter().map(ToString::to_string).collect()).map_err(str::to_owned);
        Said::Answer { is_ours, lines }
    }

    /// Mostly as tmux 3.3a writes it.
    const STREAM: &str = "%begin 1795321007 264 0\n%end 1795321007 264 0\n%session-changed $0 c d\n\
        %output %0 l\\134ine \u{e9}\\015\\012\n%begin 1795321007 269 1\n%exit \u{e9}\n%end 1795321007 268 1\n\n\
        %end 1795321007 269 1\n%begin 1 270 1\ncan't find pane: %9\n%error 1 270 1\n\
        %subscription-changed painted $0 @0 0 %0 : 1795323705\n%window-add @1\n%unlinked-window-close @1\n\
        %sessions-changed\r\n%window-close @2\r\nnonsense\n\n%exit server exited unexpectedly\n%exit\n";

    fn spoken() -> Vec<Said> {
        vec![
            answer(false, Ok(&[])),
            answer(true, Ok(&["%exit \u{e9}", "%end 1795321007 268 1", ""])),
            answer(true, Err("can't find pane: %9")),
            Said::Changed("painted".into()),
            Said::WindowClosed("@1".into()),
            Said::WindowClosed("@2".into()),
            Said::Exit("server exited unexpectedly".into()),
            Said::Exit(String::new()),
        ]
    }

    #[test]
    fn pieces_say_what_the_whole_says() {
        for size in 1..STREAM.len() {
            let mut parser = Parser::default();
            let all: Vec<Said> =
                STREAM.as_bytes().chunks(size).flat_map(|piece| said(&mut parser, piece)).collect();
            assert_eq!(all, spoken(), "{size}");
        }
    }

    #[test]
    fn what_never_ends_is_not_held() {
        let mut parser = Parser::default();
        for _ in 0..64 {
            assert_eq!(said(&mut parser, &vec![b'x'; 1 << 16]), []);
            assert!(parser.held.len() <= LONGEST);
        }
        assert_eq!(said(&mut parser, b"\n%exit a\n"), [Said::Exit("a".into())]);

        assert_eq!(said(&mut parser, b"%begin 1 2 1\n"), []);
        let line = [vec![b'x'; 1 << 20], vec![b'\n']].concat();
        for _ in 0..20 {
            assert_eq!(said(&mut parser, &line), []);
        }
        assert!(parser.answer.as_ref().unwrap().lines.is_empty());
        assert_eq!(said(&mut parser, b"%end 1 2 1\n"), [answer(true, Err("the answer is too long"))]);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_are_survived(bytes: Vec<u8>, cut: usize, lines in "(%(output|subscription-changed|begin|end|error|pause|exit) ?[ -~]{0,20}\n){0,8}") {
            let bytes = [lines.as_bytes(), &bytes].concat();
            let whole = said(&mut Parser::default(), &bytes);
            let (first, second) = bytes.split_at(cut.checked_rem(bytes.len()).unwrap_or_default());
            let mut parser = Parser::default();
            let mut pieces = said(&mut parser, first);
            pieces.extend(said(&mut parser, second));
            prop_assert_eq!(pieces, whole);
        }
    }
}
