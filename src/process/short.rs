//! A short command of ours: run to its end, with a limit.
//!
//! It is no program of a loop: without a supervisor, it is ended with its process group, and what it says is kept whole.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::handle::ProcessHandle;

/// How often is looked whether a command is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// Runs a program without input and collects what it says. After `limit` it is killed with its process group, and
/// the error is [`io::ErrorKind::TimedOut`].
pub fn output_within(command: &mut Command, limit: Duration) -> io::Result<Output> {
    output_unless(command.stdin(Stdio::null()), limit, &|| false)
}

/// The same with the stdin that the command has been given, and at most until `is_given_up`.
pub fn output_unless(
    command: &mut Command,
    limit: Duration,
    is_given_up: &dyn Fn() -> bool,
) -> io::Result<Output> {
    let deadline = Instant::now() + limit;
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Of its own group: Ctrl+C on the terminal is for ralph to judge.
        .process_group(0)
        .spawn()?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let ended = ends_by(&child, deadline, is_given_up).unwrap_or(false);
    let output = if ended { receive(&stdout, deadline).zip(receive(&stderr, deadline)) } else { None };
    if output.is_none() {
        // Not reaped yet, or something else of its group holds the pipes: the group is ours either way.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    let status = child.wait()?;
    let Some((stdout, stderr)) = output else { return Err(io::ErrorKind::TimedOut.into()) };
    Ok(Output { status, stdout, stderr })
}

/// Reads a pipe to its end in a thread of its own; the thread ends with the pipe.
fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What came before an error is still worth having.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

fn receive(bytes: &mpsc::Receiver<Vec<u8>>, deadline: Instant) -> Option<Vec<u8>> {
    let rest = deadline.saturating_duration_since(Instant::now());
    bytes.recv_timeout(rest.max(Duration::from_millis(100))).ok()
}

/// Waits for the child's end without reaping it.
fn ends_by(child: &Child, deadline: Instant, is_given_up: &dyn Fn() -> bool) -> io::Result<bool> {
    let child = ProcessHandle::of_child(child)?;
    loop {
        let now = Instant::now();
        if now >= deadline || is_given_up() {
            return Ok(false);
        }
        if child.ends_by(deadline.min(now + LOOK))? {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_ended_with_its_children() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo $!; exec sleep 60"]);
        let start = Instant::now();
        let error = output_within(&mut command, Duration::from_millis(300)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn much_output_on_both_pipes_is_collected() {
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; exit 3"]);
        let output = output_within(&mut command, Duration::from_secs(30)).unwrap();
        assert_eq!(
            (output.stdout.len(), output.stderr.len(), output.status.code()),
            (300_000, 300_000, Some(3))
        );
    }

    #[test]
    fn one_that_is_given_up_is_ended_at_once() {
        let mut command = Command::new("sleep");
        let start = Instant::now();
        let error = output_unless(command.arg("60"), Duration::from_mins(1), &|| true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
