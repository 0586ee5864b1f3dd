//! Agents: how a prompt reaches a coding agent and what comes back.

pub mod preset;
pub mod script;
