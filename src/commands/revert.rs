//! `ralph revert`: undoes the commits of a loop's last iterations by revert commits.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context as _, bail};

use super::landings;
use super::output::say;
use super::target::{self, count};
use crate::cli::RevertArgs;
use crate::git;
use crate::git::revert::Commit;
use crate::graph::Landing;
use crate::job::workspace::locate;
use crate::project::Project;
use crate::record::lookup::{self, Loop};
use crate::record::newer;
use crate::record::recorder;
use crate::record::run_folder::is_job;
use crate::record::state_read::Extent;
use crate::record::work_done::{Iteration, newest_first};
use crate::text::line::shell_word;

/// `ralph revert`.
pub(super) fn run(args: &RevertArgs) -> anyhow::Result<u8> {
    let wanted = count(&args.last, "--last")?;
    if let Some(name) = args.target.name.as_deref().filter(|name| name.starts_with("t-")) {
        let here = locate(args.target.ralph_dir.as_ref())?;
        if let Some(landing) = landings::of_task(&here, name)? {
            return take_back(&here, &landing);
        }
    }
    let (here, loops) = target::loops(&args.target)?;
    let found = match loops.as_slice() {
        [] => bail!("nothing to undo in {}: there is no loop", here.root().display()),
        [found] => found,
        several => {
            let names: Vec<&str> = several.iter().map(|found| found.name.as_str()).collect();
            bail!("several loops are here: {}: name the one to undo", names.join(", "))
        }
    };
    if is_job(&found.name) {
        bail!(
            "what jobs do lands task by task: 'ralph revert TASK' takes one back, and 'ralph report' lists them"
        );
    }
    if !found.project.root().exists() {
        let (name, place) = (&found.name, found.project.root().display());
        bail!("the work tree of '{name}' is gone, {place}: 'git worktree add' makes it again");
    }
    found.project.require_git()?;
    refuse_while_running(found)?;
    // No loop can begin here meanwhile.
    let _lock = recorder::hold(&found.project, "revert")?;

    let root = found.project.root();
    git::revert::check_idle(root)?;
    let iterations = chosen(found, wanted)?;
    if iterations.is_empty() {
        say(&format!(
            "nothing to undo: no iteration of '{}' committed anything that is not undone",
            found.name
        ));
        return Ok(0);
    }
    let commits: Vec<Commit> = iterations.iter().flat_map(|(_, commits)| commits.clone()).collect();
    git::revert::revert(root, &commits)?;
    for (iteration, commits) in &iterations {
        say(&format!("reverted iteration {}:", iteration.number));
        for commit in commits {
            say(&format!("  {:.10} {}", commit.id, commit.subject));
        }
    }
    Ok(0)
}

/// Takes back what a task has brought onto the branch that is checked out here.
fn take_back(here: &Project, landing: &Landing) -> anyhow::Result<u8> {
    let Landing { task, landed, made, .. } = landing;
    let Some(landed) = landed else {
        bail!(
            "{task} has not landed: 'ralph task reset {task}' withdraws what there is of it, and keeps its commits as {}",
            landing.reference()
        );
    };
    here.require_git()?;
    newer::refuse(here)?;
    let root = here.root();
    let message = format!("Revert {}\n\nThis takes back what has landed as {landed}.\n", landing.named());
    let reverted = git::landing::take_back(root, (&made.base, landed), task, &message)?;
    match reverted {
        Some(commit) => say(&format!(
            "reverted {task} by {commit:.10}; it stays done: 'ralph task reset {task}' has it done again"
        )),
        None => say(&format!("nothing to undo: nothing of {task} is left here")),
    }
    Ok(0)
}

fn refuse_while_running(found: &Loop) -> anyhow::Result<()> {
    let root = found.project.root();
    let busy = |other: &Loop| other.project.root() == root && other.alive().is_some();
    match lookup::of_machine(&found.project, Extent::Head).iter().find(|other| busy(other)) {
        Some(other) => bail!(
            "loop '{}' is running in {}: end it first, with 'ralph cancel {}'",
            other.name,
            root.display(),
            shell_word(&other.name)
        ),
        None => Ok(()),
    }
}

/// The last `wanted` iterations with commits that are not undone, newest first, with these commits.
fn chosen(found: &Loop, wanted: usize) -> anyhow::Result<Vec<(Iteration, Vec<Commit>)>> {
    let root = found.project.root();
    let mut undone: Option<HashSet<String>> = None;
    let mut chosen = Vec::new();
    let folders = found.project.all_logs();
    let mut iterations: Vec<Iteration> =
        newest_first(&folders).context("cannot read the events logs")?.collect();
    by_ancestry(root, &mut iterations)?;
    for iteration in iterations {
        if chosen.len() == wanted {
            break;
        }
        let mut commits = Vec::new();
        for (before, after) in iteration.heads.iter().rev() {
            commits.extend(git::revert::commits_between(root, before.as_deref(), after)?);
        }
        if commits.is_empty() {
            continue;
        }
        if undone.is_none() {
            undone = Some(git::revert::undone(root)?);
        }
        commits.retain(|commit| !undone.as_ref().is_some_and(|undone| undone.contains(&commit.id)));
        if !commits.is_empty() {
            chosen.push((iteration, commits));
        }
    }
    Ok(chosen)
}

/// Orders iterations by git's history: a clock may have been set back between two sessions. Those that are not in HEAD's history
/// are ordered by their time.
fn by_ancestry(root: &Path, iterations: &mut [Iteration]) -> anyhow::Result<()> {
    if iterations.len() < 2 {
        return Ok(());
    }
    let places = git::revert::places(root)?;
    let place =
        |iteration: &Iteration| iteration.heads.last().and_then(|(_, after)| places.get(after)).copied();
    let mut known: Vec<(usize, Iteration)> =
        iterations.iter().filter_map(|iteration| Some((place(iteration)?, iteration.clone()))).collect();
    known.sort_by_key(|(place, _)| *place);
    let slots = iterations.iter_mut().filter(|iteration| place(iteration).is_some());
    for (slot, (_, iteration)) in slots.zip(known) {
        *slot = iteration;
    }
    Ok(())
}
