//! `ralph kill`: ends a worker, its monitor and its program, and closes its pane.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::Signal;

use super::find::{self, Worker};
use super::tree::{self, OwnTree};
use crate::agent::worker;
use crate::cli::KillArgs;
use crate::commands::output::{say, warn};
use crate::engine::outcome::{Outcome, Status};
use crate::engine::stop::Request;
use crate::process::handle::ProcessHandle;
use crate::process::ladder::Ladder;
use crate::record::lookup::Loop;
use crate::record::recovery::ReadOn;
use crate::record::requests::{self, Signer};
use crate::record::state::State;
use crate::record::{ending, recorder};

/// How long a monitor may take to end beyond what its agent may take.
const MARGIN: Duration = Duration::from_secs(5);
/// How long it may take to take a request.
const TAKES: Duration = Duration::from_secs(5);
/// How often its state is looked at meanwhile: it may be through before its process is.
const LOOK: Duration = Duration::from_millis(50);

/// `ralph kill`.
pub(in crate::commands) fn kill(args: &KillArgs) -> anyhow::Result<u8> {
    let worker = find::named(&args.name)?;
    let tree = if args.rm_worktree { own_tree(&worker, args.force_dirty)? } else { None };
    end_monitor(&worker, Request::CancelNow, Ladder::default().limit() + MARGIN)?;
    close(&worker)?;
    say(&format!("killed {}", worker.name));
    let is_removed = tree.is_none_or(|tree| tree.remove(args.force_dirty));
    Ok(u8::from(!is_removed))
}

/// Ends a worker with its monitor, and removes its work tree: another one is to take its name.
///
/// # Errors
/// When its work tree has to stay; nothing was ended then.
pub(in crate::commands) fn replace(name: &str, force_dirty: bool) -> anyhow::Result<()> {
    let worker = find::named(name)?;
    let tree = tree::of(&worker)?;
    tree.as_ref().map_or(Ok(()), |tree| tree.require_removable(force_dirty))?;
    end_monitor(&worker, Request::CancelNow, Ladder::default().limit() + MARGIN)?;
    close(&worker)?;
    if tree.is_some_and(|tree| !tree.remove(force_dirty)) {
        bail!("the work tree of worker '{name}' stays, and so does the worker");
    }
    Ok(())
}

/// The work tree that is to go.
///
/// # Errors
/// When it has to stay.
fn own_tree(worker: &Worker, force: bool) -> anyhow::Result<Option<OwnTree>> {
    let Some(found) = tree::of(worker)? else {
        warn(&format!("worker '{}' has no worktree of its own", worker.name));
        return Ok(None);
    };
    found.require_removable(force)?;
    Ok(Some(found))
}

/// Ends the monitor of a worker by a request, which it may take `limit` to act on. One that does not even take it is killed.
pub(super) fn end_monitor(worker: &Worker, request: Request, limit: Duration) -> anyhow::Result<()> {
    let Some(found) = &worker.found else { return Ok(()) };
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
        // What it does after its last record is not to come between.
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

/// Tries again for a while what a monitor that is just leaving may keep from being done.
fn patiently<T>(act: impl Fn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let deadline = Instant::now() + TAKES;
    loop {
        match act() {
            Err(_) if Instant::now() < deadline => std::thread::sleep(LOOK),
            done => return done,
        }
    }
}

/// Ends the program, closes the pane and books that.
fn close(worker: &Worker) -> anyhow::Result<()> {
    // No monitor begins meanwhile.
    let lock = patiently(|| recorder::hold(&worker.project, "kill"))?;
    worker::close(worker.server().as_ref(), &worker.folder(), None)?;
    let Some(found) = worker.found.as_ref().and_then(Loop::again) else {
        // Its state was cleaned away, and now nothing is left that has to stay.
        return super::clean::remove_folder(&worker.project, lock);
    };
    match &found.state {
        Ok(state) if !has_ended(state) => book(worker, state, found.read_on.as_ref()),
        _ => Ok(()),
    }
}

/// Whether the loop has come to an end, so that this is what is told of it.
fn has_ended(state: &State) -> bool {
    !state.active
        && matches!(state.status, Status::Stopped | Status::Failed)
        && state.exit_reason.as_deref() != Some(Outcome::Detached.word())
}

/// Books the end of a loop that has no monitor which would.
fn book(worker: &Worker, state: &State, read_on: Option<&ReadOn>) -> anyhow::Result<()> {
    let failed = || format!("worker '{}' is killed, and its records cannot say so", worker.name);
    ending::book(&worker.project, state, read_on, Outcome::Cancelled).with_context(failed)?;
    if let Some(recovered) = read_on.and_then(ReadOn::line) {
        warn(&format!("{}: {recovered}", worker.name));
    }
    Ok(())
}
