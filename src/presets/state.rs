//! What an agent keeps on the machine from one start to the next.

/// Where an agent keeps its login, sessions and settings, from the user's home directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Folders, which it makes where they are missing.
    pub folders: &'static [&'static str],
    /// Files at the top of the home.
    pub beside: &'static [&'static str],
    /// The variable that names another folder.
    pub variable: Option<&'static str>,
}

impl State {
    /// None is known.
    pub(super) const NONE: Self = Self { folders: &[], beside: &[], variable: None };
}
