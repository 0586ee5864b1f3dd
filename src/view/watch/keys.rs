//! Keys, and their commands.

use super::row::Key as LoopKey;

/// A key, or a text that was pasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// A printable key; also with Shift.
    Char(char),
    /// With Ctrl, as the small letter.
    Ctrl(char),
    Enter,
    Escape,
    Tab,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Pasted text, whose letters are no keys.
    Paste(String),
}

/// A command that the model cannot carry out by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To leave, with whether that was by Ctrl+C.
    Leave {
        /// By Ctrl+C.
        interrupted: bool,
    },
    /// To go back to the shell for a while.
    Suspend,
    /// To draw everything again.
    Redraw,
    /// A request to a loop.
    Ask(LoopKey, Deed),
    /// To show something else for a while.
    Show(LoopKey, Sight),
}

/// A request to a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    Pause,
    Resume,
    Cancel,
    CancelNow,
    Note(String),
}

/// Something that is shown in place of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    Diff,
    Log,
    Attach,
    Report,
}
