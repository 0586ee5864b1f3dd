//! Arguments of the verbs that show, steer, undo and forget loops.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::help;
use super::setting_flags::{RAISED, SettingFlags};

/// Which loop is meant.
#[derive(Debug, Clone, Default, Args)]
pub struct TargetArgs {
    /// Name of the loop, looked up in this project first, then on this machine
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Folder of ralph's files, instead of .ralph
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
}

/// Workers on other machines.
#[derive(Debug, Clone, Default, Args)]
pub struct FleetArgs {
    /// Every worker of the graph on a server, on whichever machine; one of them is MACHINE/RUN, as 'ralph status' names it
    #[arg(long)]
    pub fleet: bool,
    /// Address of a graph on a server.
    #[arg(long, value_name = "URL", help = help::FLEET_STORE)]
    pub store: Option<String>,
}

/// `pause`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("fleet", |fleet| fleet.conflicts_with("name")))]
pub struct PauseArgs {
    /// Which loop.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Or which workers.
    #[command(flatten)]
    pub fleet: FleetArgs,
}

/// `resume`.
#[derive(Debug, Clone, Args)]
pub struct ResumeArgs {
    /// Which loop.
    #[command(flatten)]
    pub target: TargetArgs,
    /// At most this many iterations, those included that have run
    #[arg(long, short = 'n', value_name = "N", requires = "name", allow_negative_numbers = true)]
    pub max_iterations: Option<String>,
    /// What else a loop that has ended may use up.
    #[command(flatten)]
    pub raised: SettingFlags<RAISED>,
    /// Or which workers.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// What the next agent should know
    #[arg(long, value_name = "TEXT", requires = "name")]
    pub note: Option<String>,
    /// Go on with the settings as they are, although an agent has changed their files
    #[arg(long)]
    pub accept_config: bool,
    /// Run in the background, without this terminal
    #[arg(long)]
    pub detach: bool,
    /// Set in the process that --detach has started
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// `status`.
#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    /// Which loop.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Address of a graph on a server, whose workers are shown, too.
    #[arg(long, value_name = "URL", help = help::FLEET_STORE)]
    pub store: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The words of the column STATUS; the last one is of workers.
pub(crate) const STATUS_WORDS: [&str; 20] = [
    "running",
    "waiting",
    "paused",
    "queued",
    "needs_attention",
    "done",
    "unproven",
    "limit",
    "budget",
    "idle",
    "interrupted",
    "cancelled",
    "replan",
    "blocked",
    "empty",
    "failed",
    "error",
    "killed",
    "unknown",
    "stopped",
];

/// `ls`.
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// Print JSON, the same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// How to print it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: ListFormat,
    /// Only workers with this tag; with several, those that have them all
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Only loops that stand there, or have ended so, in the word of the table
    #[arg(long, value_name = "STATUS", value_parser = STATUS_WORDS)]
    pub status: Option<String>,
}

/// How loops are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// A line for each
    #[default]
    Table,
    /// An array of objects
    Json,
    /// Their names
    Names,
}

/// `watch`.
#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// Which loop is selected first.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Every loop of this machine, not only those of this project
    #[arg(long)]
    pub all: bool,
}

/// `logs`.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("of agents").args(["agent", "raw"]).multiple(true))]
pub struct LogsArgs {
    /// Which loop.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Address of a graph on a server, whose workers are meant, too.
    #[arg(long, value_name = "URL", help = help::FLEET_STORE)]
    pub store: Option<String>,
    /// Go on printing what comes, until the loop ends
    #[arg(long, short, alias = "live")]
    pub follow: bool,
    /// Begin with the last N lines [default: all]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true)]
    pub lines: Option<String>,
    /// What the agents said and did in the newest run, as the display shows it
    #[arg(long)]
    pub agent: bool,
    /// Everything that the agents wrote, byte by byte: the session log
    #[arg(long)]
    pub raw: bool,
    /// Only the Nth attempt of the run, as the report counts them
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "of agents")]
    pub attempt: Option<String>,
    /// Of this run, instead of the newest: its id, or as much of it as is needed
    #[arg(long, value_name = "RUN", requires = "of agents", conflicts_with = "follow")]
    pub run: Option<String>,
}

/// `report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// The id of a run, or as much of it as is needed, or the name of a loop [default: the newest run]
    #[arg(value_name = "RUN|NAME")]
    pub target: Option<String>,
    /// Address of a graph on a server, whose workers are meant, too.
    #[arg(long, value_name = "URL", help = help::FLEET_STORE)]
    pub store: Option<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "md")]
    pub json: bool,
    /// Print Markdown, for a pull request or a chat
    #[arg(long)]
    pub md: bool,
    /// Write one page with charts and all iterations, which needs no network; to stdout when it is -
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "md"], value_hint = clap::ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Open that page in the browser
    #[arg(long, requires = "html")]
    pub open: bool,
    /// Folder of ralph's files, instead of .ralph
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
}

/// `replay`.
#[derive(Debug, Clone, Args)]
pub struct ReplayArgs {
    /// The id of a run, or as much of it as is needed, or the name of a loop [default: the newest run]
    #[arg(value_name = "RUN|NAME")]
    pub target: Option<String>,
    /// So many times as fast as it was: 1 for its own pace, 60 for a minute in a second [default: without any wait]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub speed: Option<String>,
    /// Show instead where these settings would have led to another step: a config or a ralph.toml
    #[arg(long, value_name = "FILE", conflicts_with = "speed", value_hint = clap::ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Folder of ralph's files, instead of .ralph
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
}

/// `history`.
#[derive(Debug, Clone, Args)]
pub struct HistoryArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Only the newest N [default: all]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true)]
    pub lines: Option<String>,
    /// Folder of ralph's files, instead of .ralph
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
}

/// `diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// The name of a loop, the id of a task, or that of a run or as much of it as is needed [default: the newest run]
    #[arg(value_name = "NAME|TASK|RUN")]
    pub target: Option<String>,
    /// Only how much each file has changed
    #[arg(long)]
    pub stat: bool,
    /// Open it in the editor of VISUAL or EDITOR: lines that begin with '#>' are notes for the loop's next attempt
    #[arg(long, conflicts_with = "stat")]
    pub comment: bool,
    /// With --comment: print the comments that were sent as JSON
    #[arg(long, requires = "comment")]
    pub json: bool,
    /// Folder of ralph's files, instead of .ralph
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
}

/// `proof`.
#[derive(Debug, Clone, Args)]
pub struct ProofArgs {
    /// A commit, the id of a task, the name of a loop, or the id of a run [default: the newest claim]
    #[arg(value_name = "COMMIT|TASK|NAME|RUN")]
    pub target: Option<String>,
    /// Prove its commit once more, from nothing; a second agent is not asked again
    #[arg(long)]
    pub again: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Folder of ralph's files, instead of .ralph
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
}

/// `cancel`.
#[derive(Debug, Clone, Args)]
pub struct CancelArgs {
    /// Which loop.
    #[command(flatten)]
    pub target: TargetArgs,
    /// End the agent now instead of waiting for it
    #[arg(long)]
    pub now: bool,
    /// Or which workers.
    #[command(flatten)]
    pub fleet: FleetArgs,
}

/// `note`.
#[derive(Debug, Clone, Args)]
pub struct NoteArgs {
    /// Name of the loop, and what its agent should know
    #[arg(value_name = "[NAME] TEXT", required = true)]
    pub name_and_text: Vec<String>,
    /// The line that it is about, in the loop's work tree; the agent sees it with the code around it
    #[arg(long, value_name = "F:LINE", conflicts_with = "fleet")]
    pub file: Option<String>,
    /// Or for which workers.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Folder of ralph's files, instead of .ralph
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
}

/// `clean`.
#[derive(Debug, Clone, Args)]
pub struct CleanArgs {
    /// Which loop.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Every ended loop of this machine
    #[arg(long, conflicts_with_all = ["name", "worktrees"])]
    pub all: bool,
    /// Remove worktrees below .worktrees/ instead: of branch NAME, or all; branches stay
    #[arg(long)]
    pub worktrees: bool,
    /// With --worktrees: save what would be lost, and remove the tree
    #[arg(long, requires = "worktrees")]
    pub force: bool,
}

/// `revert`.
#[derive(Debug, Clone, Args)]
pub struct RevertArgs {
    /// Which loop.
    #[command(flatten)]
    pub target: TargetArgs,
    /// How many iterations to undo
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    pub last: String,
}
