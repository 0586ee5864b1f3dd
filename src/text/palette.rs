//! The colours of the output. They are readable on black and on white: no yellow, cyan, blue or bright colours.

use anstyle::{AnsiColor, Style};

/// Success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Errors.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default();
/// Notices.
pub(crate) const NOTE: Style = AnsiColor::Magenta.on_default();
/// Questions.
pub(crate) const QUESTION: Style = AnsiColor::Magenta.on_default().bold();
/// Emphasis, neither good nor bad.
pub(crate) const STRONG: Style = Style::new().bold();
/// Less important text.
pub(crate) const FAINT: Style = Style::new().dimmed();
