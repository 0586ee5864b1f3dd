//! `ralph loop build --dry-run`: what would be built.

use std::io::{self, Write as _};

use serde_json::json;

use super::planned::Planned;
use crate::commands::output::{print, print_for_people};
use crate::project::Project;
use crate::record::lookup::Loop;
use crate::text::line::escaped;

/// Prints the branches of the plan, and the `agent`'s command line.
pub(super) fn show(
    project: &Project,
    agent: &str,
    branches: &[Planned],
    as_json: bool,
) -> anyhow::Result<u8> {
    let meant = || branches.iter().filter(|branch| branch.is_meant);
    if as_json {
        let branches: Vec<_> = meant().map(|branch| object(project, agent, branch)).collect();
        return print(|out| {
            serde_json::to_writer_pretty(&mut *out, &branches).map_err(io::Error::other)?;
            writeln!(out)
        });
    }
    print_for_people(|out| {
        for branch in meant() {
            let section = &branch.section;
            let base = if section.is_done { String::new() } else { format!(" from {}", branch.base) };
            writeln!(out, "{}{base}: {}", section.name, section.goal)?;
            writeln!(out, "  {}", standing(project, branch))?;
            for task in &section.tasks {
                writeln!(out, "  [{}] {}", if task.ticked { 'x' } else { ' ' }, task.text)?;
            }
            writeln!(out)?;
        }
        let open = branches.iter().filter(|branch| branch.is_open()).count();
        writeln!(out, "{open} of {} branches would be built.", branches.len())?;
        writeln!(out, "The agent would be started as: {}", escaped(agent))
    })
}

/// What would happen to a branch.
fn standing(project: &Project, branch: &Planned) -> String {
    let path = project.worktree(&branch.section.name);
    let place = project.relative(&path);
    match (branch.section.is_done, branch.after, iteration(project, branch)) {
        (true, ..) => match &branch.section.pull_request {
            Some(address) => format!("done: {address}"),
            None => "done".to_owned(),
        },
        (_, _, Some(iteration)) => format!("goes on in {} after iteration {iteration}", place.display()),
        (false, None, None) if branch.request.is_some() => {
            format!("in {}, from what is fetched then", place.display())
        }
        (_, Some(_), None) => format!("in {}, when '{}' is done", place.display(), branch.base),
        (_, None, None) => format!("in {}", place.display()),
    }
}

/// The progress of its loop.
fn iteration(project: &Project, branch: &Planned) -> Option<u64> {
    let name = &branch.section.name;
    let found = Loop::at(project.of_branch(name, None), name)?;
    Some(found.state.ok()?.tally.iteration)
}

fn object(project: &Project, agent: &str, branch: &Planned) -> serde_json::Value {
    let section = &branch.section;
    let tasks: Vec<_> =
        section.tasks.iter().map(|task| json!({ "text": task.text, "ticked": task.ticked })).collect();
    json!({
        "agent_command": agent,
        "branch": section.name,
        "line": section.line,
        "goal": section.goal,
        "base": Some(&branch.base).filter(|base| !base.is_empty()),
        "base_commit": branch.commit,
        "waits_for": branch.after.map(|_| &branch.base),
        "tasks": tasks,
        "done": section.is_done,
        "pull_request": section.pull_request,
        "worktree": project.worktree(&section.name).to_string_lossy(),
        "iteration": iteration(project, branch),
    })
}
