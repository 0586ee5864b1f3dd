//! Which ralph this is, and for which machines it was built. `build.rs` says it.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::platform::backend::{in_force, tier};

/// The version, and in brackets the commit that it was made of and that commit's day.
pub(crate) const LINE: &str = env!("RALPH_VERSION");

/// The version of the package, which files name that ralph writes.
pub(crate) const NUMBER: &str = env!("CARGO_PKG_VERSION");

/// A file or a graph that a newer ralph has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Newer {
    /// That it is, and of which version.
    pub(crate) what: String,
    /// What to do.
    pub(crate) advice: String,
}

impl Display for Newer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "it {} and is left as it is: {}", self.what, self.advice)
    }
}

/// The message about a file with a version above the known one; `ralph` is the number of the one that has written it, if the file
/// names that.
#[must_use]
pub(crate) fn newer(version: i64, known: i64, ralph: &str) -> Newer {
    let (which, advice) = if ralph.is_empty() {
        (String::new(), "use that ralph or a later one".to_owned())
    } else {
        (format!(" {ralph}"), format!("use ralph {ralph} or a later one"))
    };
    let versions = format!("version {version} of its format, this one knows {known}");
    Newer { what: format!("was written by a newer ralph{which} ({versions})"), advice }
}

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
