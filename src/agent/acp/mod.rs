//! The second way to an agent: the Agent Client Protocol, JSON-RPC in lines over the same supervised pipe. We are its client: we
//! open one session, send one prompt, answer what the agent asks of us, and take its updates for what a pipe would have said.

mod asks;
mod error;
mod files;
mod session;
mod terminals;
mod update;
mod visit;

use std::ffi::OsString;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use self::asks::Asks;
use self::error::Refusal;
use self::session::{Session, Stage};
use self::update::{Told, Updates};
use super::codec::{Answers, Codec, Decoded, Farewell, Stdin, Turn};
use super::message::Message;
use crate::engine::inbox::Port;
use crate::process::launch::Launch;
use crate::reply::decode::{Counters, Item};
use crate::reply::lines::Lines;
use crate::reply::usage::{Class, UsageNote};
use crate::text::duration;
use crate::threads;

pub use self::session::Introduction;
pub(super) use self::session::Wanted;
pub use self::visit::{VisitError, introduce};

/// A conversation with one agent.
pub(super) struct AcpCodec {
    lines: Lines,
    session: Session,
    updates: Updates,
    asks: Asks,
    counters: Counters,
    /// What cancels the turn, while there is one.
    farewell: Farewell,
    /// Who wants to know how far the session is.
    stages: Option<Sender<Stage>>,
}

/// How long an agent may stay when its session is over and its stdin closed.
pub(super) const LEAVE: Duration = Duration::from_secs(1);
/// How long each answer before the prompt may take.
const HANDSHAKE: Duration = Duration::from_mins(1);

/// Tells when the agent does not answer, and which step that is.
fn await_answers(stages: &Receiver<Stage>, port: &Port<Message>) {
    let mut stage = Stage::Initialize;
    while !matches!(stage, Stage::Prompted | Stage::Over) {
        stage = match stages.recv_timeout(HANDSHAKE) {
            Ok(stage) => stage,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let limit = duration::format(HANDSHAKE);
                let error = format!("it did not answer '{}' within {limit}", stage.word());
                let note = UsageNote { error: Some(error), hopeless: true, ..UsageNote::default() };
                port.post(0, Message::Items(vec![Item::Note(Box::new(note))]));
                return;
            }
        }
    }
}

/// Where the agent works, and what it must not touch there.
#[derive(Debug, Clone, Default)]
pub(super) struct Grounds {
    /// How the agent is started: in the project root, with these variables.
    pub(super) launch: Launch,
    /// How the paths of files of ours begin.
    pub(super) ours: Vec<OsString>,
}

/// One message, of either side.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// An id that is null is one all the same.
fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl AcpCodec {
    /// A conversation that is told of when the agent does not answer what comes before the prompt.
    ///
    /// # Errors
    /// When there is no room for the thread that waits for that.
    pub(super) fn start(wanted: Wanted, grounds: &Grounds, port: &Port<Message>) -> io::Result<Self> {
        let (stages, waited_for) = channel();
        let codec = Self::new(wanted, grounds, Some(port.clone()));
        let port = port.clone();
        threads::start(move || await_answers(&waited_for, &port))?;
        Ok(Self { stages: Some(stages), ..codec })
    }

    fn new(wanted: Wanted, grounds: &Grounds, port: Option<Port<Message>>) -> Self {
        Self {
            stages: None,
            farewell: Farewell::default(),
            lines: Lines::default(),
            updates: Updates::default(),
            asks: Asks::new(grounds, wanted.read_only, port),
            session: Session::new(wanted, &grounds.launch.cwd),
            counters: Counters::default(),
        }
    }

    fn take_line(&mut self, line: &[u8], turn: &mut Turn) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(line) else {
            self.counters.malformed += 1;
            return;
        };
        self.counters.objects += 1;
        match envelope {
            Envelope { method: Some(method), id: Some(id), params, .. } => {
                let answer = if self.session.stage() == Stage::Prompted {
                    self.asks.answer(id, &method, params, turn)
                } else {
                    Err(Refusal::method(&method))
                };
                if let Some(answer) = answer.transpose() {
                    turn.answer(&response(id, answer));
                }
            }
            Envelope { method: Some(method), id: None, params: Some(params), .. }
                if method == "session/update" =>
            {
                match self.updates.take(params) {
                    Some(told) => self.heed(told, turn),
                    None => self.counters.malformed += 1,
                }
            }
            // Notifications of other kinds are for other clients.
            Envelope { method: Some(_), id: None, .. } => {}
            Envelope { method: None, id: Some(id), result, error, .. } => {
                let answered = match (result, error) {
                    (_, Some(error)) => Err(error::Fault::read(error)),
                    (result, None) => Ok(result),
                };
                self.session.answered(id.get(), answered, turn);
                *self.farewell.lock().unwrap_or_else(PoisonError::into_inner) = self.session.cancel();
                if let Some(stages) = &self.stages {
                    // Nobody waits any more for what follows the prompt.
                    let _ = stages.send(self.session.stage());
                }
            }
            Envelope { method: None, id: None, .. } => self.counters.malformed += 1,
        }
    }

    fn heed(&mut self, told: Told, turn: &mut Turn) {
        told.items.into_iter().for_each(|item| turn.item(item));
        if let Some(error) = told.error {
            self.session.told_error(error);
        }
        if let Some(mode) = told.mode
            && let Some(why) = self.session.leaves_mode(&mode)
        {
            let note = UsageNote {
                error: Some(why),
                class: Some(Class::Permission),
                hopeless: true,
                ..UsageNote::default()
            };
            turn.item(Item::Note(Box::new(note)));
        }
    }
}

/// A value as it is said.
fn raw(value: &impl Serialize) -> Box<RawValue> {
    // Values of JSON: that cannot fail, and null is the answer of those who have none.
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A line that answers a request.
fn response(id: &RawValue, answer: Result<Box<RawValue>, Refusal>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Response<'a> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Refusal>,
    }
    let (result, error) = match answer {
        Ok(result) => (Some(result), None),
        Err(refusal) => (None, Some(refusal)),
    };
    // These are texts, numbers and what was JSON before.
    let mut line = serde_json::to_vec(&Response { jsonrpc: "2.0", id, result, error }).unwrap_or_default();
    line.push(b'\n');
    line
}

impl Codec for AcpCodec {
    fn open(&mut self, prompt: &str) -> (Vec<u8>, Stdin) {
        (self.session.open(prompt), Stdin::KeepOpen)
    }

    fn connect(&mut self, answers: &Answers) {
        self.asks.connect(answers);
    }

    fn read(&mut self, bytes: &[u8], turn: &mut Turn) {
        let mut lines = std::mem::take(&mut self.lines);
        self.counters.oversized += lines.take(bytes, |line| self.take_line(line, turn));
        self.lines = lines;
    }

    fn farewell(&self) -> Farewell {
        Arc::clone(&self.farewell)
    }

    fn finish(&mut self, turn: &mut Turn) {
        std::mem::take(&mut self.lines).finish(|line| self.take_line(line, turn));
        self.asks.end();
    }

    fn tally(&self) -> Decoded {
        let stage = self.session.stage();
        let is_begun = matches!(stage, Stage::Prompted | Stage::Over);
        let unanswered = (!is_begun).then(|| stage.word());
        Decoded { counters: self.counters, dead_filter: None, unanswered }
    }
}

#[cfg(test)]
mod tests;
