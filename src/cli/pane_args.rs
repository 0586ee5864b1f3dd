//! Arguments of the verbs for workers that are there: agents in panes of tmux.

use clap::Args;

/// `attach` and `interrupt`.
#[derive(Debug, Clone, Args)]
pub struct PaneArgs {
    /// Name of the worker
    pub name: String,
}

/// `send`.
#[derive(Debug, Clone, Args)]
pub struct SendArgs {
    /// Name of the worker, and what is typed into its pane; '-' reads that from stdin
    #[arg(value_name = "[NAME] TEXT", required = true)]
    pub name_and_text: Vec<String>,
    /// Every worker that runs, instead of NAME
    #[arg(long)]
    pub all: bool,
    /// Type it, and do not press Enter
    #[arg(long)]
    pub no_enter: bool,
}

/// `peek`.
#[derive(Debug, Clone, Args)]
pub struct PeekArgs {
    /// Name of the worker
    pub name: String,
    /// The last N lines, also of what has scrolled by [default: what can be seen]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true)]
    pub lines: Option<String>,
}

/// `wait`.
#[derive(Debug, Clone, Args)]
pub struct WaitArgs {
    /// Names of the workers
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    /// Wait no longer than this
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    pub timeout: Option<String>,
}

/// `kill`.
#[derive(Debug, Clone, Args)]
pub struct KillArgs {
    /// Name of the worker
    pub name: String,
    /// Remove the worktree that was made for it, too; its branch stays
    #[arg(long)]
    pub rm_worktree: bool,
    /// With --rm-worktree: save what is not committed under refs/ralph/keep/, and remove the tree
    #[arg(long, requires = "rm_worktree")]
    pub force_dirty: bool,
}
