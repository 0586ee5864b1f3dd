//! Event consumers and their files.

pub mod atomic;
pub mod lock;
pub mod registry;
