//! `state.json`, in which the set-up of a worker lies beside where its loop stands.
//!
//! The file begins with what users and scripts read, and may edit while the worker is paused; what only ralph needs
//! follows under `loop`.

use std::path::PathBuf;

use chrono::{DateTime, Local, NaiveDateTime, SubsecRound as _, Utc};
use serde::{Deserialize, Serialize};

use super::state::{Pending, Setup, State, VERSION};
use crate::engine::outcome::{Outcome, Status};

/// The file's layout. Existing scripts use these names.
#[derive(Debug, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are given")]
struct File {
    version: u32,
    worker_name: String,
    prompt_file: PathBuf,
    max_iterations: u64,
    current_iteration: u64,
    status: String,
    started: NaiveDateTime,
    last_iteration_started: Option<NaiveDateTime>,
    last_iteration_ended: Option<NaiveDateTime>,
    iteration_durations: Vec<u64>,
    consecutive_failures: u64,
    total_failures: u64,
    done_pattern: Option<String>,
    inactivity_timeout: f64,
    check_done_continuous: bool,
    exit_reason: Option<String>,
    #[serde(rename = "loop")]
    state: State,
}

/// The status words of the file. A loop that is asked to pause counts as paused, even while its agent works.
fn word(state: &State) -> &'static str {
    match state.status {
        _ if state.active && state.pending == Some(Pending::Pause) => Status::Paused.word(),
        Status::Waiting => Status::Running.word(),
        status => status.word(),
    }
}

fn local(time: DateTime<Utc>) -> NaiveDateTime {
    // The format of existing files; some readers accept no more digits.
    time.with_timezone(&Local).naive_local().trunc_subsecs(6)
}

/// The text of a worker's state file.
///
/// # Errors
/// If a path is not valid text.
pub(super) fn write(state: &State) -> serde_json::Result<String> {
    let (setup, tally) = (&state.setup, &state.tally);
    let file = File {
        version: VERSION,
        worker_name: state.name.clone(),
        prompt_file: setup.prompt_file.clone().unwrap_or_default(),
        max_iterations: state.last_iteration().unwrap_or_default(),
        current_iteration: tally.iteration,
        status: word(state).to_owned(),
        started: local(state.started_at),
        last_iteration_started: state.last_iteration_at.map(local),
        last_iteration_ended: state.last_iteration_ended_at.map(local),
        // Whole seconds; other values are skipped.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        iteration_durations: tally.durations.last.iter().map(|seconds| seconds.round() as u64).collect(),
        consecutive_failures: tally.consecutive_errors,
        total_failures: tally.failed,
        done_pattern: setup.done_pattern.clone(),
        inactivity_timeout: setup.inactivity_timeout.unwrap_or_default(),
        check_done_continuous: setup.worker.as_ref().is_some_and(|worker| worker.check_done_continuous),
        exit_reason: state.outcome().and_then(Outcome::worker_word).map(str::to_owned),
        state: state.clone(),
    };
    Ok(serde_json::to_string_pretty(&file)? + "\n")
}

/// Reads such a file; its first part wins, because users may have edited it.
///
/// # Errors
/// If it is not JSON, or lacks a field.
pub(super) fn read(text: &str) -> serde_json::Result<State> {
    let File {
        prompt_file,
        max_iterations,
        done_pattern,
        inactivity_timeout,
        check_done_continuous,
        mut state,
        ..
    } = serde_json::from_str(text)?;
    state.max_iterations = Some(max_iterations.saturating_sub(state.tally.allowance_from));
    let Setup { worker, .. } = &mut state.setup;
    if let Some(worker) = worker {
        worker.check_done_continuous = check_done_continuous;
    }
    state.setup = Setup {
        prompt_file: Some(prompt_file),
        done_pattern,
        inactivity_timeout: Some(inactivity_timeout),
        ..state.setup
    };
    Ok(state)
}
