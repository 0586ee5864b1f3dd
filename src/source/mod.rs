//! Where work comes from: one file per kind of [`Source`](crate::engine::source::Source).

pub mod branch;
pub mod prompt_file;
pub mod ralph_md;
