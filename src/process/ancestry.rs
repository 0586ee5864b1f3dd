//! The ancestors of our process.

use super::supervisor::VERB;
use crate::platform::calls::{self, own_pid};
use crate::platform::stat::Stat;

/// Whether a supervisor of ralph is among the ancestors of this process. A program of a loop stays below one, in any
/// session and environment, because supervisors are subreapers. Ancestors from `top` up do not count.
#[must_use]
pub fn has_supervisor(top: Option<u32>) -> bool {
    own_line(top).any(|stat| is_supervisor(stat.pid))
}

/// Whether one of the servers among the ancestors of this process, such as a tmux server, also has a pane with a
/// supervisor, whose program may have made the server start this process. Ancestors from `top` up do not count.
#[must_use]
pub fn is_beside_pane(top: Option<u32>, is_server: impl Fn(&[String]) -> bool) -> bool {
    let mut servers = own_line(top).map(|stat| stat.pid).filter(|pid| is_server(&command_line(*pid)));
    servers.any(|server| Stat::all().any(|stat| stat.ppid == server && is_supervisor(stat.pid)))
}

/// This process and its ancestors.
fn own_line(top: Option<u32>) -> impl Iterator<Item = Stat> {
    let above = |stat: &Stat| Some(stat.ppid).filter(|&parent| parent > 0).and_then(Stat::read);
    let line = std::iter::successors(Stat::read(own_pid()), above);
    line.take_while(move |stat| Some(stat.pid) != top)
}

/// Whether the command line of a process is that of a supervisor, of this or another build of ralph.
fn is_supervisor(pid: u32) -> bool {
    command_line(pid).get(1).is_some_and(|word| word == VERB)
}

/// The command line of a process; empty if it has ended.
fn command_line(pid: u32) -> Vec<String> {
    String::from_utf8_lossy(&calls::command_line(pid)).split('\0').map(str::to_owned).collect()
}
