//! Black-box tests: the real binary in scratch repositories, with real git, real signals and scripted agents.

mod ralph_md;
mod scratch;
mod smoke;
