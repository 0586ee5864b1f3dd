//! Which way of keeping hold of processes is in force here, and how well this kind of machine is tested.

use std::ffi::OsStr;
use std::sync::OnceLock;

use rustix::process::{Signal, getpid};

use super::calls::{adopt, hold, send, shows_processes, tells_parents_death};

/// The variable that names the backend, for tests and for trying it out.
pub const VARIABLE: &str = "RALPH_PLATFORM";

/// A way of keeping hold of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Descriptors of processes, adopted orphans, a signal when the parent dies.
    Linux,
    /// Groups and sessions, descent that is remembered while it is seen, and marks.
    Portable,
}

impl Backend {
    /// Its name, as in [`VARIABLE`].
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Portable => "portable",
        }
    }
}

/// The backend of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Which one.
    pub backend: Backend,
    /// Why it is not the one of this kernel.
    pub why: Option<String>,
}

/// How well ralph is tested on a kind of machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// 1 is the best.
    pub number: u8,
    /// What has been done there.
    pub tested: &'static str,
    /// Which machines are meant.
    pub machines: &'static str,
}

/// The one table of tiers, the best first.
pub const TIERS: [Tier; 3] = [
    Tier { number: 1, tested: "tested on every change", machines: "Linux on x86_64, with glibc" },
    Tier {
        number: 2,
        tested: "with musl, and on aarch64 under qemu, both demos ran to their end; the portable backend: tests of processes",
        machines: "every other Linux: on aarch64, with musl, or where the portable backend is needed",
    },
    Tier { number: 3, tested: "type-checked, never run", machines: "macOS" },
];

/// The tier of this program on this machine.
#[must_use]
pub fn tier() -> Tier {
    let is_first = cfg!(all(target_arch = "x86_64", target_env = "gnu"));
    TIERS[match in_force().backend {
        _ if !cfg!(target_os = "linux") => 2,
        Backend::Linux if is_first => 0,
        _ => 1,
    }]
}

static IN_FORCE: OnceLock<Choice> = OnceLock::new();

/// The backend of this process, found at the first call.
#[must_use]
pub fn in_force() -> &'static Choice {
    IN_FORCE.get_or_init(|| found(std::env::var_os(VARIABLE).as_deref()))
}

/// Finds the backend with this value of [`VARIABLE`] instead of our own, which is that of a tmux server. Does nothing
/// after the first call of [`in_force`].
pub fn settle(named: Option<&OsStr>) {
    IN_FORCE.get_or_init(|| found(named));
}

/// Whether the portable backend is in force.
#[must_use]
pub fn is_portable() -> bool {
    in_force().backend == Backend::Portable
}

fn found(named: Option<&OsStr>) -> Choice {
    let why = if named.is_some_and(|named| named == Backend::Portable.word()) {
        Some(format!("{VARIABLE}={}", Backend::Portable.word()))
    } else {
        lacking()
    };
    let backend = if why.is_some() { Backend::Portable } else { Backend::Linux };
    Choice { backend, why }
}

/// What the Linux backend needs and is not to be had, if anything: an old kernel, or a sandbox that refuses the call.
fn lacking() -> Option<String> {
    let refused = |call| Some(format!("{call} is not to be had here"));
    if !cfg!(target_os = "linux") {
        return Some("this system is not Linux".to_owned());
    }
    if !shows_processes() {
        return refused("a readable /proc");
    }
    let Ok(held) = hold(getpid()) else { return refused("pidfd_open") };
    // A signal that does nothing by default, and that no part of ralph handles.
    if send(&held, Signal::URG).is_err() {
        return refused("pidfd_send_signal");
    }
    // This process adopts nothing yet: each caller of `adopt` asks for the backend first.
    if adopt(false).is_err() {
        return refused("PR_SET_CHILD_SUBREAPER");
    }
    if !tells_parents_death() {
        return refused("PR_SET_PDEATHSIG");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_named_or_found() {
        let portable = found(Some("portable".as_ref()));
        assert_eq!(
            (portable.backend, portable.why.as_deref()),
            (Backend::Portable, Some("RALPH_PLATFORM=portable"))
        );
        for other in [None, Some("linux"), Some("nonsense")] {
            let found = found(other.map(OsStr::new));
            assert_eq!(found.backend == Backend::Linux, found.why.is_none(), "{found:?}");
        }
    }

    #[test]
    fn tiers_are_numbered_from_the_best_on() {
        assert!(TIERS.iter().zip(1..).all(|(tier, number)| tier.number == number));
    }
}
