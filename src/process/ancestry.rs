//! The processes above ours.

use super::stat::Stat;
use super::supervisor::VERB;

/// Whether a supervisor of ralph's is above this process: what a program of a loop starts stays below one, in whatever session
/// and environment, because supervisors are subreapers. Processes from `top` up do not count.
#[must_use]
pub fn has_supervisor(top: Option<u32>) -> bool {
    // As `/proc` numbers us, which may be that of another namespace than ours.
    let own = std::fs::read_link("/proc/self").ok().and_then(|pid| pid.to_str()?.parse().ok());
    let above = |pid: &u32| Stat::read(*pid).map(|stat| stat.ppid).filter(|&parent| parent > 0);
    std::iter::successors(own, above).take_while(|pid| Some(*pid) != top).any(is_supervisor)
}

/// Whether the command line of a process is that of a supervisor, of this or another build of ralph.
fn is_supervisor(pid: u32) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).nth(1) == Some(VERB.as_bytes())
}
