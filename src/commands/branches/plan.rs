//! `ralph loop plan`: the loop that writes the plan of branches.

use anyhow::Error;

use super::kept_plan::take_claims_of_killed_back;
use super::plan_check::{PlanBefore, PlanCheck};
use super::{limit_of, preflight, refuse_inside_a_branch, template};
use crate::cli::BranchFlags;
use crate::commands::output::remark;
use crate::commands::plain_loop::require_specs;
use crate::git;
use crate::job::Refused;
use crate::job::ready::run_id;
use crate::job::resume::Resume;
use crate::job::variables::prompt_names;
use crate::job::workspace::{Workspace, open_loop};
use crate::prompt;
use crate::settings::Verb;
use crate::source::planning::Planning;
use crate::source::prompt_file::{Plan, PromptFile, REPLAN_BRANCHES, Text};
use crate::view::plain::Frame;

/// `ralph loop plan`.
pub(super) fn run(args: &BranchFlags) -> anyhow::Result<u8> {
    let flags = &args.flags;
    let limit = limit_of(args)?;
    let workspace = open_loop(Verb::LoopPlan, flags)?;
    let Workspace { project, settings } = &workspace;
    project.require_git()?;
    refuse_inside_a_branch(project.root())?;
    let preflight = preflight(workspace.called(Verb::LoopPlan, flags), args, limit)?;
    let text = template(args, project, "PROMPT_plan.md", prompt::BRANCH_PLAN);
    if matches!(text, Text::BuiltIn(_)) {
        require_specs(project.root(), settings)?;
    }
    let names = prompt_names(preflight.call, &preflight.limits, project);
    let source = PromptFile::new(text, Plan::None, names, REPLAN_BRANCHES);
    source.read().map_err(Refused::from)?;
    let place = (project.root(), git::remote::remote(project.root(), settings.git.forge));
    let source = Planning::new(source, place, settings.git.auto_push, &settings.git.protected_branches);

    take_claims_of_killed_back(project)?.iter().for_each(|notice| remark(notice));
    let before = PlanBefore::of(project);
    let run = run_id();
    // For the built-in agent, which writes two kinds of plans.
    let env = [("RALPH_PLAN_FORM".into(), "branches".into())];
    let mut ready = preflight.ready(project, &run, env)?;
    // The user's validation command is for code.
    ready.validated_by(Some(Box::new(PlanCheck { project, settings, before: &before })));
    ready.resume = Resume::ByItself;
    ready.plan = project.branch_plan();
    let kept = before.keep(&run)?;
    let ended = ready.run(source, Frame::Blocks);
    // Attempts that failed or were cut off are not validated.
    if let Some(notice) = before.take_claims_back().map_err(Error::msg)? {
        remark(&notice);
    }
    kept.remove();
    ended
}
