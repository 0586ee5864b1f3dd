//! Terminals: commands that we run for an agent, each below a supervisor of its own. They go through no shell, their output is
//! kept and can be read repeatedly, and none outlives the attempt.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1::CreateTerminalRequest;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use signal_hook::low_level::signal_name;

use super::envelope::{raw, response};
use super::error::Refusal;
use crate::agent::codec::Answers;
use crate::agent::message::Message;
use crate::agent::threads::Hold;
use crate::engine::inbox::Port;
use crate::process::launch::Launch;
use crate::process::note::SupervisorNote;
use crate::process::pump::pump;
use crate::process::supervised::{Notes, Pipes, Supervised};
use crate::reply::decode::Item;
use crate::reply::usage::UsageNote;
use crate::text::line::one_line;
use crate::threads;

/// The most terminals, including those that the agent has released and that have not ended.
const MOST: usize = 64;
/// How much of a terminal's output is kept, in bytes: its end.
const KEPT: usize = 4 << 20;
/// How long the output of an ended command may stay open: another process may hold it for ever.
const DRAIN: Duration = Duration::from_secs(1);
/// How long commands may take to end when the attempt is over, before their supervisors are given up.
const END: Duration = Duration::from_secs(6);

/// The terminals of one session.
pub(super) struct Terminals {
    /// How their commands are started: in the agent's folder, with its variables.
    launch: Launch,
    /// The channel for answers that had to wait.
    answers: Answers,
    /// The channel for the number of running tools.
    port: Option<Port<Message>>,
    made: usize,
    known: HashMap<String, Arc<Terminal>>,
    /// Terminals that the agent has released, and that may not have ended yet.
    released: Vec<Arc<Terminal>>,
}

/// A command in a terminal.
#[derive(Default)]
struct Terminal {
    /// `None` when nothing of it is left.
    supervised: Mutex<Option<Supervised>>,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    output: Output,
    /// How it has ended, in the protocol's form.
    exit: Option<Value>,
    /// Requests that wait for its end.
    waiting: Vec<Box<RawValue>>,
}

/// The end of a command's output.
struct Output {
    bytes: Vec<u8>,
    limit: usize,
    is_cut: bool,
}

impl Default for Output {
    fn default() -> Self {
        Self { bytes: Vec::new(), limit: KEPT, is_cut: false }
    }
}

impl Output {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Moved rarely: each byte only a few times.
        if self.bytes.len() > self.limit + self.limit / 4 {
            self.is_cut = true;
            self.bytes.drain(..self.bytes.len() - self.limit);
        }
    }

    /// The text, and whether it was cut. It begins with a whole character.
    fn text(&self) -> (String, bool) {
        let from = self.bytes.len().saturating_sub(self.limit);
        let is_inside = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        let is_cut = self.is_cut || from > 0;
        // A character has at most three bytes after its first.
        let odd = if is_cut { self.bytes[from..].iter().take(3).take_while(is_inside).count() } else { 0 };
        let text = String::from_utf8_lossy(&self.bytes[from + odd..]);
        // Replacement characters are longer than the bytes that they replace.
        let from = text.ceil_char_boundary(text.len().saturating_sub(self.limit));
        (text[from..].to_owned(), is_cut || from > 0)
    }
}

/// A panic elsewhere cannot leave the held value half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Terminals {
    pub(super) fn new(launch: &Launch, port: Option<Port<Message>>) -> Self {
        Self {
            launch: launch.clone(),
            answers: Answers::default(),
            port,
            made: 0,
            known: HashMap::new(),
            released: Vec::new(),
        }
    }

    /// Answers that have to wait go there.
    pub(super) fn connect(&mut self, answers: &Answers) {
        self.answers = answers.clone();
    }

    /// Starts a command in a folder, and returns the id of its terminal.
    pub(super) fn create(
        &mut self,
        request: CreateTerminalRequest,
        cwd: Option<PathBuf>,
    ) -> Result<String, Refusal> {
        self.released.retain(|terminal| lock(&terminal.state).exit.is_none());
        if self.known.len() + self.released.len() >= MOST {
            let what = "release some of them, and wait until those are at their end";
            return Err(Refusal::because(format!("there are {MOST} terminals: {what}")));
        }
        let launch = Launch {
            program: request.command.into(),
            args: request.args.into_iter().map(Into::into).collect(),
            cwd: cwd.unwrap_or_else(|| self.launch.cwd.clone()),
            env: self
                .launch
                .env
                .iter()
                .cloned()
                .chain(request.env.into_iter().map(|one| (one.name.into(), one.value.into())))
                .collect(),
            ..self.launch.clone()
        };
        let limit = request.output_byte_limit.and_then(|limit| usize::try_from(limit).ok());
        let (supervised, pipes) =
            Supervised::start(&launch).map_err(|error| Refusal::because(error.to_string()))?;
        let terminal = Arc::new(Terminal { supervised: Mutex::new(Some(supervised)), ..Terminal::default() });
        lock(&terminal.state).output.limit = limit.unwrap_or(KEPT).min(KEPT);
        self.made += 1;
        let id = format!("terminal-{}", self.made);
        let started = UsageNote { tool_started: Some(id.clone()), ..UsageNote::default() };
        tell(self.port.as_ref(), started);
        if let Err(error) = self.attend(&terminal, pipes, id.clone()) {
            let finished = UsageNote { tool_finished: Some(id), ..UsageNote::default() };
            tell(self.port.as_ref(), finished);
            // Dropping it kills it.
            lock(&terminal.supervised).take();
            return Err(Refusal::because(error.to_string()));
        }
        self.known.insert(id.clone(), terminal);
        Ok(id)
    }

    /// Starts the threads that read a command's output and wait for its end.
    fn attend(&self, terminal: &Arc<Terminal>, pipes: Pipes, id: String) -> std::io::Result<()> {
        let Pipes { stdin, stdout, stderr, notes } = pipes;
        // There is no input.
        drop(stdin);
        let (hold, stop) = Hold::new()?;
        let (reading, is_read) = channel::<()>();
        for pipe in [stdout, stderr] {
            let (terminal, stop, reading) = (Arc::clone(terminal), stop.try_clone()?, reading.clone());
            threads::start(move || {
                pump(pipe, &stop, |bytes| {
                    lock(&terminal.state).output.push(bytes);
                    true
                });
                drop::<Sender<()>>(reading);
            })?;
        }
        let (terminal, answers, port) = (Arc::clone(terminal), self.answers.clone(), self.port.clone());
        threads::start(move || {
            let exit = await_end(&terminal, notes, &is_read, hold);
            let waiting = {
                let mut state = lock(&terminal.state);
                state.exit = Some(exit.clone());
                std::mem::take(&mut state.waiting)
            };
            for request in waiting {
                // A session that is over needs no answer.
                answers.send(response(&request, Ok(raw(&exit))));
            }
            terminal.ended.notify_all();
            tell(port.as_ref(), UsageNote { tool_finished: Some(id), ..UsageNote::default() });
        })?;
        Ok(())
    }

    /// The output of a command so far, and how it has ended.
    pub(super) fn output(&self, id: &str) -> Result<Value, Refusal> {
        let state = lock(&self.known(id)?.state);
        let (output, truncated) = state.output.text();
        Ok(json!({ "output": output, "truncated": truncated, "exitStatus": state.exit }))
    }

    /// How a command has ended; `None`: the request is answered when it has.
    pub(super) fn wait(&self, id: &str, request: &RawValue) -> Result<Option<Value>, Refusal> {
        let mut state = lock(&self.known(id)?.state);
        if state.exit.is_none() {
            state.waiting.push(request.to_owned());
        }
        Ok(state.exit.clone())
    }

    /// Ends a command; its output can still be read.
    pub(super) fn kill(&self, id: &str) -> Result<(), Refusal> {
        if let Some(supervised) = &mut *lock(&self.known(id)?.supervised) {
            supervised.stop();
        }
        Ok(())
    }

    /// Ends a command if it still runs, and forgets it.
    pub(super) fn release(&mut self, id: &str) -> Result<(), Refusal> {
        self.kill(id)?;
        self.released.extend(self.known.remove(id));
        Ok(())
    }

    fn known(&self, id: &str) -> Result<&Arc<Terminal>, Refusal> {
        self.known.get(id).ok_or_else(|| Refusal::params(&format!("there is no terminal '{}'", one_line(id))))
    }

    /// The attempt is over: ends all commands; none is left when this returns.
    pub(super) fn end(&mut self) {
        let all: Vec<_> =
            self.known.drain().map(|(_, terminal)| terminal).chain(self.released.drain(..)).collect();
        for terminal in &all {
            if let Some(supervised) = &mut *lock(&terminal.supervised) {
                supervised.kill();
            }
        }
        for terminal in all {
            let state = lock(&terminal.state);
            let waited = terminal.ended.wait_timeout_while(state, END, |state| state.exit.is_none());
            drop(waited);
            let left = lock(&terminal.supervised).take();
            if let Some(supervised) = left {
                supervised.finish(None);
            }
        }
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits until nothing of a command is left and all its output is read, and returns how it has ended.
fn await_end(terminal: &Terminal, notes: Notes, is_read: &Receiver<()>, hold: Hold) -> Value {
    let (mut exit, mut left) = (json!({ "exitCode": null, "signal": null }), None);
    for note in notes {
        match note {
            SupervisorNote::Exited(code) => exit["exitCode"] = code.into(),
            SupervisorNote::Signaled(signal) => {
                let name = signal_name(signal).map_or_else(|| signal.to_string(), str::to_owned);
                exit["signal"] = name.into();
            }
            SupervisorNote::Gone(count) => left = Some(count),
            _ => {}
        }
    }
    let supervised = lock(&terminal.supervised).take();
    if let Some(supervised) = supervised {
        supervised.finish(left);
    }
    if is_read.recv_timeout(DRAIN) == Err(RecvTimeoutError::Timeout) {
        drop(hold);
        // The readers notice that, and end.
        let _ = is_read.recv();
    }
    exit
}

/// Posts how many tools run.
fn tell(port: Option<&Port<Message>>, note: UsageNote) {
    if let Some(port) = port {
        port.post(0, Message::Items(vec![Item::Note(Box::new(note))]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_cut_at_a_character_and_its_end_is_kept() {
        let mut output = Output { limit: 5, ..Output::default() };
        assert_eq!(output.text(), (String::new(), false));
        output.push("abc".as_bytes());
        assert_eq!(output.text(), ("abc".to_owned(), false));
        output.push("äöü".as_bytes());
        assert_eq!(output.text(), ("öü".to_owned(), true));
        for _ in 0..100 {
            output.push("xyz".as_bytes());
        }
        assert_eq!(output.text(), ("yzxyz".to_owned(), true));
        assert!(output.bytes.len() <= 10);
        // Each byte that is not text becomes three bytes.
        output.push(b"\xff\xff\xff\xff");
        assert_eq!(output.text(), ("\u{fffd}".to_owned(), true));
        let mut output = Output { limit: 0, ..Output::default() };
        output.push(b"abc");
        assert_eq!(output.text(), (String::new(), true));
    }
}
