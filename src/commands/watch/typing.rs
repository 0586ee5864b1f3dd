//! Decodes bytes of a terminal to keys.

use crate::view::watch::keys::Key;

/// The beginning and the end of pasted text.
const PASTE: (&[u8], &[u8]) = (b"\x1b[200~", b"\x1b[201~");
/// A longer paste is cut, in bytes.
const LONGEST: usize = 64 << 10;
/// The longest sequence, in bytes.
const SEQUENCE: usize = 64;

/// Incomplete bytes.
#[derive(Debug, Default)]
pub(super) struct Typing {
    held: Vec<u8>,
}

/// The beginning of bytes.
enum Begins {
    /// This key, in this many bytes.
    With(Key, usize),
    /// This many bytes without a meaning.
    WithNothing(usize),
    /// Incomplete: more bytes may come.
    Unfinished,
}

impl Typing {
    /// The complete keys.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.held.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut rest = self.held.as_slice();
        while !rest.is_empty() {
            match begin(rest) {
                Begins::With(key, length) => {
                    keys.push(key);
                    rest = &rest[length..];
                }
                Begins::WithNothing(length) => rest = &rest[length..],
                Begins::Unfinished => break,
            }
        }
        self.held = rest.to_vec();
        keys
    }

    /// Whether an incomplete sequence has begun.
    pub(super) fn is_open(&self) -> bool {
        !self.held.is_empty() && !self.held.starts_with(PASTE.0)
    }

    /// No more bytes have come: the escape was a key.
    pub(super) fn settle(&mut self) -> Option<Key> {
        if !self.is_open() {
            return None;
        }
        (std::mem::take(&mut self.held) == b"\x1b").then_some(Key::Escape)
    }
}

fn begin(bytes: &[u8]) -> Begins {
    match bytes[0] {
        0x1b => escape(bytes),
        b'\r' | b'\n' => Begins::With(Key::Enter, 1),
        b'\t' => Begins::With(Key::Tab, 1),
        0x7f | 0x08 => Begins::With(Key::Backspace, 1),
        byte @ 1..=26 => Begins::With(Key::Ctrl(char::from(b'a' - 1 + byte)), 1),
        0..0x20 => Begins::WithNothing(1),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Begins {
    let length = match bytes[0] {
        0..0x80 => 1,
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return Begins::WithNothing(1),
    };
    let whole = &bytes[..length.min(bytes.len())];
    match std::str::from_utf8(whole) {
        Ok(text) => {
            text.chars().next().map_or(Begins::WithNothing(1), |char| Begins::With(Key::Char(char), length))
        }
        Err(error) if error.error_len().is_none() => Begins::Unfinished,
        Err(_) => Begins::WithNothing(1),
    }
}

fn escape(bytes: &[u8]) -> Begins {
    if bytes.starts_with(PASTE.0) {
        return paste(&bytes[PASTE.0.len()..]);
    }
    match bytes {
        [] | [_] | [_, b'O'] => Begins::Unfinished,
        // The first of two is the key.
        [_, 0x1b, ..] => Begins::With(Key::Escape, 1),
        [_, b'[', rest @ ..] => sequence(rest),
        [_, b'O', last, ..] => named(b"", *last).map_or(Begins::WithNothing(3), |key| Begins::With(key, 3)),
        // With Alt, which has no meaning here.
        [_, _, ..] => Begins::WithNothing(2),
    }
}

/// The sequence after `ESC [`.
fn sequence(rest: &[u8]) -> Begins {
    match rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) {
        Some(at) => {
            named(&rest[..at], rest[at]).map_or(Begins::WithNothing(at + 3), |key| Begins::With(key, at + 3))
        }
        None if rest.len() > SEQUENCE => Begins::WithNothing(rest.len() + 2),
        None => Begins::Unfinished,
    }
}

/// The key of a sequence with these numbers and this last byte.
fn named(numbers: &[u8], last: u8) -> Option<Key> {
    let number = numbers.split(|byte| *byte == b';').next().unwrap_or_default();
    Some(match (number, last) {
        (_, b'A') => Key::Up,
        (_, b'B') => Key::Down,
        (_, b'H') | (b"1" | b"7", b'~') => Key::Home,
        (_, b'F') | (b"4" | b"8", b'~') => Key::End,
        (b"5", b'~') => Key::PageUp,
        (b"6", b'~') => Key::PageDown,
        (_, b'M') if numbers.is_empty() => Key::Enter,
        _ => return None,
    })
}

/// The text after the beginning of a paste.
fn paste(rest: &[u8]) -> Begins {
    let Some(at) = rest.windows(PASTE.1.len()).position(|window| window == PASTE.1) else {
        // A paste without an end is none.
        return if rest.len() > LONGEST {
            Begins::WithNothing(PASTE.0.len() + rest.len())
        } else {
            Begins::Unfinished
        };
    };
    let text = String::from_utf8_lossy(&rest[..at]).replace('\r', "\n");
    Begins::With(Key::Paste(text), PASTE.0.len() + at + PASTE.1.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut typing = Typing::default();
        let mut keys = typing.take(bytes);
        keys.extend(typing.settle());
        keys
    }

    #[test]
    fn keys_are_known_by_what_terminals_send() {
        assert_eq!(keys(b"qC/\xc3\xa9"), ['q', 'C', '/', 'é'].map(Key::Char));
        assert_eq!(keys(b"\x1b[A\x1bOB\x1b[1;5A"), [Key::Up, Key::Down, Key::Up]);
        assert_eq!(keys(b"\x1b[5~\x1b[6~"), [Key::PageUp, Key::PageDown]);
        assert_eq!(keys(b"\x1b[H\x1b[4~\x1bOF\x1b[1~"), [Key::Home, Key::End, Key::End, Key::Home]);
        assert_eq!(
            keys(b"\r\t\x7f\x03\x1a"),
            [Key::Enter, Key::Tab, Key::Backspace, Key::Ctrl('c'), Key::Ctrl('z')]
        );
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(keys(b"\x1b\x1b"), [Key::Escape, Key::Escape]);
        assert_eq!(keys(b"\x1b[3~\x1b[I\x1bx\x00\xff\xc3("), [Key::Char('(')], "means nothing here");
    }

    #[test]
    fn a_paste_is_one_key_and_none_of_its_letters() {
        assert_eq!(keys(b"\x1b[200~q\ncy\x1b[201~j"), [Key::Paste("q\ncy".into()), Key::Char('j')]);
        let mut typing = Typing::default();
        assert_eq!(typing.take(b"\x1b[200~half"), []);
        assert!(!typing.is_open(), "it may take its time");
        assert_eq!(typing.take(b" and half\x1b[201~"), [Key::Paste("half and half".into())]);
        assert_eq!(typing.take(&[b"\x1b[200~".as_slice(), &vec![b'q'; LONGEST + 1]].concat()), []);
    }

    proptest! {
        #[test]
        fn pieces_are_the_same_keys(bytes in proptest::collection::vec(any::<u8>(), 0..60), at in 0usize..60) {
            let (one, other) = bytes.split_at(at.min(bytes.len()));
            let (mut whole, mut pieces) = (Typing::default(), Typing::default());
            let keys = [pieces.take(one), pieces.take(other)].concat();
            prop_assert_eq!(keys, whole.take(&bytes));
        }
    }
}
