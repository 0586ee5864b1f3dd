//! Runs a user's jq program in a child process of our own executable, because it can exhaust time, memory and stack.
//! The child reads one event per line on stdin and returns each with one line: a JSON array of the outputs as texts,
//! as `jq -r` prints them.

use std::ffi::OsString;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Resource, Rlimit, getppid, setrlimit};

use super::decode::Elsewhere;
use super::filter::{Input, JqProgram, Output, RunError};
use crate::platform::calls::own_executable;
use crate::text::duration;
use crate::threads;

/// The child's limit of address space in bytes.
const MEMORY: u64 = 512 << 20;
/// The time limit for one line.
const PER_LINE: Duration = Duration::from_secs(10);
/// How often a busy child checks whether ralph is still running.
const LOOK: Duration = Duration::from_millis(50);
/// After this time, a child that exceeds its own limit is given up.
const PATIENCE: Duration = Duration::from_secs(12);
/// The limit of outputs for one line, in bytes.
const MAX_OUTPUT: usize = 1 << 20;
/// Longer than any answer: outputs of [`MAX_OUTPUT`] with the longest escapes.
const MAX_ANSWER: usize = 8 * MAX_OUTPUT;

// Exit codes of the child that tell the parent why it died.
const NOT_COMPILED: i32 = 2;
const HALTED: i32 = 10;
const TOO_SLOW: i32 = 11;
const TOO_LONG: i32 = 12;
const NO_THREAD: i32 = 13;

/// The hidden verb that starts a child: `ralph __filter PROGRAM`.
pub const VERB: &str = "__filter";

/// The child's main function: runs the program on stdin and stdout until stdin ends. Returns the exit code.
#[must_use]
pub fn main(argv: &[OsString]) -> i32 {
    let ralph = getppid();
    let Some(program) = argv.first().and_then(|program| program.to_str()) else { return NOT_COMPILED };
    let Ok(program) = JqProgram::compile(program) else { return NOT_COMPILED };
    for (resource, limit) in [(Resource::As, MEMORY), (Resource::Core, 0)] {
        // The filter also works without the limit; the watchdog remains.
        _ = setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) });
    }
    let (turn, turns) = mpsc::channel();
    if threads::start(move || watch(&turns, ralph)).is_err() {
        return NO_THREAD;
    }
    serve(&program, &mut io::stdin().lock(), &mut io::stdout().lock(), &mut || _ = turn.send(()))
}

/// Ends the process if one line takes too long, or if ralph has died. The first turn begins a line, the second ends
/// it, and so on.
fn watch(turns: &mpsc::Receiver<()>, ralph: Option<Pid>) {
    while turns.recv().is_ok() {
        let begun = Instant::now();
        while turns.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
            if begun.elapsed() >= PER_LINE || getppid() != ralph {
                std::process::exit(TOO_SLOW);
            }
        }
    }
}

/// Returns line by line; calls `turn` at the begin and the end of each line.
fn serve(
    program: &JqProgram,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
    turn: &mut dyn FnMut(),
) -> i32 {
    let mut line = Vec::new();
    loop {
        line.clear();
        match input.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return 0,
            Ok(_) => {}
        }
        turn();
        let answer = match answer(program, &line) {
            Ok(outputs) => outputs,
            Err(code) => return code,
        };
        turn();
        let sent = serde_json::to_writer(&mut *output, &answer)
            .map_err(io::Error::from)
            .and_then(|()| output.write_all(b"\n"))
            .and_then(|()| output.flush());
        if sent.is_err() {
            return 0;
        }
    }
}

/// The outputs for one line, or the exit code to end with.
fn answer(program: &JqProgram, line: &[u8]) -> Result<Vec<String>, i32> {
    let Some(event) = Input::parse(line) else { return Ok(Vec::new()) };
    let (mut outputs, mut length) = (Vec::new(), 0);
    let result = program.run(&event, &mut |output| {
        let (Output::Text(text) | Output::Json(text)) = output;
        // Empty outputs take memory too.
        length += text.len() + 1;
        if length > MAX_OUTPUT {
            // Otherwise an endless stream of outputs would never end.
            std::process::exit(TOO_LONG);
        }
        outputs.push(text);
    });
    match result {
        Err(RunError::Halted(_)) => Err(HALTED),
        Ok(()) | Err(RunError::Failed(_)) => Ok(outputs),
    }
}

/// Starts a filter child for `program`. The returned filter ends the child when it is dropped, and stops waiting for
/// answers when the other end of `wanted` is closed; if the child cannot be started, the first answer is the reason.
#[must_use]
pub fn spawn(program: &str, wanted: &UnixStream) -> Elsewhere {
    let mut command = Command::new(own_executable());
    command.arg0("ralph").arg(VERB).arg(program);
    match wanted.try_clone().and_then(|wanted| Asker::spawn(command, PATIENCE, wanted)) {
        Ok(mut asker) => Box::new(move |line| asker.ask(line)),
        Err(error) => Box::new(move |_| Err(format!("it cannot be started: {error}"))),
    }
}

/// The parent's side of a child.
struct Asker {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    patience: Duration,
    /// No answers are needed after its other end is closed.
    wanted: UnixStream,
}

impl Asker {
    fn spawn(mut command: Command, patience: Duration, wanted: UnixStream) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // We handle Ctrl+C; the child ends when its stdin does.
            .process_group(0)
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the filter's pipes are missing"));
        };
        // A child that does not read must not block us; `poll` waits for its answers.
        let flags = rustix::fs::fcntl_getfl(&stdin)?;
        rustix::fs::fcntl_setfl(&stdin, flags | rustix::fs::OFlags::NONBLOCK)?;
        Ok(Self { child, stdin, stdout, patience, wanted })
    }

    /// Sends one line, without a newline, to the child and returns its outputs; an error says why the child has died.
    fn ask(&mut self, line: &[u8]) -> Result<Vec<String>, String> {
        let deadline = Instant::now() + self.patience;
        let answer = self.send(line, deadline).and_then(|()| self.receive(deadline));
        let outputs = answer.and_then(|answer| serde_json::from_slice(&answer).map_err(io::Error::from));
        outputs.map_err(|error| self.last_words(&error))
    }

    fn send(&mut self, line: &[u8], deadline: Instant) -> io::Result<()> {
        for mut rest in [line, b"\n"] {
            while !rest.is_empty() {
                self.wait(&self.stdin, PollFlags::OUT, deadline)?;
                match self.stdin.write(rest) {
                    Ok(written) => rest = &rest[written..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        let mut answer = Vec::new();
        let mut piece = [0; 16 << 10];
        while answer.last() != Some(&b'\n') {
            self.wait(&self.stdout, PollFlags::IN, deadline)?;
            match self.stdout.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => answer.extend_from_slice(&piece[..length]),
            }
            if answer.len() > MAX_ANSWER {
                return Err(io::Error::other("its answer is too long"));
            }
        }
        Ok(answer)
    }

    /// Waits until `descriptor` is ready, or broken, which the next read or write reports.
    fn wait(&self, descriptor: &impl AsFd, flags: PollFlags, deadline: Instant) -> io::Result<()> {
        let mut descriptors = [PollFd::new(descriptor, flags), PollFd::new(&self.wanted, PollFlags::IN)];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match poll(&mut descriptors, Timespec::try_from(left).ok().as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) if descriptors[0].revents().is_empty() => {
                    return Err(io::Error::other("its answer is not wanted any more"));
                }
                Ok(_) => return Ok(()),
            }
        }
    }

    /// Ends the child and says why it died.
    fn last_words(&mut self, error: &io::Error) -> String {
        let gone = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe);
        if !gone {
            _ = self.child.kill();
        }
        let Ok(status) = self.child.wait() else { return error.to_string() };
        match (gone, status.code()) {
            (false, _) if error.kind() == io::ErrorKind::TimedOut => "it does not answer".into(),
            (false, _) => error.to_string(),
            (true, Some(NOT_COMPILED)) => "it does not compile".into(),
            (true, Some(HALTED)) => "it called halt".into(),
            (true, Some(TOO_SLOW)) => {
                format!("it took more than {} for one line", duration::format(PER_LINE))
            }
            (true, Some(NO_THREAD)) => "there is no room for its threads".into(),
            (true, Some(TOO_LONG)) => "it printed more than 1 MiB for one line".into(),
            (true, Some(code)) => format!("it exited with code {code}"),
            (true, None) => {
                let signal = status.signal().unwrap_or_default();
                format!("signal {signal} killed it, most likely for want of memory or stack")
            }
        }
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(script: &str) -> (Asker, UnixStream) {
        asker_until(script, Duration::from_millis(300))
    }

    fn asker_until(script: &str, patience: Duration) -> (Asker, UnixStream) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let (hold, wanted) = UnixStream::pair().unwrap();
        (Asker::spawn(command, patience, wanted).unwrap(), hold)
    }

    #[test]
    fn serves_line_by_line_and_survives_what_is_no_json() {
        let program = JqProgram::compile(".a, .b.c").unwrap();
        let input = b"{\"a\":\"x\\ny\"}\nnoise\n{\"a\":{\"k\":1},\"b\":5}\n";
        let (mut output, mut turns) = (Vec::new(), 0);
        assert_eq!(serve(&program, &mut input.as_slice(), &mut output, &mut || turns += 1), 0);
        let lines = "[\"x\\ny\",\"null\"]\n[]\n[\"{\\\"k\\\":1}\"]\n";
        assert_eq!((String::from_utf8(output).unwrap().as_str(), turns), (lines, 6));
    }

    #[test]
    fn halt_leaves_with_its_code() {
        let program = JqProgram::compile("halt").unwrap();
        assert_eq!(serve(&program, &mut b"{}\n{}\n".as_slice(), &mut Vec::new(), &mut || {}), HALTED);
    }

    #[test]
    fn an_unwanted_answer_is_not_waited_for() {
        let (mut asker, hold) = asker_until("sleep 600", Duration::from_mins(10));
        drop(hold);
        assert_eq!(asker.ask(b"one"), Err("its answer is not wanted any more".to_owned()));
    }

    #[test]
    fn asks_line_by_line() {
        let (mut asker, _hold) = asker(r#"while read -r line; do printf '["%s"]\n' "$line"; done"#);
        assert_eq!(asker.ask(b"one"), Ok(vec!["one".to_owned()]));
        assert_eq!(asker.ask(b"two"), Ok(vec!["two".to_owned()]));
    }

    #[test]
    fn takes_a_line_longer_than_the_pipe() {
        let (mut asker, _hold) = asker(r#"read -r line; printf '["%s"]\n' "${#line}""#);
        asker.patience = Duration::from_secs(10);
        assert_eq!(asker.ask(&vec![b'x'; 300_000]), Ok(vec!["300000".to_owned()]));
    }

    #[test]
    fn says_why_the_child_died() {
        for (script, words) in [
            ("read x; exit 11", "it took more than 10s for one line"),
            ("read x; exit 10", "it called halt"),
            ("exit 2", "it does not compile"),
            ("read x; exit 7", "it exited with code 7"),
            ("read x; kill -KILL $$", "signal 9 killed it, most likely for want of memory or stack"),
            ("exec sleep 60", "it does not answer"),
        ] {
            assert_eq!(asker(script).0.ask(b"{}"), Err(words.to_owned()), "{script}");
        }
        let unread = asker("exec sleep 60").0.ask(&vec![b'x'; 1 << 20]);
        assert_eq!(unread, Err("it does not answer".to_owned()));
        assert!(asker("read x; echo noise; read x").0.ask(b"{}").is_err());
    }
}
