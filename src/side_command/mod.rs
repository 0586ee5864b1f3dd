//! Commands that run while the loop handles requests: balance, validation, the commands of a prompt, pushes.

mod validation;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::engine::context::Context;
use crate::engine::inbox::Wake;
use crate::engine::outcome::End;
use crate::engine::stop::Urgency;
use crate::process::capture::{Captured, capture};
use crate::process::launch::Launch;
use crate::process::supervised::StartError;
use crate::threads;

pub(crate) use validation::ValidationCommand;

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
    let (port, mailbox) = context.open();
    let cancelled = Arc::new(AtomicBool::new(false));
    let (its, flag) = (launch.clone(), Arc::clone(&cancelled));
    let work = move || port.post(0, capture(&its, Vec::new(), bounds.limit, bounds.room, &flag));
    if let Err(source) = threads::start(work) {
        return Ok(Err(StartError::thread(launch, source)));
    }
    loop {
        if context.urgency() >= bounds.cut_at {
            cancelled.store(true, Ordering::Relaxed);
        }
        match context.listen(&mailbox, None) {
            Ok(Wake::Message(captured)) => return Ok(captured),
            Ok(_) => {}
            Err(end) => {
                // The command must not outlive the loop.
                cancelled.store(true, Ordering::Relaxed);
                return Err(end);
            }
        }
    }
}
