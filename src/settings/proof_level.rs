//! How a claim is proven.

/// How a claim is proven, from the least to the most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProofLevel {
    /// The validation command runs where the agent works.
    #[default]
    Place,
    /// It runs in a clean checkout of the claimed commit.
    Clean,
}

impl ProofLevel {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Place, Self::Clean];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Place => "place",
            Self::Clean => "clean",
        }
    }
}
