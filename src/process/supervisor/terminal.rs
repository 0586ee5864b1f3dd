//! The supervisor and the terminal: its own, that it gives to its program, or ralph's, that it leaves.

use rustix::process::Pid;
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use crate::process::group;
use crate::process::stat::Stat;

/// Makes the program the foreground of our terminal, if that is ours to give: in the background, we would be stopped
/// for trying. If the program has been faster and was stopped for using the terminal, the supervisor continues it.
pub(super) fn hand_over(program: Pid) {
    if group::is_in_front(rustix::stdio::stdin()) == Some(true) {
        let _ = tcsetpgrp(rustix::stdio::stdin(), program);
    }
}

/// Whether our terminal listens to this group.
pub(super) fn is_foreground(group: Pid) -> bool {
    tcgetpgrp(rustix::stdio::stdin()) == Ok(group)
}

/// Gives us a session of our own. Ralph starts us in a process group of our own, because a Ctrl+C would end us
/// while we are not yet ready for it; but the leader of a group cannot lead a session, so we join ralph's group
/// for a moment.
pub(super) fn leave() {
    let ralph =
        rustix::process::getppid().and_then(|ralph| Stat::read(ralph.as_raw_nonzero().get().unsigned_abs()));
    let ralphs = ralph.and_then(|stat| Pid::from_raw(i32::try_from(stat.group).ok()?));
    if ralphs.is_some() {
        // Where this fails (ralph has just died), we are at least in a group of our own.
        let _ = rustix::process::setpgid(None, ralphs);
    }
    let _ = rustix::process::setsid();
}
