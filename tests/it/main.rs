//! Black-box tests: the real binary in scratch repositories, with real git, real signals and scripted agents.

mod login;
mod scratch;
mod smoke;
