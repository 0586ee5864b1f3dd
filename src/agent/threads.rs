//! The small threads that move an attempt's bytes.

use std::io::{PipeWriter, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, PoisonError};

use super::codec::{Answers, Codec, Farewell, Stdin, Turn};
use super::display::{DisplayRoute, Feed};
use super::message::Message;
use crate::engine::event::Stream;
use crate::engine::inbox::Port;
use crate::process::pump::pump;
use crate::process::supervised::Pipes;
use crate::threads;

/// Holds the threads of one attempt to what they do, until it is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    _open: UnixStream,
}

impl Hold {
    /// A hold, and the socket by which threads notice its end.
    pub(super) fn new() -> std::io::Result<(Self, UnixStream)> {
        let (open, noticed) = UnixStream::pair()?;
        Ok((Self { _open: open }, noticed))
    }
}

/// How an agent is asked to end its turn.
#[derive(Debug, Default)]
pub(super) struct Asking {
    words: Farewell,
    answers: Answers,
}

impl Asking {
    /// Asks it, where that can be done.
    pub(super) fn ask(&self) -> bool {
        let words = std::mem::take(&mut *self.words.lock().unwrap_or_else(PoisonError::into_inner));
        !words.is_empty() && self.answers.send(words)
    }
}

/// What serves the pipes of one attempt, if it has any.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// Keeps the readers listening to the agent's pipes, which a stranger may keep open.
    pub(super) hold: Option<Hold>,
    /// Keeps them waiting for filters of the user's.
    pub(super) patience: Option<Hold>,
    /// How it is asked to end its turn.
    pub(super) farewell: Asking,
    /// Pipes of the agent that are still open.
    pub(super) open: usize,
    /// A display of the user's is at work.
    pub(super) displaying: bool,
    /// The assistant's text is the display.
    pub(super) show_text: bool,
}

/// Starts the threads that serve the pipes of an agent that was just started. They wait for filters of the user's until the
/// other end of `wanted` is closed.
pub(super) fn serve(
    pipes: Pipes,
    prompt: &str,
    mut codec: Box<dyn Codec>,
    display: &DisplayRoute,
    wanted: &UnixStream,
    port: &Port<Message>,
) -> std::io::Result<Served> {
    let (hold, stop) = Hold::new()?;
    let feed = display.start(&stop, wanted, port)?;
    let Pipes { stdin, stdout, stderr, notes } = pipes;

    let (sender, to_write) = channel();
    let answers = Answers::new(sender);
    codec.connect(&answers);
    let (first, then) = codec.open(prompt);
    // The writer is there until the sender is gone.
    answers.send(first);
    if then == Stdin::Close {
        answers.close();
    }
    threads::start(move || write(stdin, &to_write))?;
    let farewell = Asking { words: codec.farewell(), answers: answers.clone() };

    let stderr_stop = stop.try_clone()?;
    let stderr_port = port.clone();
    threads::start(move || {
        pump(stderr, &stderr_stop, |bytes| {
            stderr_port.post(bytes.len(), Message::Bytes(Stream::Stderr, bytes.into()))
        });
        stderr_port.post(0, Message::Closed);
    })?;

    let note_port = port.clone();
    threads::start(move || {
        notes.map(Message::Note).all(|note| note_port.post(0, note));
        note_port.post(0, Message::NotesEnded);
    })?;

    let port = port.clone();
    threads::start(move || {
        read(codec, &answers, feed, &port, |take| pump(stdout, &stop, take));
        port.post(0, Message::Closed);
    })?;
    Ok(Served {
        hold: Some(hold),
        patience: None,
        farewell,
        open: 2,
        displaying: display.has_thread(),
        show_text: matches!(display, DisplayRoute::Text),
    })
}

/// Writes what there is for the agent, and closes its stdin when no more can come: an agent that waits for more input would
/// wait for ever. One that ends without reading it all (a broken pipe here) is judged by what it did.
fn write(mut stdin: PipeWriter, pieces: &Receiver<Vec<u8>>) {
    for piece in pieces {
        if stdin.write_all(&piece).is_err() {
            return;
        }
    }
}

/// Passes stdout on and decodes it. The bytes go first: while they are written to the records, this thread decodes them.
fn read(
    mut codec: Box<dyn Codec>,
    answers: &Answers,
    mut feed: Feed,
    port: &Port<Message>,
    pump: impl FnOnce(&mut dyn FnMut(&[u8]) -> bool),
) {
    let mut turn = Turn::default();
    pump(&mut |bytes| {
        let shared: Arc<[u8]> = bytes.into();
        feed.take(&shared, port);
        if !port.post(bytes.len(), Message::Bytes(Stream::Stdout, shared)) {
            return false;
        }
        codec.read(bytes, &mut turn);
        answer(&mut turn, answers);
        post(&mut turn, port)
    });
    codec.finish(&mut turn);
    // Nobody is there to be answered.
    answers.close();
    post(&mut turn, port);
    port.post(0, Message::Decoded(codec.tally()));
}

/// Hands over what the codec has to say to the agent.
fn answer(turn: &mut Turn, answers: &Answers) {
    let (bytes, is_last) = turn.take_answer();
    if !bytes.is_empty() {
        // An agent that reads no more is judged by what it did.
        answers.send(bytes);
    }
    if is_last {
        answers.close();
    }
}

/// `false`: nobody wants more.
fn post(turn: &mut Turn, port: &Port<Message>) -> bool {
    let (items, weight) = turn.take_items();
    items.is_empty() || port.post(weight, Message::Items(items))
}
