//! Arguments of `spawn`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::MAX_ITERATIONS;
use super::loop_args::LoopFlags;

/// `spawn`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag by itself")]
#[command(
    mut_arg("agent.provider", |agent| agent.hide(true)),
    mut_arg("resume", |resume| resume.hide(true)),
    mut_arg("name", |name| name.required(true).help("Name of the worker: letters, digits, '.', '_' and '-'")),
)]
pub struct SpawnArgs {
    /// The prompt, read anew for each iteration
    #[arg(long, value_name = "FILE")]
    pub prompt_file: PathBuf,
    /// At most this many iterations
    #[arg(id = MAX_ITERATIONS, long = "max-iterations", short = 'n', value_name = "N", required = true, allow_hyphen_values = true)]
    pub max_iterations: String,
    /// Look for the done pattern while the agent works, too
    #[arg(long)]
    pub check_done_continuous: bool,
    /// Give the agent its prompt and end; 'ralph run NAME' watches it
    #[arg(long)]
    pub no_run: bool,
    /// End a worker of this name first, with its work tree and its state
    #[arg(long)]
    pub replace: bool,
    /// With --replace: save what is not committed in its work tree first
    #[arg(long, requires = "replace")]
    pub force_dirty: bool,
    /// Forget the state of a worker of this name first
    #[arg(long)]
    pub clean_state: bool,
    /// Nothing: workers always use tmux
    #[arg(long, hide = true)]
    pub tmux: bool,
    /// Work in a work tree of its own, .worktrees/NAME, on branch NAME
    #[arg(long)]
    pub worktree: bool,
    /// Folder in which that work tree is made, DIR/NAME, instead of .worktrees
    #[arg(long, value_name = "DIR", requires = "worktree")]
    pub worktree_dir: Option<PathBuf>,
    /// A variable for the agent; without '=' its value is taken from the environment, each time anew
    #[arg(long = "env", value_name = "K[=V]")]
    pub env: Vec<String>,
    /// Where the agent works, in place of the current directory
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// A word to find the worker by
    #[arg(long = "tag", value_name = "T")]
    pub tags: Vec<String>,
    /// What the screen of a ready agent shows
    #[arg(long, value_name = "RE")]
    pub ready_pattern: Option<String>,
    /// How long the agent may take to be ready
    #[arg(long, value_name = "D", default_value = "30s")]
    pub ready_timeout: String,
    /// Nothing: it is always waited for
    #[arg(long, hide = true)]
    pub ready_wait: bool,
    /// Answer yes where the agent asks whether it may trust the folder
    #[arg(long)]
    pub trust: bool,
    /// Name of the tmux session [default: the worker's]
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// The tmux server, by the name or the path of its socket
    #[arg(long, value_name = "SOCKET")]
    pub tmux_socket: Option<String>,
    /// Type a message into the pane of an idle agent at this interval
    #[arg(long, value_name = "D")]
    pub heartbeat: Option<String>,
    /// The text of that message
    #[arg(long, value_name = "TEXT", default_value = "continue", requires = "heartbeat")]
    pub heartbeat_message: String,
    /// The agent's command line
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
    /// Everything else.
    #[command(flatten)]
    pub flags: LoopFlags,
}
