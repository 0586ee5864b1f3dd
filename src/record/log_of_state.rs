//! Finds the logs of a state. The state may come from a clone and name any of the user's files, so only the names of
//! its log and its run are taken from it; the folder is the project's.

use std::path::{Path, PathBuf};

use super::event_line::EVENTS_LOG;
use super::retention::compressed;
use super::state::State;
use crate::project::Project;

/// A state names a file that is not a log of its project.
#[derive(Debug, thiserror::Error)]
#[error(
    "session log, {path}: {state} names it, but it is not among the runs of this project, or a symbolic link leads there, so it is \
     not read: 'ralph history' lists the runs, and 'ralph logs --run RUN --raw' shows one",
    path = .path.display(), state = .state.display()
)]
pub struct StrayLog {
    path: PathBuf,
    state: PathBuf,
}

/// The session log of the newest run of this state, compressed or not; `None` if there is none.
///
/// # Errors
/// If it is not among the project's records.
pub(super) fn session_log(project: &Project, state: &State) -> Result<Option<PathBuf>, StrayLog> {
    let Some(named) = &state.session_log else { return Ok(None) };
    let name = named.file_name().unwrap_or_default();
    let in_project = [folder(project, state).join(name), project.links_to_logs().join(name), named.clone()];
    let is_log = |path: &PathBuf| project.has_record(path) && path.is_file();
    let found = in_project.into_iter().flat_map(|log| [log.clone(), compressed(&log)]).find(is_log);
    if found.is_none() && named.symlink_metadata().is_ok() {
        return Err(StrayLog { path: named.clone(), state: project.state() });
    }
    Ok(found)
}

/// The folder with the logs of the newest run of this state, which may have been removed; `None` if it is not among
/// the project's records.
pub(super) fn logs(project: &Project, state: &State) -> Option<PathBuf> {
    let folder = folder(project, state);
    project.has_record(&folder).then_some(folder)
}

/// The events log of that run, which may have been removed; `None` if it is not among the project's records.
pub(super) fn events_log(project: &Project, state: &State) -> Option<PathBuf> {
    let name = state.session_log.as_deref()?.file_name()?;
    Some(logs(project, state)?.join(name).with_extension(EVENTS_LOG))
}

/// The paths of the loop of this state. A worker's runs are where its state says: among those of other loops of its
/// project. The state is in the user's own list of loops, so it is trusted.
pub(super) fn with_runs(project: &Project, state: &State) -> Project {
    let Some(worker) = state.setup.worker.as_ref().filter(|_| project.is_of_worker()) else {
        return project.clone();
    };
    let run = state.session_log.as_deref().and_then(Path::parent).filter(|run| run.ends_with(&state.run));
    let runs = run.and_then(Path::parent).map_or_else(|| project.runs(), Path::to_path_buf);
    project.with_runs_in(&runs, &worker.cwd)
}

/// The id of the run with the logs of this state: the loop of a branch has its own run, with its logs in the run of all
/// branches.
pub(super) fn run<'a>(project: &Project, state: &'a State) -> &'a str {
    let depth = if project.is_of_branch() { 2 } else { 1 };
    let run = state.session_log.as_deref().and_then(|log| log.ancestors().nth(depth)?.file_name()?.to_str());
    run.unwrap_or(&state.run)
}

fn folder(project: &Project, state: &State) -> PathBuf {
    project.in_run(run(project, state)).logs()
}
