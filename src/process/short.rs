//! A short command of ours, run to its end with a time limit.
//!
//! It is not a program of a loop: it has no supervisor, is ended with its process group, and its output is kept
//! whole.

use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::platform::handle::ProcessHandle;
use crate::threads;

/// Runs a program without input and collects its output. After `limit` it is killed with its process group, and the
/// error is [`io::ErrorKind::TimedOut`].
pub fn output_within(command: &mut Command, limit: Duration) -> io::Result<Output> {
    command.stdin(Stdio::null());
    output(command, Vec::new(), limit)
}

/// [`output_within`] with input, which the program need not read.
pub fn output_with(command: &mut Command, input: Vec<u8>, limit: Duration) -> io::Result<Output> {
    command.stdin(Stdio::piped());
    output(command, input, limit)
}

fn output(command: &mut Command, input: Vec<u8>, limit: Duration) -> io::Result<Output> {
    let deadline = Instant::now() + limit;
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // In its own group: ralph decides what Ctrl+C at the terminal means.
        .process_group(0)
        .spawn()?;
    let stdin = child.stdin.take();
    let collecting = feed(stdin, input)
        .and_then(|()| collect(child.stdout.take()))
        .and_then(|stdout| Ok((stdout, collect(child.stderr.take())?)));
    let ended = collecting.is_ok() && ends_by(&child, deadline).unwrap_or(false);
    let output = match &collecting {
        Ok((stdout, stderr)) if ended => receive(stdout, deadline).zip(receive(stderr, deadline)),
        _ => None,
    };
    // Ends background processes, such as a filter of the repository. The group is ours, because the child is not
    // reaped yet.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let status = child.wait()?;
    collecting?;
    let Some((stdout, stderr)) = output else { return Err(io::ErrorKind::TimedOut.into()) };
    Ok(Output { status, stdout, stderr })
}

/// Writes to a pipe in its own thread, which ends with the pipe.
fn feed(pipe: Option<ChildStdin>, input: Vec<u8>) -> io::Result<()> {
    if let Some(mut pipe) = pipe {
        // Unread input is lost.
        threads::start(move || drop(pipe.write_all(&input)))?;
    }
    Ok(())
}

/// Reads a pipe to its end in its own thread, which ends with the pipe.
fn collect(pipe: Option<impl Read + Send + 'static>) -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    threads::start(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // The bytes before an error are still useful.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    })?;
    Ok(receiver)
}

fn receive(bytes: &mpsc::Receiver<Vec<u8>>, deadline: Instant) -> Option<Vec<u8>> {
    let rest = deadline.saturating_duration_since(Instant::now());
    bytes.recv_timeout(rest.max(Duration::from_millis(100))).ok()
}

/// Waits for the child's end without reaping it.
fn ends_by(child: &Child, deadline: Instant) -> io::Result<bool> {
    ProcessHandle::of_child(child)?.ends_by(deadline)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::platform::stat::Stat;

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
    fn input_goes_in_and_need_not_be_read() {
        let input = vec![b'x'; 300_000];
        let output = output_with(&mut Command::new("cat"), input.clone(), Duration::from_secs(30)).unwrap();
        assert!(output.stdout == input);
        let output = output_with(&mut Command::new("true"), input, Duration::from_secs(30)).unwrap();
        assert!(output.status.success());
    }

    #[test]
    fn what_it_leaves_in_the_background_is_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 > /dev/null 2>&1 & echo $!"]);
        let output = output_within(&mut command, Duration::from_secs(30)).unwrap();
        let pid: u32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        // KILL was sent.
        while Stat::read(pid).is_some_and(|stat| !stat.is_dead()) {
            thread::yield_now();
        }
    }
}
