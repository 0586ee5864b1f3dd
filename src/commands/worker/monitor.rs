//! Ends the ralph that watches a worker.

use std::time::{Duration, Instant};

use anyhow::bail;
use rustix::process::Signal;

use super::find::Worker;
use crate::commands::output::warn;
use crate::engine::stop::Request;
use crate::platform::handle::ProcessHandle;
use crate::record::lookup::Loop;
use crate::record::newer;
use crate::record::requests::{self, Signer};

/// How long a monitor may take to accept a request.
pub(super) const TAKES: Duration = Duration::from_secs(5);
/// How often its state is checked meanwhile: its loop may end before its process does.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// Ends the monitor of a worker by a request, on which it may take `limit` to act. One that does not accept it is killed.
pub(super) fn end(worker: &Worker, request: Request, limit: Duration) -> anyhow::Result<()> {
    let Some(found) = &worker.found else { return Ok(()) };
    newer::refuse(&found.project)?;
    let Some(state) = found.alive() else { return Ok(()) };
    let monitor = ProcessHandle::of(&state.process)?;
    let signer = Signer::of_running(&found.project);
    let asked = requests::send(&found.project.requests(), signer.as_ref(), &state.run, request)?;
    let is_over = || found.again().as_ref().and_then(Loop::alive).is_none_or(|now| now.run != state.run);
    let until = |limit: Duration, is_so: &dyn Fn() -> bool| {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline && !is_so() {
            match &monitor {
                Some(monitor) => drop(monitor.ends_by(Instant::now() + LOOK)),
                None => std::thread::sleep(LOOK),
            }
        }
        is_over()
    };
    let is_answered = || !asked.exists() || requests::is_refused(&asked);
    if until(TAKES, &|| is_over() || is_answered()) || !asked.exists() && until(limit, &is_over) {
        // Its last steps after the last record must not interfere.
        return Ok(monitor.map_or(Ok(true), |monitor| monitor.ends_by(Instant::now() + TAKES)).map(drop)?);
    }
    let (name, pid) = (&worker.name, state.process.pid);
    let Some(killed) = &monitor else {
        let _ = std::fs::remove_file(&asked);
        bail!(
            "the monitor of worker '{name}' (process {pid}) does not react, and is out of reach: end it where it runs"
        );
    };
    warn(&format!("the monitor of worker '{name}' (process {pid}) does not react: it is killed"));
    killed.send(Signal::KILL);
    if !until(TAKES, &is_over) {
        bail!("the monitor of worker '{name}' (process {pid}) cannot be ended: see what holds it");
    }
    Ok(())
}
