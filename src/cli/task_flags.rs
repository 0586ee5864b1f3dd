//! The flags of `ralph run` that only tasks and features know.

use std::path::PathBuf;

use clap::Args;

use super::{MAX_ITERATIONS, help};

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
    /// How many agents work at once, each in a work tree of its own; what they finish lands on one branch
    #[arg(long, short, value_name = "N", allow_hyphen_values = true)]
    pub jobs: Option<String>,
    /// Branch that finished tasks land on, in place of the current one
    #[arg(long, value_name = "BRANCH", allow_hyphen_values = true)]
    pub onto: Option<String>,
    /// How many finished tasks are tried together before they land
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub batch: Option<String>,
    /// Address of a graph on a server, instead of the project's file.
    #[arg(long, value_name = "URL", help = help::STORE)]
    pub store: Option<String>,
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
    pub const NAMES: [&str; 9] =
        ["all", "once", "jobs", "onto", "batch", "store", "model-strategy", "no-verify", "prompt"];
}
