//! Arguments of the verbs of `task`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{LoopFlags, help};

/// Which graph is meant, and how its answer is to look.
#[derive(Debug, Clone, Default, Args)]
pub struct GraphArgs {
    /// Folder of ralph's files, instead of .ralph
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
    /// Address of a graph on a server, instead of the project's file.
    #[arg(long, value_name = "URL", help = help::STORE)]
    pub store: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The verbs of `task`.
#[derive(Debug, Subcommand)]
pub enum TaskVerb {
    /// Add a task, and print its id
    #[command(after_help = help::TASK_ADD_EXAMPLES)]
    Add(TaskAddArgs),
    /// Have an agent add a task, with you or from a brief
    #[command(after_help = help::TASK_CREATE_EXAMPLES)]
    Create(TaskCreateArgs),
    /// Show all there is to say about a task
    #[command(after_help = help::TASK_SHOW_EXAMPLES)]
    Show(TaskIdArgs),
    /// List tasks, the next one to be done first
    #[command(after_help = help::TASK_LIST_EXAMPLES)]
    List(TaskListArgs),
    /// Change a task
    #[command(
        after_help = "Example:\n  ralph task update t-3f9a01 --priority -1 --title 'Parse dates first'"
    )]
    Update(TaskUpdateArgs),
    /// Bring a task to done by hand
    #[command(after_help = help::TASK_DONE_EXAMPLES)]
    Done(TaskDoneArgs),
    /// Give a task up
    #[command(after_help = "Example:\n  ralph task fail t-3f9a01 --reason 'no longer needed'")]
    Fail(TaskFailArgs),
    /// Take a task and all below it back to the beginning
    #[command(
        after_help = "Example:\n  ralph task reset t-3f9a01\n\nA task above it that was done or had failed is open again, too."
    )]
    Reset(TaskIdArgs),
    /// Remove a task
    #[command(
        after_help = "Example:\n  ralph task delete t-3f9a01 --recursive\n\nRefused while others wait for it, or a run is at work on it."
    )]
    Delete(TaskDeleteArgs),
    /// Show a task's log, or write a line into it
    #[command(
        after_help = "Examples:\n  ralph task log t-3f9a01\n  ralph task log t-3f9a01 -m 'the fixture is in tests/data'"
    )]
    Log(TaskLogArgs),
    /// Let tasks wait for others
    #[command(
        after_help = "Examples:\n  ralph task deps add t-3f9a01 t-77b2c4    The second waits for the first\n  ralph task deps list t-77b2c4"
    )]
    Deps {
        /// What to do.
        #[command(subcommand)]
        verb: DepsVerb,
    },
    /// Draw tasks and their parts as a tree
    #[command(
        after_help = "Examples:\n  ralph task tree\n  ralph task tree t-3f9a01\n\n○ pending   ▶ in_progress   ↷ landing\n✓ done      ⊘ blocked       ✗ failed"
    )]
    Tree(TaskTreeArgs),
    /// Print the graph for another program to draw
    #[command(
        after_help = "Examples:\n  ralph task graph | dot -Tsvg > graph.svg\n  ralph task graph --format mermaid"
    )]
    Graph(TaskGraphArgs),
    /// Take in the tasks of a file, or the issues of a tracker
    #[command(after_help = help::TASK_IMPORT_EXAMPLES)]
    Import(TaskImportArgs),
    /// Print all tasks, for 'ralph task import'
    #[command(
        after_help = "Example:\n  ralph task export > tasks.jsonl\n\nThe first line names the format, each other one is a feature or a task."
    )]
    Export(GraphArgs),
}

/// The verbs of `task deps`.
#[derive(Debug, Subcommand)]
pub enum DepsVerb {
    /// Let BLOCKED wait until BLOCKER is done
    #[command(
        after_help = "Example:\n  ralph task deps add t-3f9a01 t-77b2c4    The second waits for the first"
    )]
    Add(DependencyArgs),
    /// Let BLOCKED wait for BLOCKER no longer
    #[command(after_help = "Example:\n  ralph task deps rm t-3f9a01 t-77b2c4")]
    Rm(DependencyArgs),
    /// List what a task waits for, and what waits for it
    #[command(after_help = "Example:\n  ralph task deps list t-77b2c4")]
    List(TaskIdArgs),
}

/// `task add`.
#[derive(Debug, Clone, Args)]
pub struct TaskAddArgs {
    /// What is to be done, in one line
    #[arg(value_name = "TITLE")]
    pub title: String,
    /// More about it; - reads it from stdin
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub description: Option<String>,
    /// The task that it is a part of
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,
    /// Its feature [default: that of the parent]
    #[arg(long, value_name = "NAME")]
    pub feature: Option<String>,
    /// A task that it waits for; may be given several times
    #[arg(long, value_name = "ID")]
    pub after: Vec<String>,
    /// Lower numbers go first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub priority: i64,
    /// How often it may be tried again [default: 3, or what the settings say]
    #[arg(long, value_name = "N")]
    pub max_retries: Option<u32>,
    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,
}

/// `task create`.
#[derive(Debug, Clone, Args)]
pub struct TaskCreateArgs {
    /// What is to be done; - reads it from stdin
    #[arg(value_name = "BRIEF")]
    pub brief: Option<String>,
    /// Its feature
    #[arg(long, value_name = "NAME")]
    pub feature: Option<String>,
    /// Address of a graph on a server, instead of the project's file.
    #[arg(long, value_name = "URL", help = help::STORE)]
    pub store: Option<String>,
    /// Everything else.
    #[command(flatten)]
    pub flags: LoopFlags,
}

/// A verb about one task.
#[derive(Debug, Clone, Args)]
pub struct TaskIdArgs {
    /// Id of the task, or the beginning of it
    #[arg(value_name = "ID")]
    pub id: String,
    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,
}

/// `task list`.
#[derive(Debug, Clone, Args)]
pub struct TaskListArgs {
    /// Tasks of this feature, instead of those that belong to none
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub feature: Option<String>,
    /// Only tasks in this state
    #[arg(
        long,
        value_name = "STATUS",
        help = "Only tasks in this state: pending, in_progress, landing, done, blocked or failed"
    )]
    pub status: Option<String>,
    /// Only tasks that can be claimed now
    #[arg(long)]
    pub ready: bool,
    /// Tasks of all features, too
    #[arg(long)]
    pub all: bool,
    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,
}

/// `task update`.
#[derive(Debug, Clone, Args)]
pub struct TaskUpdateArgs {
    /// Id of the task, or the beginning of it
    #[arg(value_name = "ID")]
    pub id: String,
    /// What is to be done, in one line
    #[arg(long, value_name = "TITLE")]
    pub title: Option<String>,
    /// More about it; - reads it from stdin
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub description: Option<String>,
    /// Its feature; an empty one: none
    #[arg(long, value_name = "NAME")]
    pub feature: Option<String>,
    /// Lower numbers go first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i64>,
    /// How often it may be tried again
    #[arg(long, value_name = "N")]
    pub max_retries: Option<u32>,
    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,
}

/// `task done`.
#[derive(Debug, Clone, Args)]
pub struct TaskDoneArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskIdArgs,
    /// Also when a run is at work on it
    #[arg(long)]
    pub force: bool,
}

/// `task fail`.
#[derive(Debug, Clone, Args)]
pub struct TaskFailArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskIdArgs,
    /// Why, for its log
    #[arg(
        long,
        short,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub reason: String,
}

/// `task delete`.
#[derive(Debug, Clone, Args)]
pub struct TaskDeleteArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskIdArgs,
    /// With all below it
    #[arg(long)]
    pub recursive: bool,
}

/// `task log`.
#[derive(Debug, Clone, Args)]
pub struct TaskLogArgs {
    /// Which task.
    #[command(flatten)]
    pub task: TaskIdArgs,
    /// A line to be written
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub message: Option<String>,
}

/// `task deps add` and `task deps rm`.
#[derive(Debug, Clone, Args)]
pub struct DependencyArgs {
    /// The task that has to be done first
    #[arg(value_name = "BLOCKER")]
    pub blocker: String,
    /// The task that waits for it
    #[arg(value_name = "BLOCKED")]
    pub blocked: String,
    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,
}

/// `task tree`.
#[derive(Debug, Clone, Args)]
pub struct TaskTreeArgs {
    /// Only this task and what is below it
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,
}

/// `task import`.
#[derive(Debug, Clone, Args)]
pub struct TaskImportArgs {
    /// The file, or the issues of a tracker, as github:OWNER/REPO; - reads stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Only show what would change
    #[arg(long)]
    pub dry_run: bool,
    /// Also comment once on each imported issue whose task is done; closes none
    #[arg(long)]
    pub report: bool,
    /// Also add issues again whose tasks were deleted here
    #[arg(long)]
    pub again: bool,
    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,
}

/// `task graph`.
#[derive(Debug, Clone, Args)]
pub struct TaskGraphArgs {
    /// The language to print it in
    #[arg(long, value_name = "FORMAT", default_value = "dot")]
    pub format: GraphFormat,
    /// Which graph.
    #[command(flatten)]
    pub graph: GraphArgs,
}

/// A language in which graphs are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// Graphviz
    Dot,
    /// Mermaid
    Mermaid,
}
