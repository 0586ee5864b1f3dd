//! The next commands after a run.

use crate::engine::budget::Budget;
use crate::engine::outcome::{Outcome, Phase, Stand};
use crate::engine::tally::Tally;
use crate::engine::validation::Standing;
use crate::record::report::{LoopReport, RunReport};
use crate::tell::group::{Group, Place, place};
use crate::text::line::shell_word;
use crate::view::next_step::{Ending, GoesTo, Merges, advice, build, raised_budget};

/// Facts about loops besides their reports.
pub(crate) struct Known<'a> {
    /// What git and the plan know of its branches.
    pub(crate) merges: Merges,
    /// Whether the report has every branch of the plan that is not done.
    pub(crate) has_whole_plan: bool,
    /// What a loop has used, and its limits, if it was not started again since.
    pub(crate) spent: &'a dyn Fn(&LoopReport) -> Option<(Tally, Budget)>,
}

/// Adds the next command for each loop and task of a report, and for the whole.
pub(crate) fn advise(report: &mut RunReport, known: &Known<'_>) {
    let is_build = report.is_of_branches();
    let mut raised = None;
    for one in &mut report.loops {
        let spent = (known.spent)(one);
        let spent = spent.as_ref().map(|(tally, budget)| (tally, *budget));
        raised =
            raised.or_else(|| spent.and_then(|(tally, budget)| raised_budget(outcome(one)?, tally, budget)));
        let name = shell_word(&one.name);
        (one.next, one.then) = (None, None);
        one.group = match Stand::of(&one.end) {
            Some(Stand::Live(Phase::Waiting | Phase::Paused)) => {
                one.next = Some(format!("ralph resume {name}"));
                None
            }
            _ if one.is_at_work() => {
                one.next = Some(format!("ralph logs {name} --follow"));
                None
            }
            _ => {
                // A branch is identified by its name alone.
                let is_past = spent.is_none() && !is_build;
                let run = is_past.then_some(&*report.run);
                let verb = report.verb.as_deref().unwrap_or(&one.mode);
                let ending = Ending { spent, run, ..ending(one, verb) };
                let advice = advice(&if is_build { known.merges.of_branch(ending) } else { ending });
                (one.next, one.then) = (advice.command, advice.then);
                Some(advice.group)
            }
        };
        for task in &mut one.task_list {
            let failed = task.outcome.as_deref() == Some("failed");
            task.next = failed.then(|| format!("ralph task log {}", shell_word(&task.id)));
        }
    }
    let RunReport { run, loops, .. } = &mut *report;
    loops.sort_by(|one, other| place_of(run, one).cmp(&place_of(run, other)));
    report.next = match &*report.loops {
        _ if report.is_running && is_build => Some("ralph status".to_owned()),
        loops if is_build => next_of_branches(loops, known.has_whole_plan, raised),
        loops => loops.iter().find_map(|one| one.next.clone()),
    };
}

/// The place of a loop of this run in every view.
pub(crate) fn place_of<'a>(run: &'a str, one: &'a LoopReport) -> Place<'a> {
    place(&one.end, one.group, run, &one.name)
}

/// What to type next about many branches: what concerns the first one, or one command for all that can go on.
fn next_of_branches(loops: &[LoopReport], has_whole_plan: bool, raised: Option<String>) -> Option<String> {
    let first = loops.iter().find(|one| one.next.is_some())?;
    if first.group != Some(Group::CanGoOn) {
        return first.next.clone();
    }
    let open: Vec<String> = loops
        .iter()
        .filter(|one| one.group == Some(Group::CanGoOn))
        .map(|one| shell_word(&one.name))
        .collect();
    // Without names, all branches of the plan that are not done are built.
    let all_go_on = has_whole_plan && loops.iter().all(|one| one.group != Some(Group::NeedsYou));
    let names = if all_go_on { None } else { Some(open.join(" ")) };
    let words: Vec<String> = names.into_iter().chain(raised).collect();
    Some(build((!words.is_empty()).then(|| words.join(" "))))
}

/// The end of a loop that a verb has started, from its report.
pub(in crate::view) fn ending<'a>(one: &'a LoopReport, verb: &'a str) -> Ending<'a> {
    let end = match Stand::of(&one.end) {
        Some(Stand::Ended(end)) => Some(end),
        Some(Stand::Live(_)) | None => None,
    };
    Ending {
        verb,
        name: &one.name,
        end,
        outcome: outcome(one).filter(|outcome| Some(outcome.ended()) == end),
        has_rest: one.reason.is_some(),
        has_work: one.work.is_some(),
        never_began: one.run.is_empty(),
        is_unchecked: one.proof.as_ref().is_some_and(|proof| proof.standing != Standing::Proven),
        agent: &one.agent,
        goes_to: one.pull_request.as_ref().map(|_| GoesTo::PullRequest),
        ..Ending::default()
    }
}

fn outcome(one: &LoopReport) -> Option<Outcome> {
    Outcome::recorded(one.exit_reason.as_deref()?, one.exit_code)
}
