//! The seam to formats: an agent's bytes become items, and answers go back to its stdin.

use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::reply::decode::{Counters, Decoder, Item};
use crate::reply::show::Show;

/// One conversation with an agent over its stdin and stdout. It lives in the thread that reads stdout.
pub(super) trait Codec: Send {
    /// The first bytes for stdin, and whether it stays open after them.
    fn open(&mut self, prompt: &str) -> (Vec<u8>, Stdin);

    /// Gets the channel to the agent's stdin, for answers that have to wait.
    fn connect(&mut self, _answers: &Answers) {}

    /// Takes bytes of the agent, cut anywhere.
    fn read(&mut self, bytes: &[u8], turn: &mut Turn);

    /// The bytes that ask the agent to end its turn, kept up to date by the codec; empty if it cannot be asked.
    fn farewell(&self) -> Farewell {
        Farewell::default()
    }

    /// The open request before the prompt: its number and its name.
    fn unanswered(&self) -> Option<(u64, &'static str)> {
        None
    }

    /// The agent writes no more.
    fn finish(&mut self, turn: &mut Turn);

    /// The counts.
    fn tally(&self) -> Decoded;
}

/// The bytes that ask an agent to end its turn; none as long as it cannot be asked.
pub(super) type Farewell = Arc<Mutex<Vec<u8>>>;

/// The channel to an agent's stdin, for all threads that write to it. Once closed, it drops everything.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    sender: Arc<Mutex<Option<Sender<Vec<u8>>>>>,
    unread: Arc<Mutex<Unread>>,
}

/// Bytes for an agent that are not written yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Unread {
    pub(super) answers: usize,
    pub(super) bytes: usize,
}

/// The receiving end of that channel.
#[derive(Debug)]
pub(super) struct ToWrite {
    pieces: Receiver<Vec<u8>>,
    unread: Arc<Mutex<Unread>>,
}

impl Answers {
    /// Both ends.
    pub(super) fn new() -> (Self, ToWrite) {
        let (sender, pieces) = channel();
        let unread = Arc::<Mutex<Unread>>::default();
        let answers = Self { sender: Arc::new(Mutex::new(Some(sender))), unread: Arc::clone(&unread) };
        (answers, ToWrite { pieces, unread })
    }

    /// `false`: the agent reads no more.
    pub(super) fn send(&self, bytes: Vec<u8>) -> bool {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = &*sender else { return false };
        {
            let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
            unread.answers += 1;
            unread.bytes += bytes.len();
        }
        sender.send(bytes).is_ok()
    }

    /// The bytes that it has not read yet.
    pub(super) fn unread(&self) -> Unread {
        *self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the agent's stdin when all bytes are written.
    pub(super) fn close(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl ToWrite {
    /// Writes the bytes for the agent, and closes its stdin when no more can come: an agent that waits for more input would wait
    /// for ever. One that ends without reading all of it (a broken pipe here) is judged by what it did.
    pub(super) fn write_to(self, mut stdin: impl Write) {
        for piece in &self.pieces {
            if stdin.write_all(&piece).is_err() {
                return;
            }
            self.is_read(&piece);
        }
    }

    /// The bytes so far.
    #[cfg(test)]
    pub(super) fn so_far(&self) -> Vec<u8> {
        self.pieces.try_iter().inspect(|piece| self.is_read(piece)).collect::<Vec<_>>().concat()
    }

    /// Whether more can come.
    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        self.pieces.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected)
    }

    fn is_read(&self, piece: &[u8]) {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        unread.answers -= 1;
        unread.bytes -= piece.len();
    }
}

/// Whether an agent's stdin stays open after the first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stdin {
    /// It is closed: there are no other bytes.
    Close,
    /// It stays open for answers, until the codec [hangs up](Turn::hang_up).
    KeepOpen,
}

/// The counts of a codec.
#[derive(Debug, Clone, Default)]
pub(super) struct Decoded {
    /// Lines of every kind.
    pub counters: Counters,
    /// A filter that died, and why.
    pub dead_filter: Option<String>,
    /// A request that the agent never answered.
    pub owed: Option<&'static str>,
}

/// JSON lines: the prompt is all that is written, and every line is decoded by itself.
impl Codec for Decoder {
    fn open(&mut self, prompt: &str) -> (Vec<u8>, Stdin) {
        (prompt.as_bytes().to_vec(), Stdin::Close)
    }

    fn read(&mut self, bytes: &[u8], turn: &mut Turn) {
        self.push(bytes, &mut |item| turn.item(item));
    }

    fn finish(&mut self, turn: &mut Turn) {
        Self::finish(self, &mut |item| turn.item(item));
    }

    fn tally(&self) -> Decoded {
        Decoded { counters: self.counters(), dead_filter: self.dead_filter().map(str::to_owned), owed: None }
    }
}

/// The result of a codec for one chunk of output. Deltas of a few words are joined: what came together stays together.
#[derive(Debug, Default)]
pub(super) struct Turn {
    items: Vec<Item>,
    /// The size of the items, about, in bytes.
    weight: usize,
    answers: Answers,
}

impl Turn {
    /// The channel for answers.
    pub(super) fn new(answers: Answers) -> Self {
        Self { answers, ..Self::default() }
    }

    /// Adds an item.
    pub(super) fn item(&mut self, item: Item) {
        self.weight += size_of::<Item>() + text_of(&item);
        // The assistant's text and its display take turns; neither minds being ahead of the other.
        for known in self.items.iter_mut().rev().take(2) {
            match (known, &item) {
                (Item::Text(known), Item::Text(text))
                | (Item::Show(Show::Delta(known)), Item::Show(Show::Delta(text)))
                | (Item::Show(Show::Thought(known)), Item::Show(Show::Thought(text))) => {
                    known.push_str(text);
                    return;
                }
                (Item::Text(_), Item::Show(_)) | (Item::Show(_), Item::Text(_)) => {}
                _ => break,
            }
        }
        self.items.push(item);
    }

    /// Writes these bytes to the agent's stdin. One that reads no more is judged by what it did.
    pub(super) fn answer(&self, bytes: Vec<u8>) {
        self.answers.send(bytes);
    }

    /// The bytes of answers that the agent has not read yet.
    pub(super) fn unread(&self) -> Unread {
        self.answers.unread()
    }

    /// Closes the agent's stdin.
    pub(super) fn hang_up(&self) {
        self.answers.close();
    }

    /// The items, and their size, about, in bytes.
    pub(super) fn take_items(&mut self) -> (Vec<Item>, usize) {
        (std::mem::take(&mut self.items), std::mem::take(&mut self.weight))
    }
}

/// The size of an item's text, in bytes, if it can be large.
fn text_of(item: &Item) -> usize {
    match item {
        Item::Text(text) | Item::Show(Show::Text(text) | Show::Delta(text) | Show::Thought(text)) => {
            text.len()
        }
        Item::Show(_) | Item::Note(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_are_joined_and_blocks_are_not() {
        let text = |text: &str| Item::Text(text.into());
        let delta = |text: &str| Item::Show(Show::Delta(text.into()));
        let block = |text: &str| Item::Show(Show::Text(text.into()));
        let note = || Item::Note(Box::default());
        let joined = |items: &[Item]| {
            let mut turn = Turn::default();
            items.iter().cloned().for_each(|item| turn.item(item));
            turn.items
        };
        let deltas = [text("a"), delta("a"), text("b"), delta("b"), text("c"), delta("c")];
        assert_eq!(joined(&deltas), [text("abc"), delta("abc")]);
        let blocks = [text("a"), block("a"), text("b"), block("b")];
        assert_eq!(joined(&blocks), [text("ab"), block("a"), block("b")]);
        let apart = [text("a"), note(), text("b"), delta("b"), block("c"), delta("d")];
        assert_eq!(joined(&apart), apart);
    }
}
