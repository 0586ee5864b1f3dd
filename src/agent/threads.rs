//! The small threads that move an attempt's bytes.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::display::{DisplayRoute, Feed};
use super::message::Message;
use crate::engine::event::Stream;
use crate::engine::inbox::Port;
use crate::process::supervised::{Pipes, pump};
use crate::reply::decode::{Decoder, Item};
use crate::reply::show::Show;

/// Holds the threads of one attempt; when it is dropped they stop listening to the agent's pipes, even if a
/// stranger keeps these open.
#[derive(Debug)]
pub(super) struct Hold {
    _open: UnixStream,
}

/// Starts the threads that serve the pipes of an agent that was just started.
pub(super) fn serve(
    pipes: Pipes,
    prompt: &str,
    decoder: Decoder,
    display: &DisplayRoute,
    port: &Port<Message>,
) -> std::io::Result<Hold> {
    let (hold, stop) = UnixStream::pair()?;
    let feed = display.start(&stop, port)?;
    let Pipes { mut stdin, stdout, stderr, notes } = pipes;

    // The whole prompt at once, then end of file: an agent that waits for more input would wait for ever. One
    // that ends without reading it all (a broken pipe here) is judged by what it did.
    let prompt: Arc<str> = prompt.into();
    std::thread::spawn(move || stdin.write_all(prompt.as_bytes()));

    let stderr_stop = stop.try_clone()?;
    let stderr_port = port.clone();
    std::thread::spawn(move || {
        pump(stderr, &stderr_stop, |bytes| {
            stderr_port.post(bytes.len(), Message::Bytes(Stream::Stderr, bytes.into()))
        });
        stderr_port.post(0, Message::Closed(Stream::Stderr));
    });

    let note_port = port.clone();
    std::thread::spawn(move || {
        notes.map(Message::Note).all(|note| note_port.post(0, note));
        note_port.post(0, Message::NotesEnded);
    });

    let port = port.clone();
    std::thread::spawn(move || {
        read(decoder, feed, &port, |take| pump(stdout, &stop, take));
        port.post(0, Message::Closed(Stream::Stdout));
    });
    Ok(Hold { _open: hold })
}

/// Passes stdout on and decodes it. The bytes go first: while they are written to the records, this thread
/// decodes them.
fn read(
    mut decoder: Decoder,
    mut feed: Feed,
    port: &Port<Message>,
    pump: impl FnOnce(&mut dyn FnMut(&[u8]) -> bool),
) {
    let mut batch = Batch::default();
    pump(&mut |bytes| {
        let shared: Arc<[u8]> = bytes.into();
        feed.take(&shared, port);
        if !port.post(bytes.len(), Message::Bytes(Stream::Stdout, shared)) {
            return false;
        }
        decoder.push(bytes, &mut |item| batch.push(item));
        batch.post(port)
    });
    decoder.finish(&mut |item| batch.push(item));
    batch.post(port);
    let dead_filter = decoder.dead_filter().map(str::to_owned);
    port.post(0, Message::Decoded { counters: decoder.counters(), dead_filter });
}

/// The items of one chunk of output. Deltas of a few words are joined: what came together is told together.
#[derive(Default)]
struct Batch {
    items: Vec<Item>,
    /// About how many bytes the items hold.
    weight: usize,
}

impl Batch {
    fn push(&mut self, item: Item) {
        self.weight += size_of::<Item>() + text_of(&item);
        // The assistant's text and its display take turns; neither minds being ahead of the other.
        for known in self.items.iter_mut().rev().take(2) {
            match (known, &item) {
                (Item::Text(known), Item::Text(text))
                | (Item::Show(Show::Delta(known)), Item::Show(Show::Delta(text))) => {
                    known.push_str(text);
                    return;
                }
                (Item::Text(_), Item::Show(_)) | (Item::Show(_), Item::Text(_)) => {}
                _ => break,
            }
        }
        self.items.push(item);
    }

    /// `false`: nobody wants more.
    fn post(&mut self, port: &Port<Message>) -> bool {
        let Self { items, weight } = std::mem::take(self);
        items.is_empty() || port.post(weight, Message::Items(items))
    }
}

/// How many bytes of text an item holds, where it can be much.
fn text_of(item: &Item) -> usize {
    match item {
        Item::Text(text) | Item::Show(Show::Text(text) | Show::Delta(text)) => text.len(),
        Item::Show(_) | Item::Note(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::usage::Note;

    #[test]
    fn deltas_are_joined_and_blocks_are_not() {
        let text = |text: &str| Item::Text(text.into());
        let delta = |text: &str| Item::Show(Show::Delta(text.into()));
        let block = |text: &str| Item::Show(Show::Text(text.into()));
        let note = || Item::Note(Note::default());
        let joined = |items: &[Item]| {
            let mut batch = Batch::default();
            items.iter().cloned().for_each(|item| batch.push(item));
            batch.items
        };
        let deltas = [text("a"), delta("a"), text("b"), delta("b"), text("c"), delta("c")];
        assert_eq!(joined(&deltas), [text("abc"), delta("abc")]);
        let blocks = [text("a"), block("a"), text("b"), block("b")];
        assert_eq!(joined(&blocks), [text("ab"), block("a"), block("b")]);
        let apart = [text("a"), note(), text("b"), delta("b"), block("c"), delta("d")];
        assert_eq!(joined(&apart), apart);
    }
}
