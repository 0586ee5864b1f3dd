//! The one loop engine: asks the policy for the next step, takes it, and passes facts to listeners.
//!
//! It never sees a flag and never prints. It owns its seams: [`source`], [`agent`] and [`validator`] are what plugs into it,
//! [`context`] is what these can use of the loop around them. Records and views listen to its facts.

pub mod agent;
pub mod board;
pub mod budget;
pub mod context;
pub mod desk;
pub mod event;
pub mod fact;
pub mod hindsight;
pub mod inbox;
pub mod outcome;
mod pauses;
pub mod person;
pub mod places;
pub mod policy;
mod redacted;
pub mod refused;
pub mod report;
pub mod run;
pub mod source;
pub mod stop;
pub mod tally;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod tripwire;
pub mod uptime;
pub mod validation;
pub mod validator;
mod wait;
pub mod worktree;
