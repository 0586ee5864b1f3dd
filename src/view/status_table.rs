//! The loops of a project: a line for each, cut for a narrow terminal.

use std::time::Duration;

use chrono::{Local, Utc};

use super::cells::{cut, plain};
use super::columns::Table;
use super::report;
use super::snapshot::LoopSnapshot;
use crate::engine::fact::TaskCounts;
use crate::engine::outcome::Status;
use crate::record::lookup::Loop;
use crate::record::state::State;
use crate::tell::words::{self, sign, tries_now};
use crate::text::count::money;
use crate::text::line::{one_line, shell_word};
use crate::text::wrap::wrapped;
use crate::text::{duration, timestamp};

/// Columns: name, word, tasks, iteration, cost, silence, activity.
const CELLS: usize = 7;
/// The column of the word.
const WORD: usize = 1;
/// The column that is cut.
const ACTIVITY: usize = 6;
/// The least width of an activity, in cells.
const LEAST_ACTIVITY: usize = 12;
/// In the order in which they are left out: silence, iteration, tasks, cost.
const LEAST_TELLING: [usize; 4] = [5, 3, 2, 4];
/// A name is cut behind so many cells where there is a terminal, and behind fewer where that is narrow.
const LONGEST_NAME: [usize; 2] = [24, 16];
/// With less room than this a terminal is narrow, in cells.
const NARROW: usize = 72;

/// What the state of a loop does not have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sight {
    /// The counts of its branch's or target's tasks.
    pub(crate) tasks: Option<TaskCounts>,
    /// The last action of its agent.
    pub(crate) activity: Option<String>,
    /// Since when its agent has been silent.
    pub(crate) silent: Option<Duration>,
}

/// A table of loops, and below it what branches share, and how to end a wait. `all`: the loops of the project, including those that
/// are not in the table. `width` is that of the terminal; without one nothing is cut.
#[must_use]
pub(crate) fn table(loops: &[(LoopSnapshot<'_>, Sight)], all: &[Loop], width: Option<usize>) -> String {
    let table = Table {
        heads: ["NAME", "STATUS", "TASKS", "ITERATION", "COST", "SILENT", "ACTIVITY"],
        coloured: WORD,
        least_telling: &LEAST_TELLING,
        gives: (ACTIVITY, LEAST_ACTIVITY),
    };
    let rows = loops
        .iter()
        .map(|(snapshot, sight)| (cells(snapshot, sight, width), sign(snapshot.word(), snapshot.proof()).0));
    let (mut text, _) = table.text(rows, width, ACTIVITY);
    for line in shared_budget(all).into_iter().chain(hints(loops)) {
        text += &wrapped(&line, width.unwrap_or(usize::MAX), usize::MAX).join("\n");
        text += "\n";
    }
    text
}

fn cells(snapshot: &LoopSnapshot<'_>, sight: &Sight, width: Option<usize>) -> [String; CELLS] {
    let name = plain(snapshot.name());
    let name = width.map(|width| cut(&name, LONGEST_NAME[usize::from(width < NARROW)])).unwrap_or(name);
    let state = match &snapshot.found.state {
        Ok(state) => state,
        Err(why) => {
            let [tasks, iteration, cost, silent] = [const { String::new() }; 4];
            return [name, snapshot.word().to_owned(), tasks, iteration, cost, silent, plain(why)];
        }
    };
    [
        name,
        snapshot.word().to_owned(),
        sight.tasks.filter(|tasks| tasks.total > 0).map(report::done_of).unwrap_or_default(),
        state.progress(),
        cost(state, snapshot.found.project.is_of_branch()),
        sight.silent.map(duration::rough).unwrap_or_default(),
        plain(&activity(snapshot, state, sight)),
    ]
}

/// `$1.20`, and where there is a budget `$1.20/$5.00`; that of branches is one for all of them.
fn cost(state: &State, is_of_branch: bool) -> String {
    match (state.tally.spent.cost_usd, state.budget.max_cost_usd.filter(|_| !is_of_branch)) {
        (spent, Some(budget)) => format!("${:.2}/${budget:.2}", spent.unwrap_or_default()),
        (spent, None) => money(spent).unwrap_or_default(),
    }
}

/// Its activity, the reason of its wait, or the time of its end.
fn activity(snapshot: &LoopSnapshot<'_>, state: &State, sight: &Sight) -> String {
    if !snapshot.alive {
        let pane = snapshot.worker.as_ref().filter(|worker| worker.runs).map(|_| "its agent works on");
        let ended = state.ended_at.map(|at| format!("ended {}", timestamp::nearby(&at, Local::now())));
        let facts =
            [pane.map(str::to_owned).or(ended), state.proof.as_ref().map(|proof| words::proof(proof).text)];
        let why = state.reason().filter(|why| state.proof.as_ref().is_none_or(|proof| proof.by != *why));
        return words::figures(facts.into_iter().chain([why]));
    }
    if let Some(what) = &state.waiting_for {
        return if words::is_for_store(what) { what.clone() } else { format!("for room: {what}") };
    }
    if let Some(until) = state.waiting_until {
        let left = duration::rough((until - Utc::now()).to_std().unwrap_or_default());
        // The short form, if there is little room.
        let wait = format!("{left} left, until {}", timestamp::nearby(&until, Local::now()));
        return words::figures([Some(wait), state.tally.last_error.as_deref().map(one_line)]);
    }
    let does = match (&state.status, &state.at_task, &sight.activity) {
        (Status::Paused, ..) => "until 'ralph resume'".to_owned(),
        (_, Some(at), Some(activity)) if at.task_became.is_none() => format!("{}: {activity}", at.task),
        (_, _, Some(activity)) => activity.clone(),
        (..) => String::new(),
    };
    format!("{does}{}", snapshot.pending(state))
}

/// What the branches that one process builds, or has built last, may use up together, and what they have: `all 3 branches:
/// $3.10/$5.00`.
fn shared_budget(loops: &[Loop]) -> Option<String> {
    let branches = || {
        let of_branch = loops.iter().filter(|found| found.project.is_of_branch());
        of_branch.filter_map(|found| found.state.as_deref().ok())
    };
    let newest = branches().max_by_key(|state| state.started_at)?;
    let budget = newest.budget.max_cost_usd?;
    let same: Vec<&State> = branches().filter(|state| state.process == newest.process).collect();
    let spent = same.iter().filter_map(|state| state.tally.spent.cost_usd).fold(0.0, |sum, cost| sum + cost);
    let what = if same.len() == 1 { "1 branch".to_owned() } else { format!("all {} branches", same.len()) };
    Some(format!("budget of {what}: ${spent:.2}/${budget:.2}"))
}

/// How to end waits, and where to find more.
fn hints(loops: &[(LoopSnapshot<'_>, Sight)]) -> Vec<String> {
    let waits = |snapshot: &LoopSnapshot<'_>| {
        let state = snapshot.found.state.as_ref().ok().filter(|_| snapshot.alive);
        let ends = |what: &String| !words::is_for_store(what);
        state.is_some_and(|state| {
            state.waiting_until.is_some() || state.waiting_for.as_ref().is_some_and(ends)
        })
    };
    let mut waiting = loops.iter().map(|(snapshot, _)| snapshot).filter(|snapshot| waits(snapshot));
    let hint = match (waiting.next(), waiting.next()) {
        (Some(one), None) => Some(tries_now(&shell_word(one.name()))),
        (Some(_), Some(_)) => Some(tries_now("") + ", for all that wait"),
        (None, _) => None,
    };
    hint.into_iter().collect()
}

#[cfg(test)]
mod tests;
