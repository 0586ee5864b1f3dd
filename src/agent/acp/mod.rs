//! The Agent Client Protocol: JSON-RPC in lines over a supervised pipe. We are the client: we open one session, send one prompt,
//! answer the agent's requests, and take its updates as the stream of an attempt.

mod asks;
mod codex;
mod copilot;
mod envelope;
mod error;
mod files;
mod introduction;
mod kimi;
mod options;
mod session;
mod terminals;
mod update;
mod vibe;
mod visit;
mod walk;

use std::ffi::OsString;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use self::asks::Asks;
use self::envelope::{Envelope, Head, repaired, response};
use self::error::{Fault, Refusal};
use self::session::{Session, Stage};
use self::update::{Told, Updates};
use super::codec::{Answers, Codec, Decoded, Farewell, Stdin, Turn};
use super::message::Message;
use crate::engine::inbox::Port;
use crate::process::launch::Launch;
use crate::reply::decode::{Counters, Item};
use crate::reply::lines::{Lines, StreamLine};
use crate::reply::usage::{Class, UsageNote};

pub use self::introduction::{Introduction, Login};
pub(super) use self::session::Wanted;
pub use self::visit::{VisitError, introduce};

/// A conversation with one agent.
pub(super) struct AcpCodec {
    lines: Lines,
    session: Session,
    updates: Updates,
    asks: Asks,
    counters: Counters,
    /// The message that cancels the turn, while there is one.
    farewell: Farewell,
}

/// How long an agent may take to exit when its session is over and its stdin closed.
pub(super) const LEAVE: Duration = Duration::from_secs(1);
/// The longest message that is read, in bytes: it may hold a whole file, with six bytes for each of its bytes.
const LONGEST: usize = 6 * files::LARGEST + (1 << 20);
/// How many answers may wait for an agent that does not read them.
const MOST_UNREAD: usize = 100_000;

/// Where the agent works, and which files it must not touch.
#[derive(Debug, Clone, Default)]
pub(super) struct Grounds {
    /// How the agent is started: in the project root, with these variables.
    pub(super) launch: Launch,
    /// Our own paths; one that ends with `*` is a prefix.
    pub(super) ours: Vec<OsString>,
}

/// Reads recorded lines of an agent. Its requests are not answered: they would be carried out.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn hear(bytes: &[u8]) {
    let mut updates = update::Updates::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        let _ = envelope::Head::of(line);
        let line = envelope::repaired(line);
        if let Ok(Envelope { params: Some(params), .. }) = serde_json::from_str::<Envelope<'_>>(&line) {
            let _ = updates.take(params, "s");
        }
    }
}

impl AcpCodec {
    /// A conversation with an agent; messages about its commands go to `port`.
    pub(super) fn new(wanted: Wanted, grounds: &Grounds, port: Option<Port<Message>>) -> Self {
        Self {
            farewell: Farewell::default(),
            lines: Lines::of_at_most(LONGEST),
            updates: Updates::default(),
            asks: Asks::new(grounds, wanted.read_only, port),
            session: Session::new(wanted, &grounds.launch),
            counters: Counters::default(),
        }
    }

    fn take_line(&mut self, line: StreamLine<'_>, turn: &mut Turn) {
        match line {
            StreamLine::Whole(line) if line.trim_ascii().is_empty() => {}
            StreamLine::Whole(line) => {
                let line = repaired(line);
                if let Ok(message) = serde_json::from_str(&line) {
                    self.counters.objects += 1;
                    self.take_message(message, turn);
                } else {
                    self.counters.malformed += 1;
                    self.take_head(line.as_bytes(), "cannot be read", turn);
                }
            }
            StreamLine::Head(head) => {
                self.counters.oversized += 1;
                self.take_head(head, &format!("is longer than {} MiB", LONGEST >> 20), turn);
            }
        }
    }

    fn take_message(&mut self, message: Envelope<'_>, turn: &mut Turn) {
        match message {
            Envelope { method: Some(method), id: Some(id), params, .. } => {
                let answer = if self.session.stage() == Stage::Prompted {
                    self.asks.answer(id, &method, params, &mut self.updates, turn)
                } else {
                    Err(Refusal::method(&method))
                };
                if let Some(answer) = answer.transpose() {
                    turn.answer(response(id, answer));
                }
                if turn.unread().answers > MOST_UNREAD {
                    turn.item(hopeless("it does not read its answers".to_owned(), Class::Other));
                }
            }
            Envelope { method: Some(method), id: None, params: Some(params), .. } => match &*method {
                "session/update" => match self.updates.take(params, self.session.id()) {
                    Some(told) => self.heed(told, turn),
                    None => self.counters.malformed += 1,
                },
                vibe::RETRYING => {
                    self.updates.tries_again(params).into_iter().for_each(|item| turn.item(item));
                }
                Login::METHOD => self.session.told_login(Login::read(params)),
                // Notifications of other kinds are for other clients.
                _ => {}
            },
            Envelope { method: Some(_), id: None, .. } => {}
            Envelope { method: None, id: Some(id), result, error, .. } => {
                self.take_answer(id.get(), error.map_or(Ok(result), |error| Err(Fault::read(error))), turn);
            }
            Envelope { method: None, id: None, .. } => self.counters.malformed += 1,
        }
    }

    fn take_answer(
        &mut self,
        id: &str,
        answer: Result<Option<&serde_json::value::RawValue>, Fault>,
        turn: &mut Turn,
    ) {
        self.session.answered(id, answer, self.updates.failure(), turn);
        if let Some(agent) = &self.session.introduction().agent {
            self.updates.introduced(agent);
        }
        *self.farewell.lock().unwrap_or_else(PoisonError::into_inner) = self.session.cancel();
    }

    /// Takes a message that cannot be parsed. A request in it gets an error, and an answer in it counts as one.
    fn take_head(&mut self, head: &[u8], why: &str, turn: &mut Turn) {
        match Head::of(head) {
            Head { id: Some(id), is_answer: true, .. } => {
                let fault = Fault { message: format!("its answer {why}"), ..Fault::default() };
                self.take_answer(id.get(), Err(fault), turn);
            }
            Head { id: Some(id), has_method: true, .. } => {
                turn.answer(response(&id, Err(Refusal::unread(why))));
            }
            _ => {}
        }
    }

    /// Takes an update. Updates before the prompt and after its answer are not part of the turn.
    fn heed(&mut self, told: Told, turn: &mut Turn) {
        told.used.into_iter().for_each(|used| turn.item(used));
        if self.session.stage() != Stage::Prompted {
            return;
        }
        told.items.into_iter().for_each(|item| turn.item(item));
        if let Some(why) = told.mode.and_then(|mode| self.session.leaves_mode(&mode)) {
            turn.item(hopeless(why, Class::Permission));
        }
    }
}

/// An error after which the agent is ended.
fn hopeless(why: String, class: Class) -> Item {
    let note = UsageNote { error: Some(why), class: Some(class), hopeless: true, ..UsageNote::default() };
    Item::Note(Box::new(note))
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
        lines.take(bytes, |line| self.take_line(line, turn));
        self.lines = lines;
    }

    fn farewell(&self) -> Farewell {
        Arc::clone(&self.farewell)
    }

    fn finish(&mut self, turn: &mut Turn) {
        std::mem::take(&mut self.lines).finish(|line| self.take_line(line, turn));
        self.asks.end();
    }

    fn unanswered(&self) -> Option<(u64, &'static str)> {
        self.session.unanswered()
    }

    fn tally(&self) -> Decoded {
        let owed = (self.session.stage() != Stage::Over).then(|| self.session.step());
        Decoded { counters: self.counters, dead_filter: None, owed }
    }
}

#[cfg(test)]
mod tests;
