//! What iterations leave for later ones: a journal of attempts, and knowledge about the project.
//!
//! It comes from agents, and from whoever has written to a branch that was pulled. Hence it stands in prompts as quoted data
//! ([`quote`](crate::prompt::quote)) and steers nobody.

pub mod journal;
pub mod knowledge;
pub mod model;
