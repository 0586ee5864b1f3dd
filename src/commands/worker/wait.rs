//! `ralph wait`: until workers have ended.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::bail;

use super::find::{self, Worker};
use crate::cli::WaitArgs;
use crate::commands::output::say;
use crate::engine::outcome::{Outcome, Status};
use crate::platform::handle::ProcessHandle;
use crate::process::note::SupervisorNote;
use crate::process::pane::Pane;
use crate::record::state::State;
use crate::text::duration;
use crate::threads;

/// How often a monitor is checked whose process cannot be seen from here.
const LOOK: Duration = Duration::from_secs(1);
/// How long a process is awaited before its state is checked again.
const PATIENT: Duration = Duration::from_mins(1);

/// `ralph wait`. 1 when one has failed, or the time is over.
pub(in crate::commands) fn wait(args: &WaitArgs) -> anyhow::Result<u8> {
    let timeout = args.timeout.as_deref().map(duration::parse_or_zero).transpose()?;
    let until = timeout.map(|timeout| Instant::now() + timeout);
    let mut names = args.names.clone();
    names.sort();
    names.dedup();
    let workers = names.iter().map(|name| find::named(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let (send, ended) = mpsc::channel();
    for worker in workers {
        let send = send.clone();
        threads::start(move || {
            let name = worker.name.clone();
            // Once the time is over, the receiver is gone.
            let _ = send.send((name, await_end(worker)));
        })?;
    }
    drop(send);
    let mut is_well = true;
    while !names.is_empty() {
        let next = match until {
            Some(until) => ended.recv_timeout(until.saturating_duration_since(Instant::now())),
            None => ended.recv().map_err(RecvTimeoutError::from),
        };
        match next {
            Ok((name, end)) => {
                names.retain(|other| *other != name);
                is_well &= end?;
                say(&format!("{name}: exited"));
            }
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => bail!("a worker was lost while it was waited for"),
        }
    }
    for name in &names {
        say(&format!("{name}: still running (timeout)"));
    }
    Ok(u8::from(!is_well || !names.is_empty()))
}

/// Waits until neither the monitor nor the program of a worker runs; returns whether all went well.
fn await_end(mut worker: Worker) -> anyhow::Result<bool> {
    let mut program_went_well = true;
    loop {
        if let Some(state) = worker.found.as_ref().and_then(|found| found.alive()) {
            match ProcessHandle::of(&state.process)? {
                Some(monitor) => drop(monitor.ends_by(Instant::now() + PATIENT)?),
                // The process is in a container, or has just ended.
                None => std::thread::sleep(LOOK),
            }
        } else if let Some((pane, notes)) = Pane::connect(&worker.folder())? {
            program_went_well = notes.fold(true, |is_well, note| match note {
                SupervisorNote::Exited(code) => code == 0,
                SupervisorNote::Signaled(_) | SupervisorNote::Refused(_) => false,
                _ => is_well,
            });
            drop(pane);
        } else {
            return Ok(worker
                .state()
                .map_or(program_went_well, |state| ended_well(state, program_went_well)));
        }
        match find::named(&worker.name) {
            Ok(now) => worker = now,
            // Its records were cleaned up.
            Err(_) => return Ok(program_went_well),
        }
    }
}

/// Whether an ended loop has ended well; an unmonitored one ended as its program did.
fn ended_well(state: &State, program_went_well: bool) -> bool {
    if state.true_exit_reason().is_some_and(|why| Some(why) == Outcome::Detached.worker_word()) {
        return program_went_well;
    }
    state.true_status() != Status::Failed && state.exit_code == Some(0)
}
