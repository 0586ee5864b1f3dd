//! What to type next about what a run has left.

use std::collections::BTreeSet;

use crate::engine::budget::Budget;
use crate::engine::outcome::{Ended, Outcome};
use crate::engine::tally::Tally;
use crate::record::report::{LoopReport, RunReport};
use crate::view::next_step::{Ending, GoesTo, build, next_step, raised_budget, shell_word};

/// What is known of loops besides their reports.
pub(crate) struct Known<'a> {
    /// The project has a place to which branches are pushed.
    pub(crate) has_remote: bool,
    /// The branches with commits that are not merged; `None` where nobody knows.
    pub(crate) unmerged: Option<BTreeSet<String>>,
    /// What a loop has used up that was not started again since, and what it might.
    pub(crate) spent: &'a dyn Fn(&LoopReport) -> Option<(Tally, Budget)>,
}

/// Says of each loop and task of a report, and of the whole, what to type next.
pub(crate) fn advise(report: &mut RunReport, known: &Known<'_>) {
    let is_build = report.is_of_branches();
    let mut raised = None;
    for one in &mut report.loops {
        let spent = (known.spent)(one);
        let spent = spent.as_ref().map(|(tally, budget)| (tally, *budget));
        raised =
            raised.or_else(|| spent.and_then(|(tally, budget)| raised_budget(outcome(one)?, tally, budget)));
        let name = shell_word(&one.name);
        one.next = match &*one.end {
            "waiting" | "paused" => Some(format!("ralph resume {name}")),
            _ if one.is_at_work() => Some(format!("ralph logs {name} --follow")),
            // It is merged, or somebody has thrown it away.
            "done" if is_build && known.unmerged.as_ref().is_some_and(|names| !names.contains(&one.name)) => {
                None
            }
            _ => {
                // Branches are known by their names alone.
                let is_past = spent.is_none() && !is_build;
                let run = is_past.then_some(&*report.run);
                let verb = report.verb.as_deref().unwrap_or(&one.mode);
                next_step(&Ending { spent, run, ..ending(one, verb, is_build.then_some(known.has_remote)) })
            }
        };
        for task in &mut one.task_list {
            let failed = task.outcome.as_deref() == Some("failed");
            task.next = failed.then(|| format!("ralph task log {}", shell_word(&task.id)));
        }
    }
    let is_open = |one: &LoopReport| one.end != Ended::Done.word();
    report.next = match &*report.loops {
        _ if report.is_running && is_build => Some("ralph status".to_owned()),
        loops if is_build && loops.iter().any(is_open) => Some(build(raised)),
        loops => loops.iter().find_map(|one| one.next.clone()),
    };
}

/// What a report tells of the end of a loop that a verb has started; `has_remote` is known of branches.
pub(in crate::view) fn ending<'a>(
    one: &'a LoopReport,
    verb: &'a str,
    has_remote: Option<bool>,
) -> Ending<'a> {
    let by_remote = |has_remote| if has_remote { GoesTo::Remote } else { GoesTo::Here };
    let end = Ended::ALL.into_iter().find(|end| end.word() == one.end);
    Ending {
        verb,
        name: &one.name,
        end,
        outcome: outcome(one).filter(|outcome| Some(outcome.ended()) == end),
        has_rest: one.reason.is_some(),
        has_work: one.work.is_some(),
        goes_to: one.pull_request.as_ref().map(|_| GoesTo::PullRequest).or(has_remote.map(by_remote)),
        ..Ending::default()
    }
}

fn outcome(one: &LoopReport) -> Option<Outcome> {
    Outcome::recorded(one.exit_reason.as_deref()?, one.exit_code)
}
