//! Orders to a supervisor from the other end of a socket.

use std::io::Read as _;
use std::os::unix::net::UnixStream;

use super::{ORDER_KILL, ORDER_STOP};

/// An order to a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    /// Climb the ladder.
    Stop,
    /// KILL everything now.
    Kill,
}

/// What was read from a nonblocking socket.
pub(super) enum Heard {
    /// The most urgent order, if any.
    Order(Option<Order>),
    /// Its other end is closed.
    Closed,
}

/// Reads everything that has arrived.
pub(super) fn heard(mut socket: &UnixStream) -> Heard {
    let mut orders = [0; 16];
    match socket.read(&mut orders) {
        Ok(0) => Heard::Closed,
        Ok(count) => Heard::Order(orders[..count].iter().filter_map(|order| of(*order)).max()),
        // The next read reports a broken connection as closed.
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
