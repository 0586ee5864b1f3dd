//! The processes above ours.

use super::stat::{Stat, says};
use super::supervisor::VERB;

/// Whether a supervisor of ralph's is above this process: what a program of a loop starts stays below one, in whatever session
/// and environment, because supervisors are subreapers. Processes from `top` up do not count.
#[must_use]
pub fn has_supervisor(top: Option<u32>) -> bool {
    own_line(top).any(|stat| is_supervisor(stat.pid))
}

/// Whether one of the servers that are above this process, such as one of tmux, holds a pane with a supervisor's program, which
/// can have had the server start this process. Processes from `top` up do not count.
#[must_use]
pub fn is_beside_pane(top: Option<u32>, is_server: impl Fn(&[String]) -> bool) -> bool {
    let mut servers = own_line(top).map(|stat| stat.pid).filter(|pid| is_server(&command_line(*pid)));
    servers.any(|server| Stat::all().any(|stat| stat.ppid == server && is_supervisor(stat.pid)))
}

/// This process and those above it.
fn own_line(top: Option<u32>) -> impl Iterator<Item = Stat> {
    // As `/proc` numbers us, which may be that of another namespace than ours.
    let own = std::fs::read_link("/proc/self").ok().and_then(|pid| pid.to_str()?.parse().ok());
    let above = |stat: &Stat| Some(stat.ppid).filter(|&parent| parent > 0).and_then(Stat::read);
    let line = std::iter::successors(own.and_then(Stat::read), above);
    line.take_while(move |stat| Some(stat.pid) != top)
}

/// Whether the command line of a process is that of a supervisor, of this or another build of ralph.
fn is_supervisor(pid: u32) -> bool {
    command_line(pid).get(1).is_some_and(|word| word == VERB)
}

/// The words of a process; none when it is gone.
fn command_line(pid: u32) -> Vec<String> {
    String::from_utf8_lossy(&says(pid, "cmdline")).split('\0').map(str::to_owned).collect()
}
