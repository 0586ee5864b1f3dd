//! Agents: how a prompt reaches a coding agent and what comes back.
//!
//! [`spec`] is an agent as it is started; [`factory`] makes the one that a piece of work asks for. [`pipe`] runs agents over their
//! stdin and stdout: a codec decodes their output, one thread watches them, and [`ended`] judges their results.

pub mod acp;
mod balance;
mod codec;
mod display;
mod ended;
pub mod factory;
mod handshake;
mod message;
pub mod pane;
pub mod pipe;
mod readers;
pub mod spec;
mod threads;
mod tools;
mod vital_signs;
mod watch;
pub mod worker;

use std::fmt::Display;
use std::time::Duration;

use crate::engine::outcome::{End, Outcome};
use crate::engine::stop::Change;
use crate::git;
use crate::process::launch::Launch;

use crate::presets::{GitConfig, Preset};

pub use display::DisplayRoute;
pub use readers::{ReaderPlan, Reading};

/// The variable with the highest number of iterations, for agents; 0 for no limit.
pub const TOTAL: &str = "RALPH_TOTAL";

/// The time limits of an attempt.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timeouts {
    /// Of the whole attempt.
    pub attempt: Duration,
    /// Of a time without a sign of life.
    pub inactivity: Duration,
    /// After the agent's final event.
    pub grace: Duration,
    /// After it, while announced work goes on.
    pub background: Duration,
}

/// Adds variables that agents of this kind need and do not have: author and committer, if their tools do not see git's
/// configuration, and variables of their own.
fn add_variables(preset: &Preset, launch: &mut Launch) {
    if preset.git_config == GitConfig::Hidden {
        let author = git::identity::in_force(&launch.cwd, &launch.env);
        launch.env.extend(author);
    }
    for (name, value) in preset.env {
        let is_set = std::env::var_os(name).is_some() || launch.env.iter().any(|(known, _)| known == name);
        if !is_set {
            launch.env.push((name.into(), value.into()));
        }
    }
}

/// Sets the agent's highest number of iterations from here on.
fn tell_total(launch: &mut Launch, change: &Change) {
    if let Some(limit) = change.max_iterations {
        launch.set_variable(TOTAL, limit.to_string());
    }
}

/// The end of a loop whose agent cannot be started.
fn cannot_start(why: impl Display) -> End {
    End::because(Outcome::AgentMissing, why.to_string())
}
