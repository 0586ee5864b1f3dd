//! The flags of `ralph run` that only tasks and features know.

use std::path::PathBuf;

use clap::Args;

use super::MAX_ITERATIONS;

/// What `run` knows of tasks and not of a RALPH.md, where these are arguments of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "For tasks and features")]
pub struct TaskFlags {
    /// Every ready task of the graph
    #[arg(long, conflicts_with = "target")]
    pub all: bool,
    /// One iteration
    #[arg(long, conflicts_with = MAX_ITERATIONS)]
    pub once: bool,
    /// How the model of each iteration is chosen: fixed, cost-optimized, escalate or plan-then-execute
    #[arg(long, value_name = "STRATEGY")]
    pub model_strategy: Option<String>,
    /// Believe an agent that says that its task is done
    #[arg(long)]
    pub no_verify: bool,
    /// Instructions in place of the project's own or the built-in ones
    #[arg(long, short, value_name = "FILE")]
    pub prompt: Option<PathBuf>,
}

impl TaskFlags {
    /// Their long names.
    pub const NAMES: [&str; 5] = ["all", "once", "model-strategy", "no-verify", "prompt"];
}
