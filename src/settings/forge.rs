//! The choice of a forge.

/// Which forge serves the remote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForgeChoice {
    /// The one that the name of the host says.
    #[default]
    Auto,
    /// GitHub, or a server of its kind.
    Github,
    /// GitLab, or a server of its kind.
    Gitlab,
}

impl ForgeChoice {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Github, Self::Gitlab];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Github => "github",
            Self::Gitlab => "gitlab",
        }
    }
}
