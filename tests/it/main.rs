//! Black-box tests: the real binary in scratch repositories, with real git, real signals and scripted agents.

mod agents;
mod bad_input;
mod blocks;
mod clean_worktrees;
mod control;
mod disk_full;
mod filters;
mod git_safety;
mod hostile_agents;
mod json_events;
mod login;
mod places;
mod policies;
mod processes;
mod ralph_md;
mod revert;
mod schema;
mod scratch;
mod smoke;
mod state;
mod status_line;
mod stopping;
mod supervision;
mod terminal;
mod verbs;
