//! What there is to know of an interactive program and of its screens.

use std::time::Duration;

/// One interactive program.
#[derive(Debug)]
pub struct Program {
    /// What people call it.
    pub name: &'static str,
    /// The file names of its executables and images.
    pub(super) names: &'static [&'static str],
    /// Options that no other program has: they name it where a script of the user's starts it.
    pub(super) options: &'static [&'static str],
    /// A regular expression for a line above which everything is past: programs that do not clear the screen leave dialogs
    /// there that were answered. Empty: nothing is.
    pub(super) past: &'static str,
    /// Screens on which it cannot take a prompt; the first that is seen counts, before all that mean ready.
    pub(super) not_ready: &'static [Known],
    /// What shows that it can, and for how long that has to be seen.
    pub(super) ready: &'static [(Sight, Duration)],
    /// What it asks of a person while it works, and in which words that is told. Dialogs stand at the end of the screen, and
    /// take the place of where a prompt is typed.
    pub(super) asks: &'static [(Sight, &'static str)],
    /// A regular expression, over lines, for where an error begins that ends its turn; its words begin with the group, if there
    /// is one. Empty: none is known.
    pub(super) error: &'static str,
    /// A regular expression for the first line of all else that it or its model says: an error that is followed by that has not ended the turn.
    pub(super) message: &'static str,
    /// A regular expression for the first line of where a prompt is typed; the last such line of a screen is it. Empty: it
    /// is the last line of the screen.
    pub(super) input: &'static str,
    /// A regular expression for what is shown in the place of a long prompt. Empty: nothing is.
    pub(super) placeholder: &'static str,
    /// How long it needs between a paste and Enter, besides the time until the paste is on its screen.
    pub pause: Duration,
}

/// A screen that is not ready.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) sight: Sight,
    pub(super) means: Means,
}

/// Where a regular expression is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sight {
    /// In the whole screen as one line: see `text::flowed`.
    Text(&'static str),
    /// In one of its lines.
    Line(&'static str),
    /// In the last line that has something on it. For programs that leave what was answered above.
    Last(&'static str),
}

/// What a screen asks for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Means {
    /// These keys, as tmux names them: what they answer is harmless.
    Press(&'static [&'static str], &'static str),
    /// The entry of a menu that this regular expression finds.
    Choose(&'static str, &'static str),
    /// The same, if the user said so; else a person.
    Trust(&'static str),
    /// A person.
    Attention(&'static str),
    /// Nothing: it is still starting.
    Starting,
}
