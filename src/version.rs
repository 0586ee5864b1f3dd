//! Which ralph this is, and for which machines it was built. `build.rs` says it.

use serde::Serialize;

use crate::platform::backend::{in_force, tier};

/// The version, and in brackets the commit that it was made of and that commit's day.
pub(crate) const LINE: &str = env!("RALPH_VERSION");

/// The version of the package, which files name that ralph writes.
pub(crate) const NUMBER: &str = env!("CARGO_PKG_VERSION");

/// What `ralph --version --json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Version {
    /// The version of the package.
    #[serde(rename = "version")]
    pub(crate) number: &'static str,
    /// The commit; `None` in a debug build, or where the sources did not say it.
    pub(crate) commit: Option<&'static str>,
    /// The day of the commit, in UTC.
    pub(crate) date: Option<&'static str>,
    /// The target triple of the build.
    pub(crate) target: &'static str,
    /// The C library that it is linked with, if there is a choice on its system.
    pub(crate) libc: Option<&'static str>,
    /// What holds the programs that it starts.
    pub(crate) backend: &'static str,
    /// How well builds for this target are tested: `docs/installing.md` has the tiers.
    pub(crate) tier: u8,
}

/// This ralph.
#[must_use]
pub(crate) fn this() -> Version {
    let known = |text: &'static str| Some(text).filter(|text| !text.is_empty());
    let target = env!("RALPH_TARGET");
    Version {
        number: NUMBER,
        commit: known(env!("RALPH_COMMIT")),
        date: known(env!("RALPH_DATE")),
        target,
        libc: match target.rsplit('-').next() {
            Some("gnu") => Some("glibc"),
            Some("musl") => Some("musl"),
            _ => None,
        },
        backend: in_force().backend.word(),
        tier: tier().number,
    }
}
