//! The small threads that move an attempt's bytes.

use std::io::{PipeWriter, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::codec::{Codec, Stdin, Turn};
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

/// What serves the pipes of one attempt, if it has any.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// Keeps the readers listening to the agent's pipes, which a stranger may keep open.
    pub(super) hold: Option<Hold>,
    /// Keeps them waiting for filters of the user's.
    pub(super) patience: Option<Hold>,
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

    let (answers, to_write) = channel();
    let (first, then) = codec.open(prompt);
    // The writer is there until the sender is gone.
    let _ = answers.send(first);
    threads::start(move || write(stdin, &to_write))?;
    let answers = (then == Stdin::KeepOpen).then_some(answers);

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
        read(codec, answers, feed, &port, |take| pump(stdout, &stop, take));
        port.post(0, Message::Closed);
    })?;
    Ok(Served {
        hold: Some(hold),
        patience: None,
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
    mut answers: Option<Sender<Vec<u8>>>,
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
        answer(&mut turn, &mut answers);
        post(&mut turn, port)
    });
    codec.finish(&mut turn);
    post(&mut turn, port);
    port.post(0, Message::Decoded(codec.tally()));
}

/// Hands over what the codec has to say to the agent.
fn answer(turn: &mut Turn, answers: &mut Option<Sender<Vec<u8>>>) {
    let (bytes, is_last) = turn.take_answer();
    if let Some(sender) = answers
        && !bytes.is_empty()
    {
        // An agent that reads no more is judged by what it did.
        let _ = sender.send(bytes);
    }
    if is_last {
        *answers = None;
    }
}

/// `false`: nobody wants more.
fn post(turn: &mut Turn, port: &Port<Message>) -> bool {
    let (items, weight) = turn.take_items();
    items.is_empty() || port.post(weight, Message::Items(items))
}
