//! The colours of what is shown. They can be read on black and on white alike: nothing yellow, cyan, blue or bright.

use anstyle::{AnsiColor, Style};

/// What went well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What went wrong.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default();
/// What is worth a look.
pub(crate) const NOTE: Style = AnsiColor::Magenta.on_default();
/// What wants an answer.
pub(crate) const QUESTION: Style = AnsiColor::Magenta.on_default().bold();
/// What stands out without being good or bad.
pub(crate) const STRONG: Style = Style::new().bold();
/// What may be passed over.
pub(crate) const FAINT: Style = Style::new().dimmed();
