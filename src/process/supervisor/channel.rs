//! Whom a supervisor tells what happens, and whose orders it takes.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags};

use super::audience::Audience;
use super::{ORDER_KILL, ORDER_STOP};
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

/// What is asked of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    /// Climb the ladder.
    Stop,
    /// KILL everything now.
    Kill,
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

/// What came by a socket that does not block.
pub(super) enum Heard {
    /// Orders, of which the most urgent one counts, or nothing.
    Order(Option<Order>),
    /// Its other end is closed.
    Closed,
}

/// Reads what has come.
pub(super) fn heard(mut socket: &UnixStream) -> Heard {
    let mut orders = [0; 16];
    match socket.read(&mut orders) {
        Ok(0) => Heard::Closed,
        Ok(count) => Heard::Order(orders[..count].iter().filter_map(|order| of(*order)).max()),
        // A broken connection is told as its end by the next read.
        Err(_) => Heard::Order(None),
    }
}

fn of(order: u8) -> Option<Order> {
    match order {
        ORDER_KILL => Some(Order::Kill),
        ORDER_STOP => Some(Order::Stop),
        _ => None,
    }
}
