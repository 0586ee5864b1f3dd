//! The TCP ports on which processes listen, and whether they have connections.

use std::collections::HashSet;

use super::calls::{TcpSocket, open_sockets, tcp_sockets};

/// The sockets of some processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sockets {
    /// The ports that they listen on, sorted.
    pub ports: Vec<u16>,
    /// Whether one of these has a connection.
    pub has_connection: bool,
}

/// The sockets of these processes, which share a network namespace; empty if they have ended, or cannot be read.
#[must_use]
pub fn of(pids: &[u32]) -> Sockets {
    let inodes: HashSet<u64> = pids.iter().flat_map(|pid| open_sockets(*pid)).collect();
    let Some(first) = pids.first().filter(|_| !inodes.is_empty()) else { return Sockets::default() };
    let mut sockets = tcp_sockets(*first);
    sockets.retain(|socket| inodes.contains(&socket.inode));
    let listening = sockets.iter().filter(|socket| socket.listens);
    let mut ports: Vec<u16> = listening.map(|socket| socket.port).collect();
    ports.sort_unstable();
    ports.dedup();
    let is_connected = |socket: &TcpSocket| socket.is_connected && ports.contains(&socket.port);
    let has_connection = sockets.iter().any(is_connected);
    Sockets { ports, has_connection }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// A port is listed while it is open; returns whether it no longer is after that. Other tests of this process open ports, too, and
    /// may be given the number that has become free.
    fn is_seen_while_it_is_open(address: &str) -> bool {
        let own = [std::process::id()];
        let listener = TcpListener::bind(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(of(&own).ports.contains(&port), "{address}");
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _served = listener.accept().unwrap();
        assert!(of(&own).has_connection);
        drop(listener);
        !of(&own).ports.contains(&port)
    }

    #[test]
    fn a_port_and_who_talks_to_it_are_seen() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            assert!((0..5).any(|_| is_seen_while_it_is_open(address)), "{address}");
        }
        assert_eq!(of(&[]), Sockets::default());
    }
}
