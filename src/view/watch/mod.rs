//! `ralph watch`: loops on the whole screen. The model is a fold over snapshots of loops and over keys; drawing is a pure render
//! of it. Neither knows a terminal, a file or a clock.

mod draw;
mod filter;
mod help;
pub(crate) mod keys;
mod list;
pub(crate) mod model;
mod paint;
pub(crate) mod plan;
pub(crate) mod row;
pub(crate) mod scroll;
mod side;
pub(crate) mod telling;

#[cfg(test)]
mod tests;

pub(crate) use draw::draw;
