//! Commands that a loop runs beside its agent: balance, validation, the commands of a prompt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Context, Message};
use crate::engine::inbox::Wake;
use crate::engine::stop::Urgency;
use crate::files::FileError;
use crate::process::capture::{Captured, capture};
use crate::process::supervised::{Launch, StartError};

/// Runs a command while the loop stays open to what is asked of it; a request to stop that is as urgent as `cut_at`
/// ends the command.
///
/// # Errors
/// The outer one when a record cannot be written, the inner one when the command cannot be started.
pub(crate) fn run_beside(
    launch: &Launch,
    limit: Duration,
    room: usize,
    cut_at: Urgency,
    context: &mut Context<'_>,
) -> Result<Result<Captured, StartError>, FileError> {
    let port = context.inbox.open();
    let cancelled = Arc::new(AtomicBool::new(false));
    let (launch, flag) = (launch.clone(), Arc::clone(&cancelled));
    std::thread::spawn(move || {
        let captured = capture(&launch, limit, room, &flag);
        port.post(0, Message::Captured(captured))
    });
    loop {
        if context.stop.urgency() >= cut_at {
            cancelled.store(true, Ordering::Relaxed);
        }
        match context.wait(None) {
            Ok(Wake::Message(Message::Captured(captured))) => {
                context.inbox.close();
                return Ok(captured);
            }
            Ok(_) => {}
            Err(error) => {
                // The command must not outlive the loop.
                cancelled.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
    }
}
