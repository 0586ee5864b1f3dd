//! The end of a loop that has no process which would book it.

use std::time::Duration;

use chrono::Local;

use super::event_json::to_lines;
use super::iterations_log::IterationsLog;
use super::log_of_state;
use super::recovery::ReadOn;
use super::run_folder;
use super::state::State;
use super::state_file::StateFile;
use crate::engine::event::{Event, LoopIdentity, Stamped};
use crate::engine::outcome::Outcome;
use crate::files::FileError;
use crate::project::Project;

/// Books that the loop of this `state` has ended so, in its state file, its iterations log and its run, and before that the step
/// that only its events log has. Its lock is to be held.
///
/// # Errors
/// When one of them cannot be written.
pub fn book(
    project: &Project,
    state: &State,
    read_on: Option<&ReadOn>,
    outcome: Outcome,
) -> Result<(), FileError> {
    let (run, name) = (state.run.clone(), state.name.clone());
    let identity = LoopIdentity { run, name, mode: state.mode.clone(), agent: state.agent.clone() };
    let at = Local::now();
    // Since then it was not at work.
    let duration = Duration::try_from_secs_f64(state.tally.elapsed_seconds).unwrap_or_default();
    let mut tally = state.tally.clone();
    tally.in_attempt = false;
    let event = Event::LoopEnded { outcome, detail: None, tally: &tally, duration, work: None };
    let stamped = Stamped { at, identity: &identity, event };
    let mut iterations = IterationsLog::open(&project.iterations_log())?;
    // First: what a crash leaves undone from here on is done by the next one that books.
    if let Some(step) = read_on.and_then(|read_on| read_on.step.as_deref()) {
        iterations.add_missing(step)?;
    }
    StateFile::new(&project.state(), state.clone()).take(&stamped, state.log_read)?;
    iterations.take(&stamped)?;
    if !project.is_of_branch() {
        return run_folder::write_end(project, &state.run, &to_lines(&stamped));
    }
    // The run is that of all branches.
    match log_of_state::logs(project, state).filter(|logs| logs.is_dir()) {
        Some(logs) => run_folder::write_end_beside(&logs, &to_lines(&stamped)),
        None => Ok(()),
    }
}
