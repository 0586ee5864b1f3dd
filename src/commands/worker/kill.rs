//! `ralph kill`: ends a worker, its monitor and its program, and closes its pane.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::find::{self, Worker};
use super::monitor::{self, LOOK, TAKES};
use super::tree::{self, OwnTree};
use crate::agent::worker;
use crate::cli::KillArgs;
use crate::commands::output::{say, warn};
use crate::engine::outcome::{Outcome, Status};
use crate::engine::stop::Request;
use crate::process::ladder::Ladder;
use crate::record::lookup::Loop;
use crate::record::recovery::ReadOn;
use crate::record::state::State;
use crate::record::{ending, recorder};

/// How long a monitor may take to end after its agent.
const MARGIN: Duration = Duration::from_secs(5);

/// `ralph kill`.
pub(in crate::commands) fn kill(args: &KillArgs) -> anyhow::Result<u8> {
    let worker = find::named(&args.name)?;
    let tree = if args.rm_worktree { own_tree(&worker, args.force_dirty)? } else { None };
    monitor::end(&worker, Request::CancelNow, Ladder::default().limit() + MARGIN)?;
    close(&worker)?;
    say(&format!("killed {}", worker.name));
    let is_removed = tree.is_none_or(|tree| tree.remove(args.force_dirty));
    Ok(u8::from(!is_removed))
}

/// Ends a worker with its monitor, and removes its work tree, so that another one can have its name.
///
/// # Errors
/// When its work tree must stay; nothing was ended then.
pub(in crate::commands) fn replace(name: &str, force_dirty: bool) -> anyhow::Result<()> {
    let worker = find::named(name)?;
    let tree = tree::of(&worker)?;
    tree.as_ref().map_or(Ok(()), |tree| tree.require_removable(force_dirty))?;
    monitor::end(&worker, Request::CancelNow, Ladder::default().limit() + MARGIN)?;
    close(&worker)?;
    if tree.is_some_and(|tree| !tree.remove(force_dirty)) {
        bail!("the work tree of worker '{name}' stays, and so does the worker");
    }
    Ok(())
}

/// The work tree to remove.
///
/// # Errors
/// When it must stay.
fn own_tree(worker: &Worker, force: bool) -> anyhow::Result<Option<OwnTree>> {
    let Some(found) = tree::of(worker)? else {
        warn(&format!("worker '{}' has no worktree of its own", worker.name));
        return Ok(None);
    };
    found.require_removable(force)?;
    Ok(Some(found))
}

/// Repeats for a while what a monitor that is just exiting may block.
fn patiently<T>(act: impl Fn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let deadline = Instant::now() + TAKES;
    loop {
        match act() {
            Err(_) if Instant::now() < deadline => std::thread::sleep(LOOK),
            done => return done,
        }
    }
}

/// Ends the program, closes the pane and books the end.
fn close(worker: &Worker) -> anyhow::Result<()> {
    // No monitor can begin meanwhile.
    let lock = patiently(|| recorder::hold(&worker.project, "kill"))?;
    worker::close(worker.server().as_ref(), &worker.folder(), None)?;
    let Some(found) = worker.found.as_ref().and_then(Loop::again) else {
        // Its state was removed before, and now nothing is left to keep.
        return super::clean::remove_folder(&worker.project, lock);
    };
    match &found.state {
        Ok(state) if !has_ended(state) => book(worker, state, found.read_on.as_ref()),
        _ => Ok(()),
    }
}

/// Whether the loop has ended by itself, so that its own end counts.
fn has_ended(state: &State) -> bool {
    !state.active
        && matches!(state.status, Status::Stopped | Status::Failed)
        && state.exit_reason.as_deref() != Some(Outcome::Detached.word())
}

/// Books the end of a loop without a monitor.
fn book(worker: &Worker, state: &State, read_on: Option<&ReadOn>) -> anyhow::Result<()> {
    let failed = || format!("worker '{}' is killed, and its records cannot say so", worker.name);
    ending::book(&worker.project, state, read_on, Outcome::Cancelled).with_context(failed)?;
    if let Some(recovered) = read_on.and_then(ReadOn::line) {
        warn(&format!("{}: {recovered}", worker.name));
    }
    Ok(())
}
