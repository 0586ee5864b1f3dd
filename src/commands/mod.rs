//! One file per verb: turn arguments into a job and run it, or read records.

mod attempt;
mod author;
mod branches;
mod clean;
mod clean_worktrees;
mod comment;
pub mod completions;
pub mod config;
mod control;
pub mod demo;
mod diff;
pub mod doctor;
mod editor;
mod errand;
mod feature;
mod fleet;
mod graph_file;
mod guide;
pub mod init;
mod landings;
mod logs;
mod man;
mod memory;
mod notify;
mod output;
mod overview;
mod own_call;
mod plain_loop;
mod pointers;
mod proof;
mod replay;
mod report;
mod resume;
mod revert;
mod run_ralph_md;
mod run_tasks;
pub mod sandbox;
mod side_by_side;
mod spawn;
mod starter;
mod status;
mod target;
mod task;
mod trust;
pub mod version;
pub mod watch;
mod worker;

use std::io::Write as _;

use crate::cli::{Command, Late, RunArgs};
use crate::job::detached;

use output::print;

pub use output::report_error;
pub use overview::overview;

/// Runs a verb and returns the process exit code.
///
/// # Errors
/// When it is refused before anything started, or cannot print its output.
pub fn run(command: Command) -> anyhow::Result<u8> {
    attempt::check(&command)?;
    if let Some(code) = errand::send(&command)? {
        return Ok(code);
    }
    if command.is_for_background() {
        return detached::start(std::env::args_os());
    }
    match command {
        Command::Plan(args) => plain_loop::plan(&args),
        Command::Build(args) => plain_loop::build(&args),
        Command::Prompt(Late(args)) => plain_loop::prompt(args),
        Command::Init(args) => match &args.file {
            Some(file) => starter::write(file, &args),
            None => init::init(args.0),
        },
        Command::Config(args) => config::run(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Demo(args) => demo::run(args.dir.as_deref(), args.tasks, args.jobs, args.quiet),
        Command::Status(args) => status::status(&args),
        Command::Ls(args) => status::list(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Logs(args) => logs::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Proof(args) => proof::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Report(args) => report::report(&args),
        Command::History(args) => report::history(&args),
        Command::Pause(args) => control::pause(&args),
        Command::Resume(args) => resume::run(&args),
        Command::Cancel(args) => control::cancel(&args),
        Command::Note(Late(args)) => control::note(args),
        Command::Clean(args) => clean::run(&args),
        Command::Notify { verb } => notify::run(&verb),
        Command::Trust(args) => trust::run(&args),
        Command::Sandbox(args) => sandbox::run(&args),
        Command::Send(args) => worker::send(&args),
        Command::Interrupt(args) => worker::interrupt(&args),
        Command::Attach(args) => worker::attach(&args),
        Command::Peek(args) => worker::peek(&args),
        Command::Wait(args) => worker::wait(&args),
        Command::Kill(args) => worker::kill(&args),
        Command::Template => worker::template(),
        Command::Revert(args) => revert::run(&args),
        Command::Completions { shell } => completions::script(shell),
        Command::Help { words } => guide::help(&words),
        Command::Man => print(man::render),
        Command::Run(args) => run_target(&args),
        Command::Spawn(args) => spawn::spawn(&args),
        Command::Loop { bare, verb } => branches::run(verb.as_deref(), &bare),
        Command::Task { verb } => task::run(&verb),
        Command::Feature { verb } => feature::run(&verb),
        Command::Journal(args) => memory::journal(&args),
        Command::Knowledge { verb } => memory::knowledge(&verb),
    }
}

/// A kind of target of `ralph run`: whether the arguments mean such a target, and what runs it.
type Target = (fn(&RunArgs) -> anyhow::Result<bool>, fn(&RunArgs) -> anyhow::Result<u8>);

/// Every kind of target; the first one that recognises the arguments runs.
const TARGETS: &[Target] = &[
    (run_ralph_md::is_meant, run_ralph_md::run),
    (run_tasks::is_meant, run_tasks::run),
    (spawn::is_meant, spawn::run),
];

/// `ralph run`. For an unknown target, the error of tasks lists what exists.
fn run_target(args: &RunArgs) -> anyhow::Result<u8> {
    for (is_meant, run) in TARGETS {
        if is_meant(args)? {
            return run(args);
        }
    }
    run_tasks::run(args)
}

/// Prints the text of `--help` or `--version`, in colour if stdout is a terminal.
pub fn print_help(help: &clap::Error) -> anyhow::Result<u8> {
    print(|out| write!(out, "{}", help.render().ansi()))
}
