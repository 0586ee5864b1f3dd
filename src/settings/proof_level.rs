//! Choices by a word: how a claim is proven and what follows, and how work lands.

/// How a claim is proven, from the least to the most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProofLevel {
    /// The validation command runs where the agent works.
    Place,
    /// It runs in a clean checkout of the claimed commit.
    Clean,
    /// It runs there once more, with the tests and scripts of the commit where the work began.
    #[default]
    Base,
    /// Also, a pass has to be one twice, and new tests have to fail without the work.
    Strict,
}

/// What follows if the work passes only with tests or scripts that the agent has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnProtected {
    /// A fresh agent judges whether that is honest.
    #[default]
    Voice,
    /// The claim is refused.
    Refuse,
    /// It counts, and that is reported.
    Tell,
}

/// What a candidate for the trunk is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LandingStyle {
    /// A merge commit for each task, unless a fast-forward does.
    #[default]
    Merge,
    /// The task's commits once more, one after the other.
    Rebase,
}

impl LandingStyle {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Merge, Self::Rebase];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
        }
    }
}

impl OnProtected {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Voice, Self::Refuse, Self::Tell];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Voice => "voice",
            Self::Refuse => "refuse",
            Self::Tell => "tell",
        }
    }
}

impl ProofLevel {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Place, Self::Clean, Self::Base, Self::Strict];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Place => "place",
            Self::Clean => "clean",
            Self::Base => "base",
            Self::Strict => "strict",
        }
    }
}
