//! Black-box tests: the real binary in scratch repositories, with real git, real signals and scripted agents.

mod policies;
mod scratch;
mod smoke;
mod status_line;
mod terminal;
