//! Arguments of the verbs that look at a project: where it is, `init`, `config`, `doctor`; and of `demo`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::help;
use super::setting_flags::{EVERYWHERE, SettingFlags};

/// Where things are, for every verb that looks at a project.
#[derive(Debug, Clone, Default, Args)]
pub struct PlaceArgs {
    /// Config file to read instead of the ralph dir's own
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Folder of ralph's files, instead of .ralph
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
    /// The agent to run.
    #[command(flatten)]
    pub agent: SettingFlags<EVERYWHERE>,
}

/// `sandbox`.
#[derive(Debug, Clone, Args)]
pub struct SandboxArgs {
    /// Print JSON
    #[arg(long, conflicts_with = "command")]
    pub json: bool,
    /// The command to run behind the walls; its exit code is ours
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
    /// The project, and the agent.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// `init`.
#[derive(Debug, Clone, Args)]
pub struct InitArgs {
    /// Write this starter instead: RALPH.md, NAME/RALPH.md, PROMPT.md or ralph.toml
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Folder of ralph's files, instead of .ralph
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
    /// Agent to write into the config, instead of the first one found on PATH
    #[arg(long, value_name = "TYPE")]
    pub agent: Option<String>,
    /// Rewrite the config and the prompts where they exist; copies are kept
    #[arg(long)]
    pub force: bool,
}

/// `config`.
#[derive(Debug, Clone, Args)]
#[command(override_usage = "ralph config [OPTIONS] [set <KEY> <VALUE>]")]
pub struct ConfigArgs {
    /// Nothing: show all; set KEY VALUE: write a setting into the file where the project has it, comments stay
    #[arg(value_name = "set KEY VALUE", allow_negative_numbers = true)]
    pub words: Vec<String>,
    /// Where things are.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// With set: for all projects, in the user's own ralph.toml
    #[arg(long)]
    pub user: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `doctor`.
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// Where things are.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Wait no longer than this for each answer [default: 10s, and 20s for a session over ACP]
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    pub timeout: Option<String>,
    /// Run the validation command, and say how long it takes
    #[arg(long)]
    pub validate: bool,
    /// Play what must not outlive a loop, in a folder of its own, and print the result as a block for an issue
    #[arg(long)]
    pub supervision: bool,
    /// Address of a graph on a server, which is looked at, too.
    #[arg(long, value_name = "URL", help = help::STORE)]
    pub store: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Folder for the scratch repository; must not exist or be empty [default: a new temporary one]
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Show a feature instead, from its brief to the last task that is done and verified
    #[arg(long)]
    pub tasks: bool,
    /// With --tasks, show this many agents side by side instead, 2 to 4, whose work comes into each other's way and lands all the same
    #[arg(long, short, value_name = "N", requires = "tasks", value_parser = clap::value_parser!(u8).range(2..=4))]
    pub jobs: Option<u8>,
    /// Show only the summaries
    #[arg(long, short)]
    pub quiet: bool,
}
