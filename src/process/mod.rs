//! Starts, supervises and ends programs.

pub mod identity;
