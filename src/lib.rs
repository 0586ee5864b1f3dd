//! `ralph` runs coding agents in a loop: fresh context every iteration, memory in files and git, until the
//! work is proven done. `ARCHITECTURE.md` is the map of the modules below.

pub mod agent;
pub mod cli;
pub mod commands;
pub mod engine;
pub mod files;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod git;
pub mod graph;
mod inspection;
mod job;
mod landing;
pub mod memory;
mod notify;
mod parallel;
pub mod plan;
pub mod platform;
pub mod presets;
pub mod process;
mod project;
pub mod prompt;
mod proof;
pub mod record;
pub mod reply;
mod sandbox;
pub mod script_agent;
pub mod settings;
mod side_command;
mod source;
mod tell;
pub mod text;
mod threads;
pub mod tmux;
mod tracker;
mod version;
mod view;
mod web;
