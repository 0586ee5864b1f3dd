//! What is booked of a loop that does not run: the end of one whose process has died, and a note for its next start.

use chrono::Local;

use super::config_watch::WatchedConfig;
use super::event_line::line_of;
use super::iterations_log::IterationsLog;
use super::log_of_state;
use super::recovery::ReadOn;
use super::run_folder;
use super::state::State;
use super::state_file::StateFile;
use super::state_read::{Extent, Found, read};
use super::state_seal::SealKey;
use crate::engine::event::{LoopIdentity, Stamped, Unwritten};
use crate::engine::fact::Fact;
use crate::engine::outcome::Outcome;
use crate::files::FileError;
use crate::files::atomic::Durability;
use crate::project::Project;
use crate::text::duration;

/// Books this outcome of the loop of `state` in its state file, its iterations log and its run; before that, a step
/// that only its events log has. The caller holds the lock.
///
/// # Errors
/// If one of them cannot be written.
pub fn book(
    project: &Project,
    state: &State,
    read_on: Option<&ReadOn>,
    outcome: Outcome,
) -> Result<(), FileError> {
    let (run, name) = (state.run.clone(), state.name.clone());
    let identity = LoopIdentity { run, name, mode: state.mode.clone(), agent: state.agent.clone() };
    let at = Local::now();
    // The loop has not worked since then.
    let duration = duration::of_seconds(state.tally.elapsed_seconds);
    let mut tally = state.tally.clone();
    tally.in_attempt = false;
    let fact = Fact::loop_ended(outcome, None, &tally, duration, None);
    let unwritten = Unwritten::Outcome(outcome);
    let stamped = Stamped { unwritten, ..Stamped::new(at, &identity, &tally, &fact) };
    let mut iterations = IterationsLog::open(&project.iterations_log())?;
    // This comes first: after a crash here, the next call repeats the rest.
    if let Some(step) = read_on.and_then(|read_on| read_on.step.as_deref()) {
        iterations.add_missing(step)?;
    }
    let mut ended = state.clone();
    if state.tally.in_attempt || read_on.is_some_and(|read_on| read_on.was_in_attempt) {
        ended.setup.config.iter_mut().for_each(WatchedConfig::attempt_ends);
    }
    let key = SealKey::of_own(project, state.seal.as_deref());
    StateFile::new(&project.state(), ended).sealed_with(key).take(&stamped, state.log_read)?;
    iterations.take(&stamped)?;
    if !project.is_of_branch() {
        return run_folder::write_end(project, &state.run, &line_of(&stamped));
    }
    // The run belongs to all branches.
    match log_of_state::logs(project, state).filter(|logs| logs.is_dir()) {
        Some(logs) => run_folder::write_end_beside(&logs, &line_of(&stamped)),
        None => Ok(()),
    }
}

/// Keeps a note for the first prompt of the next process of this loop; returns whether there is a state that can. What only the
/// events log has is left to that process. The caller holds the lock.
///
/// # Errors
/// If the state file can be neither read nor written.
pub fn keep_note(project: &Project, note: String) -> Result<bool, FileError> {
    let path = project.state();
    let Found::State(mut state) = read(&path, Extent::Whole).map_err(FileError::at(&path))? else {
        return Ok(false);
    };
    let key = SealKey::of_own(project, state.seal.as_deref());
    state.tally.note(note);
    StateFile::new(&path, *state).sealed_with(key).write(Durability::Synced)?;
    Ok(true)
}
