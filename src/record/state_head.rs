//! The keys that lists show of an ended loop's state: few, so that thousands of states are read fast.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::state::{AtTask, Pending, Setup, State};
use crate::engine::budget::{Budget, Spent};
use crate::engine::event::LoopIdentity;
use crate::engine::outcome::Status;
use crate::engine::tally::Tally;
use crate::engine::validation::Evidence;
use crate::platform::identity::ProcessIdentity;

/// Keys of [`State`] and its [`Tally`], by the same names.
#[derive(Deserialize)]
pub(super) struct Head {
    version: u32,
    #[serde(default)]
    ralph: String,
    run: String,
    name: String,
    mode: String,
    agent: String,
    pub(super) active: bool,
    status: Status,
    exit_reason: Option<String>,
    exit_detail: Option<String>,
    proof: Option<Evidence>,
    #[serde(default)]
    has_work: bool,
    exit_code: Option<u8>,
    started_at: DateTime<Utc>,
    ended_at: Option<DateTime<Utc>>,
    waiting_until: Option<DateTime<Utc>>,
    waiting_for: Option<String>,
    session_log: Option<PathBuf>,
    #[serde(default)]
    verb: String,
    max_iterations: Option<u64>,
    max_cost_usd: Option<f64>,
    task: Option<String>,
    #[serde(default)]
    tasks_done: u64,
    #[serde(default)]
    tasks_failed: u64,
    #[serde(default)]
    tasks_total: u64,
    pending: Option<Pending>,
    process: ProcessIdentity,
    #[serde(default)]
    iteration: u64,
    #[serde(default)]
    allowance_from: u64,
    #[serde(default)]
    failed: u64,
    cost_usd: Option<f64>,
}

impl From<Head> for State {
    /// Other keys get their defaults.
    fn from(head: Head) -> Self {
        let Head { iteration, allowance_from, failed, cost_usd, .. } = head;
        let at_task = head.task.map(|task| AtTask {
            task,
            task_title: String::new(),
            task_feature: None,
            task_model: None,
            task_verifies: false,
            task_became: None,
            tasks_done: head.tasks_done,
            tasks_failed: head.tasks_failed,
            tasks_total: head.tasks_total,
        });
        let identity = LoopIdentity { run: head.run, name: head.name, mode: head.mode, agent: head.agent };
        Self {
            version: head.version,
            ralph: head.ralph,
            active: head.active,
            status: head.status,
            exit_reason: head.exit_reason,
            exit_detail: head.exit_detail,
            proof: head.proof,
            has_work: head.has_work,
            exit_code: head.exit_code,
            ended_at: head.ended_at,
            waiting_until: head.waiting_until,
            waiting_for: head.waiting_for,
            max_iterations: head.max_iterations,
            budget: Budget { max_cost_usd: head.max_cost_usd, ..Budget::default() },
            pending: head.pending,
            at_task,
            session_log: head.session_log,
            setup: Setup { verb: head.verb, ..Setup::default() },
            tally: Tally {
                iteration,
                allowance_from,
                failed,
                spent: Spent { cost_usd, ..Spent::default() },
                ..Tally::default()
            },
            ..Self::new(&identity, head.process, head.started_at, PathBuf::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::record::state::{AtTask, Pending, State};
    use crate::record::state_read::{Extent, Found, read};

    #[test]
    fn a_list_shows_what_the_whole_state_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.toml");
        let text = r#"
version = 1
run = "r"
name = "build"
mode = "build"
agent = "claude"
active = false
status = "failed"
exit_reason = "max_iterations"
exit_detail = "the validation still fails"
has_work = true
exit_code = 4
started_at = "2026-11-22T23:27:04Z"
ended_at = "2026-11-22T23:29:04Z"
waiting_for = "a free place"
max_iterations = 20
max_cost_usd = 5.0
pending = "pause"
session_log = "/work/.ralph/runs/r/session.log"
verb = "loop build"
argv = ["ralph", "build"]
cwd = "/work"
task = "t-3f9a01"
task_title = "t"
task_verifies = false
tasks_done = 1
tasks_failed = 2
tasks_total = 3
cost_usd = 1.5
iteration = 7
allowance_from = 5
failed = 2

[proof]
by = "npm test: 1 failed"
standing = "refuted"

[process]
pid = 7
start_ticks = 8
boot_id = "b"
pid_namespace = 9

[given]
notes = ["[process]"]

[last]
settled = "continue"
"#;
        std::fs::write(&path, text).unwrap();
        let [whole, head] = [Extent::Whole, Extent::Head].map(|extent| match read(&path, extent).unwrap() {
            Found::State(state) => state,
            other => panic!("{extent:?}: {other:?}"),
        });
        assert_eq!((head.tally.given.notes.len(), whole.tally.given.notes.len()), (0, 1), "only its head");
        let shown = |state: &State| {
            let words = [&state.run, &state.name, &state.mode, &state.agent].map(String::clone);
            let ends = (state.reason(), state.proof.clone(), state.has_work, state.exit_code, state.word());
            let waits = (state.waiting_until, state.waiting_for.clone(), state.pending);
            (
                words,
                (ends, state.status),
                waits,
                state.started_at,
                state.progress(),
                (state.ended_at, state.session_log.clone(), state.setup.verb.clone()),
                state.tally.failed,
                (
                    state.tally.spent.cost_usd,
                    state.budget.max_cost_usd,
                    state.at_task.as_ref().map(AtTask::counts),
                ),
                state.process.clone(),
            )
        };
        assert_eq!(shown(&head), shown(&whole));
        assert_eq!((head.progress().as_str(), head.pending), ("7/25", Some(Pending::Pause)));
        assert!(head.ended_at.is_some() && head.at_task.is_some());
        // A running loop needs the whole state.
        std::fs::write(&path, text.replace("active = false", "active = true")).unwrap();
        let Found::State(alive) = read(&path, Extent::Head).unwrap() else { panic!("no state") };
        assert_eq!(alive.tally.given.notes.len(), 1);
    }
}
