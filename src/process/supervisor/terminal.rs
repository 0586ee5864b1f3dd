//! The supervisor and its terminal: its own, which it gives to its program, or ralph's, which it leaves.

use rustix::process::Pid;
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use crate::platform::stat::Stat;
use crate::process::group;

/// Puts the program in the foreground of our terminal, if we are in the foreground: in the background, trying would
/// stop us. If the program was faster and was stopped for using the terminal, the supervisor continues it.
pub(super) fn hand_over(program: Pid) {
    if group::is_in_front(rustix::stdio::stdin()) == Some(true) {
        let _ = tcsetpgrp(rustix::stdio::stdin(), program);
    }
}

/// Whether this group is in the foreground of our terminal.
pub(super) fn is_foreground(group: Pid) -> bool {
    tcgetpgrp(rustix::stdio::stdin()) == Ok(group)
}

/// Makes us the leader of a new session. Ralph starts us in our own process group, because a Ctrl+C would end us
/// while we are not ready for it; but the leader of a group cannot create a session, so we join ralph's group for a
/// moment.
pub(super) fn leave() {
    let ralph =
        rustix::process::getppid().and_then(|ralph| Stat::read(ralph.as_raw_nonzero().get().unsigned_abs()));
    let ralphs = ralph.and_then(|stat| Pid::from_raw(i32::try_from(stat.group).ok()?));
    if ralphs.is_some() {
        // If this fails (ralph has just died), we are at least in our own group.
        let _ = rustix::process::setpgid(None, ralphs);
    }
    let _ = rustix::process::setsid();
}
