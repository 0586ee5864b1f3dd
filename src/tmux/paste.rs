//! Types into a pane.
//!
//! All text goes through a tmux buffer, which reaches the program whatever the user does in that window: keys would
//! go to the mode in which a user scrolls back, and tmux refuses a long text as one command.

use std::sync::atomic::{AtomicU64, Ordering};

use super::error::TmuxError;
use super::window::{Window, guarded};
use super::{Asks as _, Words};

/// The longest text that is typed, in bytes.
pub const MOST: usize = 1 << 20;

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Enter, as a terminal sends it.
    Enter,
    /// Ctrl+C.
    Interrupt,
}

impl Key {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Enter => vec![b'\r'],
            Self::Interrupt => vec![3],
        }
    }
}

/// Pastes a text, in brackets if the program has asked for them: then it is one text of any number of lines.
/// Otherwise it arrives as if typed. A line end stays a line end (Ctrl+J), as Enter would submit a part of the text:
/// tmux does not report whether there are brackets. Returns when tmux has it; the program may still be reading.
/// Control characters are removed; returns how many.
///
/// # Errors
/// If the pane is gone, its program has ended, or the text is longer than [`MOST`].
pub fn paste(window: &Window, text: &str) -> Result<usize, TmuxError> {
    let (text, removed) = typable(text);
    put(window, text.into_bytes(), &["-p", "-r"])?;
    Ok(removed)
}

/// Types a text without brackets, otherwise like [`paste`].
///
/// # Errors
/// As for [`paste`].
pub fn type_text(window: &Window, text: &str) -> Result<usize, TmuxError> {
    let (text, removed) = typable(text);
    put(window, text.into_bytes(), &["-r"])?;
    Ok(removed)
}

/// Presses a key.
///
/// # Errors
/// If the pane is gone, or its program has ended.
pub fn press(window: &Window, key: Key) -> Result<(), TmuxError> {
    put(window, key.bytes(), &["-r"])
}

/// Presses keys by their tmux names, one after the other, even if a user is scrolling back.
///
/// # Errors
/// If the pane is gone, or its program has ended.
pub fn press_keys(window: &Window, keys: &[&str]) -> Result<(), TmuxError> {
    let leave = Words::new(["if-shell", "-F", "-t", &window.pane, "#{pane_in_mode}"]).and([Words::new([
        "send-keys",
        "-t",
        &window.pane,
        "-X",
        "cancel",
    ])
    .to_line()]);
    let send = Words::new(["send-keys", "-t", &window.pane]).and(keys);
    guarded(window, &[window.guarded_alive(&leave), window.guarded_alive(&send)], None)
}

/// The part of a text that can be typed without side effects: without control characters except newline and tab, and
/// how many were removed. An `ESC[201~` would end the brackets, `^C` would interrupt. A Windows line end becomes a
/// newline.
#[must_use]
pub fn typable(text: &str) -> (String, usize) {
    let text = text.replace("\r\n", "\n");
    let clean: String =
        text.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t')).collect();
    let removed = text.chars().count() - clean.chars().count();
    (clean, removed)
}

/// Gives each of our buffers a new name.
static COUNT: AtomicU64 = AtomicU64::new(0);

fn put(window: &Window, bytes: Vec<u8>, flags: &[&str]) -> Result<(), TmuxError> {
    if bytes.len() > MOST {
        return Err(TmuxError::Input(format!(
            "it has {} bytes, and {MOST} is the most: shorten it",
            bytes.len()
        )));
    }
    if bytes.is_empty() {
        return window.require_server();
    }
    let buffer = format!("ralph-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let load = Words::new(["load-buffer", "-b", &buffer, "-"]);
    let paste = Words::new(["paste-buffer", "-d", "-b", &buffer, "-t", &window.pane]).and(flags);
    let result = guarded(window, &[load, window.guarded_alive(&paste)], Some(bytes));
    if result.is_err() {
        let _ = window.server().ask(&[Words::new(["delete-buffer", "-b", &buffer])]);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_do_something_else_is_left_out() {
        for (text, typed, removed) in [
            ("a\n\tb é 日本\u{200d}", "a\n\tb é 日本\u{200d}", 0),
            ("a\r\nb\rc", "a\nbc", 1),
            ("\x1b[201~\x03x\0\x7f\u{9b}", "[201~x", 5),
            ("", "", 0),
        ] {
            assert_eq!(typable(text), (typed.to_owned(), removed), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_but_text_is_typed(text: String) {
            let (typed, removed) = typable(&text);
            assert!(typed.chars().all(|char| !char.is_control() || "\n\t".contains(char)));
            assert_eq!(typable(&typed), (typed.clone(), 0));
            let windows = text.matches("\r\n").count();
            assert_eq!(typed.chars().count() + removed + windows, text.chars().count());
        }
    }
}
