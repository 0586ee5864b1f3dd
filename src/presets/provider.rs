//! Whom an agent has to reach.

/// The hosts of an agent's provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// Those that its documentation names for models and logins. `*.` before a name: all below it.
    pub hosts: &'static [&'static str],
    /// Variables with the address of another one.
    pub variables: &'static [&'static str],
}

impl Provider {
    /// None is known.
    pub(super) const NONE: Self = Self { hosts: &[], variables: &[] };
}
