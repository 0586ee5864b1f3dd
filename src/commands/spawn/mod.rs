//! `ralph spawn`: an interactive agent in a window of tmux, in a loop; `ralph run NAME` resumes one.

mod setup;
mod tree;
mod watching;

use anyhow::{Context as _, bail};

use super::output::{say, warn};
use super::plain_loop::count;
use super::resume::with_secret;
use super::worker;
use crate::cli::{RunArgs, SpawnArgs};
use crate::job::workspace::{locate, open_loop};
use crate::project::Project;
use crate::record::lookup::Loop;
use crate::record::registry::{self, LoopEntry};
use crate::record::state::State;
use crate::settings::Verb;
use crate::tmux::Server;
use tree::OwnTree;
use watching::Watching;

/// With more iterations than these, the cost is mentioned.
const MANY: u64 = 50;

/// `ralph spawn`.
pub(super) fn spawn(args: &SpawnArgs) -> anyhow::Result<u8> {
    let name = args.flags.name.as_deref().unwrap_or_default();
    worker::exists(name)?;
    let limit = count(&args.max_iterations)?;
    let prompt_file = setup::prompt_file(&args.prompt_file)?;
    if limit > MANY {
        warn("high iteration count (>50) may consume significant resources");
    }
    if args.tmux {
        say("Note: Ralph workers always use tmux");
    }
    let mut setup = setup::worker(args, name)?;
    setup::patterns(&setup, setup::given(&args.flags, "loop.done_pattern"))?;
    Server::check()?;
    std::env::set_current_dir(&setup.cwd)
        .with_context(|| format!("cannot work in {}", setup.cwd.display()))?;
    let mut workspace = open_loop(Verb::Spawn, &args.flags)?;
    workspace.knows_secrets_of(&setup.env);
    if setup.check_done_continuous && workspace.settings.done_pattern.as_deref().is_none_or(str::is_empty) {
        warn("--check-done-continuous does nothing without --done-pattern");
    }
    let places = places(&workspace.project, name)?;
    make_room(args, name, &workspace.project, &places)?;
    let tree =
        args.worktree.then(|| OwnTree::give(args.worktree_dir.as_deref(), name, &workspace)).transpose()?;
    if let Some(tree) = &tree {
        setup.cwd.clone_from(&tree.known.path);
        setup.worktree = Some(tree.known.clone());
    }
    let root = setup.cwd.clone();
    let project = workspace.project.of_worker(name, &root).context("there is no home folder")?;
    let watching = Watching {
        workspace: &workspace,
        project: &project,
        name,
        worker: setup,
        prompt: (prompt_file, args.prompt_file.display().to_string()),
        limit,
        state: None,
        detaches: args.no_run,
    };
    let ended = watching.run(&args.flags);
    // What was taken back as if it had never been spawned leaves no work tree, either.
    if let Some(tree) = tree.filter(|_| !matches!(ended, Ok(0)))
        && !worker::exists(name)?
    {
        tree.take_back(&workspace.project);
    }
    ended
}

/// The worker of this name; `None`: there is none.
fn named(args: &RunArgs) -> anyhow::Result<Option<(&str, Loop)>> {
    let name = args.target.as_deref().and_then(|target| target.to_str()).unwrap_or_default();
    if !worker::is_name(name) || args.is_about_tasks() {
        return Ok(None);
    }
    let here = locate(args.flags.place.ralph_dir.as_ref())?;
    let found = here.of_worker(name, here.root()).and_then(|places| Loop::at(places, name));
    Ok(found.map(|found| (name, found)))
}

/// Whether the target is a worker.
pub(super) fn is_meant(args: &RunArgs) -> anyhow::Result<bool> {
    Ok(named(args)?.is_some())
}

/// `ralph run NAME` of a worker.
pub(super) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let (name, found) = named(args)?.context("the worker was removed just now")?;
    let state = found.state.map_err(|why| {
        anyhow::anyhow!(
            "{why}, and the events log of the worker's last run does not tell it, either: end what is left of it with \
             'ralph kill {name}', and start it anew with 'ralph spawn --replace --name {name}'"
        )
    })?;
    let State { setup, max_iterations, .. } = &*state;
    let Some(worker) = setup.worker.as_deref().cloned() else { bail!("'{name}' is no worker") };
    let prompt = setup.prompt_file.clone().unwrap_or_default();
    let limit = match (args.flags.resume_limit, &args.max_iterations) {
        (Some(limit), _) => limit,
        (None, Some(word)) => count(word)?,
        (None, None) => max_iterations.unwrap_or(1),
    };
    Server::check()?;
    std::env::set_current_dir(&worker.cwd).with_context(|| {
        format!("cannot work in {}, where worker '{name}' was started", worker.cwd.display())
    })?;
    let mut workspace = open_loop(Verb::Spawn, &args.flags)?;
    let worker = worker
        .with_words(|word| with_secret(&word, &workspace.settings.secrets))
        .with_context(|| format!("worker '{name}'"))?;
    workspace.knows_secrets_of(&worker.env);
    let shown = prompt.display().to_string();
    let watching = Watching {
        workspace: &workspace,
        project: &found.project,
        name,
        worker,
        prompt: (prompt, shown),
        limit,
        state: Some(&state),
        detaches: false,
    };
    watching.run(&args.flags)
}

fn places(project: &Project, name: &str) -> anyhow::Result<Project> {
    let places = project.of_worker(name, project.root());
    places.context("there is no home folder for the state of workers: set HOME or XDG_STATE_HOME")
}

/// Checks that no earlier worker of this name is in the way, or removes it.
fn make_room(args: &SpawnArgs, name: &str, here: &Project, places: &Project) -> anyhow::Result<()> {
    if !worker::exists(name)? {
        return Ok(());
    }
    if args.replace {
        worker::replace(name, args.force_dirty)?;
        forget(here, places, name)?;
        say(&format!("replaced existing worker {name}"));
    } else if !args.clean_state {
        bail!(
            "worker '{name}' already exists: end it and start anew with --replace, or go on with 'ralph run {name}'"
        );
    } else if worker::is_running(name)? {
        bail!("worker '{name}' is still running: end it with 'ralph kill {name}', or use --replace");
    } else {
        forget(here, places, name)?;
        say(&format!("cleared ralph state for {name}"));
    }
    Ok(())
}

/// Removes all records of a worker.
fn forget(here: &Project, places: &Project, name: &str) -> anyhow::Result<()> {
    let folder = places.records();
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", folder.display()));
        }
        _ => {}
    }
    let Some(list) = here.registry() else { return Ok(()) };
    let is_meant = |entry: &&LoopEntry| entry.name == name && entry.places(here).records() == folder;
    for entry in registry::list(&list).0.iter().filter(is_meant) {
        registry::remove(&list, entry)?;
    }
    Ok(())
}
