//! Agents: how a prompt reaches a coding agent and what comes back.
//!
//! [`spec`] is an agent as it is started; [`factory`] makes the one that a piece of work asks for. [`pipe`] is the way to those that talk over
//! their stdin and stdout: a codec takes what they say apart, one thread watches them, and what they left is judged when they
//! have ended.

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

/// The variable that tells an agent how many iterations there may be; 0 for no limit.
pub const TOTAL: &str = "RALPH_TOTAL";

/// How long an attempt may go on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timeouts {
    /// As a whole.
    pub attempt: Duration,
    /// Without a sign of life.
    pub inactivity: Duration,
    /// After the agent's own final event.
    pub grace: Duration,
    /// After one, while something is at work that the agent has announced.
    pub background: Duration,
}

/// Adds what agents of this kind need in their environment and do not have there: who commits, where their tools do not see
/// git's configuration, and variables of their own.
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

/// Has an agent see how many iterations there may be from here on.
fn tell_total(launch: &mut Launch, change: &Change) {
    if let Some(limit) = change.max_iterations {
        launch.set_variable(TOTAL, limit.to_string());
    }
}

/// The end of a loop whose agent cannot be started.
fn cannot_start(why: impl Display) -> End {
    End::because(Outcome::AgentMissing, why.to_string())
}
