//! Black-box tests: the real binary in scratch repositories, with real git, real signals and scripted agents.

mod agents;
mod bad_input;
mod blocks;
mod filters;
mod json_events;
mod login;
mod places;
mod scratch;
mod smoke;
mod verbs;
