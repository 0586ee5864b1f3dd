//! The status of a worker, for people and for programs: lines and keys that scripts know.

use std::fmt::Display;
use std::io;

use serde_json::{Value, json};

use super::snapshot::{LoopSnapshot, WorkerSight};
use crate::engine::outcome::{Outcome, Status};
use crate::record::state::State;
use crate::tell::words;
use crate::text::{duration, timestamp};

/// Writes the text after the name of a worker in `ralph status`.
pub(super) fn write_block(
    snapshot: &LoopSnapshot<'_>,
    state: &State,
    worker: &WorkerSight,
    line: &mut dyn FnMut(&str, &dyn Display) -> io::Result<()>,
) -> io::Result<()> {
    let status = snapshot.status(state);
    // A pause of a ralph that has ended is shown in full, because the loop should go on.
    let is_over = matches!(status, Status::Stopped | Status::Failed) && !worker.runs;
    let pending = snapshot.pending(state);
    line("Status", &format_args!("{}{pending}", snapshot.word()))?;
    line("Iteration", &snapshot.iteration(state))?;
    if is_over {
        line("Exit reason", &exit_reason(snapshot, state, worker))?;
        line("Started", &timestamp::local(&state.started_at))?;
        if let Some(at) = state.last_iteration_ended_at {
            line("Last iteration ended", &timestamp::local(&at))?;
        }
        let ended = state.ended_at.or(state.last_iteration_ended_at).unwrap_or(state.started_at);
        let total = (ended - state.started_at).to_std().unwrap_or_default();
        line("Total duration", &duration::rough(total))?;
        line("Worker status", &worker.word())?;
        if let Some(detail) = &state.exit_detail {
            line("Exit detail", detail)?;
        }
        return snapshot.proof().map_or(Ok(()), |proof| line("Proof", &words::proof(proof).text));
    }
    line("Started", &timestamp::local(&state.started_at))?;
    match (state.tally.in_attempt, state.last_iteration_at, state.last_iteration_ended_at) {
        (true, Some(at), _) => line("Current iteration started", &timestamp::local(&at))?,
        (false, _, Some(at)) => line("Last iteration ended", &timestamp::local(&at))?,
        _ => {}
    }
    line("Consecutive failures", &state.tally.consecutive_errors)?;
    line("Total failures", &state.tally.failed)?;
    match state.setup.inactivity_timeout {
        Some(seconds) if seconds > 0.0 => line("Inactivity timeout", &format_args!("{seconds}s"))?,
        _ => line("Inactivity timeout", &"off")?,
    }
    if let Some(pattern) = &state.setup.done_pattern {
        line("Done pattern", pattern)?;
    }
    line("Exit reason", &exit_reason(snapshot, state, worker))?;
    line("Worker status", &worker.word())?;
    if status == Status::NeedsAttention {
        let name = &state.name;
        line(
            "Attention",
            &format_args!(
                "its screen waits for a person: 'ralph peek {name}' shows it, 'ralph attach {name}' answers it"
            ),
        )?;
    }
    Ok(())
}

fn exit_reason(snapshot: &LoopSnapshot<'_>, state: &State, worker: &WorkerSight) -> String {
    match snapshot.exit_reason(state) {
        None => "(none - still running)".to_owned(),
        Some(word) if worker.runs && Some(word) == Outcome::Detached.worker_word() => {
            format!("{word} (worker still running)")
        }
        Some(word) => word.to_owned(),
    }
}

impl LoopSnapshot<'_> {
    /// Adds the keys of workers, which are empty for other loops.
    pub(super) fn add_worker(&self, state: &State, object: &mut Value) {
        let (Some(sight), Some(worker)) = (&self.worker, &state.setup.worker) else {
            for key in ["worker_status", "cmd", "tmux", "worktree", "metadata"] {
                object[key] = Value::Null;
            }
            object["tags"] = json!([]);
            return;
        };
        let session = sight.window.as_deref().unwrap_or(&worker.session);
        object["worker_status"] = sight.word().into();
        object["cmd"] = json!(worker.command);
        object["cwd"] = worker.cwd.to_string_lossy().into();
        object["tags"] = json!(worker.tags);
        object["tmux"] = json!({ "session": session, "window": session, "socket": worker.socket });
        object["worktree"] = worker.worktree.as_ref().map_or(
            Value::Null,
            |tree| json!({ "path": tree.path.to_string_lossy(), "branch": tree.branch }),
        );
        object["metadata"] = json!({ "ralph": true, "ralph_iteration": state.tally.iteration });
    }
}
