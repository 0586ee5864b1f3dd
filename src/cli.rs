//! The command line: clap types, nothing else. The flags of settings come from the table of settings.

mod control_args;
mod feature_args;
mod help;
mod late;
pub mod layout;
mod loop_args;
mod memory_args;
mod misuse;
mod notify_args;
mod pane_args;
mod project_args;
mod reading;
mod setting_flags;
mod task_args;
mod task_flags;
pub mod user_args;
mod worker_args;

use clap::{Parser, Subcommand};

#[cfg(test)]
pub(crate) use control_args::STATUS_WORDS;
pub use control_args::{
    CancelArgs, CleanArgs, DiffArgs, FleetArgs, HistoryArgs, ListArgs, ListFormat, LogsArgs, NoteArgs,
    PauseArgs, ProofArgs, ReplayArgs, ReportArgs, ResumeArgs, RevertArgs, StatusArgs, TargetArgs, WatchArgs,
};
pub use feature_args::{FeatureAddArgs, FeatureNameArgs, FeatureVerb, FeatureWriteArgs};
pub use late::Late;
pub use loop_args::{BranchFlags, LoopArgs, LoopBuildArgs, LoopFlags, PromptArgs, RunArgs};
pub use memory_args::{JournalArgs, KnowledgeNameArgs, KnowledgeSearchArgs, KnowledgeVerb};
pub use misuse::one_line;
pub use notify_args::{NotifyTestArgs, NotifyVerb, TrustArgs};
pub use pane_args::{KillArgs, PaneArgs, PeekArgs, SendArgs, WaitArgs};
pub use project_args::{ConfigArgs, DemoArgs, DoctorArgs, InitArgs, PlaceArgs, SandboxArgs};
pub use setting_flags::SettingFlags;
pub use task_args::{
    DependencyArgs, DepsVerb, GraphArgs, GraphFormat, TaskAddArgs, TaskCreateArgs, TaskDeleteArgs,
    TaskDoneArgs, TaskFailArgs, TaskGraphArgs, TaskIdArgs, TaskImportArgs, TaskListArgs, TaskLogArgs,
    TaskTreeArgs, TaskUpdateArgs, TaskVerb,
};

pub use worker_args::SpawnArgs;

/// The setting that the number on the command line comes before. It has no flag that all verbs share.
const MAX_ITERATIONS: &str = "loop.max_iterations";

/// Runs a coding agent in a loop: fresh context every iteration, memory in files and git, until the work is
/// proven done.
#[derive(Debug, Parser)]
#[command(name = "ralph", version = crate::version::LINE, after_help = help::ROOT_EXAMPLES, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Turn the specs into an implementation plan
    #[command(override_usage = "ralph plan [OPTIONS] [N]", after_help = help::PLAN_EXAMPLES)]
    Plan(Late<LoopArgs>),
    /// Work on the implementation plan, one task per iteration
    #[command(override_usage = "ralph build [OPTIONS] [N]", after_help = help::BUILD_EXAMPLES)]
    Build(Late<LoopArgs>),
    /// Run a prompt of your own in the loop
    #[command(after_help = help::PROMPT_EXAMPLES)]
    Prompt(Late<PromptArgs>),
    /// Run a RALPH.md, tasks of the graph, or a worker that was stopped
    #[command(after_help = help::RUN_EXAMPLES)]
    Run(Late<RunArgs>),
    /// Plan branches, and build them side by side: a work tree and a pull request for each
    #[command(
        after_help = help::LOOP_HELP,
        override_usage = "ralph loop [OPTIONS] [COMMAND]",
        args_conflicts_with_subcommands = true,
        mut_args(|arg| arg.hide(true))
    )]
    Loop {
        /// Without a verb: those of building, which planning shares.
        #[command(flatten)]
        bare: Box<LoopBuildArgs>,
        /// What to do.
        #[command(subcommand)]
        verb: Option<Late<LoopVerb>>,
    },
    /// Run an interactive agent in a loop, in a window of tmux that you can look at and type into
    #[command(after_help = help::SPAWN_EXAMPLES)]
    #[command(
        override_usage = "ralph spawn --name NAME --prompt-file FILE --max-iterations N [OPTIONS] -- CMD..."
    )]
    Spawn(Box<Late<SpawnArgs>>),
    /// Set this project up: config, prompts, specs folder, ignore rules; or write a starter file
    #[command(after_help = help::INIT_EXAMPLES)]
    Init(Late<InitArgs>),
    /// Show every setting, its value and where it comes from; or set one
    #[command(after_help = help::CONFIG_EXAMPLES)]
    Config(Late<ConfigArgs>),
    /// Check that everything a loop needs is there
    Doctor(Late<DoctorArgs>),
    /// Watch plan and build run to the end in a scratch repository, with a built-in scripted agent
    Demo(Late<DemoArgs>),
    /// Show where loops stand
    #[command(after_help = help::STATUS_EXAMPLES)]
    Status(Late<StatusArgs>),
    /// List every loop of this machine
    #[command(after_help = help::LS_HELP, alias = "list")]
    Ls(Late<ListArgs>),
    /// Show loops on the whole screen as they work, and steer them
    #[command(after_help = help::WATCH_HELP)]
    Watch(Late<WatchArgs>),
    /// Print a loop's history: one line per step, or all that its agents wrote
    #[command(after_help = help::LOGS_EXAMPLES, alias = "log")]
    Logs(Late<LogsArgs>),
    /// Report how a run ended: what was done and proven, what it cost, what failed and why, and what to type next
    #[command(after_help = help::REPORT_EXAMPLES)]
    Report(Late<ReportArgs>),
    /// List the runs of this project: when, what, how they ended, what they cost
    #[command(after_help = help::HISTORY_EXAMPLES)]
    History(Late<HistoryArgs>),
    /// Show what the work of a loop, a task or a run has changed, as 'git diff' does
    #[command(after_help = help::DIFF_EXAMPLES)]
    Diff(Late<DiffArgs>),
    /// Show what has proven a claim of done, or prove it once more
    #[command(after_help = help::PROOF_EXAMPLES)]
    Proof(Late<ProofArgs>),
    /// Show a run once more as it was shown when it ran, or where other settings would have led it
    #[command(after_help = help::REPLAY_HELP)]
    Replay(Late<ReplayArgs>),
    /// Let a running loop hold after its current attempt
    #[command(after_help = "Without NAME: every running loop of this project.")]
    Pause(Late<PauseArgs>),
    /// Continue a loop: after a pause, at once while it waits, or after its process is gone
    #[command(after_help = help::RESUME_HELP)]
    Resume(Late<ResumeArgs>),
    /// End a running loop after its current attempt, or now
    #[command(after_help = "Without NAME: every running loop of this project.")]
    Cancel(Late<CancelArgs>),
    /// Put a note for the agent into a loop's next prompt, once
    #[command(after_help = help::NOTE_EXAMPLES, override_usage = "ralph note [OPTIONS] [NAME] <TEXT>")]
    Note(Late<NoteArgs>),
    /// Forget loops that have ended
    #[command(after_help = help::CLEAN_HELP)]
    Clean(Late<CleanArgs>),
    /// Undo the commits of a loop's last iterations by revert commits
    #[command(after_help = help::REVERT_HELP)]
    Revert(Late<RevertArgs>),
    /// Keep the graph of tasks: what there is to do, and what waits for what
    #[command(after_help = help::TASK_EXAMPLES)]
    Task {
        /// What to do.
        #[command(subcommand)]
        verb: Late<TaskVerb>,
    },
    /// Keep features: tasks that belong together, with a spec and a plan
    #[command(after_help = help::FEATURE_EXAMPLES)]
    Feature {
        /// What to do.
        #[command(subcommand)]
        verb: Late<FeatureVerb>,
    },
    /// Show the outcomes of attempts at tasks: the journal
    #[command(after_help = help::JOURNAL_EXAMPLES)]
    Journal(Late<JournalArgs>),
    /// Show what agents have found out about the project
    #[command(after_help = help::KNOWLEDGE_EXAMPLES)]
    Knowledge {
        /// What to do.
        #[command(subcommand)]
        verb: Late<KnowledgeVerb>,
    },
    /// Send notices of loops to people and programs: test whether they arrive
    #[command(after_help = help::NOTIFY_EXAMPLES)]
    Notify {
        /// What to do.
        #[command(subcommand)]
        verb: Late<NotifyVerb>,
    },
    /// Let this project run its hooks and send its notices: shows what they are, and asks
    #[command(after_help = help::TRUST_EXAMPLES)]
    Trust(Late<TrustArgs>),
    /// Show what walls would hold for the next agent here, or run a command behind them
    #[command(after_help = help::SANDBOX_EXAMPLES)]
    Sandbox(Late<SandboxArgs>),
    /// Type a text into the pane of a worker, and press Enter
    #[command(after_help = help::SEND_EXAMPLES, override_usage = "ralph send [OPTIONS] [NAME] <TEXT>")]
    Send(Late<SendArgs>),
    /// Press Ctrl+C in the pane of a worker
    #[command(after_help = help::INTERRUPT_EXAMPLES)]
    Interrupt(Late<PaneArgs>),
    /// Show the pane of a worker in this terminal, to look and to type
    #[command(after_help = help::ATTACH_EXAMPLES)]
    Attach(Late<PaneArgs>),
    /// Print what the pane of a worker shows
    #[command(after_help = help::PEEK_EXAMPLES)]
    Peek(Late<PeekArgs>),
    /// Wait until workers have ended
    #[command(after_help = help::WAIT_EXAMPLES)]
    Wait(Late<WaitArgs>),
    /// End a worker: its loop, its agent and its pane
    #[command(after_help = help::KILL_EXAMPLES)]
    Kill(Late<KillArgs>),
    /// Print a prompt to begin with
    #[command(after_help = help::TEMPLATE_EXAMPLES)]
    Template,
    /// Print the completion script for a shell
    #[command(
        after_help = "Example:\n  ralph completions bash > ~/.local/share/bash-completion/completions/ralph"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Describe a verb, print a page of the guide, or list them all
    #[command(after_help = "Examples:\n  ralph help build\n  ralph help limits")]
    Help {
        /// A verb, or a page such as limits, tasks or troubleshooting
        #[arg(value_name = "WORD")]
        words: Vec<String>,
    },
    /// Print the manual page
    #[command(after_help = "Example:\n  ralph man | man -l -")]
    Man,
}

impl Command {
    /// Whether its loop is to run in the background, in another process.
    #[must_use]
    pub fn is_for_background(&self) -> bool {
        match self {
            Self::Resume(args) => args.detach && !args.detached,
            _ => self.loop_flags().is_some_and(|flags| flags.detach && !flags.detached),
        }
    }

    /// The flags of a verb that runs a loop.
    fn loop_flags(&self) -> Option<&LoopFlags> {
        Some(match self {
            Self::Plan(args) | Self::Build(args) => &args.flags,
            Self::Prompt(args) => &args.flags,
            Self::Run(args) => &args.flags,
            Self::Spawn(args) => &args.flags,
            Self::Loop { verb: None, bare } => &bare.shared.flags,
            Self::Loop { verb: Some(Late(LoopVerb::Plan(args))), .. } => &args.flags,
            Self::Loop { verb: Some(Late(LoopVerb::Build { args, .. })), .. } => &args.shared.flags,
            Self::Task { verb: Late(TaskVerb::Create(args)) } => &args.flags,
            Self::Feature {
                verb:
                    Late(
                        FeatureVerb::Spec(args)
                        | FeatureVerb::Plan(args)
                        | FeatureVerb::Build(args)
                        | FeatureVerb::Create(args),
                    ),
            } => &args.flags,
            _ => return None,
        })
    }
}

/// The verbs of `loop`.
#[derive(Debug, Subcommand)]
pub enum LoopVerb {
    /// Turn the specs into a plan of branches
    #[command(after_help = help::LOOP_PLAN_EXAMPLES)]
    Plan(BranchFlags),
    /// Build the branches of the plan: each in a work tree of its own, as many at once as there is room for
    #[command(after_help = help::LOOP_BUILD_EXAMPLES)]
    Build {
        /// Only these branches, and those that they start from; without a name all that are not done
        #[arg(value_name = "BRANCH")]
        branches: Vec<String>,
        /// Everything else.
        #[command(flatten)]
        args: LoopBuildArgs,
    },
}
