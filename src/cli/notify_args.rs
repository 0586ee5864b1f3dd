//! Arguments of `notify` and `trust`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The verbs of `notify`.
#[derive(Debug, Clone, Subcommand)]
pub enum NotifyVerb {
    /// Send a test event to every target that the settings name, and say for each whether it worked
    #[command(after_help = super::help::NOTIFY_EXAMPLES)]
    Test(NotifyTestArgs),
}

/// `notify test`.
#[derive(Debug, Clone, Args)]
pub struct NotifyTestArgs {
    /// Config file to read instead of the ralph dir's own
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Folder of ralph's files, instead of .ralph
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `trust`.
#[derive(Debug, Clone, Args)]
pub struct TrustArgs {
    /// List the projects that are trusted
    #[arg(long, conflicts_with_all = ["remove", "yes"])]
    pub list: bool,
    /// Trust this project no more
    #[arg(long, conflicts_with = "yes")]
    pub remove: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// Config file to read instead of the ralph dir's own
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Folder of ralph's files, instead of .ralph
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
}
