//! Finds the selected run.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::commands::output::warn;
use crate::project::Project;
use crate::record::lookup::{self, LookupError};
use crate::record::newer;
use crate::record::report::{LoopReport, RunReport};
use crate::record::state_read::Extent;

/// The shortest beginning of an id, in characters: its year.
const LEAST_OF_ID: usize = 4;

/// A run, and its place.
pub(in crate::commands) struct Picked {
    /// Its project.
    pub(in crate::commands) project: Project,
    /// Its folder.
    pub(in crate::commands) folder: PathBuf,
    /// Only the loop of this name is selected.
    pub(in crate::commands) name: Option<String>,
    /// Only the task of this id is selected.
    pub(in crate::commands) task: Option<String>,
}

/// That there is no run yet, in words.
pub(super) fn no_run(here: &Project) -> String {
    format!("no run in {}: a loop has to be started first", here.root().display())
}

/// The run that a word selects: without a word the newest one, else one whose id begins with it, else the newest one with a loop
/// or a task of that name.
pub(in crate::commands) fn run(here: &Project, word: Option<&str>) -> anyhow::Result<Picked> {
    let picked = meant(here, word)?;
    // What is known of it is shown all the same.
    if let Some(newer) = newer::of_run(&picked.folder) {
        warn(&newer);
    }
    Ok(picked)
}

fn meant(here: &Project, word: Option<&str>) -> anyhow::Result<Picked> {
    let runs = runs_of(here)?;
    let Some(word) = word else {
        let Some(newest) = runs.into_iter().next() else {
            // In the work tree of a branch, the run that has built it.
            return match lookup::of_project(here, Extent::Head).first() {
                Some(own) => meant(here, Some(&own.name)),
                None => bail!("{}", no_run(here)),
            };
        };
        return Ok(Picked { project: here.clone(), folder: newest, name: None, task: None });
    };
    let begins_so =
        |folder: &&PathBuf| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(word));
    let is_id = word.len() >= LEAST_OF_ID && word.bytes().take(LEAST_OF_ID).all(|byte| byte.is_ascii_digit());
    let found: Vec<&PathBuf> = runs.iter().filter(begins_so).filter(|_| is_id).collect();
    match found.as_slice() {
        [one] => return Ok(Picked { project: here.clone(), folder: (*one).clone(), name: None, task: None }),
        [] => {}
        several => bail!(
            "{} runs begin with '{word}': give more of the id, as 'ralph history' shows it",
            several.len()
        ),
    }
    let known = runs.into_iter().find_map(|folder| what_is(&folder, word).map(|what| (folder, what)));
    if let Some((folder, what)) = known {
        return Ok(picked(here.clone(), folder, what, word));
    }
    let project = lookup::named(here, word).map_err(|error| unknown(word, &error))?.project;
    let known =
        runs_of(&project)?.into_iter().find_map(|folder| what_is(&folder, word).map(|what| (folder, what)));
    let (folder, what) =
        known.with_context(|| format!("loop '{word}' has left no run: its runs were removed"))?;
    Ok(picked(project, folder, what, word))
}

/// The meaning of a word.
#[derive(Clone, Copy)]
enum What {
    Loop,
    Task,
}

fn picked(project: Project, folder: PathBuf, what: What, word: &str) -> Picked {
    let [mut name, mut task] = [None, None];
    match what {
        What::Loop => name = Some(word.to_owned()),
        What::Task => task = Some(word.to_owned()),
    }
    Picked { project, folder, name, task }
}

fn unknown(word: &str, error: &LookupError) -> anyhow::Error {
    let LookupError::Unknown { meant, .. } = error else { return anyhow::anyhow!("{error}") };
    anyhow::anyhow!(
        "no run and no loop is called '{word}': {meant}'ralph history' lists the runs of this project"
    )
}

/// The folders of all runs, newest first.
pub(super) fn runs_of(project: &Project) -> anyhow::Result<Vec<PathBuf>> {
    project.all_runs().with_context(|| format!("cannot read {}", project.runs().display()))
}

/// The project whose runs are shown: in the work tree of a branch, the one that has built it.
pub(super) fn with_runs(here: Project) -> anyhow::Result<Project> {
    let has_runs = !runs_of(&here)?.is_empty();
    let own = if has_runs { None } else { lookup::of_project(&here, Extent::Head).into_iter().next() };
    Ok(own.map_or(here, |own| own.project))
}

/// The loops of a run, each with the folder of its logs.
///
/// # Errors
/// When its folder cannot be read.
pub(in crate::commands) fn loops(picked: &Picked) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let report = RunReport::read(&picked.folder);
    let report = report.with_context(|| format!("cannot read {}", picked.folder.display()))?;
    let has_logs = |one: &LoopReport| !one.folder.as_os_str().is_empty();
    Ok(report.loops.into_iter().filter(has_logs).map(|one| (one.name, one.folder)).collect())
}

/// The meaning of a word in a run; `None`: it has none.
fn what_is(folder: &Path, word: &str) -> Option<What> {
    let report = RunReport::kept(folder).map_or_else(|| RunReport::read(folder), Ok).ok()?;
    let has_task = |one: &LoopReport| one.task_list.iter().any(|task| task.id == word);
    if report.loops.iter().any(|one| one.name == word) {
        return Some(What::Loop);
    }
    report.loops.iter().any(has_task).then_some(What::Task)
}
