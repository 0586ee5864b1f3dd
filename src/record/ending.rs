//! The end of a loop that has no process which would book it.

use chrono::Local;

use super::event_json::to_lines;
use super::iterations_log::IterationsLog;
use super::run_folder;
use super::state::{State, StateFile};
use crate::engine::event::{Event, LoopIdentity, Stamped};
use crate::engine::outcome::Outcome;
use crate::files::FileError;
use crate::project::Project;

/// Books that the loop of this `state` has ended so, in its state file and its iterations log. Its lock is to be held.
///
/// # Errors
/// When one of them cannot be written.
pub fn book(project: &Project, state: &State, outcome: Outcome) -> Result<(), FileError> {
    let (run, name) = (state.run.clone(), state.name.clone());
    let identity = LoopIdentity { run, name, mode: state.mode.clone(), agent: state.agent.clone() };
    let at = Local::now();
    let duration = (at.to_utc() - state.started_at).to_std().unwrap_or_default();
    let mut tally = state.tally.clone();
    tally.in_attempt = false;
    let event = Event::LoopEnded { outcome, detail: None, tally: &tally, duration, work: None };
    let stamped = Stamped { at, identity: &identity, event };
    StateFile::new(&project.state(), state.clone()).take(&stamped)?;
    IterationsLog::open(&project.iterations_log())?.take(&stamped)?;
    if project.is_of_branch() {
        return Ok(());
    }
    run_folder::write_end(project, &state.run, &to_lines(&stamped))
}
