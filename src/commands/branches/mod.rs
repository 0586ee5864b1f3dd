//! `ralph loop`: plans branches, and builds them in parallel, each in a work tree of its own.

mod build;
mod dry_run;
mod kept_plan;
mod plan;
mod plan_check;
mod planned;
mod requests;
mod tree;

pub(super) use tree::worktree_identity;

use std::path::Path;

use anyhow::bail;

use super::target::count;
use crate::cli::{BranchFlags, LoopBuildArgs, LoopVerb};
use crate::engine::outcome::Outcome;
use crate::files::theirs::PromptText;
use crate::job::preflight::Preflight;
use crate::job::workspace::{Call, locate};
use crate::project::Project;
use crate::record::lookup;
use crate::record::state_read::Extent;
use crate::settings::Verb;
use crate::source::prompt_file::Text;

/// `ralph loop`, with a verb or bare.
pub(super) fn run(verb: Option<&LoopVerb>, bare: &LoopBuildArgs) -> anyhow::Result<u8> {
    match verb {
        Some(LoopVerb::Plan(flags)) => plan::run(flags),
        Some(LoopVerb::Build { branches, args }) => build::run(args, branches),
        None if bare.is_about_building() || !planning_was_cut_off(&bare.shared)? => build::run(bare, &[]),
        None => plan::run(&bare.shared),
    }
}

/// Whether the latest loop over branches in this project plans them and was cut off.
fn planning_was_cut_off(flags: &BranchFlags) -> anyhow::Result<bool> {
    let here = locate(flags.flags.place.ralph_dir.as_ref())?;
    let loops = lookup::of_project(&here, Extent::Whole);
    let states = loops.iter().filter(|found| found.is_own()).filter_map(|found| found.state.as_deref().ok());
    let verbs = [Verb::LoopPlan, Verb::LoopBuild].map(Verb::words);
    let latest = states.into_iter().find(|state| verbs.contains(&state.setup.verb.as_str()));
    Ok(latest.is_some_and(|state| {
        state.setup.verb == Verb::LoopPlan.words() && !state.is_alive() && state.was_interrupted()
    }))
}

/// The number of iterations on the command line.
fn limit_of(flags: &BranchFlags) -> anyhow::Result<Option<u64>> {
    let limit = flags.max_iterations.as_deref().map(|word| count(word, "--max-iterations")).transpose()?;
    Ok(limit.and_then(|limit| u64::try_from(limit).ok()))
}

/// The checks before branches are planned or built.
fn preflight<'a>(call: Call<'a>, flags: &BranchFlags, limit: Option<u64>) -> anyhow::Result<Preflight<'a>> {
    let mut preflight = Preflight::of_settings(call, limit)?;
    preflight.limits.failed_end = Outcome::StoppedOnError;
    if flags.unlimited && flags.flags.resume_limit.is_none() {
        preflight.limits.max_iterations = None;
    }
    Ok(preflight)
}

/// The template of prompts: the one that the user names, else the project's own, else the built-in one.
fn template(flags: &BranchFlags, project: &Project, file: &str, built_in: &'static str) -> Text {
    let own = project.root().join(file);
    match &flags.prompt {
        Some(path) => Text::File(PromptText::at(project.cwd().join(path))),
        None if own.exists() => Text::File(PromptText::at(own)),
        None => Text::BuiltIn(built_in),
    }
}

/// Refuses to plan or build branches from a branch's work tree.
pub(super) fn refuse_inside_a_branch(root: &Path) -> anyhow::Result<()> {
    let trees = crate::git::trees::list(root)?;
    let outer = trees.iter().map(|tree| &tree.path).find(|path| root.starts_with(path.join(".worktrees")));
    if let Some(outer) = outer {
        bail!("{} is the work tree of a branch: run this in {}", root.display(), outer.display());
    }
    Ok(())
}
