//! `ralph run TASK`, `ralph run FEATURE`, `ralph run --all`: the loop over the graph of tasks.

mod jobs;
mod many;
mod member;
mod run_graph;

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context as _, bail};

use super::errand::Errands;
use super::graph_file::{self, FEATURE_VARIABLE};
use super::output::{print_as_it_is, remark};
use super::own_call::own_call;
use super::plain_loop::count_or_none;
use super::{report, run_ralph_md, starter};
use crate::cli::RunArgs;
use crate::engine::outcome::{End, Outcome};
use crate::files::theirs::PromptText;
use crate::files::{own, theirs};
use crate::graph::{FeatureStatus, GraphError, Holder, Retries, Scope, Store};
use crate::inspection::Ground;
use crate::job::Refused;
use crate::job::preflight::Preflight;
use crate::job::ready::run_id;
use crate::job::terminal::AtTerminal;
use crate::job::workspace::{Call, Workspace, locate, open, open_loop};
use crate::memory::model::Strategy;
use crate::project::Project;
use crate::settings::sandbox::Mode;
use crate::settings::{Origin, Settings, Verb};
use crate::source::tasks::{Graph, Lease, Models, Places, Target, Tasks, no_tasks};
use crate::view::plain::Frame;
use crate::view::run_lines::RunLines;
use run_graph::RunGraph;

/// The user's own instructions, at the project root.
const PROMPT: &str = "PROMPT_task.md";
const MODE: &str = "tasks";

/// `ralph run` over tasks.
pub(super) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let limit = match args.max_iterations.as_deref() {
        Some(limit) => count_or_none(limit)?,
        None => args.tasks.once.then_some(1),
    };
    let workspace = open_loop(Verb::Tasks, &args.flags)?;
    let call = workspace.called(Verb::Tasks, &args.flags);
    let Workspace { project, settings } = &workspace;
    let graph = RunGraph::find(args.tasks.store.as_deref(), settings, project, true)?;
    let (store, has_graph) = match graph.open()? {
        Some(store) => (store, true),
        None => (RunGraph::none()?, false),
    };
    let scope = scope(args, &*store)?;
    if !has_graph {
        return Err(Refused::from(End::because(Outcome::NoTasks, no_tasks(&scope))).into());
    }
    // The task is retried by a fresh agent with a prompt of its own, not the attempt.
    let mut preflight = Preflight::of_settings(call, limit)?.without_retries();
    preflight.limits.failed_end = Outcome::StoppedOnError;
    let plan = jobs::plan(args, settings, project, graph.server().is_some())?;
    let models = models(args, settings, &preflight)?;
    let asks = settings.verify && !args.tasks.no_verify;
    let places = places(args, project, asks && preflight.can_look_only())?;
    // Agents change this graph, from any folder.
    let mut env = vec![("RALPH_DIR".into(), project.graph_dir().into())];
    if let Scope::Feature(name) = &scope {
        env.push((FEATURE_VARIABLE.into(), name.into()));
    }
    // A server's graph has no seals.
    if graph.server().is_none()
        && let Err(why) = graph_file::key(project)
    {
        remark(&format!(
            "what is done in the graph is not sealed, so that another program could change it unseen: {why}"
        ));
    }
    let (first_model, retries) = (models.begins_with(), retries(settings));
    let run = Run {
        args,
        call,
        workspace: &workspace,
        graph,
        preflight,
        scope,
        models,
        retries,
        places,
        env,
        asks,
    };
    if args.dry_run {
        return run.preview(store);
    }
    if !args.flags.json && !args.flags.quiet {
        if !project.in_git() {
            remark(
                "there is no git here: nothing that agents do can be verified or taken back; 'git init' first",
            );
        }
        if let Some(told) = first_model {
            remark(&told);
        }
    }
    match plan {
        Some(plan) => {
            drop(store);
            jobs::run(run, plan)
        }
        None => run.alone(store),
    }
}

/// A run over tasks that is checked and only has to begin.
struct Run<'a> {
    args: &'a RunArgs,
    call: Call<'a>,
    workspace: &'a Workspace,
    /// Where the graph is.
    graph: RunGraph<'a>,
    preflight: Preflight<'a>,
    scope: Scope,
    models: Models,
    retries: Retries,
    places: Places,
    /// The agents' variables.
    env: Vec<(OsString, OsString)>,
    /// Whether a fresh agent verifies what is done.
    asks: bool,
}

impl Run<'_> {
    /// The source of a run with one job in the user's checkout.
    fn source(
        &self,
        store: Box<dyn Store + Send>,
        run: &str,
        is_verified: bool,
        errands: Option<&Errands>,
    ) -> anyhow::Result<Tasks> {
        let mut places = self.places.clone();
        if let Some(errands) = errands {
            places.ralph = errands.call(&self.workspace.project)?;
        }
        let holder = Holder::of_self(run).context("cannot tell which process this is")?;
        let target = Target {
            scope: self.scope.clone(),
            holder,
            retries: self.retries,
            models: self.models.clone(),
            places,
            trunk: None,
        };
        Ok(Tasks::new(Graph::new(store, Lease::default())?, target, is_verified, None))
    }

    /// Where the agents of a loop send their verbs, if they cannot open the graph: a socket in this folder.
    fn errands(&self, run: &str, folder: &Path) -> anyhow::Result<Option<Errands>> {
        let server = self.graph.server().map(|server| server.address.to_string());
        if server.is_none() && self.workspace.settings.sandbox.mode == Mode::Off {
            return Ok(None);
        }
        own::make_folders(folder)?;
        Errands::listen(folder, run, self.workspace.project.root(), server).map(Some)
    }

    /// Shows the prompt of the first iteration.
    fn preview(&self, store: Box<dyn Store + Send>) -> anyhow::Result<u8> {
        let run = run_id();
        let ready = self.preflight.ready(&self.workspace.project, &run, self.env.clone())?;
        let source = self.source(store, &run, self.asks || ready.validator.is_some(), None)?;
        if let Some(prompt) = source.preview().map_err(Refused::from)? {
            return print_as_it_is(&prompt);
        }
        remark("nothing is ready: no agent would be started");
        Ok(0)
    }

    /// One job in the user's checkout.
    fn alone(self, store: Box<dyn Store + Send>) -> anyhow::Result<u8> {
        let (run, args, project) = (run_id(), self.args, &self.workspace.project);
        let errands = self.errands(&run, &project.run(&run))?;
        let env = self.env.iter().cloned().chain(errands.as_ref().map(Errands::variable));
        let mut ready = self.preflight.ready(project, &run, env)?;
        let is_verified = self.asks || ready.validator.is_some();
        let source = self.source(store, &run, is_verified, errands.as_ref())?;
        ready.logs_into(args.log_dir.as_ref())?;
        ready.name = name_of(&self.scope);
        ready.person = if args.flags.json { None } else { AtTerminal::find() };
        ready.validator = Some(Box::new(source.verifier(ready.validator.take(), self.asks)));
        let code = ready.run(source, Frame::Lines(RunLines::default()))?;
        if !args.flags.json {
            report::tasks(project, &project.run(&run))?;
        }
        Ok(code)
    }
}

/// Whether the target is a task or a feature, or is none of the other kinds.
pub(super) fn is_meant(args: &RunArgs) -> anyhow::Result<bool> {
    let Some(target) = args.target.as_deref().and_then(Path::to_str) else { return Ok(true) };
    let project = locate(args.flags.place.ralph_dir.as_ref())?;
    let settings = open(&args.flags.place)?.settings;
    let graph = RunGraph::find(args.tasks.store.as_deref(), &settings, &project, false)?;
    let Some(store) = graph.open()? else { return Ok(false) };
    Ok(target.starts_with("t-") && store.task(target).is_ok() || store.feature(target).is_ok())
}

/// The selected tasks.
fn scope(args: &RunArgs, store: &dyn Store) -> anyhow::Result<Scope> {
    if args.tasks.all {
        return Ok(Scope::All);
    }
    let target = args.target.as_deref().and_then(Path::to_str).filter(|target| !target.is_empty());
    let Some(target) = target else {
        bail!(
            "TARGET is missing: name a RALPH.md or its folder, a task or a feature, or run every ready task with --all"
        );
    };
    // The name of a feature may be the beginning of an id.
    let found = if target.starts_with("t-") { store.task(target) } else { Err(unknown_task(target)) };
    let unknown = match found {
        Ok(task) => return Ok(Scope::Subtree(task.id)),
        Err(error @ GraphError::UnknownTask { .. }) => error,
        Err(error) => return Err(error.into()),
    };
    match store.feature(target) {
        Ok(feature) => {
            let next = match feature.status {
                FeatureStatus::Draft => "create",
                FeatureStatus::Planned => "build",
                FeatureStatus::Ready
                | FeatureStatus::Running
                | FeatureStatus::Done
                | FeatureStatus::Failed => {
                    return Ok(Scope::Feature(feature.name));
                }
            };
            bail!(
                "feature '{target}' is not ready, it is {}: 'ralph feature {next} {target}' makes its tasks, or 'ralph task \
                 add TITLE --feature {target}' one",
                feature.status.word()
            );
        }
        Err(GraphError::UnknownFeature { nearest: None, .. }) if target.starts_with("t-") => {
            Err(unknown.into())
        }
        Err(error @ GraphError::UnknownFeature { nearest: Some(_), .. }) => Err(error.into()),
        Err(GraphError::UnknownFeature { .. }) => bail!(
            "TARGET '{target}' is no folder with a RALPH.md here, no task, no feature and no worker: {}'ralph task list' and 'ralph feature \
             list' show what there is, 'ralph init {}' writes a RALPH.md",
            theirs::meant_in(Path::new("."), target, |path| path.join(run_ralph_md::FILE).is_file()),
            starter::as_target(&Path::new(target).join("RALPH.md"))
        ),
        Err(error) => Err(error.into()),
    }
}

fn unknown_task(target: &str) -> GraphError {
    GraphError::UnknownTask { id: target.to_owned(), nearest: None }
}

/// The choice of each iteration's model.
fn models(args: &RunArgs, settings: &Settings, preflight: &Preflight) -> anyhow::Result<Models> {
    let words = args.tasks.model_strategy.as_ref().or(settings.model_strategy.as_ref());
    let known = || Strategy::ALL.map(Strategy::word).join(", ");
    let asked: Option<Strategy> = match words {
        Some(words) => match words.parse() {
            Ok(strategy) => Some(strategy),
            Err(()) => bail!("there is no model strategy '{words}': choose one of {}", known()),
        },
        None => None,
    };
    let is_flag = |key| settings.row(key).is_some_and(|row| matches!(row.origin, Origin::Flag(_)));
    // A named model is used. A flag comes before environment and files.
    let wants_strategy = args.tasks.model_strategy.is_some() && asked != Some(Strategy::Fixed);
    if settings.agent_model.is_some() && (is_flag("agent.model") || !wants_strategy) {
        if wants_strategy {
            bail!(
                "--model names one model, and --model-strategy chooses among several: leave one of them out"
            );
        }
        return Ok(Models::Usual(settings.agent_model.clone()));
    }
    let ladder: Vec<String> = if settings.model_ladder.is_empty() {
        preflight.ladder().iter().map(|model| (*model).to_owned()).collect()
    } else {
        settings.model_ladder.clone()
    };
    if !ladder.is_empty() && !preflight.can_choose_model() {
        bail!(
            "agent '{}' cannot be told which model to use, so that there is nothing to choose from: leave the ladder and the \
             strategy out, or choose another agent",
            preflight.agent_name()
        );
    }
    match asked {
        Some(Strategy::Fixed) => bail!("the model strategy 'fixed' needs a model: name it with --model"),
        Some(strategy) if ladder.is_empty() => bail!(
            "the model strategy '{strategy}' needs models to choose from, and none are known for this agent: name them in \
             ralph.toml, as in '[model] ladder = [\"small\", \"large\"]'"
        ),
        None if ladder.is_empty() => Ok(Models::Usual(None)),
        asked => Ok(Models::Ladder(asked.unwrap_or_default(), ladder)),
    }
}

/// How often a task may be retried: by the command line, by the task, by the settings.
fn retries(settings: &Settings) -> Retries {
    let row = settings.row("loop.max_retries");
    let is_flag = row.is_some_and(|row| matches!(row.origin, Origin::Flag(_)));
    Retries { of_run: is_flag.then_some(settings.max_retries), usual: settings.task_retries }
}

fn places(args: &RunArgs, project: &Project, looks_only: bool) -> anyhow::Result<Places> {
    let core = match &args.tasks.prompt {
        Some(path) => {
            let path = project.cwd().join(path);
            if !path.is_file() {
                bail!("prompt file {}: there is no such file: name one that is there", path.display());
            }
            Some(path)
        }
        None => Some(project.root().join(PROMPT)).filter(|path| path.symlink_metadata().is_ok()),
    };
    let graph = project.graph_dir();
    let is_usual = graph == project.root().join(".ralph");
    Ok(Places {
        ground: Ground { root: project.root().to_owned(), in_git: project.in_git(), looks_only },
        documents: graph.clone(),
        core: core.map(PromptText::at),
        ralph: own_call(project, (!is_usual).then_some(&*graph))?,
    })
}

fn name_of(scope: &Scope) -> String {
    match scope {
        Scope::All => MODE.to_owned(),
        Scope::Feature(name) => name.clone(),
        Scope::Subtree(id) => id.clone(),
    }
}
