//! Verbs that an agent must not use while a loop waits for it. This keeps order; it is no sandbox.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use anyhow::bail;

use super::graph_file::{is_draft, place};
use crate::cli::{Command, DepsVerb, FeatureVerb, GraphArgs, KnowledgeVerb, Late, NotifyVerb, TaskVerb};
use crate::job::workspace::locate;
use crate::platform::calls::{is_outermost, own_executable, pid_namespace, program_of};
use crate::platform::mark::{Carried, PANE_MARK};
use crate::process::ancestry::{has_supervisor, is_beside_pane};
use crate::record::lookup::{self, Loop};
use crate::record::state::State;
use crate::record::state_read::Extent;
use crate::tmux::server;

/// What a verb may do inside an attempt.
enum Rule<'a> {
    /// It only reads, or adds what ends nothing: tasks, dependencies, lines of a log.
    Allowed,
    /// It changes the graph of tasks. In the graph in which agents make tasks, it is allowed.
    Changes(&'static str, Option<&'a GraphArgs>),
    /// It starts, ends or steers loops, or changes their settings.
    Steers(&'static str),
}

/// Where ralph is called.
enum Place {
    /// By a person, or by a person's program.
    Outside,
    /// By a program of a run: an agent, a validation command, a hook, or a process that one of these has started.
    Inside,
    /// Perhaps by an agent, with the reason why that is unknown.
    Doubtful(String),
}

/// Whether a command is one that agents may use.
pub(super) fn is_allowed(command: &Command) -> bool {
    matches!(rule(command), Rule::Allowed)
}

/// Refuses a command that is not allowed inside an attempt.
///
/// # Errors
/// When it is refused.
pub(super) fn check(command: &Command) -> anyhow::Result<()> {
    match rule(command) {
        Rule::Allowed => Ok(()),
        Rule::Changes(_, Some(graph)) if is_draft(&place(graph)?) => Ok(()),
        Rule::Changes(verb, graph) => {
            let ralph_dir = graph.and_then(|graph| graph.ralph_dir.as_ref());
            refuse(verb, "say in your answer how the task ended, ralph books it", ralph_dir)
        }
        Rule::Steers(verb) => check_steering(verb),
    }
}

/// Refuses a verb that starts, ends or steers loops, inside an attempt.
///
/// # Errors
/// When it is refused.
pub(super) fn check_steering(verb: &str) -> anyhow::Result<()> {
    refuse(verb, "say in your answer what is needed, the user decides", None)
}

fn refuse(verb: &str, instead: &str, ralph_dir: Option<&PathBuf>) -> anyhow::Result<()> {
    let refused = format!("'ralph {verb}' is not for agents at work");
    match call_place(ralph_dir) {
        Place::Outside => Ok(()),
        Place::Inside => bail!("{refused}: {instead}"),
        Place::Doubtful(why) => bail!("{refused}, and {why}: call it from another terminal"),
    }
}

/// Whether ralph is called inside an attempt, or may be.
pub(super) fn is_inside(ralph_dir: Option<&PathBuf>) -> bool {
    !matches!(call_place(ralph_dir), Place::Outside)
}

/// The one table of what is allowed. There is no wildcard: a new verb must be entered here.
fn rule(command: &Command) -> Rule<'_> {
    use Rule::{Allowed, Changes, Steers};
    match command {
        Command::Plan(_) => Steers("plan"),
        Command::Build(_) => Steers("build"),
        Command::Prompt(_) => Steers("prompt"),
        Command::Run(_) => Steers("run"),
        Command::Loop { .. } => Steers("loop"),
        Command::Spawn(_) => Steers("spawn"),
        Command::Demo(_) => Steers("demo"),
        Command::Init(args) if args.force => Steers("init --force"),
        Command::Config(args) if !args.words.is_empty() => Steers("config set"),
        Command::Pause(_) => Steers("pause"),
        Command::Resume(_) => Steers("resume"),
        Command::Cancel(_) => Steers("cancel"),
        Command::Note(_) => Steers("note"),
        Command::Diff(args) if args.comment => Steers("diff --comment"),
        Command::Clean(_) => Steers("clean"),
        Command::Revert(_) => Steers("revert"),
        Command::Trust(_) => Steers("trust"),
        Command::Sandbox(args) if !args.command.is_empty() => Steers("sandbox"),
        Command::Send(_) => Steers("send"),
        Command::Interrupt(_) => Steers("interrupt"),
        Command::Attach(_) => Steers("attach"),
        Command::Kill(_) => Steers("kill"),
        Command::Notify { verb: Late(NotifyVerb::Test(_)) } => Steers("notify test"),
        Command::Task { verb: Late(verb) } => match verb {
            TaskVerb::Create(_) => Steers("task create"),
            TaskVerb::Update(args) => Changes("task update", Some(&args.graph)),
            TaskVerb::Done(args) => Changes("task done", Some(&args.task.graph)),
            TaskVerb::Fail(args) => Changes("task fail", Some(&args.task.graph)),
            TaskVerb::Reset(args) => Changes("task reset", Some(&args.graph)),
            TaskVerb::Delete(args) => Changes("task delete", Some(&args.task.graph)),
            TaskVerb::Deps { verb: DepsVerb::Rm(args) } => Changes("task deps rm", Some(&args.graph)),
            // It updates tasks that it finds again.
            TaskVerb::Import(_) => Changes("task import", None),
            TaskVerb::Deps { verb: DepsVerb::Add(_) | DepsVerb::List(_) }
            | TaskVerb::Add(_)
            | TaskVerb::Log(_)
            | TaskVerb::Show(_)
            | TaskVerb::List(_)
            | TaskVerb::Tree(_)
            | TaskVerb::Graph(_)
            | TaskVerb::Export(_) => Allowed,
        },
        Command::Feature { verb: Late(verb) } => match verb {
            // It gives an existing feature another spec or plan.
            FeatureVerb::Add(_) => Changes("feature add", None),
            FeatureVerb::Delete(_) => Changes("feature delete", None),
            FeatureVerb::Spec(_) => Steers("feature spec"),
            FeatureVerb::Plan(_) => Steers("feature plan"),
            FeatureVerb::Build(_) => Steers("feature build"),
            FeatureVerb::Create(_) => Steers("feature create"),
            FeatureVerb::List(_) | FeatureVerb::Show(_) => Allowed,
        },
        Command::Knowledge {
            verb: Late(KnowledgeVerb::List(_) | KnowledgeVerb::Show(_) | KnowledgeVerb::Search(_)),
        }
        | Command::Init(_)
        | Command::Config(_)
        | Command::Doctor(_)
        | Command::Sandbox(_)
        | Command::Status(_)
        // Its keys send the requests of the verbs above.
        | Command::Watch(_)
        | Command::Ls(_)
        | Command::Logs(_)
        | Command::Report(_)
        | Command::Replay(_)
        | Command::History(_)
        | Command::Diff(_)
        | Command::Proof(_)
        | Command::Journal(_)
        | Command::Peek(_)
        | Command::Wait(_)
        | Command::Template
        | Command::Completions { .. }
        | Command::Help { .. }
        | Command::Man => Allowed,
    }
}

/// A process cannot drop its ancestors, so these count most. Marks alone say less: they may have outlived their run, as in a
/// terminal that an agent has opened.
fn call_place(ralph_dir: Option<&PathBuf>) -> Place {
    // In the window of a worker, only the agent has this variable.
    let is_of_pane = std::env::var_os(PANE_MARK).is_some_and(|mark| !mark.is_empty());
    if is_of_pane || has_supervisor(top()) {
        return Place::Inside;
    }
    if is_beside_pane(top(), server::is_ours) {
        return Place::Doubtful("a worker's agent may have opened this window of ralph's tmux".to_owned());
    }
    // In a pid namespace of its own a process does not see the supervisor above it.
    let is_in_namespace = pid_namespace().is_ok_and(|namespace| !is_outermost(namespace));
    let doubtful = |which| Place::Doubtful(format!("this process has the marks of a run that {which}"));
    match Carried::by_us().map(|carried| end(&carried, ralph_dir)) {
        // There, an agent may have dropped its marks as well.
        None if is_in_namespace && is_run_unseen(ralph_dir) => {
            Place::Doubtful("a loop is at work outside of this pid namespace".to_owned())
        }
        Some(Some(End::None)) => Place::Inside,
        // It was killed, and its programs may run.
        Some(Some(End::CutOff)) => doubtful("was cut off"),
        Some(None) if is_in_namespace => doubtful("cannot be found"),
        None | Some(Some(End::Orderly) | None) => Place::Outside,
    }
}

/// Where to stop on the way up to the supervisor: at the process of the tests, which an agent may run. Only a debug build uses
/// that, and only for a program that was built with it.
fn top() -> Option<u32> {
    if !cfg!(debug_assertions) {
        return None;
    }
    let pid = std::env::var("TESTS_OF_RALPH_PID").ok()?.parse().ok()?;
    let tests = program_of(pid).ok()?;
    // By whichever path it was called.
    let [built, own] = [tests.parent()?.with_file_name("ralph"), own_executable().to_owned()]
        .map(|path| path.metadata().ok().map(|found| (found.dev(), found.ino())));
    (built.is_some() && built == own).then_some(pid)
}

/// The state of a run.
enum End {
    /// It runs.
    None,
    /// It was killed, and its programs may run.
    CutOff,
    /// It has ended all its programs.
    Orderly,
}

/// The state of a run, by its lock, which counts in every namespace. `None`: it is unknown here.
fn end(carried: &Carried, ralph_dir: Option<&PathBuf>) -> Option<End> {
    let loops = loops(ralph_dir);
    let mut states = loops.iter().filter_map(|found| found.state.as_ref().ok());
    let state = states.find(|state| carried.is_of_run(&state.run))?;
    Some(match state.is_alive() {
        true => End::None,
        false if state.ended_at.is_none() => End::CutOff,
        false => End::Orderly,
    })
}

/// Whether a loop runs in another pid namespace than ours: a process of a loop in ours sees its supervisor.
fn is_run_unseen(ralph_dir: Option<&PathBuf>) -> bool {
    let is_unseen = |state: &State| !state.process.is_of_our_namespace();
    loops(ralph_dir).iter().filter_map(Loop::alive).any(is_unseen)
}

fn loops(ralph_dir: Option<&PathBuf>) -> Vec<Loop> {
    locate(ralph_dir).map_or_else(|_| Vec::new(), |here| lookup::of_machine(&here, Extent::Head))
}
