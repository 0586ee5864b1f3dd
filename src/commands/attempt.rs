//! What an agent must not do by itself while a loop waits for it. This keeps order; it is no sandbox.

use anyhow::bail;

use crate::process::stat::Stat;
use crate::process::sweep::{RUN_MARK, SUPERVISOR_MARK};

/// Refuses a verb inside of an attempt: what becomes of a task is booked by ralph, from what its agent says.
pub(super) fn refuse(verb: &str) -> anyhow::Result<()> {
    if is_inside() {
        bail!(
            "'ralph {verb}' is not for agents at work: say what became of the task in your answer, ralph books it"
        );
    }
    Ok(())
}

/// Whether we were started by a program of a living run: the marks alone may have outlived it, as in a terminal that an
/// agent has opened.
fn is_inside() -> bool {
    let mark = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let supervisor = mark(SUPERVISOR_MARK).and_then(|pid| pid.parse::<u32>().ok());
    let Some(supervisor) = supervisor.filter(|_| mark(RUN_MARK).is_some()) else { return false };
    let above = |pid: &u32| Stat::read(*pid).map(|stat| stat.ppid).filter(|&parent| parent > 0);
    std::iter::successors(Some(std::process::id()), above).any(|pid| pid == supervisor)
}
