//! The command line: clap types, nothing else.

mod help;
pub mod user_args;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};

use user_args::UserArg;

/// Runs a coding agent in a loop: fresh context every iteration, memory in files and git, until the work is
/// proven done.
#[derive(Debug, Parser)]
#[command(name = "ralph", version, after_help = help::ROOT_EXAMPLES, max_term_width = 100)]
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
    Plan(LoopArgs),
    /// Work on the implementation plan, one task per iteration
    #[command(override_usage = "ralph build [OPTIONS] [N]", after_help = help::BUILD_EXAMPLES)]
    Build(LoopArgs),
    /// Run a prompt of your own in the loop
    #[command(after_help = help::PROMPT_EXAMPLES)]
    Prompt(PromptArgs),
    /// Set this project up: config, prompts, specs folder, ignore rules; or write a starter file
    #[command(after_help = help::INIT_EXAMPLES)]
    Init(InitArgs),
    /// Show every setting, its value and where it comes from
    Config(ConfigArgs),
    /// Check that everything a loop needs is there
    Doctor(DoctorArgs),
    /// Watch plan and build run to the end in a scratch repository, with a built-in scripted agent
    Demo(DemoArgs),
    /// Show where loops stand
    #[command(after_help = help::STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// List every loop of this machine
    #[command(after_help = help::LS_HELP)]
    Ls(ListArgs),
    /// Print a loop's history: one line per step, or all that its agents wrote
    #[command(after_help = help::LOGS_EXAMPLES)]
    Logs(LogsArgs),
    /// Let a running loop hold after its current attempt
    #[command(after_help = "Without NAME: every running loop of this project.")]
    Pause(TargetArgs),
    /// Let a loop go on: after a pause, now instead of later while it waits, or after its process is gone
    #[command(after_help = help::RESUME_HELP)]
    Resume(TargetArgs),
    /// End a running loop after its current attempt, or now
    #[command(after_help = "Without NAME: every running loop of this project.")]
    Cancel(CancelArgs),
    /// Put a note for the agent into a running loop's next prompt, once
    #[command(after_help = help::NOTE_EXAMPLES, override_usage = "ralph note [OPTIONS] [NAME] <TEXT>")]
    Note(NoteArgs),
    /// Forget loops that have ended
    #[command(after_help = help::CLEAN_HELP)]
    Clean(CleanArgs),
    /// Undo the commits of a loop's last iterations by revert commits
    #[command(after_help = help::REVERT_HELP)]
    Revert(RevertArgs),
    /// Print the completion script for a shell
    #[command(
        after_help = "Example:\n  ralph completions bash > ~/.local/share/bash-completion/completions/ralph"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(after_help = "Example:\n  ralph man | man -l -")]
    Man,
    /// Run a RALPH.md in the loop: agent, commands and prompt in one file
    #[command(after_help = help::RUN_EXAMPLES)]
    Run(RunArgs),
    /// Plan branches, and build them side by side: a work tree and a pull request for each
    #[command(after_help = help::LOOP_EXAMPLES)]
    Loop {
        /// What to do.
        #[command(subcommand)]
        verb: LoopVerb,
    },
}

/// The verbs of `loop`.
#[derive(Debug, Subcommand)]
pub enum LoopVerb {
    /// Turn the specs into a plan of branches
    #[command(after_help = help::LOOP_PLAN_EXAMPLES)]
    Plan(BranchFlags),
    /// Build the branches of the plan: each in a work tree of its own, as many at once as there is room for
    #[command(after_help = help::LOOP_BUILD_EXAMPLES)]
    Build(LoopBuildArgs),
}

/// Where things are, for every verb that looks at a project.
#[derive(Debug, Clone, Default, Args)]
pub struct PlaceArgs {
    /// Config file to read instead of the ralph dir's own
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Folder of ralph's files, instead of .ralph
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
    /// Agent to run: amp, claude, cline, codex, gemini, opencode, script or custom
    #[arg(long, value_name = "TYPE")]
    pub agent: Option<String>,
}

/// What the loop verbs share.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is a flag of the command line")]
pub struct LoopFlags {
    /// Where things are.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Longest time for one attempt, such as 90s, 30m or 2h [default: 2h]
    #[arg(long, short, value_name = "D", allow_hyphen_values = true)]
    pub timeout: Option<String>,
    /// Longest time without a sign of life [default: 15m]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub inactivity_timeout: Option<String>,
    /// How often a failed iteration is tried again [default: 3]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub max_retries: Option<String>,
    /// Pause before a first retry, doubled before every further one [default: none]
    #[arg(long, value_name = "D", allow_hyphen_values = true, help_heading = help::POLICIES)]
    pub backoff: Option<String>,
    /// End the loop when an iteration has failed for good
    #[arg(long, short, help_heading = help::POLICIES)]
    pub stop_on_error: bool,
    /// End the loop after this many failed iterations in a row, 0 for never
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = help::POLICIES)]
    pub max_errors: Option<String>,
    /// End the loop after this many iterations in a row that changed nothing, 0 for never
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = help::POLICIES)]
    pub idle: Option<String>,
    /// End the loop after this much time
    #[arg(long, value_name = "D", allow_hyphen_values = true, help_heading = help::POLICIES)]
    pub max_duration: Option<String>,
    /// Begin no iteration when this much money is spent, in US dollars
    #[arg(long, value_name = "USD", allow_hyphen_values = true, help_heading = help::POLICIES)]
    pub max_cost: Option<String>,
    /// Begin no iteration when this many tokens are used
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = help::POLICIES)]
    pub max_tokens: Option<String>,
    /// Longest wait for a usage limit to pass [default: 6h]
    #[arg(long, value_name = "D", allow_hyphen_values = true, help_heading = help::POLICIES)]
    pub max_limit_wait: Option<String>,
    /// End the loop when the assistant's text matches this regular expression
    #[arg(long, value_name = "RE", allow_hyphen_values = true, help_heading = help::POLICIES)]
    pub done_pattern: Option<String>,
    /// Command that proves the work after each iteration; its failure goes into the next prompt
    #[arg(long, value_name = "CMD", allow_hyphen_values = true, help_heading = help::POLICIES)]
    pub validate: Option<String>,
    /// Pause between two iterations
    #[arg(long, short, value_name = "D", allow_hyphen_values = true, help_heading = help::POLICIES)]
    pub delay: Option<String>,
    /// Name of the loop, for `ralph status` and the other verbs
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Go on where the last loop here was cut off
    #[arg(long)]
    pub resume: bool,
    /// Show only the summary and what went wrong
    #[arg(long, short)]
    pub quiet: bool,
    /// Print events as JSON lines on stdout
    #[arg(long)]
    pub json: bool,
}

/// `plan` and `build`.
#[derive(Debug, Clone, Args)]
pub struct LoopArgs {
    /// At most this many iterations [default: 10, or what the settings say]
    #[arg(value_name = "N", allow_negative_numbers = true)]
    pub iterations: Vec<String>,
    /// Everything else.
    #[command(flatten)]
    pub flags: LoopFlags,
}

/// `prompt`.
#[derive(Debug, Clone, Args)]
#[command(override_usage = "ralph prompt [OPTIONS] <FILE> [N]")]
pub struct PromptArgs {
    /// The prompt file, and at most how many iterations [default: 10, or what the settings say]
    #[arg(value_name = "FILE [N]", required = true, allow_negative_numbers = true)]
    pub file_and_iterations: Vec<OsString>,
    /// Everything else.
    #[command(flatten)]
    pub flags: LoopFlags,
}

/// `run`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("agent", |agent| agent.hide(true)),
    mut_arg("max_retries", |retries| retries.help("How often a failed iteration is tried again [default: 0]")),
)]
#[command(override_usage = "ralph run [OPTIONS] <TARGET> [--NAME VALUE]... [VALUE]... [-- VALUE...]")]
pub struct RunArgs {
    /// A RALPH.md, or its folder
    #[arg(value_name = "TARGET")]
    pub target: Option<PathBuf>,
    /// At most this many iterations [default: no limit]
    #[arg(long, short = 'n', value_name = "N", allow_hyphen_values = true)]
    pub max_iterations: Option<String>,
    /// Folder for one file per iteration with what its agent wrote
    #[arg(long, short, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,
    /// Run the commands, print the prompt of the first iteration and end
    #[arg(long)]
    pub dry_run: bool,
    /// What the RALPH.md gets.
    #[arg(skip)]
    pub user_args: Vec<UserArg>,
    /// Everything else.
    #[command(flatten)]
    pub flags: LoopFlags,
}

/// What `loop plan` and `loop build` share.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("agent", |agent| agent.visible_alias("provider")),
    mut_arg("max_retries", |retries| retries.help("How often a failed iteration is tried again [default: 0]")),
    mut_arg("max_errors", |errors| {
        errors.help("End the loop after this many failed iterations in a row, 0 for never [default: 3]")
    }),
    mut_arg("idle", |idle| {
        idle.help("End the loop after this many iterations in a row that changed nothing, 0 for never [default: 2]")
    }),
    mut_arg("resume", |resume| resume.hide(true)),
)]
pub struct BranchFlags {
    /// At most this many iterations [default: 10, or what the settings say]
    #[arg(long, short = 'm', visible_alias = "max", value_name = "N", allow_hyphen_values = true)]
    pub max_iterations: Option<String>,
    /// As many iterations as it takes
    #[arg(long, conflicts_with = "max_iterations")]
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
    mut_arg("max_iterations", |max| {
        max.help("At most this many iterations of each branch [default: 20, or what the settings say]")
    }),
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
    /// Rewrite the config and the prompts where they exist
    #[arg(long)]
    pub force: bool,
}

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

/// `status`.
#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    /// Which loop.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `ls`.
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `logs`.
#[derive(Debug, Clone, Args)]
pub struct LogsArgs {
    /// Which loop.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Go on printing what comes, until the loop ends
    #[arg(long, short, visible_alias = "live")]
    pub follow: bool,
    /// Begin with the last N lines [default: all]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true)]
    pub lines: Option<String>,
    /// The session log: everything the agents wrote
    #[arg(long)]
    pub agent: bool,
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
}

/// `note`.
#[derive(Debug, Clone, Args)]
pub struct NoteArgs {
    /// Name of the loop, and what its agent should know
    #[arg(value_name = "[NAME] TEXT", required = true)]
    pub name_and_text: Vec<String>,
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

/// `config`.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// Where things are.
    #[command(flatten)]
    pub place: PlaceArgs,
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
    /// Show only the summaries
    #[arg(long, short)]
    pub quiet: bool,
}

impl Cli {
    /// Reads the command line. Options and the number may also stand in front of the verb.
    ///
    /// # Errors
    /// What clap says, including its "errors" for `--help` and `--version`.
    pub fn read(mut argv: Vec<OsString>) -> Result<Self, clap::Error> {
        if let Some(at) = verb_at(&argv) {
            let verb = argv.remove(at);
            let has_verbs_of_its_own = verb == "loop";
            argv.insert(1, verb);
            if !has_verbs_of_its_own {
                return Self::parse_words(argv);
            }
            match verb_at(&argv[1..]) {
                Some(at) => {
                    let verb = argv.remove(at + 1);
                    argv.insert(2, verb);
                }
                None if Self::lacks_only_a_verb(&argv, 2) => return Err(missing_verb(&["ralph", "loop"])),
                None => {}
            }
            return Self::try_parse_from(argv);
        }
        if Self::lacks_only_a_verb(&argv, 1) {
            return Err(missing_verb(&["ralph"]));
        }
        Self::try_parse_from(argv)
    }

    /// Whether there are options, and they would be good ones with a verb before them.
    fn lacks_only_a_verb(argv: &[OsString], at: usize) -> bool {
        let mut with_verb = argv.to_vec();
        with_verb.insert(argv.len().min(at), "build".into());
        argv.len() > at && Self::try_parse_from(with_verb).is_ok()
    }

    /// Reads a command line whose verb comes first. The arguments for a RALPH.md are not for clap: nobody knows their
    /// names before the file is read.
    fn parse_words(mut argv: Vec<OsString>) -> Result<Self, clap::Error> {
        let root = Self::command();
        let Some(verb) =
            root.find_subcommand("run").filter(|_| argv.get(1).is_some_and(|verb| verb == "run"))
        else {
            return Self::try_parse_from(argv);
        };
        let (own, user_args) = user_args::split(verb, argv.split_off(2))
            .map_err(|message| clap::Error::raw(ErrorKind::InvalidValue, message))?;
        argv.extend(own);
        let mut cli = Self::try_parse_from(argv)?;
        if let Command::Run(args) = &mut cli.command {
            args.user_args = user_args;
        }
        Ok(cli)
    }
}

/// clap's own error for a command that only has verbs.
fn missing_verb(command: &[&str]) -> clap::Error {
    let error = Cli::try_parse_from(command).err();
    error.unwrap_or_else(|| Cli::command().error(ErrorKind::MissingSubcommand, "no mode given"))
}

/// Where the verb stands: options, their values and the number may stand before it.
fn verb_at(argv: &[OsString]) -> Option<usize> {
    let root = Cli::command();
    let verbs = root.get_subcommands().flat_map(|verb| std::iter::once(verb).chain(verb.get_subcommands()));
    let with_value: Vec<String> = verbs
        .flat_map(clap::Command::get_arguments)
        .filter(|arg| arg.get_action().takes_values())
        .flat_map(|arg| {
            let long = arg.get_long_and_visible_aliases().unwrap_or_default();
            let short = arg.get_short().map(|short| format!("-{short}"));
            long.into_iter().map(|long| format!("--{long}")).chain(short)
        })
        .collect();

    let mut is_value = false;
    for (at, arg) in argv.iter().enumerate().skip(1) {
        let Some(text) = arg.to_str() else { continue };
        if is_value {
            is_value = false;
        } else if text == "--" {
            return None;
        } else if text.starts_with('-') {
            is_value = with_value.iter().any(|option| option == text);
        } else if text.parse::<i64>().is_err() {
            return Some(at);
        }
    }
    None
}

/// An error of clap's as one line: what, and what to do.
#[must_use]
pub fn one_line(error: &clap::Error) -> String {
    if matches!(
        error.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let lacks = if error.render().to_string().contains("Usage: ralph loop") {
            "no verb given: use 'ralph loop plan' or 'ralph loop build', see 'ralph loop --help'"
        } else {
            "no mode given: use 'ralph plan', 'ralph build' or 'ralph prompt FILE', see 'ralph --help'"
        };
        return lacks.into();
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let words = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let mut line = String::new();
    for word in words {
        let tip = word.strip_prefix("tip: ");
        if !line.is_empty() {
            line.push_str(if tip.is_some() { "; " } else { " " });
        }
        line.push_str(tip.unwrap_or(word));
    }
    // "Usage: ralph build [OPTIONS] [N]" tells whose help is wanted.
    let usage = text.lines().find_map(|line| line.trim().strip_prefix("Usage: ralph ")).unwrap_or_default();
    let is_verb = |word: &&str| !word.is_empty() && word.chars().all(|char| char.is_ascii_lowercase());
    let help: Vec<&str> = usage.split(' ').take_while(is_verb).chain(["--help"]).collect();
    format!("{}; see 'ralph {}'", line.strip_prefix("error: ").unwrap_or(&line), help.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The word that is taken for the verb.
    fn verb(line: &str) -> Option<String> {
        let argv: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        verb_at(&argv).map(|at| argv[at].clone().into_string().unwrap())
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_verb_may_stand_behind_its_options() {
        for line in
            ["ralph --agent codex 3 build --json", "ralph --config plan build", "ralph --config=x build"]
        {
            assert_eq!(verb(line).as_deref(), Some("build"), "{line}");
            assert!(Cli::read(line.split(' ').map(OsString::from).collect()).is_ok(), "{line}");
        }
        for line in
            ["ralph --jobs 3 loop -m 2 build", "ralph loop --provider codex build", "ralph -t 5m loop plan"]
        {
            assert_eq!(verb(line).as_deref(), Some("loop"), "{line}");
            assert!(Cli::read(line.split(' ').map(OsString::from).collect()).is_ok(), "{line}");
        }
        assert_eq!((verb("ralph --help"), verb("ralph 3"), verb("ralph -- build")), (None, None, None));
    }

    #[test]
    fn errors_of_clap_fit_on_one_line() {
        let error =
            |line: &str| one_line(&Cli::read(line.split(' ').map(OsString::from).collect()).unwrap_err());
        assert_eq!(
            error("ralph biuld"),
            "unrecognized subcommand 'biuld'; a similar subcommand exists: 'build'; see 'ralph --help'"
        );
        for line in ["ralph", "ralph --quiet", "ralph 3", "ralph --timeout 5m 3"] {
            assert!(error(line).starts_with("no mode given"), "{line}");
        }
        assert!(error("ralph --versoin").contains("'--version'"));
        let missing = error("ralph prompt");
        assert!(missing.ends_with("<FILE [N]>...; see 'ralph prompt --help'"), "{missing}");
        assert!(error("ralph build --jsn").contains("'--json'"));
        for line in ["ralph loop", "ralph loop --quiet", "ralph --jobs 2 loop"] {
            assert!(error(line).starts_with("no verb given"), "{line}");
        }
        assert!(error("ralph loop build --jsn").ends_with("see 'ralph loop build --help'"));
    }
}
