//! What iterations leave for later ones: a journal of attempts, and knowledge about the project.
//!
//! It comes from agents, and from anyone who has written to a pulled branch. So prompts contain it as quoted data
//! ([`quote`](crate::prompt::quote)), which is not followed as instructions.

pub mod journal;
pub mod knowledge;
pub mod model;
