//! Black-box tests: the real binary in scratch repositories, with real git, real signals and scripted agents.

mod disk_full;
mod hostile_agents;
mod processes;
mod scratch;
mod smoke;
mod stopping;
mod supervision;
