//! Commands that run while the loop handles requests: balance, validation, the commands of a prompt, pushes.

mod refused;
mod runnable;
mod validation;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use crate::engine::context::Context;
use crate::engine::fact::{Fact, WaitReason};
use crate::engine::inbox::Wake;
use crate::engine::outcome::End;
use crate::engine::stop::Urgency;
use crate::process::capture::{Captured, capture};
use crate::process::launch::Launch;
use crate::process::supervised::StartError;
use crate::threads;

pub(crate) use refused::refused;
pub(crate) use runnable::obstacle;
pub(crate) use validation::{ValidationCommand, cannot_run};

/// The limits of a command beside the loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Its time limit.
    pub limit: Duration,
    /// How many bytes of each of its outputs are kept.
    pub room: usize,
    /// A stop request of this urgency ends it.
    pub cut_at: Urgency,
}

/// Runs a command while the loop handles requests.
///
/// # Errors
/// The outer one if the loop cannot continue, the inner one if the command cannot be started.
pub(crate) fn run(
    launch: &Launch,
    bounds: Bounds,
    context: &mut Context<'_>,
) -> Result<Result<Captured, StartError>, End> {
    let its = launch.clone();
    let work = move |cancelled: &AtomicBool| capture(&its, Vec::new(), bounds.limit, bounds.room, cancelled);
    let captured = beside(bounds.cut_at, context, work)?;
    Ok(captured.unwrap_or_else(|source| Err(StartError::thread(launch, source))))
}

/// Runs a command in a thread that is no loop's, until the flag is set.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn run_alone(
    launch: &Launch,
    (limit, room): (Duration, usize),
    cancelled: &AtomicBool,
) -> Result<Captured, StartError> {
    capture(launch, Vec::new(), limit, room, cancelled)
}

/// Does something in a thread while the loop handles requests. A stop request of the urgency `cut_at` sets the flag that
/// the work gets, and so does an error of the loop, which does not wait for it then.
///
/// # Errors
/// The outer one if the loop cannot continue, the inner one if there is no thread for it.
pub(crate) fn beside<T: Send + 'static>(
    cut_at: Urgency,
    context: &mut Context<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<io::Result<T>, End> {
    beside_for((cut_at, Duration::ZERO), &|| None, context, work)
}

/// How often it is looked whether what the work waits for is away.
const LOOK: Duration = Duration::from_secs(1);

/// [`beside`], where the work may go on for this long after the stop request, and waits itself, at most until `away` says, for
/// a remote that cannot be reached, for the reason that it says.
///
/// # Errors
/// The outer one if the loop cannot continue, the inner one if there is no thread for it.
pub(crate) fn beside_for<T: Send + 'static>(
    (cut_at, grace): (Urgency, Duration),
    away: &dyn Fn() -> Option<(DateTime<Utc>, String)>,
    context: &mut Context<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<io::Result<T>, End> {
    let (port, mailbox) = context.open();
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancelled);
    if let Err(error) = threads::start(move || port.post(0, work(&flag))) {
        return Ok(Err(error));
    }
    let (mut until, mut told) = (None, false);
    loop {
        if let Some((until, why)) = away().filter(|_| !told) {
            told = true;
            context.tell(Fact::waiting_for(WaitReason::Remote, until, why))?;
        }
        // Ctrl+C and 'ralph cancel' end a wait at once.
        if context.urgency() >= cut_at || told && context.is_to_leave() {
            let until = *until.get_or_insert_with(|| Instant::now() + grace);
            cancelled.fetch_or(Instant::now() >= until, Ordering::Relaxed);
        }
        match context.listen(&mailbox, Some(Instant::now() + LOOK)) {
            Ok(Wake::Message(done)) => {
                if told {
                    context.tell(Fact::Resumed { blind_waits: None, waited_s: None })?;
                }
                return Ok(Ok(done));
            }
            Ok(_) => {}
            Err(end) => {
                // It must not outlive the loop.
                cancelled.store(true, Ordering::Relaxed);
                return Err(end);
            }
        }
    }
}
