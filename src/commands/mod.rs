//! One file per verb: turn arguments into a job and run it, or read records.

pub mod config;
