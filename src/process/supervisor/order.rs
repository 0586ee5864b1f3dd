//! What is asked of a supervisor, by whoever is at the other end of a socket.

use std::io::Read as _;
use std::os::unix::net::UnixStream;

use super::{ORDER_KILL, ORDER_STOP};

/// What is asked of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    /// Climb the ladder.
    Stop,
    /// KILL everything now.
    Kill,
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
