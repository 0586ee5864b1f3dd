//! Reads the state file of an earlier program.

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::state::{Setup, State};
use crate::engine::event::LoopIdentity;
use crate::engine::outcome::{Outcome, Status};
use crate::engine::tally::Tally;
use crate::platform::identity::ProcessIdentity;

/// Its content. It has no version, no process and no outcome.
#[derive(Deserialize)]
struct File {
    active: bool,
    iteration: u64,
    mode: String,
    started_at: DateTime<Utc>,
    last_iteration_at: Option<DateTime<Utc>>,
    max_iterations: Option<u64>,
    #[serde(default)]
    error_count: u64,
    #[serde(default)]
    consecutive_errors: u64,
    last_error: Option<String>,
    last_commit: Option<String>,
    #[serde(default)]
    idle_iterations: u64,
}

/// The state in such a file, or `None` if it is another kind of file. Its loop counts as ended: the file names no
/// process.
pub(super) fn read(text: &str) -> Option<State> {
    let file: File = toml::from_str(text).ok()?;
    let verb = format!("loop {}", file.mode);
    // That program continues where it stopped, whatever the reason.
    let (status, outcome) =
        if file.active { (Status::Running, None) } else { (Status::Stopped, Some(Outcome::Interrupted)) };
    // A boot id that no machine has.
    let process = ProcessIdentity { pid: 0, start_ticks: 0, boot_id: String::new(), pid_namespace: 0 };
    let [run, agent] = ["", "unknown"].map(str::to_owned);
    let identity = LoopIdentity { run, name: file.mode.clone(), mode: file.mode.clone(), agent };
    Some(State {
        active: file.active,
        status,
        exit_reason: outcome.map(|outcome| outcome.word().to_owned()),
        exit_code: outcome.map(Outcome::code),
        started_at: file.started_at,
        last_iteration_at: file.last_iteration_at,
        max_iterations: file.max_iterations,
        argv: ["ralph", "loop"].map(str::to_owned).into_iter().chain([file.mode]).collect(),
        setup: Setup { verb, ..Setup::default() },
        is_held: false,
        tally: Tally {
            iteration: file.iteration,
            failed: file.error_count,
            error_count: file.error_count,
            consecutive_errors: file.consecutive_errors,
            idle_iterations: file.idle_iterations,
            last_error: file.last_error,
            last_commit: file.last_commit,
            ..Tally::default()
        },
        ..State::begun(&identity, process)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "active = true\niteration = 7\nmode = \"build\"\nstarted_at = \"2026-01-02T03:04:05Z\"\n\
                        last_iteration_at = \"2026-01-02T03:09:05Z\"\nmax_iterations = 20\nerror_count = 2\n\
                        consecutive_errors = 1\nlast_error = \"it broke\"\nidle_iterations = 0\n";

    #[test]
    fn a_loop_of_the_older_program_was_cut_off_where_it_says_so() {
        let state = read(FILE).unwrap();
        assert_eq!((state.tally.iteration, state.max_iterations, state.word()), (7, Some(20), "killed"));
        assert!(state.was_interrupted() && !state.process.is_alive());
        assert_eq!(state.argv, ["ralph", "loop", "build"]);
        let state = read(&FILE.replace("active = true", "active = false")).unwrap();
        assert!(state.was_interrupted() && state.word() == "interrupted");
        assert!(read("iteration = 7").is_none() && read("").is_none());
    }
}
