//! Reports for people: a line for each loop or task, a total, and the next command. Pure renders of a report.

pub(crate) mod history;
pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod next;
pub(crate) mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::Local;

use crate::engine::fact::TaskCounts;
use crate::engine::outcome::{Ended, Phase};
use crate::engine::validation::Evidence;
use crate::record::report::{AgentChange, AgentReport, Landings, LoopReport, RunReport, TaskReport, Work};
use crate::tell::words;
use crate::text::count::money;
use crate::text::list::some_of;
use crate::text::{count, duration, timestamp};
use crate::view::cells::plain;

/// At most so many things that were refused are named.
const REFUSED: usize = 4;

/// One loop, or one task of a loop over tasks.
#[derive(Debug, Clone, PartialEq)]
struct Line<'a> {
    name: &'a str,
    /// Its end or its state, in one word.
    end: &'a str,
    /// The title of a task.
    title: Option<&'a str>,
    tasks: Option<TaskCounts>,
    work: Option<&'a Work>,
    duration_s: f64,
    cost_usd: Option<f64>,
    reason: Option<&'a str>,
    /// What shows that its work is good.
    proof: Option<&'a Evidence>,
    /// What it waits for now.
    waits: Option<String>,
    pull_request: Option<&'a str>,
    next: Option<&'a str>,
    /// What follows that command.
    then: Option<&'a str>,
}

impl Line<'_> {
    /// Adds what another job has done for the same task; what came of it is the same.
    fn add(&mut self, other: &Self) {
        self.duration_s += other.duration_s;
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        // The later one has it as it has landed.
        self.work = other.work.or(self.work);
        self.proof = other.proof.or(self.proof);
        if !matches!(self.end, "done" | "failed") {
            (self.end, self.reason) = (other.end, other.reason);
        }
    }

    /// Why it ended so, where its end or its proof do not say that already.
    fn why(&self) -> Option<&str> {
        let is_done = self.end == Ended::Done.word();
        let says_more = |why: &&str| (!is_done || self.title.is_none()) && *why != self.end;
        // What refutes it says so already.
        let is_told = |why: &&str| self.proof.is_some_and(|proof| plain(&proof.by) == plain(why));
        self.reason.filter(says_more).filter(|why| !is_told(why))
    }
}

/// The lines of a run: its tasks if it has any, else its loops.
fn lines(report: &RunReport) -> Vec<Line<'_>> {
    let mut tasks: Vec<Line<'_>> = Vec::new();
    for line in report.loops.iter().flat_map(|one| one.task_list.iter().map(|task| of_task(task, one))) {
        // Several jobs may have worked on it.
        match tasks.iter_mut().find(|known| known.name == line.name) {
            Some(known) => known.add(&line),
            None => tasks.push(line),
        }
    }
    if tasks.is_empty() { report.loops.iter().map(of_loop).collect() } else { tasks }
}

fn of_loop(one: &LoopReport) -> Line<'_> {
    Line {
        name: &one.name,
        end: &one.end,
        title: None,
        tasks: one.tasks.filter(|tasks| tasks.total > 0),
        work: one.work.as_ref(),
        duration_s: one.duration_s,
        cost_usd: one.cost_usd,
        reason: one.reason.as_deref(),
        proof: one.proof.as_ref(),
        waits: waits(one),
        pull_request: one.pull_request.as_deref(),
        next: one.next.as_deref(),
        then: one.then.as_deref(),
    }
}

fn of_task<'a>(task: &'a TaskReport, one: &'a LoopReport) -> Line<'a> {
    Line {
        name: &task.id,
        // The current task has the state of its loop.
        end: task.outcome.as_deref().unwrap_or(&one.end),
        title: Some(&task.title),
        tasks: None,
        work: task.work.as_ref(),
        duration_s: task.duration_s,
        cost_usd: task.cost_usd,
        reason: task.reason.as_deref(),
        proof: task.proof.as_ref(),
        waits: task.outcome.is_none().then(|| waits(one)).flatten(),
        pull_request: None,
        next: task.next.as_deref(),
        then: None,
    }
}

/// Until when a waiting loop waits, or for what.
fn waits(one: &LoopReport) -> Option<String> {
    let wait = one.waits.last().filter(|wait| one.end == Phase::Waiting.word() && wait.to.is_none())?;
    match wait.until {
        Some(until) => Some(format!("waits until {}", timestamp::nearby(&until, Local::now()))),
        None => words::endless_named(&wait.what).map(str::to_owned),
    }
}

/// `2/3`, and `2/3, 1 failed`.
pub(in crate::view) fn done_of(tasks: TaskCounts) -> String {
    let failed = if tasks.failed > 0 { format!(", {} failed", tasks.failed) } else { String::new() };
    format!("{}/{}{failed}", tasks.done, tasks.total)
}

/// `+412 −18`; `None` if that was not counted.
fn changes(work: &Work) -> Option<String> {
    Some(format!("+{} −{}", work.insertions?, work.deletions?))
}

fn span(seconds: f64) -> String {
    duration::rough(duration::of_seconds(seconds))
}

/// What the walls around the agents have refused; `None`: nothing.
fn refused(report: &RunReport) -> Option<String> {
    let mut all: Vec<String> =
        report.loops.iter().flat_map(|one| &one.refused).map(|refused| plain(&refused.told())).collect();
    all.dedup();
    (!all.is_empty()).then(|| format!("behind walls: {}", some_of(&all, REFUSED)))
}

/// What agents have done where several have worked, as in `claude 3 attempts $1.20, codex 2 attempts`, and why the first was changed;
/// `None`: only one has.
fn agents(loops: &[LoopReport]) -> Option<String> {
    let mut all: BTreeMap<&str, AgentReport> = BTreeMap::new();
    for (name, own) in loops.iter().flat_map(|one| &one.agents) {
        all.entry(name).or_default().and(own);
    }
    let changes: Vec<&AgentChange> = loops.iter().flat_map(|one| &one.agent_changes).collect();
    let first = changes.first()?;
    let done = all.iter().map(|(name, own)| {
        let cost = count::money(own.cost_usd).map(|cost| format!(" {cost}")).unwrap_or_default();
        format!("{} {}{cost}", plain(name), count::of(own.attempts, "attempt"))
    });
    let more = changes.len() - 1;
    let more = if more > 0 { format!("; {more} more of that") } else { String::new() };
    Some(format!("{} ({}{more})", done.collect::<Vec<_>>().join(", "), plain(&first.why)))
}

/// The lines below those of all loops.
fn sums(report: &RunReport) -> impl Iterator<Item = String> {
    [total(report), landings(report), agents(&report.loops), refused(report)].into_iter().flatten()
}

/// How much has landed, and what that took: `7 landed · 1 returned (12%) · 3 gate runs (0.38 for each) · gate 1m20s (9%)`. `None` if
/// nothing was to land.
fn landings(report: &RunReport) -> Option<String> {
    let &Landings { landed, returned, gates, gate_s, .. } = &report.landings;
    if landed + returned + gates == 0 {
        return None;
    }
    let number = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let all = number(landed + returned);
    let share = |part: f64, whole: f64| {
        if whole > 0.0 { format!(" ({:.0}%)", 100.0 * part / whole) } else { String::new() }
    };
    let for_each = if all > 0.0 { format!(" ({:.2} for each)", number(gates) / all) } else { String::new() };
    let of_run = share(gate_s, took(report).map(|took| took.as_secs_f64()).unwrap_or_default());
    let gate = duration::format(duration::of_seconds(gate_s.round()));
    let parts = [
        Some(format!("{landed} landed")),
        (returned > 0).then(|| format!("{returned} returned{}", share(number(returned), all))),
        (gates > 0).then(|| format!("{}{for_each}", count::of(gates, "gate run"))),
        (gates > 0).then(|| format!("gate {gate}{of_run}")),
    ];
    Some(words::figures(parts))
}

/// The total of all lines: `3 loops: 2 done, 1 failed · +502 −20 · 5 commits · 1h54m · $4.62`. `None` for a single loop, whose
/// line has it.
fn total(report: &RunReport) -> Option<String> {
    let lines = lines(report);
    let is_of_tasks = lines.iter().any(|line| line.title.is_some());
    if lines.len() < 2 && !is_of_tasks {
        return None;
    }
    let ends = ends(lines.iter().map(|line| line.end)).join(", ");
    let what = count::of(lines.len() as u64, if is_of_tasks { "task" } else { "loop" });
    // The tree of a job begins each task anew: between its first and its last commit is not all that it has done.
    let Landings { landed, returned, gates, .. } = report.landings;
    let by_task = is_of_tasks && landed + returned + gates > 0;
    let works: Vec<&Work> = if by_task {
        lines.iter().filter_map(|line| line.work).collect()
    } else {
        report.loops.iter().filter_map(|one| one.work.as_ref()).collect()
    };
    let sum = |of: fn(&Work) -> Option<u64>| {
        let known: Vec<u64> = works.iter().filter_map(|work| of(work)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<u64>())
    };
    let lines_changed = sum(|work| work.insertions).zip(sum(|work| work.deletions));
    let costs: Vec<f64> = report.loops.iter().filter_map(|one| one.cost_usd).collect();
    let parts = [
        Some(format!("{what}: {ends}")),
        lines_changed.map(|(came, went)| format!("+{came} −{went}")),
        sum(|work| work.commits).map(|commits| count::of(commits, "commit")),
        took(report).map(duration::rough),
        money((!costs.is_empty()).then(|| costs.iter().sum())),
    ];
    Some(words::figures(parts))
}

/// `2 done` and `1 failed`: the number of lines with each end; done first, never begun last.
pub(in crate::view) fn ends<'a>(all: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut ends: Vec<(&str, u64)> = Vec::new();
    for end in all {
        match ends.iter_mut().find(|(known, _)| *known == end) {
            Some((_, count)) => *count += 1,
            None => ends.push((end, 1)),
        }
    }
    ends.sort_by_key(|(end, _)| (*end != Ended::Done.word(), *end == "queued"));
    ends.iter().map(|(end, count)| format!("{count} {end}")).collect()
}

/// The words between the start and the end of a run. When a run ended that was killed is not known.
fn to(report: &RunReport) -> &'static str {
    let is_killed = report.loops.iter().any(|one| one.end == Ended::Killed.word());
    if is_killed { ", last heard of at " } else { " to " }
}

/// From the start of the run to its end, or until now.
fn took(report: &RunReport) -> Option<Duration> {
    let until = if report.is_running { Some(Local::now().fixed_offset()) } else { report.ended_at };
    (until? - report.started_at?).to_std().ok()
}

#[cfg(test)]
mod tests;
