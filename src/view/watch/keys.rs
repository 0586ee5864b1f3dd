//! Keys, and what they ask for.

use super::row::Key as LoopKey;

/// A key, or a text that was pasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// One that stands for itself; also those with Shift.
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
    /// Nobody has pressed its letters.
    Paste(String),
}

/// What the person at the keys wants that the model cannot do by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To leave, by Ctrl+C where that is told.
    Leave {
        /// By Ctrl+C.
        interrupted: bool,
    },
    /// To go back to the shell for a while.
    Suspend,
    /// Everything is to be drawn anew.
    Redraw,
    /// Something of a loop.
    Ask(LoopKey, Deed),
    /// To see something else for a while.
    Show(LoopKey, Sight),
}

/// What is asked of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    Pause,
    Resume,
    Cancel,
    CancelNow,
    Note(String),
}

/// What is shown in place of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    Diff,
    Log,
    Attach,
    Report,
}
