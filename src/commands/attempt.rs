//! What an agent must not do by itself while a loop waits for it. This keeps order; it is no sandbox.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use anyhow::bail;

use crate::job::workspace::locate;
use crate::process::stat::Stat;
use crate::process::sweep::{PANE_MARK, RUN_MARK, SUPERVISOR_MARK};
use crate::record::lookup;
use crate::record::state::Extent;

/// The inode of the pid namespace that all others are in (`PROC_PID_INIT_INO` of the kernel).
const OUTERMOST_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Where we are called.
enum Place {
    /// By a person, or by a program of theirs.
    Outside,
    /// By a program of a living run.
    Inside,
    /// With the marks of a run of which nobody can tell whether it lives.
    Doubtful,
}

/// Refuses a verb inside of an attempt: what becomes of a task is booked by ralph, from what its agent says.
pub(super) fn refuse(verb: &str) -> anyhow::Result<()> {
    let refused = format!("'ralph {verb}' is not for agents at work");
    match place() {
        Place::Outside => Ok(()),
        Place::Inside => {
            bail!("{refused}: say what became of the task in your answer, ralph books it")
        }
        Place::Doubtful => bail!(
            "{refused}, and {RUN_MARK} says that this is one of a run that cannot be found: call it from another terminal"
        ),
    }
}

/// Whether ralph is called inside an attempt, or may be.
pub(super) fn is_inside() -> bool {
    !matches!(place(), Place::Outside)
}

/// The marks alone say little: they may have outlived their run, as in a terminal that an agent has opened.
fn place() -> Place {
    let mark = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    // In the window of a worker nobody else has this.
    if mark(PANE_MARK).is_some() {
        return Place::Inside;
    }
    let supervisor = mark(SUPERVISOR_MARK).and_then(|pid| pid.parse::<u32>().ok());
    let (Some(run), Some(supervisor)) = (mark(RUN_MARK), supervisor) else { return Place::Outside };
    if is_below(supervisor) {
        return Place::Inside;
    }
    // Who sees every process would have seen the supervisor; in a container's own namespace nobody does.
    let namespace = fs::metadata("/proc/self/ns/pid").map(|namespace| namespace.ino());
    if namespace.is_ok_and(|inode| inode == OUTERMOST_NAMESPACE) {
        return Place::Outside;
    }
    match lives(&run) {
        Some(true) => Place::Inside,
        Some(false) => Place::Outside,
        None => Place::Doubtful,
    }
}

fn is_below(supervisor: u32) -> bool {
    // As `/proc` numbers us, which may be that of another namespace than ours.
    let own = fs::read_link("/proc/self").ok().and_then(|pid| pid.to_str()?.parse().ok());
    let above = |pid: &u32| Stat::read(*pid).map(|stat| stat.ppid).filter(|&parent| parent > 0);
    std::iter::successors(own, above).any(|pid| pid == supervisor)
}

/// Whether a run is at work, as its lock says, which counts in every namespace. `None`: it is not known here.
fn lives(run: &str) -> Option<bool> {
    let loops = lookup::of_machine(&locate(None).ok()?, Extent::Head);
    let found = loops.iter().find(|found| found.state.as_ref().is_ok_and(|state| state.run == run));
    found.map(|found| found.alive().is_some())
}
