//! Whom a supervisor tells what happens, and whose orders it takes.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags};

use super::audience::Audience;
use super::order::{Heard, Order, heard};
use crate::process::note::SupervisorNote;

/// The other end of a supervisor.
pub(super) enum Channel {
    /// The ralph that has started us, and without which nothing is to run.
    Ralph {
        /// Its control socket.
        socket: UnixStream,
        /// It has closed its end. The socket would be readable for ever, so it is not waited on any more.
        is_gone: bool,
    },
    /// The monitors of a pane, which come and go.
    Pane(Audience),
}

impl Channel {
    /// Nobody may be listening any more; the work goes on regardless.
    pub(super) fn report(&mut self, note: &SupervisorNote) {
        match self {
            Self::Ralph { socket, .. } => drop(socket.write_all(note.to_line().as_bytes())),
            Self::Pane(audience) => audience.report(note),
        }
    }

    /// What is asked of us. A ralph that is gone asks us to stop, as it was the last that could.
    pub(super) fn order(&mut self) -> Option<Order> {
        match self {
            Self::Pane(audience) => audience.order(),
            Self::Ralph { socket, is_gone } => match heard(socket) {
                Heard::Closed => {
                    *is_gone = true;
                    Some(Order::Stop)
                }
                Heard::Order(order) => order,
            },
        }
    }

    /// What to wait for.
    pub(super) fn descriptors(&self) -> Vec<PollFd<'_>> {
        match self {
            Self::Ralph { is_gone: true, .. } => Vec::new(),
            Self::Ralph { socket, .. } => vec![PollFd::new(socket, PollFlags::IN)],
            Self::Pane(audience) => audience.descriptors(),
        }
    }
}
