//! Choices by a word: whether walls stand around agents, and what they leave open.

/// Whether agents work behind walls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// They do not.
    #[default]
    Off,
    /// They do where the machine can; otherwise that is said.
    Try,
    /// They do, or do not work.
    On,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::Try, Self::On];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Try => "try",
            Self::On => "on",
        }
    }
}

/// Where a program behind walls can connect to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Network {
    /// Everywhere.
    #[default]
    All,
    /// To its own loopback only.
    None,
    /// There, and to the hosts that the agent needs and the settings name.
    Allow,
}

impl Network {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::All, Self::None, Self::Allow];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::None => "none",
            Self::Allow => "allow",
        }
    }
}

/// What follows when an attempt has changed what no work needs to change, such as hooks of git or the user's profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tripping {
    /// It is not looked for.
    Off,
    /// It is told.
    #[default]
    Tell,
    /// It is told, and ends the loop.
    Stop,
}

impl Tripping {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::Tell, Self::Stop];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Tell => "tell",
            Self::Stop => "stop",
        }
    }
}
