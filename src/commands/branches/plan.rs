//! `ralph loop plan`: the loop that writes the plan of branches.

use super::plan_check::PlanCheck;
use super::{limits_of, refuse_inside_a_branch, template};
use crate::cli::BranchFlags;
use crate::commands::agent_choice::Choice;
use crate::commands::house::{House, open_loop};
use crate::commands::launch::{Launch, Resume, check_budget, run_id, validator};
use crate::commands::plain_loop::{agent_env, prompt_names, refused, require_specs};
use crate::engine::board::Board;
use crate::prompt;
use crate::settings::Verb;
use crate::source::prompt_file::{PromptFile, REPLAN_BRANCHES, Text};
use crate::view::plain::Frame;

const MODE: &str = "plan";

/// `ralph loop plan`.
pub(super) fn run(args: &BranchFlags) -> anyhow::Result<u8> {
    let flags = &args.flags;
    let house = open_loop(Verb::LoopPlan, flags)?;
    let House { project, settings } = &house;
    let choice = Choice::of(settings, project)?;
    project.require_git()?;
    refuse_inside_a_branch(project.root())?;
    choice.check_installed(settings, project)?;
    check_budget(settings, &settings.agent_type, choice.reports_cost(settings))?;
    let filters = choice.compile(settings, project)?;
    let limits = limits_of(args, settings)?;
    let text = template(args, project, "PROMPT_plan.md", prompt::BRANCH_PLAN);
    if matches!(text, Text::BuiltIn(_)) {
        require_specs(project.root(), settings)?;
    }
    let source = PromptFile::new(text, None, prompt_names(MODE, &limits, project, settings), REPLAN_BRANCHES);
    source.read().map_err(refused)?;

    let run = run_id();
    let mut env = agent_env(MODE, project, settings);
    // For the built-in agent, which knows two kinds of plans.
    env.push(("RALPH_PLAN_FORM".into(), "branches".into()));
    let agent = choice.agent(filters, settings, project, env, &run);
    let check = PlanCheck { project, settings, then: validator(settings, agent.launch()) };
    let launch = Launch {
        name: flags.name.clone().unwrap_or_else(|| MODE.to_owned()),
        verb: "loop plan",
        mode: MODE,
        resume: if flags.resume { Resume::Asked } else { Resume::ByItself },
        validator: Some(Box::new(check)),
        source: Box::new(source),
        plan: project.branch_plan(),
        board: Board::default(),
        ticket: None,
        started_from: None,
        sinks: Vec::new(),
        project,
        settings,
        limits,
        run,
        agent,
    };
    launch.run(flags, Frame::Blocks)
}
