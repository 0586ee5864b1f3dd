//! The merged configuration, every value with its origin.

pub mod shell;
