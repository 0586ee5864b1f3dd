//! Adds to a report what events do not have: the numbers of git, the tasks of the plan, and the next commands.

use std::path::Path;

use anyhow::Context as _;

use super::pick::runs_of;
use crate::cli::PlaceArgs;
use crate::engine::fact::TaskCounts;
use crate::files::theirs;
use crate::git;
use crate::job::workspace::{self, open_with_secrets};
use crate::parallel;
use crate::plan::{self, Plan, Section};
use crate::project::Project;
use crate::record::lookup::{self, Loop};
use crate::record::report::{CommitReport, LoopReport, RunReport, Work};
use crate::text::redact::Redactor;
use crate::view::next_step::{Ending, Merges, advice};
use crate::view::report::next::{Known, advise, place_of};

/// So many runs, the newest, are looked through for what loops came to.
const RUNS: usize = 50;
/// How many commits of a loop are listed, the newest.
const COMMITS: usize = 300;

/// The report of the run in a folder, with the next commands; with its iterations only if they are wanted.
///
/// # Errors
/// When the folder cannot be read.
pub(in crate::commands) fn gathered(
    project: &Project,
    folder: &Path,
    with_iterations: bool,
) -> anyhow::Result<RunReport> {
    let mut report = measured(project, folder, with_iterations)?;
    let is_build = report.is_of_branches();
    let kind = Kind::of(&report);
    let spent = |one: &LoopReport| {
        let state = kind.find(project, one).filter(Loop::is_own)?.state.ok()?;
        Some((state.tally.clone(), state.budget))
    };
    let branches = report.loops.iter().filter(|_| is_build);
    let merges = merges(project, &branches.map(|one| &*one.name).collect::<Vec<_>>());
    let has_whole_plan = is_build && has_whole_plan(project, &report.loops);
    advise(&mut report, &Known { merges, has_whole_plan, spent: &spent });
    Ok(report)
}

/// What git and the plan know of these branches of a project.
pub(in crate::commands) fn merges(project: &Project, branches: &[&str]) -> Merges {
    if branches.is_empty() {
        return Merges::default();
    }
    let sections = plan_of(project).and_then(|text| sections(&text)).unwrap_or_default();
    let published = sections.into_iter().filter(|section| section.pull_request.is_some());
    Merges {
        runs: project.runs(),
        opened_by: git::remote::remote(project.root(), workspace::forge(project))
            .map(|remote| remote.home.forge().row().create_by_hand),
        unmerged: git::refs::unmerged(project.root(), branches),
        published: published.map(|section| section.name).collect(),
    }
}

/// What git and the plan know of those of these loops that are branches of a project.
pub(in crate::commands) fn merges_of<'a>(
    project: &Project,
    loops: impl IntoIterator<Item = &'a Loop>,
) -> Merges {
    let is_own = |found: &Loop| found.project.is_of_branch() && found.project.runs() == project.runs();
    let is_over = |found: &&Loop| is_own(found) && found.alive().is_none();
    let names = loops.into_iter().filter(is_over).map(|found| &*found.name);
    merges(project, &names.collect::<Vec<_>>())
}

/// The report of a run without the next commands, for lists. The summary of a run that has ended is kept, so that the next call
/// is fast.
///
/// # Errors
/// When the folder cannot be read.
pub(in crate::commands) fn measured(
    project: &Project,
    folder: &Path,
    with_iterations: bool,
) -> anyhow::Result<RunReport> {
    if !with_iterations && let Some(report) = RunReport::kept(folder) {
        return Ok(report);
    }
    let report = RunReport::read(folder);
    let mut report = report.with_context(|| format!("cannot read {}", folder.display()))?;
    add_cut_off(project, &mut report);
    count(project, &mut report);
    // Nothing is written into a clone that is only read.
    if report.loops.iter().any(|one| Kind::of(&report).is_known(project, one)) {
        report.keep();
    }
    if with_iterations {
        list_commits(project, &mut report);
    }
    Ok(report)
}

/// The reports of these loops' latest runs, of those that have ended, in the order of every view. A loop whose run was removed is shown from its state alone.
pub(in crate::commands) fn ended(project: &Project, loops: &[Loop]) -> anyhow::Result<Vec<LoopReport>> {
    let is_over = |found: &&Loop| found.is_own() && found.alive().is_none() && found.state.is_ok();
    let mut left: Vec<&Loop> = loops.iter().filter(is_over).collect();
    let mut reports = Vec::new();
    for folder in runs_of(project)?.into_iter().take(RUNS) {
        if left.is_empty() {
            break;
        }
        let Ok(report) = gathered(project, &folder, false) else { continue };
        for one in report.loops {
            if let Some(place) = left.iter().position(|found| is_of(found, &one)) {
                left.remove(place);
                reports.push((report.run.clone(), one));
            }
        }
    }
    reports.extend(left.into_iter().filter_map(|found| {
        let state = found.state.as_deref().ok()?;
        let advice = advice(&Ending::of_state(&found.name, state));
        let report = LoopReport {
            end: state.word().to_owned(),
            reason: state.reason(),
            proof: state.proof.clone(),
            cost_usd: state.tally.spent.cost_usd,
            group: Some(advice.group),
            next: advice.command,
            then: advice.then,
            ..LoopReport::named(&found.name)
        };
        Some((found.run().to_owned(), report))
    }));
    reports.sort_by(|(run, one), (other_run, other)| place_of(run, one).cmp(&place_of(other_run, other)));
    Ok(reports.into_iter().map(|(_, report)| report).collect())
}

/// The folders with the records of a run's loops.
#[derive(Clone, Copy)]
enum Kind {
    Branches,
    Worker,
    Project,
}

impl Kind {
    fn of(report: &RunReport) -> Self {
        match (report.is_of_branches(), report.is_of_worker()) {
            (true, _) => Self::Branches,
            (false, true) => Self::Worker,
            (false, false) => Self::Project,
        }
    }

    fn places(self, project: &Project, one: &LoopReport) -> Option<Project> {
        match self {
            Self::Branches => Some(project.of_branch(&one.name, None)),
            Self::Worker => project.of_worker(&one.name, project.root()),
            Self::Project => Some(project.clone()),
        }
    }

    /// The loop of this report, unless it was started again since, or was removed.
    fn find(self, project: &Project, one: &LoopReport) -> Option<Loop> {
        Loop::at(self.places(project, one)?, &one.name).filter(|found| is_of(found, one))
    }

    /// Whether this user has run such a loop in this project on this machine.
    fn is_known(self, project: &Project, one: &LoopReport) -> bool {
        match self {
            Self::Worker => self.find(project, one).is_some(),
            _ => self.places(project, one).is_some_and(|places| lookup::is_known(&places, &one.name)),
        }
    }
}

/// Whether this is that loop, and it was not started again since.
fn is_of(found: &Loop, one: &LoopReport) -> bool {
    found.state.as_ref().is_ok_and(|state| state.run == one.run)
}

/// Adds the commits of loops whose last attempt is not booked: they run, or were killed in it.
fn add_cut_off(project: &Project, report: &mut RunReport) {
    let kind = Kind::of(report);
    for one in report.loops.iter_mut().filter(|one| one.exit_code.is_none()) {
        let Some(first) = one.iteration_list.first().and_then(|first| first.attempts.first()) else {
            continue;
        };
        let Some(found) = kind.find(project, one) else { continue };
        let from = first.head_before.clone();
        if let Some(to) = git::head(found.project.root()).filter(|to| Some(to) != from.as_ref()) {
            one.work = Some(Work { from, to, ..Work::default() });
        }
    }
}

/// Adds what git and the plan know.
fn count(project: &Project, report: &mut RunReport) {
    if report.is_of_branches() {
        count_tasks(project, &mut report.loops);
    }
    for one in &mut report.loops {
        if let Some(work) = &mut one.work {
            measure(project.root(), work);
        }
        let measured = parallel::each(&one.task_list, &|task| {
            task.work.clone().map(|mut work| {
                measure(project.root(), &mut work);
                work
            })
        });
        one.task_list.iter_mut().zip(measured).for_each(|(task, work)| task.work = work);
    }
}

/// The text of the plan of branches at these paths.
fn plan_of(places: &Project) -> Option<String> {
    let text = theirs::read(&places.branch_plan(), theirs::MAX_TEXT).ok()?;
    String::from_utf8(text).ok()
}

/// The sections of a plan of branches.
fn sections(plan: &str) -> Option<Vec<Section>> {
    Plan::parse(plan, &|_| true).ok().map(|plan| plan.sections)
}

/// Whether each branch of the plan that is not done is among these.
fn has_whole_plan(project: &Project, loops: &[LoopReport]) -> bool {
    let sections = plan_of(project).and_then(|text| sections(&text));
    let is_there = |section: &Section| section.is_done || loops.iter().any(|one| one.name == section.name);
    sections.is_some_and(|sections| sections.iter().all(is_there))
}

/// Adds the tasks of branches. A running or killed branch has ticked them only in its work tree's plan.
fn count_tasks(project: &Project, loops: &mut [LoopReport]) {
    let plan = plan_of(project);
    for one in loops.iter_mut() {
        let own = one.exit_code.is_none().then(|| Kind::Branches.find(project, one)).flatten();
        let own = own.and_then(|own| tasks(&plan_of(&own.project)?, &one.name));
        let planned = || tasks(plan.as_ref()?, &one.name);
        one.tasks = own.or_else(planned).or(one.tasks);
    }
    // The end of the build has their order.
    if loops.iter().any(|one| one.exit_code.is_none())
        && let Some(sections) = plan.and_then(|text| sections(&text))
    {
        let place = |one: &LoopReport| sections.iter().position(|section| section.name == one.name);
        loops.sort_by_key(|one| place(one).unwrap_or(usize::MAX));
    }
}

/// Adds the commits of each loop.
fn list_commits(project: &Project, report: &mut RunReport) {
    let root = project.root();
    let listed = parallel::each(&report.loops, &|one| {
        let work = one.work.as_ref()?;
        git::commits::between(root, work.from.as_deref(), &work.to, COMMITS)
    });
    // Text from git has not passed a loop, which takes secrets out.
    let place = PlaceArgs { ralph_dir: Some(project.ralph_dir().to_owned()), ..PlaceArgs::default() };
    let secrets = open_with_secrets(&place).map(|workspace| workspace.settings.secrets).unwrap_or_default();
    for (one, commits) in report.loops.iter_mut().zip(listed) {
        one.commit_list =
            commits.unwrap_or_default().into_iter().map(|commit| told(commit, &secrets)).collect();
    }
}

fn told(commit: git::commits::Commit, secrets: &Redactor) -> CommitReport {
    CommitReport {
        id: commit.id,
        at: commit.at,
        author: secrets.text(&commit.author).into_owned(),
        subject: secrets.text(&commit.subject).into_owned(),
        files: commit.files,
        insertions: commit.insertions,
        deletions: commit.deletions,
    }
}

/// The tasks of a branch in a plan; in the main plan those of a finished branch are ticked.
pub(in crate::commands) fn tasks(plan: &str, branch: &str) -> Option<TaskCounts> {
    let tasks = plan::tasks(plan, branch).ok()?;
    let done = tasks.iter().filter(|task| task.ticked).count() as u64;
    Some(TaskCounts { done, failed: 0, total: tasks.len() as u64 })
}

/// Counts commits that were not counted when they were made.
fn measure(root: &Path, work: &mut Work) {
    if work.commits.is_some() {
        return;
    }
    if let Some(amount) = git::range::between(root, work.from.as_deref(), &work.to) {
        work.commits = Some(amount.commits);
        work.files = Some(amount.files);
        work.insertions = Some(amount.insertions);
        work.deletions = Some(amount.deletions);
    }
}
