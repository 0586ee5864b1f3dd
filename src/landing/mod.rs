//! Lands what agents have finished side by side: one lander for each trunk, in a thread beside the loops of a run.
//!
//! Git is the truth: a landing has landed when the tip contains it, and the graph follows. What may be tried next is decided by
//! [`crate::graph::landing`], without any of this.

mod candidate;
mod courier;
mod exchange;
mod gate;
mod lander;
mod pusher;
mod request;
mod team;

pub(crate) use candidate::Style;
pub(crate) use courier::{Courier, OpenGraph};
pub(crate) use exchange::{Exchange, Failed};
pub(crate) use gate::{Gate, unprepared};
pub(crate) use lander::{Lander, Rules, at_work};
pub(crate) use pusher::Pusher;
pub(crate) use request::LandedRequest;
pub(crate) use team::{AtWork, Standstill, Team};
