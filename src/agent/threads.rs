//! The small threads that move an attempt's bytes.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::display::{DisplayRoute, Feed};
use super::message::Message;
use crate::engine::event::Stream;
use crate::engine::inbox::Port;
use crate::process::supervised::{Pipes, pump};
use crate::reply::decode::Decoder;

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
    let mut items = Vec::new();
    pump(&mut |bytes| {
        let shared: Arc<[u8]> = bytes.into();
        feed.take(&shared, port);
        if !port.post(bytes.len(), Message::Bytes(Stream::Stdout, shared)) {
            return false;
        }
        decoder.push(bytes, &mut |item| items.push(item));
        items.is_empty() || port.post(0, Message::Items(std::mem::take(&mut items)))
    });
    decoder.finish(&mut |item| items.push(item));
    port.post(0, Message::Items(items));
    let dead_filter = decoder.dead_filter().map(str::to_owned);
    port.post(0, Message::Decoded { counters: decoder.counters(), dead_filter });
}
