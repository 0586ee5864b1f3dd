//! A proxy to a server that cuts connections.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::postgres_server::PostgresServer;

/// What a proxy does with a connection at a `COMMIT` in it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Cut {
    /// The server does not get it.
    Request,
    /// The client does not get the answer.
    Answer,
}

/// Starts a proxy to the server, which asks `cuts` at each `COMMIT`; returns its port.
pub(super) fn proxy(server: &PostgresServer, cuts: impl Fn() -> Option<Cut> + Send + Sync + 'static) -> u16 {
    let cuts = Arc::new(cuts);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, socket) = (listener.local_addr().unwrap().port(), server.socket());
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = UnixStream::connect(&socket) else { break };
            let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            let (cuts, is_mute) = (Arc::clone(&cuts), Arc::new(AtomicBool::new(false)));
            let muted = Arc::clone(&is_mute);
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = from.read(&mut bytes) {
                    if muted.load(Ordering::SeqCst) || to.write_all(&bytes[..count]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Both);
            });
            thread::spawn(move || {
                let (mut from, mut to, mut bytes) = (client, server, [0; 4096]);
                while let Ok(count @ 1..) = from.read(&mut bytes) {
                    let commits = bytes[..count].windows(7).any(|word| word == b"COMMIT\0");
                    match if commits { cuts() } else { None } {
                        Some(Cut::Request) => break,
                        Some(Cut::Answer) => is_mute.store(true, Ordering::SeqCst),
                        None => {}
                    }
                    if to.write_all(&bytes[..count]).is_err() {
                        break;
                    }
                }
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    });
    port
}
