//! What there is to know of an interactive program and of its screens.
//!
//! What the agents' files say of theirs comes from the recordings under `tests/screens/`: claude 2.1.330, codex 0.169, gemini 0.61,
//! opencode 1.18, cline 3.0 and aider 0.86. What else stands there comes from earlier versions and from documentation, and says so.

use std::time::Duration;

/// One interactive program.
#[derive(Debug)]
pub struct Program {
    /// What people call it.
    pub name: &'static str,
    /// The file names of its executables and images.
    pub(crate) names: &'static [&'static str],
    /// Options that no other program has: they name it where a script of the user's starts it.
    pub(crate) options: &'static [&'static str],
    /// A regular expression for a line above which everything is past: programs that do not clear the screen leave dialogs
    /// there that were answered. Empty: nothing is.
    pub(crate) past: &'static str,
    /// Screens on which it cannot take a prompt; the first that is seen counts, before all that mean ready.
    pub(crate) not_ready: &'static [Known],
    /// What shows that it can, and for how long that has to be seen.
    pub(crate) ready: &'static [(Sight, Duration)],
    /// What it asks of a person while it works, and in which words that is told. Dialogs stand at the end of the screen, and
    /// take the place of where a prompt is typed.
    pub(crate) asks: &'static [(Sight, &'static str)],
    /// A regular expression, over lines, for where an error begins that ends its turn; its words begin with the group, if there
    /// is one. Empty: none is known.
    pub(crate) error: &'static str,
    /// A regular expression for the first line of all else that it or its model says: an error that is followed by that has not ended the turn.
    pub(crate) message: &'static str,
    /// A regular expression for the first line of where a prompt is typed; the last such line of a screen is it. Empty: it
    /// is the last line of the screen.
    pub(crate) input: &'static str,
    /// A regular expression for what is shown in the place of a long prompt. Empty: nothing is.
    pub(crate) placeholder: &'static str,
    /// How long it needs between a paste and Enter, besides the time until the paste is on its screen.
    pub pause: Duration,
}

/// A screen that is not ready.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) sight: Sight,
    pub(crate) means: Means,
}

/// Where a regular expression is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sight {
    /// In the whole screen as one line: see `text::flowed`.
    Text(&'static str),
    /// In one of its lines.
    Line(&'static str),
    /// In the last line that has something on it. For programs that leave what was answered above.
    Last(&'static str),
}

/// What a screen asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Means {
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

/// A screen that two looks this far apart saw the same was not caught while it was being painted.
pub const SETTLED: Duration = Duration::from_millis(400);
/// A sight that may be followed by a dialog at once.
pub(super) const LONG: Duration = Duration::from_secs(1);
/// A sight that may also be seen while the rest of the screen is still to come.
pub(super) const LONGER: Duration = Duration::from_secs(2);
/// A sight that may be there long before the program is.
pub(super) const LONGEST: Duration = Duration::from_secs(15);

pub(super) const PERMISSION: &str = "it asks for permission";
pub(crate) const QUESTION: &str = "it asks a question";
pub(super) const LOGIN: &str = "it wants a login";
pub(super) const BROWSER: &str = "it wants a login in a browser";
pub(super) const UPDATE: &str = "an update, declined";
pub(super) const NOTES: &str = "release notes";

/// A screen and what it asks for.
pub(crate) const fn known(sight: Sight, means: Means) -> Known {
    Known { sight, means }
}

impl Program {
    /// A program of which nothing is known.
    pub(crate) const BLANK: Self = Self {
        name: "this program",
        names: &[],
        options: &[],
        past: "",
        not_ready: &[],
        ready: &[],
        asks: &[],
        error: "",
        message: "",
        input: "",
        placeholder: "",
        pause: Duration::ZERO,
    };
}
