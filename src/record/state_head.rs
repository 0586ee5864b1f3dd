//! What a list shows of a state: few of its keys, so that thousands of states are read at once.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::state::{Pending, State};
use crate::engine::event::LoopIdentity;
use crate::engine::outcome::Status;
use crate::engine::tally::Tally;
use crate::process::identity::ProcessIdentity;

/// The keys of [`State`] and of its [`Tally`] by the same names.
#[derive(Deserialize)]
pub(super) struct Head {
    version: u32,
    run: String,
    name: String,
    mode: String,
    agent: String,
    active: bool,
    status: Status,
    exit_reason: Option<String>,
    exit_code: Option<u8>,
    started_at: DateTime<Utc>,
    waiting_until: Option<DateTime<Utc>>,
    waiting_for: Option<String>,
    max_iterations: Option<u64>,
    pending: Option<Pending>,
    process: ProcessIdentity,
    #[serde(default)]
    iteration: u64,
    #[serde(default)]
    allowance_from: u64,
    #[serde(default)]
    failed: u64,
}

impl From<Head> for State {
    /// What no list shows is at its default.
    fn from(head: Head) -> Self {
        let Head { iteration, allowance_from, failed, .. } = head;
        let identity = LoopIdentity { run: head.run, name: head.name, mode: head.mode, agent: head.agent };
        Self {
            version: head.version,
            active: head.active,
            status: head.status,
            exit_reason: head.exit_reason,
            exit_code: head.exit_code,
            waiting_until: head.waiting_until,
            waiting_for: head.waiting_for,
            max_iterations: head.max_iterations,
            pending: head.pending,
            tally: Tally { iteration, allowance_from, failed, ..Tally::default() },
            ..Self::new(&identity, head.process, head.started_at, PathBuf::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::record::state::{Extent, Found, Pending, State, read};

    #[test]
    fn a_list_shows_what_the_whole_state_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.toml");
        let whole = r#"
version = 1
run = "r"
name = "build"
mode = "build"
agent = "claude"
active = false
status = "failed"
exit_reason = "max_iterations"
exit_code = 4
started_at = "2026-11-22T23:27:04Z"
waiting_for = "a free place"
max_iterations = 20
max_cost_usd = 5.0
pending = "pause"
argv = ["ralph", "build"]
cwd = "/work"
iteration = 7
allowance_from = 5
failed = 2

[process]
pid = 7
start_ticks = 8
boot_id = "b"

[given]
notes = ["[process]"]

[last]
settled = "continue"
"#;
        std::fs::write(&path, whole).unwrap();
        let [whole, head] = [Extent::Whole, Extent::Head].map(|extent| match read(&path, extent).unwrap() {
            Found::State(state) => state,
            other => panic!("{extent:?}: {other:?}"),
        });
        assert_eq!((head.tally.given.notes.len(), whole.tally.given.notes.len()), (0, 1), "only its head");
        let shown = |state: &State| {
            let words = [&state.run, &state.name, &state.mode, &state.agent].map(String::clone);
            let ends = (state.exit_reason.clone(), state.exit_code, state.word(), state.status);
            let waits = (state.waiting_until, state.waiting_for.clone(), state.pending);
            (
                words,
                ends,
                waits,
                state.started_at,
                state.progress(),
                state.tally.failed,
                state.process.clone(),
            )
        };
        assert_eq!(shown(&head), shown(&whole));
        assert_eq!((head.progress().as_str(), head.pending), ("7/25", Some(Pending::Pause)));
    }
}
