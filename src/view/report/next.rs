//! What to type next about what a run has left.

use crate::engine::outcome::{Ended, Outcome};
use crate::record::report::{LoopReport, RunReport};
use crate::view::next_step::shell_word;

const BUILD: &str = "loop build";

/// What is known of loops besides their reports.
pub(crate) struct Known<'a> {
    /// The project has a place to which branches are pushed.
    pub(crate) has_remote: bool,
    /// What the state says of a loop that was not started again since.
    pub(crate) by_state: &'a dyn Fn(&LoopReport) -> Option<String>,
    /// The flags that raise what a branch has used up.
    pub(crate) raised: &'a dyn Fn(&LoopReport) -> Option<String>,
}

/// Says of each loop and task of a report, and of the whole, what to type next.
pub(crate) fn advise(report: &mut RunReport, known: &Known<'_>) {
    let is_build = report.verb.as_deref() == Some(BUILD);
    for one in &mut report.loops {
        one.next = if is_build { of_branch(one, known) } else { of_loop(one, &report.run, known) };
        for task in &mut one.task_list {
            let failed = task.outcome.as_deref() == Some("failed");
            task.next = failed.then(|| format!("ralph task log {}", shell_word(&task.id)));
        }
    }
    let is_open = |one: &LoopReport| one.end != Ended::Done.word();
    let raised = || report.loops.iter().find_map(known.raised);
    report.next = match &*report.loops {
        _ if report.is_running && is_build => Some("ralph status".to_owned()),
        loops if is_build && loops.iter().any(is_open) => Some(build(raised())),
        loops => loops.iter().find_map(|one| one.next.clone()),
    };
}

fn build(flags: Option<String>) -> String {
    flags.map_or_else(|| format!("ralph {BUILD}"), |flags| format!("ralph {BUILD} {flags}"))
}

fn of_branch(one: &LoopReport, known: &Known<'_>) -> Option<String> {
    let name = shell_word(&one.name);
    Some(match &*one.end {
        "done" if one.pull_request.is_some() => return None,
        "done" if known.has_remote => format!("gh pr create --head {name}"),
        "done" => format!("git merge {name}"),
        "waiting" | "paused" => format!("ralph resume {name}"),
        _ if one.is_at_work() => format!("ralph logs {name} --follow"),
        "failed" | "unproven" => format!("ralph logs {name} --agent"),
        "replan" => "ralph loop plan".to_owned(),
        _ if wants_doctor(one) => "ralph doctor".to_owned(),
        // It would fail again at once.
        _ if matches!(outcome(one), Some(Outcome::OutOfCredit | Outcome::Overloaded)) => {
            format!("ralph logs {name} --agent")
        }
        _ => build((known.raised)(one)),
    })
}

fn of_loop(one: &LoopReport, run: &str, known: &Known<'_>) -> Option<String> {
    let name = shell_word(&one.name);
    if matches!(&*one.end, "waiting" | "paused") {
        return Some(format!("ralph resume {name}"));
    }
    if one.is_at_work() {
        return Some(format!("ralph logs {name} --follow"));
    }
    (known.by_state)(one).or_else(|| match &*one.end {
        // By its name another run could be meant by now.
        "done" => one.work.as_ref().map(|_| format!("ralph diff {run}")),
        "failed" | "unproven" | "error" => Some(format!("ralph logs {name} --agent --run {run}")),
        _ => None,
    })
}

fn outcome(one: &LoopReport) -> Option<Outcome> {
    Outcome::recorded(one.exit_reason.as_deref()?, one.exit_code)
}

fn wants_doctor(one: &LoopReport) -> bool {
    matches!(outcome(one), Some(Outcome::NotLoggedIn | Outcome::AgentMissing))
}
