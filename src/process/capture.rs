//! Runs a short command to its end and keeps what it printed, within bounds of time and memory.

use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::supervised::{Launch, StartError, Supervised, pump};
use super::supervisor::Note;

/// What a captured command left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The beginning of its stdout, at most as much as asked for.
    pub stdout: Vec<u8>,
    /// Its exit code; `None` when it was ended by a signal or by the time limit.
    pub code: Option<i32>,
}

/// Runs `launch` without input for at most `limit` and keeps up to `room` bytes of its stdout. Its whole process
/// tree is gone when this returns.
///
/// # Errors
/// When it cannot be started.
pub fn capture(launch: &Launch, limit: Duration, room: usize) -> Result<Captured, StartError> {
    let deadline = Instant::now() + limit;
    let (mut program, pipes) = Supervised::start(launch)?;
    drop(pipes.stdin);
    let (send, notes) = mpsc::channel();
    let listener = pipes.notes;
    std::thread::spawn(move || listener.for_each(|note| drop(send.send(note))));

    let Ok((hold, stop)) = UnixStream::pair() else { return Ok(Captured { stdout: Vec::new(), code: None }) };
    let quiet = stop.try_clone();
    let complaints = pipes.stderr;
    std::thread::spawn(move || quiet.map(|stop| pump(complaints, &stop, |_| true)));
    let output = pipes.stdout;
    let reader = std::thread::spawn(move || {
        let mut kept = Vec::new();
        pump(output, &stop, |bytes| {
            let count = bytes.len().min(room - kept.len());
            kept.extend_from_slice(&bytes[..count]);
            true
        });
        kept
    });

    let (mut code, mut gone) = (None, false);
    while !gone {
        match notes.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Note::Exited(exit)) => code = Some(exit),
            Ok(Note::Gone(_)) => gone = true,
            Ok(_) => {}
            // Too late, or its supervisor died: `finish` ends what is left.
            Err(_) => {
                code = None;
                program.kill();
                break;
            }
        }
    }
    program.finish(gone);
    drop(hold);
    Ok(Captured { stdout: reader.join().unwrap_or_default(), code })
}
