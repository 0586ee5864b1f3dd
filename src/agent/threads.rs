//! The small threads that move an attempt's bytes.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, PoisonError};

use super::codec::{Answers, Codec, Farewell, Stdin, Turn};
use super::display::{DisplayRoute, Feed};
use super::message::Message;
use crate::engine::event::Stream;
use crate::engine::inbox::Port;
use crate::process::pump::pump;
use crate::process::supervised::Pipes;
use crate::reply::decode::Item;
use crate::reply::usage::UsageNote;
use crate::threads;

/// Keeps the threads of one attempt at work, until it is dropped.
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
    /// Asks the agent, if that is possible.
    pub(super) fn ask(&self) -> bool {
        let words = std::mem::take(&mut *self.words.lock().unwrap_or_else(PoisonError::into_inner));
        !words.is_empty() && self.answers.send(words)
    }
}

/// The threads that serve the pipes of one attempt, if it has any.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// Keeps the readers at the agent's pipes, which another process may keep open.
    pub(super) hold: Option<Hold>,
    /// Keeps them waiting for the user's filters.
    pub(super) patience: Option<Hold>,
    /// How the agent is asked to end its turn.
    pub(super) farewell: Asking,
    /// The number of the agent's open pipes.
    pub(super) open: usize,
    /// Whether a user's display runs.
    pub(super) displaying: bool,
    /// Whether the assistant's text is the display.
    pub(super) show_text: bool,
    /// Whether the assistant's text cannot be told from the rest of the output.
    pub(super) is_unread: bool,
}

/// Starts the threads that serve the pipes of an agent that was just started. They wait for the user's filters until the other
/// end of `wanted` is closed.
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

    let (answers, to_write) = Answers::new();
    codec.connect(&answers);
    let (first, then) = codec.open(prompt);
    // The writer runs until the sender is dropped.
    answers.send(first);
    if then == Stdin::Close {
        answers.close();
    }
    threads::start(move || to_write.write_to(stdin))?;
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
        let closing = Closing(port);
        read(codec, &answers, feed, &closing.0, |take| pump(stdout, &stop, take));
    })?;
    Ok(Served {
        hold: Some(hold),
        patience: None,
        farewell,
        open: 2,
        displaying: display.has_thread(),
        show_text: matches!(display, DisplayRoute::Text),
        is_unread: false,
    })
}

/// Posts that stdout is read no more, for any reason.
struct Closing(Port<Message>);

impl Drop for Closing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = Some("what it said could not be taken in: this is a fault of ralph's".to_owned());
            let note = UsageNote { error, hopeless: true, ..UsageNote::default() };
            self.0.post(0, Message::Items(vec![Item::Note(Box::new(note))]));
        }
        self.0.post(0, Message::Closed);
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
    let mut turn = Turn::new(answers.clone());
    let mut unanswered = None;
    let mut tell = |codec: &dyn Codec| {
        let asked = codec.unanswered();
        let is_news = std::mem::replace(&mut unanswered, asked) != asked;
        !is_news || port.post(0, Message::Asked(asked.map(|(_, step)| step)))
    };
    tell(&*codec);
    pump(&mut |bytes| {
        let shared: Arc<[u8]> = bytes.into();
        feed.take(&shared, port);
        if !port.post(bytes.len(), Message::Bytes(Stream::Stdout, shared)) {
            return false;
        }
        codec.read(bytes, &mut turn);
        tell(&*codec) && post(&mut turn, port)
    });
    codec.finish(&mut turn);
    // There is no channel for answers.
    answers.close();
    post(&mut turn, port);
    port.post(0, Message::Decoded(codec.tally()));
}

/// `false`: the attempt is over.
fn post(turn: &mut Turn, port: &Port<Message>) -> bool {
    let (items, weight) = turn.take_items();
    items.is_empty() || port.post(weight, Message::Items(items))
}
