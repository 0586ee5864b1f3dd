//! A proxy to a server that does to connections what networks do.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::postgres_server::PostgresServer;

/// The way of bytes that something happens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// To the server.
    Request,
    /// To the client.
    Answer,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The connection is gone, both ways.
    Cut,
    /// Nothing more arrives, and the connection stays.
    Freeze,
    /// It ends this way, and not the other.
    HalfClose,
    /// It arrives later.
    Delay,
}

/// How much later.
const LATER: Duration = Duration::from_millis(700);

/// A side of a connection.
trait Side: Read + Write {
    fn shut(&self, how: Shutdown);
}

impl Side for TcpStream {
    fn shut(&self, how: Shutdown) {
        let _ = self.shutdown(how);
    }
}

impl Side for UnixStream {
    fn shut(&self, how: Shutdown) {
        let _ = self.shutdown(how);
    }
}

/// Starts a proxy to the server, which asks `happens` at each message, and says whether a `COMMIT` is in it; returns its port.
pub(super) fn proxy(
    server: &PostgresServer,
    happens: impl Fn(bool) -> Option<(Way, What)> + Send + Sync + 'static,
) -> u16 {
    let happens = Arc::new(happens);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, socket) = (listener.local_addr().unwrap().port(), server.socket());
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = UnixStream::connect(&socket) else { break };
            let (back, answers) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            let (happens, told) = (Arc::clone(&happens), Arc::new(Mutex::new(None)));
            let to_tell = Arc::clone(&told);
            thread::spawn(move || pump(back, answers, &|_| told.lock().unwrap().take()));
            let on_the_way = move |bytes: &[u8]| {
                let (way, what) = happens(bytes.windows(7).any(|word| word == b"COMMIT\0"))?;
                match way {
                    Way::Request => Some(what),
                    Way::Answer => {
                        *to_tell.lock().unwrap() = Some(what);
                        None
                    }
                }
            };
            thread::spawn(move || pump(client, server, &on_the_way));
        }
    });
    port
}

/// Passes bytes on, until something happens to them.
fn pump(mut from: impl Side, mut to: impl Side, happens: &dyn Fn(&[u8]) -> Option<What>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        match happens(&bytes[..count]) {
            None => {}
            Some(What::Cut) => break,
            // The other direction keeps the connection.
            Some(What::Freeze) => return,
            Some(What::HalfClose) => return to.shut(Shutdown::Write),
            Some(What::Delay) => thread::sleep(LATER),
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    from.shut(Shutdown::Both);
    to.shut(Shutdown::Both);
}
