//! The receivers of a supervisor's notes, which also give it orders.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags};

use super::audience::Audience;
use super::order::{Heard, Order, heard};
use crate::process::note::SupervisorNote;

/// The other end of a supervisor.
pub(super) enum Channel {
    /// The ralph that has started us; without it nothing may run.
    Ralph {
        /// Its control socket.
        socket: UnixStream,
        /// Whether it has closed its end. The socket would be readable for ever, so it is not polled any more.
        is_gone: bool,
    },
    /// The monitors of a pane, which come and go.
    Pane(Audience),
}

impl Channel {
    /// Sends a note. The work continues even if no process receives it.
    pub(super) fn report(&mut self, note: &SupervisorNote) {
        match self {
            Self::Ralph { socket, .. } => drop(socket.write_all(note.to_line().as_bytes())),
            Self::Pane(audience) => audience.report(note),
        }
    }

    /// The next order. When ralph has died, that is an order to stop, because no other can come.
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

    /// Whether the ralph that has started us was seen to be gone.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Ralph { is_gone: true, .. })
    }

    /// The descriptors to poll.
    pub(super) fn descriptors(&self) -> Vec<PollFd<'_>> {
        match self {
            Self::Ralph { is_gone: true, .. } => Vec::new(),
            Self::Ralph { socket, .. } => vec![PollFd::new(socket, PollFlags::IN)],
            Self::Pane(audience) => audience.descriptors(),
        }
    }
}
