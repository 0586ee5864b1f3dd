//! The TCP ports on which processes listen, and whether they have connections, from `/proc`.

use std::collections::HashSet;
use std::fs;

/// The sockets of some processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sockets {
    /// The ports that they listen on, sorted.
    pub ports: Vec<u16>,
    /// Whether one of these has a connection.
    pub has_connection: bool,
}

/// The states of a listening and a connected socket in `/proc/net/tcp`. Source: `include/net/tcp_states.h`.
const LISTENS: &str = "0A";
const CONNECTED: &str = "01";

/// The sockets of these processes, which share a network namespace; empty if they have ended, or cannot be read.
#[must_use]
pub fn of(pids: &[u32]) -> Sockets {
    let inodes: HashSet<u64> = pids.iter().flat_map(|pid| inodes(*pid)).collect();
    let Some(first) = pids.first().filter(|_| !inodes.is_empty()) else { return Sockets::default() };
    let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{first}/net/{table}")));
    let lines = || tables.iter().flatten().flat_map(|table| table.lines()).filter_map(TcpSocket::parse);
    let listens = |line: &TcpSocket<'_>| line.state == LISTENS && inodes.contains(&line.inode);
    let mut ports: Vec<u16> = lines().filter(listens).map(|line| line.port).collect();
    ports.sort_unstable();
    ports.dedup();
    let is_connected = |line: TcpSocket<'_>| {
        line.state == CONNECTED && ports.contains(&line.port) && inodes.contains(&line.inode)
    };
    let has_connection = lines().any(is_connected);
    Sockets { ports, has_connection }
}

/// The sockets that a process has open.
fn inodes(pid: u32) -> Vec<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets
        .filter_map(|target| target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
        .collect()
}

/// One line of `/proc/net/tcp`. Source: `proc_net_tcp.rst` of the kernel.
struct TcpSocket<'a> {
    port: u16,
    state: &'a str,
    inode: u64,
}

impl<'a> TcpSocket<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let port = u16::from_str_radix(fields.nth(1)?.rsplit_once(':')?.1, 16).ok()?;
        Some(Self { port, state: fields.nth(1)?, inode: fields.nth(5)?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_port_and_who_talks_to_it_are_seen() {
        let own = [std::process::id()];
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let port = listener.local_addr().unwrap().port();
            assert!(of(&own).ports.contains(&port), "{address}");
            let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let _served = listener.accept().unwrap();
            assert!(of(&own).has_connection);
            drop(listener);
            assert!(!of(&own).ports.contains(&port));
        }
        assert_eq!(of(&[]), Sockets::default());
    }
}
