//! What has to be in order before an agent can work, and how that can be told without spending anything.
//!
//! All of it was tried with the real agents.

/// What has to be in order before an agent can work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Whether its user is logged in.
    pub login: LoginCheck,
    /// Where it refuses to work as root.
    pub root: Option<RootRefusal>,
    /// Where it works only in folders that its user trusts.
    pub trust: Option<TrustCheck>,
    /// Options that it takes although its help does not name them.
    pub unlisted: &'static [&'static str],
}

/// A file below the home folder (`~/…`) or the project, and the place in its JSON, as a JSON pointer.
pub type Place = (&'static str, &'static str);

/// How it can be told whether the user of an agent is logged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginCheck {
    /// A login is not needed.
    NotNeeded,
    /// With these arguments it prints an object with `loggedIn`.
    Json(&'static [&'static str]),
    /// With these arguments it exits with 0 if a login exists, but does not know of every way.
    Exit(&'static [&'static str]),
    /// With these arguments it prints how many credentials there are, of those that it keeps itself.
    Counts(&'static [&'static str]),
    /// By what a login leaves, of which one is enough.
    Traces {
        /// Variables.
        variables: &'static [&'static str],
        /// Values in files.
        files: &'static [Place],
        /// A value among these that is worth nothing without a variable, or a file that may set it.
        keys: &'static [(&'static str, &'static str, &'static str)],
    },
}

/// How an agent refuses to work as root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootRefusal {
    /// With this option,
    pub option: &'static str,
    /// unless this variable has this value.
    pub unless: (&'static str, &'static str),
}

/// How an agent is told that a folder can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustCheck {
    /// By this option,
    pub option: &'static str,
    /// by this variable with this value,
    pub variable: (&'static str, &'static str),
    /// by switching the question off,
    pub question: Place,
    /// or by a file with an object: from a path to `TRUST_FOLDER`, `TRUST_PARENT` or `DO_NOT_TRUST`.
    pub folders: &'static str,
}

impl Setup {
    /// Nothing has to be.
    pub(super) const NONE: Self =
        Self { login: LoginCheck::NotNeeded, root: None, trust: None, unlisted: &[] };
}
