//! Arguments of the verbs that run loops.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::MAX_ITERATIONS;
use super::project_args::PlaceArgs;
use super::setting_flags::{LOOPS, SettingFlags};
use super::task_flags::TaskFlags;
use super::user_args::UserArg;

/// What the loop verbs share.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct LoopFlags {
    /// Where things are.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// The settings that hold for this loop.
    #[command(flatten)]
    pub settings: SettingFlags<LOOPS>,
    /// Name of the loop, for `ralph status` and the other verbs
    #[arg(long, value_name = "NAME", value_parser = loop_name)]
    pub name: Option<String>,
    /// Go on where the last loop here was cut off
    #[arg(long)]
    pub resume: bool,
    /// At most this many iterations, whatever the rest of the command line says: it is the one that a loop was started with
    #[arg(long, value_name = "N", hide = true)]
    pub resume_limit: Option<u64>,
    /// A new budget for the loop: `--resume-with=FLAG=VALUE`
    #[arg(long, value_name = "FLAG=VALUE", hide = true)]
    pub resume_with: Vec<String>,
    /// Only this branch, and those that it starts from
    #[arg(long, value_name = "BRANCH", hide = true)]
    pub resume_only: Option<String>,
    /// Go on although an agent has changed files of settings: `ralph resume` puts it here
    #[arg(long, hide = true)]
    pub accept_config: bool,
    /// Run in the background, without this terminal
    #[arg(long)]
    pub detach: bool,
    /// Set in the process that --detach has started
    #[arg(long, hide = true)]
    pub detached: bool,
    /// Show only the summary and what went wrong
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Show more in a pipe or a file: what agents of many branches do, and where each iteration begins
    #[arg(long, short)]
    pub verbose: bool,
    /// Print events as JSON lines on stdout
    #[arg(long)]
    pub json: bool,
}

/// `plan` and `build`.
#[derive(Debug, Clone, Args)]
pub struct LoopArgs {
    /// At most this many iterations
    #[arg(id = MAX_ITERATIONS, value_name = "N", allow_negative_numbers = true)]
    pub iterations: Vec<String>,
    /// At most this many iterations, as N
    #[arg(long, short = 'n', value_name = "N", allow_hyphen_values = true)]
    pub max_iterations: Vec<String>,
    /// Everything else.
    #[command(flatten)]
    pub flags: LoopFlags,
}

/// `prompt`.
#[derive(Debug, Clone, Args)]
#[command(override_usage = "ralph prompt [OPTIONS] <FILE> [N]")]
pub struct PromptArgs {
    /// The prompt file, and at most how many iterations
    #[arg(id = MAX_ITERATIONS, value_name = "FILE [N]", required = true, allow_negative_numbers = true)]
    pub file_and_iterations: Vec<OsString>,
    /// At most this many iterations, as N
    #[arg(long, short = 'n', value_name = "N", allow_hyphen_values = true)]
    pub max_iterations: Vec<String>,
    /// Everything else.
    #[command(flatten)]
    pub flags: LoopFlags,
}

/// `run`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("agent.provider", |agent| agent.hide(true)))]
#[command(override_usage = "ralph run [OPTIONS] <TARGET> [--NAME VALUE]... [VALUE]... [-- VALUE...]")]
pub struct RunArgs {
    /// A RALPH.md or its folder, a task's id, a feature, or a worker's name
    #[arg(value_name = "TARGET")]
    pub target: Option<PathBuf>,
    /// At most this many iterations; 0: no limit
    #[arg(id = MAX_ITERATIONS, long = "max-iterations", alias = "limit", short = 'n', value_name = "N", allow_hyphen_values = true)]
    pub max_iterations: Option<String>,
    /// Folder for one file per iteration with what its agent wrote
    #[arg(long, short, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,
    /// Run the commands, print the prompt of the first iteration and end
    #[arg(long)]
    pub dry_run: bool,
    /// What only tasks know.
    #[command(flatten)]
    pub tasks: TaskFlags,
    /// The target is a RALPH.md.
    #[arg(skip)]
    pub is_ralph_md: bool,
    /// What the RALPH.md gets.
    #[arg(skip)]
    pub user_args: Vec<UserArg>,
    /// Everything else.
    #[command(flatten)]
    pub flags: LoopFlags,
}

impl RunArgs {
    /// Whether it has flags that only tasks know.
    #[must_use]
    pub fn is_about_tasks(&self) -> bool {
        self.tasks != TaskFlags::default()
    }
}

/// What `loop plan` and `loop build` share.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("resume", |resume| resume.hide(true)))]
pub struct BranchFlags {
    /// At most this many iterations
    #[arg(
        id = MAX_ITERATIONS,
        long = "max-iterations",
        short = 'n',
        visible_short_alias = 'm',
        alias = "max",
        value_name = "N",
        allow_hyphen_values = true
    )]
    pub max_iterations: Option<String>,
    /// As many iterations as it takes
    #[arg(long, conflicts_with = MAX_ITERATIONS)]
    pub unlimited: bool,
    /// Prompt file to use instead of the project's own
    #[arg(long, short, value_name = "FILE")]
    pub prompt: Option<PathBuf>,
    /// Everything else.
    #[command(flatten)]
    pub flags: LoopFlags,
}

/// `loop build`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("name", |name| name.hide(true)),
    mut_arg(MAX_ITERATIONS, |max| max.help("At most this many iterations of each branch")),
)]
pub struct LoopBuildArgs {
    /// One branch after the other
    #[arg(long, conflicts_with = "jobs")]
    pub sequential: bool,
    /// How many branches are built at once [default: all, at most 8]
    #[arg(long, short, value_name = "N", allow_hyphen_values = true)]
    pub jobs: Option<String>,
    /// Show what would be built, and end
    #[arg(long)]
    pub dry_run: bool,
    /// What it shares with planning.
    #[command(flatten)]
    pub shared: BranchFlags,
}

impl LoopBuildArgs {
    /// Whether it has flags that only building knows.
    #[must_use]
    pub fn is_about_building(&self) -> bool {
        self.sequential || self.jobs.is_some() || self.dry_run
    }
}

/// A name that can be shown in a line, and typed.
fn loop_name(word: &str) -> Result<String, &'static str> {
    match word {
        _ if word.trim().is_empty() => Err("a loop needs a name: leave the flag out for the usual one"),
        _ if word.contains(char::is_control) => Err("a name is one line, without tabs and the like"),
        _ => Ok(word.to_owned()),
    }
}
