//! The data about an interactive program and its screens.
//!
//! The agents' files have theirs from the recordings under `tests/screens/`: claude 2.1.330, codex 0.169, gemini 0.61, opencode
//! 1.18, cline 3.0, pi 0.73, qwen 0.24, copilot 1.0, kimi 2.1, vibe 3.0 and aider 0.86. Data from earlier versions or from documentation is marked.

use std::time::Duration;

/// One interactive program.
#[derive(Debug)]
pub struct Program {
    /// Its name for people.
    pub name: &'static str,
    /// The file names of its executables and images.
    pub(crate) names: &'static [&'static str],
    /// Options that no other program has: they identify it when a user's script starts it.
    pub(crate) options: &'static [&'static str],
    /// A regular expression for a line above which everything is old: programs that do not clear the screen leave answered
    /// dialogs there. Empty: there is no such line.
    pub(crate) past: &'static str,
    /// Screens on which it cannot take a prompt; the first match counts, before all that mean ready.
    pub(crate) not_ready: &'static [Known],
    /// Screens on which it can, and for how long they must last.
    pub(crate) ready: &'static [(Sight, Duration)],
    /// Its questions to a person while it works, and the words for them. Dialogs are at the end of the screen, and replace the
    /// input line.
    pub(crate) asks: &'static [(Sight, &'static str)],
    /// A regular expression, over lines, for the beginning of an error that ends its turn; the message begins with the group,
    /// if there is one. Empty: none is known.
    pub(crate) error: &'static str,
    /// A regular expression for the first line of any other message: an error before such a line has not ended the turn.
    pub(crate) message: &'static str,
    /// A regular expression, over lines, for the words in which it waits for its network, however long; the reason is the group, if
    /// there is one. Empty: none are known.
    pub(crate) offline: &'static str,
    /// A regular expression for the first line of the input; the last match of a screen counts. Empty: the input is the last
    /// line of the screen.
    pub(crate) input: &'static str,
    /// A regular expression for the placeholder of a long prompt. Empty: there is none.
    pub(crate) placeholder: &'static str,
    /// How long it needs between a paste and Enter, after the paste is on its screen.
    pub pause: Duration,
}

/// A screen that is not ready.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) sight: Sight,
    pub(crate) means: Means,
}

/// Where a regular expression is searched.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sight {
    /// In the whole screen as one line: see `text::flowed`.
    Text(&'static str),
    /// In one of its lines.
    Line(&'static str),
    /// In the last line that is not empty. For programs that leave answered questions above.
    Last(&'static str),
}

/// What to do about a screen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Means {
    /// Press these keys, by tmux's names: the answer is harmless.
    Press(&'static [&'static str], &'static str),
    /// Choose the entry of a menu that this regular expression finds.
    Choose(&'static str, &'static str),
    /// Choose that entry, if the user has allowed it; else a person is needed.
    Trust(&'static str),
    /// A person is needed.
    Attention(&'static str),
    /// Wait: it is still starting.
    Starting,
}

/// A screen that is the same in two looks this far apart is not being painted.
pub const SETTLED: Duration = Duration::from_millis(400);
/// For a screen that may be followed by a dialog at once.
pub(super) const LONG: Duration = Duration::from_secs(1);
/// For a screen that may be visible before the rest of it is painted.
pub(super) const LONGER: Duration = Duration::from_secs(2);
/// For a screen that may be visible long before the program is ready.
pub(super) const LONGEST: Duration = Duration::from_secs(15);

pub(super) const PERMISSION: &str = "it asks for permission";
pub(crate) const QUESTION: &str = "it asks a question";
pub(super) const LOGIN: &str = "it wants a login";
pub(super) const BROWSER: &str = "it wants a login in a browser";
pub(super) const UPDATE: &str = "an update, declined";
pub(super) const NOTES: &str = "release notes";

/// A screen and what to do about it.
pub(crate) const fn known(sight: Sight, means: Means) -> Known {
    Known { sight, means }
}

impl Program {
    /// An unknown program.
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
        offline: "",
        input: "",
        placeholder: "",
        pause: Duration::ZERO,
    };
}
