//! What a terminal sends, taken apart.

/// One thing that a person or a program has typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Text(String),
    /// What came between the marks of a paste.
    Paste(String),
    Enter,
    Up,
    Down,
    Escape,
    Interrupt,
    Backspace,
}

const PASTE: &[u8] = b"\x1b[200~";
const PASTED: &[u8] = b"\x1b[201~";

/// Bytes become keys; what is not whole yet is kept.
#[derive(Debug, Default)]
pub(super) struct Keys {
    held: Vec<u8>,
}

impl Keys {
    /// The keys in these bytes and those before. `is_all`: nothing follows soon, so an escape stands for itself.
    pub(super) fn take(&mut self, bytes: &[u8], is_all: bool) -> Vec<Key> {
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_slice();
        let mut keys = Vec::new();
        while let Some((key, length)) = next(rest, is_all) {
            keys.extend(key);
            rest = &rest[length..];
        }
        self.held = rest.to_vec();
        keys
    }
}

/// The first key, if there is a whole one that means something, and its length.
fn next(bytes: &[u8], is_all: bool) -> Option<(Option<Key>, usize)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (&first, rest) = bytes.split_first()?;
    Some(match first {
        b'\r' | b'\n' => (Some(Key::Enter), 1),
        0x03 => (Some(Key::Interrupt), 1),
        0x08 | 0x7f => (Some(Key::Backspace), 1),
        0x1b if bytes.starts_with(PASTE) => {
            let pasted = &bytes[PASTE.len()..];
            let length = pasted.windows(PASTED.len()).position(|end| end == PASTED)?;
            let pasted_text = text(&pasted[..length]).replace("\r\n", "\n").replace('\r', "\n");
            (Some(Key::Paste(pasted_text)), PASTE.len() + length + PASTED.len())
        }
        0x1b if matches!(rest.first(), Some(b'[' | b'O')) => {
            let end = rest[1..].iter().position(|byte| (0x40..0x7f).contains(byte))?;
            let key = match rest[1 + end] {
                b'A' => Some(Key::Up),
                b'B' => Some(Key::Down),
                _ => None,
            };
            (key, end + 3)
        }
        0x1b if rest.is_empty() && !is_all => return None,
        0x1b => (Some(Key::Escape), 1),
        _ if first.is_ascii_control() && first != b'\t' => (None, 1),
        _ => {
            let end = bytes
                .iter()
                .position(|byte| byte.is_ascii_control() && *byte != b'\t')
                .unwrap_or(bytes.len());
            // A character that is cut off is waited for.
            let whole = match str::from_utf8(&bytes[..end]) {
                Err(error) if error.error_len().is_none() && !is_all => error.valid_up_to(),
                _ => end,
            };
            if whole == 0 {
                return None;
            }
            (Some(Key::Text(text(&bytes[..whole]))), whole)
        }
    })
}
