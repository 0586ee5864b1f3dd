//! What an agent needs before it can work, and how that is checked without cost.
//!
//! All of it was tried with the real agents.

/// What an agent needs before it can work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Whether its user is logged in.
    pub login: LoginCheck,
    /// Where it works only in folders that its user trusts.
    pub trust: Option<TrustCheck>,
    /// Options that its help does not list.
    pub unlisted: &'static [&'static str],
}

/// A file below the home folder (`~/…`) or the project, and the place in its JSON, as a JSON pointer. Empty: the file itself says it.
pub type Place = (&'static str, &'static str);

/// How to check whether the user of an agent is logged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginCheck {
    /// A login is not needed.
    NotNeeded,
    /// With these arguments it prints an object with `loggedIn`.
    Json(&'static [&'static str]),
    /// With these arguments it exits with 0 if a login exists, but it does not know every method.
    Exit(&'static [&'static str]),
    /// With these arguments it prints the number of credentials that it stores itself.
    Counts(&'static [&'static str]),
    /// By traces of a login, of which one is enough.
    Traces {
        /// Variables.
        variables: &'static [&'static str],
        /// Values in files.
        files: &'static [Place],
        /// A value among these that counts only with a variable, or with a file that may set it.
        keys: &'static [(&'static str, &'static str, &'static str)],
    },
}

/// How an agent learns that a folder can be trusted.
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
    /// It needs nothing.
    pub(super) const NONE: Self = Self { login: LoginCheck::NotNeeded, trust: None, unlisted: &[] };
}
