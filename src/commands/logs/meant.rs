//! Finds the selected logs: those of a loop, or of a run of which only the logs are left.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};

use super::{nothing_in, session_log};
use crate::cli::{LogsArgs, TargetArgs};
use crate::commands::report::pick::{self, Picked};
use crate::commands::target;
use crate::job::workspace::locate_records;
use crate::project::Project;
use crate::record::lookup::{self, Loop};
use crate::record::report::{LoopReport, RunReport};
use crate::record::run_folder;
use crate::text;
use crate::text::line::shell_word;

/// The selected logs.
pub(super) struct Meant {
    pub(super) name: String,
    /// The folder with the logs of the loop's run.
    pub(super) folder: PathBuf,
    /// The loop, if this is its newest run.
    pub(super) found: Option<Loop>,
    /// Only what is about this task.
    pub(super) task: Option<String>,
}

/// The loop of that name and the folder of its newest run; or a run of which only the logs are left.
pub(super) fn meant(args: &LogsArgs) -> anyhow::Result<Meant> {
    let target = &args.target;
    let here = locate_records(target.ralph_dir.as_ref())?;
    if let Some(run) = &args.run {
        return of_run(&here, run, target.name.as_ref());
    }
    match recorded(target) {
        Ok((here, loops)) if loops.is_empty() => of_newest_run(&here),
        Ok((_, mut loops)) => {
            let found = loops.swap_remove(0);
            let folder = folder_of(&found)?;
            Ok(Meant { name: found.name.clone(), folder, found: Some(found), task: None })
        }
        Err(error) => match target.name.as_ref().map(|name| (name, pick::run(&here, Some(name)))) {
            Some((name, Ok(picked))) => kept(name, picked, error),
            _ => Err(error),
        },
    }
}

/// The selected loops: for a name with runs in this project, none of another project.
pub(super) fn recorded(target: &TargetArgs) -> anyhow::Result<(Project, Vec<Loop>)> {
    let (here, loops) = target::recorded(target)?;
    let is_elsewhere = loops.first().is_some_and(|found| !lookup::belongs_to(&found.project, &here));
    if let Some(name) = target.name.as_ref().filter(|_| is_elsewhere && target.ralph_dir.is_none())
        && pick::run(&here, Some(name)).is_ok_and(|picked| picked.project.root() == here.root())
    {
        bail!("no loop is called '{name}' here any more");
    }
    Ok((here, loops))
}

/// Whether the name is that of a task in a run that is kept.
pub(super) fn is_task(args: &LogsArgs) -> bool {
    args.target.name.is_some() && meant(args).is_ok_and(|meant| meant.task.is_some())
}

/// The message about a loop of which only the runs are left; else `error`.
pub(super) fn forgotten(args: &LogsArgs, error: anyhow::Error) -> anyhow::Error {
    match (&args.target.name, meant(args)) {
        (Some(name), Ok(_)) => {
            let quoted = shell_word(name);
            let see = format!("see 'ralph report {quoted}' or 'ralph logs {quoted} --agent'");
            anyhow!("'{name}' is forgotten but for its runs: {see}")
        }
        _ => error,
    }
}

/// The run has made fewer attempts.
pub(super) fn too_few(number: u64, name: &str, made: u64) -> anyhow::Error {
    anyhow!("--attempt {number}: '{name}' has made {} in this run", text::count::of(made, "attempt"))
}

/// The attempts of a worker cannot be told apart.
pub(super) fn has_one_pane(name: &str) -> anyhow::Error {
    anyhow!(
        "--attempt: a worker has a pane for all its iterations: leave it out, or see 'ralph report {name}'"
    )
}

/// The only loop of this run, or that of this name.
fn of_run(here: &Project, run: &str, wanted: Option<&String>) -> anyhow::Result<Meant> {
    let loops = pick::loops(&pick::run(here, Some(run))?)?;
    let mut found = loops.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == name));
    if let (Some(one), None) = (found.next(), found.next()) {
        return Ok(Meant::of(one));
    }
    let names: Vec<&str> = loops.iter().map(|(name, _)| &**name).collect();
    bail!("run {run} has the loops {}: say which", text::list::some_of(&names, names.len()))
}

/// The only loop of the newest run, whose state is gone.
fn of_newest_run(here: &Project) -> anyhow::Result<Meant> {
    let kept = pick::run(here, None).ok().and_then(|picked| pick::loops(&picked).ok());
    match kept.as_deref() {
        Some([one]) => Ok(Meant::of(one)),
        Some([_, _, ..]) => bail!("the newest run has several loops: name one, as 'ralph report' does"),
        _ => Err(nothing_in(here)),
    }
}

/// The meaning of `word` in a run that was selected by it; if it has none, `error`.
fn kept(word: &str, picked: Picked, error: anyhow::Error) -> anyhow::Result<Meant> {
    let loops = pick::loops(&picked)?;
    if let Some(id) = &picked.task {
        let report = RunReport::read(&picked.folder)?;
        let has = |one: &&LoopReport| one.task_list.iter().any(|task| task.id == *id);
        // The last one has it as it became.
        let found = report.loops.iter().filter(has).max_by_key(|one| one.ended_at).ok_or(error)?;
        let (name, folder) = (found.name.clone(), found.folder.clone());
        return Ok(Meant { name, folder, found: None, task: Some(id.clone()) });
    }
    match (loops.as_slice(), picked.name) {
        ([one], None) => Ok(Meant::of(one)),
        (_, Some(name)) => loops.iter().find(|(known, _)| *known == name).map(Meant::of).ok_or(error),
        _ => bail!("run {word} has several loops: name one of them, as 'ralph report {word}' does"),
    }
}

/// The folder of the logs of a loop's newest run.
fn folder_of(found: &Loop) -> anyhow::Result<PathBuf> {
    if let Some(folder) = found.logs().filter(|folder| !run_folder::event_logs(folder).is_empty()) {
        return Ok(folder);
    }
    let log = session_log(found)?;
    Ok(log.as_deref().and_then(Path::parent).map_or_else(|| found.project.logs(), Path::to_path_buf))
}

impl Meant {
    /// A loop of which only the logs of a run are left.
    fn of((name, folder): &(String, PathBuf)) -> Self {
        Self { name: name.clone(), folder: folder.clone(), found: None, task: None }
    }
}
