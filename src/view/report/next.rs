//! What to type next about what a run has left.

use crate::engine::outcome::{Ended, Outcome};
use crate::record::report::{LoopReport, RunReport};
use crate::view::next_step::shell_word;

const BUILD: &str = "loop build";

/// Says of each loop and task of a report, and of the whole, what to type next. `has_remote`: the project has a place to which
/// branches are pushed. `by_state`: what the state says of a loop that was not started again since.
pub(crate) fn advise(
    report: &mut RunReport,
    has_remote: bool,
    by_state: &dyn Fn(&LoopReport) -> Option<String>,
) {
    let verb = report.verb.clone().unwrap_or_default();
    for one in &mut report.loops {
        one.next = if verb == BUILD { of_branch(one, has_remote) } else { of_loop(one, by_state) };
        for task in &mut one.task_list {
            let failed = task.outcome.as_deref() == Some("failed");
            task.next = failed.then(|| format!("ralph task log {}", shell_word(&task.id)));
        }
    }
    let is_open = |one: &LoopReport| one.end != Ended::Done.word();
    report.next = match &*report.loops {
        _ if report.is_running && verb == BUILD => Some("ralph status".to_owned()),
        loops if verb == BUILD && loops.iter().any(is_open) => Some("ralph loop build".to_owned()),
        loops => loops.iter().find_map(|one| one.next.clone()),
    };
}

fn of_branch(one: &LoopReport, has_remote: bool) -> Option<String> {
    let name = shell_word(&one.name);
    Some(match &*one.end {
        "done" if one.pull_request.is_some() => return None,
        "done" if has_remote => format!("gh pr create --head {name}"),
        "done" => format!("git merge {name}"),
        "running" => format!("ralph logs {name} --follow"),
        "failed" | "unproven" => format!("ralph logs {name} --agent"),
        "replan" => "ralph loop plan".to_owned(),
        "error" if wants_doctor(one) => "ralph doctor".to_owned(),
        _ => "ralph loop build".to_owned(),
    })
}

fn of_loop(one: &LoopReport, by_state: &dyn Fn(&LoopReport) -> Option<String>) -> Option<String> {
    let name = shell_word(&one.name);
    let has_work = one.work.is_some();
    match &*one.end {
        "running" => Some(format!("ralph logs {name} --follow")),
        "done" => by_state(one).or_else(|| has_work.then(|| format!("ralph diff {name}"))),
        _ => by_state(one),
    }
}

fn outcome(one: &LoopReport) -> Option<Outcome> {
    Outcome::recorded(one.exit_reason.as_deref()?, one.exit_code)
}

fn wants_doctor(one: &LoopReport) -> bool {
    matches!(outcome(one), Some(Outcome::NotLoggedIn | Outcome::AgentMissing))
}
